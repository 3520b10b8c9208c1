// Statistics in double precision over any element type.
#include "tools/hpc-run/Report.h"

#include "runtime/base/HalfFloat.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

namespace hpc {

namespace {

/// Element `i` as a double.
double element(const Array &array, int64_t i) {
  switch (array.dtype) {
  case DType::F32:
    return array.as<float>()[i];
  case DType::F64:
    return array.as<double>()[i];
  case DType::F16:
    return halfToFloat(array.as<uint16_t>()[i]);
  case DType::BF16:
    return bfloatToFloat(array.as<uint16_t>()[i]);
  case DType::I64:
    return double(array.as<int64_t>()[i]);
  case DType::I32:
    return array.as<int32_t>()[i];
  case DType::I16:
    return array.as<int16_t>()[i];
  case DType::I8:
    return array.as<int8_t>()[i];
  case DType::U8:
    return array.as<uint8_t>()[i];
  case DType::U16:
    return array.as<uint16_t>()[i];
  case DType::U32:
    return array.as<uint32_t>()[i];
  case DType::U64:
    return double(array.as<uint64_t>()[i]);
  case DType::Bool:
    return array.as<uint8_t>()[i] != 0;
  }
  return 0;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.7g", value);
  return text;
}

} // namespace

std::string describeOutput(const std::string &outputName, const Array &array) {
  double least = std::numeric_limits<double>::infinity(), most = -least, sum = 0;
  int64_t count = array.elements(), nans = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = element(array, i);
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
    text += " " + number(element(array, i));
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
