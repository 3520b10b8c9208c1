// The text of an answer while its ids come one by one: whole characters, up to the first text that ends it.
#pragma once

#include "runtime/text/Tokenizer.h"

namespace hpc::generate {

/// `text` with U+FFFD in place of each longest part that begins a character and does not complete it (The Unicode Standard, section
/// 3.9, "U+FFFD Substitution of Maximal Subparts"), as Hugging Face's tokenizers decodes.
std::string validUtf8(std::string_view text);

class TextStream {
public:
  /// `prompt`: ids before the answer. `stops`: texts before the first of which the answer's text ends; none is empty.
  TextStream(const text::Tokenizer &tokenizer, std::vector<int32_t> prompt, std::vector<std::string> stops);

  /// Returns the text that is certain with it: no part of a character, nor what may be the beginning of a stop. An id that names no token
  /// has no text.
  Expected<std::string> add(int64_t id);
  /// Whether a stop has appeared; what comes after it is left out.
  bool isStopped() const { return stopped; }
  /// The rest, after the last id.
  Expected<std::string> finish();
  /// Everything that add() and finish() have returned.
  const std::string &text() const { return shown; }
  /// Ids that named no token.
  int64_t unknownIds() const { return unknown; }

private:
  Expected<std::string> take(bool isLast);

  const text::Tokenizer &tokenizer;
  const std::vector<std::string> stops;
  std::vector<int32_t> window; ///< the newest ids; the first `known` of them only lend their text's end to the next
  size_t known = 0;
  std::string held; ///< text that is certain, but for stops
  std::string shown;
  bool stopped = false;
  int64_t unknown = 0;
};

} // namespace hpc::generate
