#include "runtime/text/AddedTokens.h"

#include <algorithm>
#include <utf8proc.h>

namespace hpc::text {

AddedTokens::AddedTokens(std::vector<AddedToken> given) : tokens(std::move(given)) {
  std::sort(tokens.begin(), tokens.end(), [](const AddedToken &a, const AddedToken &b) {
    return std::pair(b.content.size(), a.id) < std::pair(a.content.size(), b.id);
  });
  for (const AddedToken &token : tokens)
    beginsToken[uint8_t(token.content[0])] = true;
}

const AddedToken *AddedTokens::find(std::string_view text) const {
  for (const AddedToken &token : tokens)
    if (text.substr(0, token.content.size()) == token.content)
      return &token;
  return nullptr;
}

/// Bytes of the code point that `text` begins with, where it is white space (Unicode's White_Space); else 0.
static size_t spaceAt(std::string_view text) {
  utf8proc_int32_t point = 0;
  const utf8proc_ssize_t length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t *>(text.data()), utf8proc_ssize_t(text.size()), &point);
  if (length <= 0)
    return 0;
  const utf8proc_category_t category = utf8proc_category(point);
  const bool isSpace = (point >= 9 && point <= 13) || point == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
                       category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
  return isSpace ? size_t(length) : 0;
}

size_t AddedTokens::spacesAt(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = spaceAt(text.substr(at));
    if (length == 0)
      break;
    at += length;
  }
  return at;
}

size_t AddedTokens::beginOfSpaces(std::string_view text, size_t end, size_t least) {
  while (end > least) {
    size_t before = end - 1;
    while (before > least && (uint8_t(text[before]) & 0xC0) == 0x80)
      --before;
    if (spaceAt(text.substr(before, end - before)) != end - before)
      break;
    end = before;
  }
  return end;
}

} // namespace hpc::text
