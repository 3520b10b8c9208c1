// A graph of operations as the stand-in for cuDNN keeps it, and its evaluation: every tensor whole, in plain loops.
#pragma once

#include "test/gpu/standin/Machine.h"

#include <array>
#include <vector>

namespace standin {

struct DnnTensor {
  int64_t id = 0;
  int type = 0;
  std::array<int64_t, 4> dims{}, strides{};
  bool isVirtual = false, isByValue = false;

  int64_t size() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  int64_t bytesOfElement() const;
};

struct DnnOperation {
  enum Kind { Matmul, Pointwise, Reduction, Reshape } kind = Matmul;
  int mode = 0;
  int64_t axis = 0;
  DnnTensor x, b, t, y; ///< of a product: a, b, c as x, b, y
  bool hasB = false, hasT = false;
};

struct DnnGraph {
  std::vector<DnnOperation> operations;
  std::vector<DnnTensor> inMemory() const; ///< each once, numbers by value left out
};

/// Where a tensor lies, by its id: an address of the device, or a number given by value.
struct DnnPlace {
  int64_t id = 0;
  uint64_t address = 0;
  std::array<char, 4> value{};
};

/// Does the operations, in their order; what is in between is rounded to its type.
void evaluate(const DnnGraph &graph, const std::vector<DnnPlace> &places, const Running &running);

} // namespace standin
