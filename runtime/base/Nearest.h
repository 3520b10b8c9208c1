// Guesses the intended name of a misspelt one: of flags, keys, axes, parameters. Only near names are offered: a wrong
// guess costs the user more than none.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace hpc {

/// Letters to insert, delete or replace to turn `a` into `b` (Levenshtein), by one row of the usual table.
inline size_t editDistance(std::string_view a, std::string_view b) {
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

/// The names that are nearest to `given`, sorted; none where all differ in more than a third of its letters.
inline std::vector<std::string> nearestNames(std::string_view given, std::vector<std::string> names) {
  std::vector<std::string> nearest;
  size_t least = given.size() / 3 + 1; // more than that is another word
  std::sort(names.begin(), names.end());
  for (std::string &name : names) {
    size_t distance = editDistance(given, name);
    if (distance > least)
      continue;
    if (distance < least)
      nearest.clear();
    least = distance;
    nearest.push_back(std::move(name));
  }
  return nearest;
}

/// "'tp'", "'dp' or 'tp'", "'a', 'b' or 'c'"; `quote` is put on both sides of every name.
inline std::string anyOf(const std::vector<std::string> &names, const std::string &quote = "'") {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + quote + names[i] + quote;
  return text;
}

} // namespace hpc
