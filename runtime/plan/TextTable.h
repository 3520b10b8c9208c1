// Columns of text: as wide as their longest cell, numbers to the right.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hpc::plan {

/// Rows of cells, the first one the titles. A column of numbers ("12,345" is one) stands at its right edge.
class TextTable {
public:
  explicit TextTable(std::vector<std::string> titles) { add(std::move(titles)); }
  /// `below`: a line of its own under the row, indented by the first column; "" = none.
  void add(std::vector<std::string> cells, std::string below = "");
  /// The row of one stage, rank, ...: those that differ in nothing else share a line, at the place of the first, whose
  /// first cell lists them.
  void addFor(int64_t member, std::vector<std::string> cells);
  /// Every line begins with two spaces and ends with a newline.
  std::string text() const;

private:
  struct Row {
    std::vector<std::string> cells;
    std::string below;
    std::vector<int64_t> members;
  };
  std::vector<Row> rows;
  std::map<std::vector<std::string>, size_t> rowOf; ///< of members: by their other cells
};

/// Texts that are equal up to their numbers, as one: "h.*.mlp" of "h.0.mlp" and "h.1.mlp", where a number that is the
/// same in all of them stays.
std::string joinNumbered(const std::vector<std::string> &texts);
/// A text with every number replaced by '*': equal for texts that joinNumbered can join.
std::string withoutNumbers(const std::string &text);
/// "0, 2-5", "0-14:2" for every second one: ascending numbers, runs as ranges. What has many pieces ends in how many
/// numbers there are.
std::string rangesText(const std::vector<int64_t> &numbers);

} // namespace hpc::plan
