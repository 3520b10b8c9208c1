// Patterns over names: the C library's fnmatch, and how far a name is from matching.
#include "compiler/Sidecar/Sidecar.h"

#include <algorithm>
#include <fnmatch.h>
#include <limits>

namespace hpc {

bool matchesName(const std::string &pattern, const std::string &name) {
  if (pattern.find_first_of("*?[\\") == std::string::npos)
    return pattern == name;
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::string patternFor(const std::string &name) {
  std::string pattern;
  for (char c : name) {
    if (c == '*' || c == '?' || c == '[' || c == '\\')
      pattern += '\\';
    pattern += c;
  }
  return pattern;
}

/// Letters to insert, delete or replace in `name` for the pattern to match it: Levenshtein's table with `*` for
/// anything and `?` or `[...]` for any letter.
static size_t distanceToMatch(const std::string &pattern, const std::string &name) {
  std::vector<size_t> row(name.size() + 1);
  for (size_t j = 0; j < row.size(); ++j)
    row[j] = j;
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    bool isStar = c == '*', isAny = c == '?';
    if (size_t close = c == '[' ? pattern.find(']', i + 2) : std::string::npos; close != std::string::npos) {
      isAny = true;
      i = close;
    } else if (c == '\\' && i + 1 < pattern.size()) {
      c = pattern[++i];
    }
    size_t diagonal = row[0];
    row[0] += !isStar;
    for (size_t j = 1; j < row.size(); ++j) {
      size_t replaced = diagonal + !(isAny || c == name[j - 1]);
      diagonal = row[j];
      row[j] = isStar ? std::min(row[j], row[j - 1]) : std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string nearestMatch(const std::string &pattern, const std::vector<std::string> &names) {
  std::string nearest;
  size_t letters = pattern.size() - size_t(std::count(pattern.begin(), pattern.end(), '*'));
  size_t least = letters / 3 + 2; // as far is another name
  for (const std::string &name : names)
    if (size_t distance = distanceToMatch(pattern, name); distance < least) {
      least = distance;
      nearest = name;
    }
  return nearest;
}

} // namespace hpc
