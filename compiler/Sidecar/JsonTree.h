// JSON as a tree whose values know the line on which they begin, so that messages can name it.
// The library parses; it gives no positions of values, so this tree is built from its events.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpc {

struct JsonTree {
  enum Kind { Null, Bool, Integer, Real, String, Array, Object } kind = Null;
  int line = 1;             ///< a member's: that of its key
  bool boolean = false;
  int64_t integer = 0;      ///< a number with a fraction or more than 63 bits is Real
  std::string text;         ///< of a String; of a Real as written
  std::vector<JsonTree> items;
  std::vector<std::pair<std::string, JsonTree>> members; ///< in the file's order

  /// The member of that name, or null.
  const JsonTree *find(std::string_view key) const;
  /// "a number", "a list": for messages.
  const char *kindName() const;
};

/// Errors (sidecar): no JSON, a key twice in one object, nesting of more than 16, more values than allowedFootprint holds.
/// They begin with "FILE:LINE: ".
Expected<JsonTree> parseJson(std::string_view text, const std::string &file);

/// `text` as a JSON string, with its quotes.
std::string jsonQuoted(const std::string &text);

} // namespace hpc
