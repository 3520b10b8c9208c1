// What a misspelt flag was meant to be; the three tools answer alike.
// Only what is near is offered: a wrong guess costs the user more than none.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace hpc {

/// Letters to insert, delete or replace to turn `a` into `b` (Levenshtein), by one row of the usual table.
inline size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

/// "there is no --tpp; did you mean --pp or --tp?", or, where nothing is near, "there is no --x; see hpc-run --help".
/// `given` and `flags` begin with their dashes; a value after '=' is left out of `given`.
inline std::string unknownFlag(const std::string &tool, const std::string &given, std::vector<std::string> flags) {
  std::string text = "there is no " + given, nearest;
  size_t least = given.size() / 3 + 1; // more than that is another word
  std::sort(flags.begin(), flags.end());
  for (const std::string &flag : flags) {
    size_t distance = editDistance(given, flag);
    if (distance > least)
      continue;
    nearest = distance < least || nearest.empty() ? flag : nearest + " or " + flag;
    least = distance;
  }
  return text + (nearest.empty() ? "; see " + tool + " --help" : "; did you mean " + nearest + "?");
}

} // namespace hpc
