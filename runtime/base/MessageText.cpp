// A quote opens where no letter stands before it and closes where none follows, so that "the model's" is neither.
#include "runtime/base/MessageText.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace hpc {

static constexpr size_t maxQuoted = 200, maxWord = 1000, maxMessage = 20000;

/// Where `text` may be cut at or before `at`: not inside a character of UTF-8.
static size_t boundary(std::string_view text, size_t at) {
  for (int back = 0; back < 3 && at > 0 && (text[at] & 0xc0) == 0x80; ++back)
    --at;
  return at;
}

/// Three quarters of `most` from its beginning, the rest from its end.
static std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most)
    return std::string(text);
  size_t begin = boundary(text, most / 4 * 3), end = boundary(text, text.size() - most / 4);
  return std::string(text.substr(0, begin)) + "..." + std::string(text.substr(end));
}

static std::string visible(const std::string &text, bool keepsLines) {
  std::string result;
  for (unsigned char each : text) {
    if (each >= 0x20 && each != 0x7f) {
      result += char(each);
    } else if (each == '\n' || each == '\t') {
      result += keepsLines ? std::string(1, char(each)) : each == '\n' ? "\\n" : "\\t";
    } else {
      char code[8];
      std::snprintf(code, sizeof(code), "\\x%02x", each);
      result += code;
    }
  }
  return result;
}

static bool isLetter(char each) { return std::isalnum(static_cast<unsigned char>(each)); }

/// The quote that closes the one before `from`, or npos.
static size_t closingQuote(std::string_view text, size_t from) {
  for (size_t at = text.find('\'', from); at != text.npos; at = text.find('\'', at + 1))
    if (at + 1 == text.size() || !isLetter(text[at + 1]))
      return at;
  return text.npos;
}

std::string messageText(std::string_view message) {
  std::string result;
  bool mayQuote = true; // false once nothing closes any more
  for (size_t at = 0; at < message.size();) {
    if (mayQuote && message[at] == '\'' && (at == 0 || !isLetter(message[at - 1]))) {
      size_t end = closingQuote(message, at + 1);
      mayQuote = end != message.npos;
      if (mayQuote) {
        result += "'" + visible(shortened(message.substr(at + 1, end - at - 1), maxQuoted), false) + "'";
        at = end + 1;
        continue;
      }
    }
    size_t end = std::min(message.find_first_of(" \n\t'", at + 1), message.size());
    result += visible(shortened(message.substr(at, end - at), maxWord), true);
    at = end;
  }
  return shortened(result, maxMessage);
}

} // namespace hpc
