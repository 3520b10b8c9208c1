// The program's nn.parameter ops: one per distinct weight, at the start of the function, by reference to the file.
// Equal content makes two initializers one weight (exporters write a tied weight twice), unless all elements are equal:
// zeros and ones are how biases and norms begin, and say nothing.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Import/OnnxModel.h"

namespace hpc::onnx {

/// Whether an initializer is something to learn: floats of more than one element, masks (two values, one of them far
/// below the other) excepted. All other initializers are constants and fold.
bool isWeight(const StoredTensor &tensor);

class WeightTable {
public:
  WeightTable(Block *entry, MLIRContext *context) : entry(entry), context(context) {}

  /// The parameter that holds the tensor, made at its first use.
  Value get(const StoredTensor &tensor);
  /// Gives every parameter its aliases: tied initializers and the modules that read it.
  void setAliases();

private:
  nn::ParameterOp create(const StoredTensor &tensor, ArrayRef<int64_t> hashes);

  Block *entry;
  MLIRContext *context;
  Operation *last = nullptr;
  std::map<std::string, nn::ParameterOp> byName;
  std::map<std::string, std::vector<const StoredTensor *>> tensors; ///< by name of the parameter; the first is its own
  std::map<std::vector<int64_t>, std::vector<std::string>> byContent; ///< (dtype, shape, hashes) -> names of parameters
};

} // namespace hpc::onnx
