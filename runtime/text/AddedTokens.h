// Tokens that are found in the text before anything else is done with it, as <|endoftext|>: the leftmost first, of several at one
// place the longest.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hpc::text {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool stripsLeft = false, stripsRight = false; ///< white space beside it is part of it
  bool isNormalized = false;                    ///< looked for in the normalized text, after the others
};

class AddedTokens {
public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  bool empty() const { return tokens.empty(); }

  /// Calls text(piece) and token(id) in the order of the text.
  template <typename OnText, typename OnToken> void split(std::string_view text, const OnText &onText, const OnToken &onToken) const {
    size_t taken = 0;
    for (size_t at = 0; at < text.size();) {
      const AddedToken *token = beginsToken[uint8_t(text[at])] ? find(text.substr(at)) : nullptr;
      if (!token) {
        ++at;
        continue;
      }
      size_t first = at, last = at + token->content.size();
      at = last; // the next one may begin within white space that this one takes
      if (token->stripsLeft)
        first = beginOfSpaces(text, first, taken);
      if (token->stripsRight)
        last += spacesAt(text.substr(last));
      if (first > taken)
        onText(text.substr(taken, first - taken));
      onToken(token->id);
      taken = last;
    }
    if (taken < text.size())
      onText(text.substr(taken));
  }

private:
  const AddedToken *find(std::string_view text) const;
  /// Bytes of white space that `text` begins with.
  static size_t spacesAt(std::string_view text);
  /// Where the white space begins that ends at `end`, not before `least`.
  static size_t beginOfSpaces(std::string_view text, size_t end, size_t least);

  std::vector<AddedToken> tokens; ///< the longest first
  std::array<bool, 256> beginsToken = {};
};

} // namespace hpc::text
