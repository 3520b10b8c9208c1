// Texts that end a sequence. A token may hold a part of a text, more than one text, or a part of a character, so the bytes of the last
// tokens are searched, not tokens.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hpc::generate {

class StopTexts {
public:
  /// The bytes of tokens.
  using Decode = std::function<std::string(const std::vector<int64_t> &tokens)>;

  /// `texts`: none of them empty.
  StopTexts(std::vector<std::string> texts, Decode decode) : texts(std::move(texts)), decode(std::move(decode)) {}

  /// Whether one of the texts ends within the last token, and no earlier one does. Decodes only as many tokens as a text can reach.
  bool endWith(const std::vector<int64_t> &newTokens) const;
  /// `text` without the first of the texts and what follows it.
  std::string cut(const std::string &text) const;

private:
  std::vector<std::string> texts;
  Decode decode;
};

} // namespace hpc::generate
