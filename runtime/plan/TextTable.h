// Columns of text: as wide as their longest cell, numbers to the right.
#pragma once

#include <string>
#include <vector>

namespace hpc::plan {

/// Rows of cells, the first one the titles. A cell of digits alone stands at the right edge of its column.
class TextTable {
public:
  explicit TextTable(std::vector<std::string> titles) { add(std::move(titles)); }
  /// `below`: a line of its own under the row, indented by the first column; "" = none.
  void add(std::vector<std::string> cells, std::string below = "");
  /// Every line begins with two spaces and ends with a newline.
  std::string text() const;

private:
  struct Row {
    std::vector<std::string> cells;
    std::string below;
  };
  std::vector<Row> rows;
};

/// Texts that are equal up to their numbers, as one: "h.*.mlp" of "h.0.mlp" and "h.1.mlp", where a number that is the
/// same in all of them stays.
std::string joinNumbered(const std::vector<std::string> &texts);
/// A text with every number replaced by '*': equal for texts that joinNumbered can join.
std::string withoutNumbers(const std::string &text);
/// "0, 2-5": ascending numbers, runs as ranges.
std::string rangesText(const std::vector<int64_t> &numbers);

} // namespace hpc::plan
