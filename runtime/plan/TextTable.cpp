// Layout of tables, and texts that differ in numbers.
#include "runtime/plan/TextTable.h"

#include <algorithm>
#include <cctype>

namespace hpc::plan {

namespace {

bool isDigit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)); }

/// Alternates text and number, beginning with text: "h.12.x" -> "h.", "12", ".x".
std::vector<std::string> splitNumbers(const std::string &text) {
  std::vector<std::string> parts = {""};
  for (char letter : text) {
    if (isDigit(letter) != (parts.size() % 2 == 0))
      parts.emplace_back();
    parts.back() += letter;
  }
  return parts;
}

bool isNumber(const std::string &cell) {
  return !cell.empty() && std::all_of(cell.begin(), cell.end(), [](char c) { return isDigit(c) || c == ','; });
}

} // namespace

void TextTable::add(std::vector<std::string> cells, std::string below) {
  rows.push_back({std::move(cells), std::move(below), {}});
}

void TextTable::addFor(int64_t member, std::vector<std::string> cells) {
  auto [found, isNew] = rowOf.emplace(cells, rows.size());
  if (isNew) {
    cells.insert(cells.begin(), "");
    add(std::move(cells));
  }
  rows[found->second].members.push_back(member);
}

std::string TextTable::text() const {
  std::vector<Row> rows = this->rows;
  for (Row &row : rows)
    if (!row.members.empty())
      row.cells[0] = rangesText(row.members);
  size_t columns = rows.front().cells.size();
  std::vector<size_t> widths(columns, 0);
  std::vector<bool> toTheRight(columns, rows.size() > 1);
  for (size_t row = 0; row < rows.size(); ++row)
    for (size_t column = 0; column < columns; ++column) {
      widths[column] = std::max(widths[column], rows[row].cells[column].size());
      if (row > 0 && !isNumber(rows[row].cells[column]))
        toTheRight[column] = false;
    }
  std::string text;
  for (const Row &row : rows) {
    std::string line;
    for (size_t column = 0; column < columns; ++column) {
      const std::string &cell = row.cells[column];
      std::string padding(widths[column] - cell.size(), ' ');
      line += "  " + (toTheRight[column] ? padding + cell : cell + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (!row.below.empty())
      text += std::string(widths[0] + 4, ' ') + row.below + "\n";
  }
  return text;
}

std::string withoutNumbers(const std::string &text) {
  std::vector<std::string> parts = splitNumbers(text);
  std::string result;
  for (size_t i = 0; i < parts.size(); ++i)
    result += i % 2 ? "*" : parts[i];
  return result;
}

std::string joinNumbered(const std::vector<std::string> &texts) {
  std::vector<std::string> joined = splitNumbers(texts.front());
  for (const std::string &text : texts) {
    std::vector<std::string> parts = splitNumbers(text);
    for (size_t i = 1; i < joined.size(); i += 2)
      if (joined[i] != parts[i])
        joined[i] = "*";
  }
  std::string result;
  for (const std::string &part : joined)
    result += part;
  return result;
}

std::string rangesText(const std::vector<int64_t> &numbers) {
  constexpr size_t mostPieces = 4;
  std::string text;
  for (size_t first = 0, last, pieces = 0; first < numbers.size(); first = last + 1, ++pieces) {
    if (pieces == mostPieces)
      return text + ", ... (" + std::to_string(numbers.size()) + ")";
    last = first;
    const int64_t step = first + 1 < numbers.size() ? numbers[first + 1] - numbers[first] : 1;
    while (last + 1 < numbers.size() && numbers[last + 1] - numbers[last] == step)
      ++last;
    if (last == first + 1 && step > 1) // two numbers apart are no row of numbers
      last = first;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[first]);
    if (last > first)
      text += "-" + std::to_string(numbers[last]) + (step > 1 ? ":" + std::to_string(step) : "");
  }
  return text;
}

} // namespace hpc::plan
