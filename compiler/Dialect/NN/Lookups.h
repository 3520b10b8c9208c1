// Which numbers the lookups of a program take of an integer input: ids name rows of a table, labels classes.
// An input is followed through views alone, so of computed indices nothing is said.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::nn {

/// One lookup by an input. A number outside of [low, high) names nothing, and what is looked up by it is NaN.
struct Lookup {
  std::vector<int64_t> begin, end; ///< the box of the input that is looked up, by dim of the input
  bool isWhole = true;             ///< every element of that box is; else some of them
  int64_t low = 0, high = 0;
  std::optional<int64_t> ignored; ///< a label that stands for none
  std::string reader;             ///< module path of what looks up, or its ONNX node

  bool operator==(const Lookup &other) const {
    return begin == other.begin && end == other.end && isWhole == other.isWhole && low == other.low &&
           high == other.high && ignored == other.ignored && reader == other.reader;
  }
};

/// Each once, in the order in which the input's uses are found.
std::vector<Lookup> findLookups(BlockArgument input);

} // namespace hpc::nn
