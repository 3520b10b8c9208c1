// Statistics in double precision over any element type.
#include "tools/hpc-run/Report.h"

#include "runtime/base/ArrayElements.h"
#include "runtime/base/NumberText.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

namespace hpc {

namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.7g", printed(value));
  return text;
}

} // namespace

std::string describeOutput(const std::string &outputName, const Array &array) {
  double least = std::numeric_limits<double>::infinity(), most = -least, sum = 0;
  int64_t count = array.elements(), nans = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = numberAt(array, i);
    if (std::isnan(value)) {
      ++nans;
      continue;
    }
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
  }
  std::string text = outputName + ": " + shapeText(array.shape) + " of " + name(array.dtype);
  if (count > nans)
    text += ", min " + number(least) + ", max " + number(most) + ", mean " + number(sum / double(count - nans));
  text += nans ? ", " + std::to_string(nans) + " NaN" : "";
  if (count > 0)
    text += ", first";
  for (int64_t i = 0; i < std::min<int64_t>(count, 4); ++i)
    text += " " + number(numberAt(array, i));
  return text;
}

std::string timingLine(std::vector<double> milliseconds, int64_t peakBytesPerRank) {
  std::sort(milliseconds.begin(), milliseconds.end());
  size_t half = milliseconds.size() / 2;
  double median = milliseconds.size() % 2 ? milliseconds[half] : (milliseconds[half - 1] + milliseconds[half]) / 2;
  nlohmann::ordered_json line = {{"min_ms", milliseconds.front()},
                                 {"median_ms", median},
                                 {"peak_bytes_per_rank", peakBytesPerRank},
                                 {"runs", milliseconds.size()}};
  return line.dump();
}

} // namespace hpc
