// The program's nn.parameter ops: one per distinct weight, at the start of the function, by reference to the file.
// Equal content, or for absent ones the same place, makes two initializers one weight (exporters write a tied weight
// twice), unless all elements are equal: zeros and ones are how biases and norms begin, and say nothing; nor where
// PyTorch's exporter says that they come from two parameters. Buffers, which nothing trains, are tied with buffers
// alone.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Import/OnnxModel.h"
#include "compiler/Interpreter/Tensor.h"

namespace hpc::onnx {

/// Whether an initializer stays a reference: floats are something to learn where the exporter says so, or where there
/// are more than one, masks (two values, one of them far below the other) excepted; what is absent or has more than
/// maxFoldedElements nobody can fold. All others are constants.
bool isWeight(const StoredTensor &tensor);

/// Whether a product, convolution, recurrent op or lookup that reads the tensor, or what views, casts, sums and products
/// make of it, reads a parameter: floats that are no mask, and codes of 8 bits or fewer, from which floats are scaled.
bool mayBeParameter(const StoredTensor &tensor);

class WeightTable {
public:
  /// `withoutContent`: of all that has a place in a file the content counts as absent, so that any other fits.
  WeightTable(Block *entry, MLIRContext *context, bool withoutContent)
      : entry(entry), context(context), withoutContent(withoutContent) {}

  /// The parameter that holds the tensor, made at its first use. Tensors of a model have names of their own.
  Value get(const StoredTensor &tensor);
  /// A parameter of these numbers, which no file has and nothing trains. `alias`: the tensor that it is made of.
  Value computed(const Tensor &tensor, Location loc, StringRef name, StringRef alias);
  /// Gives every parameter its aliases: tied initializers and the modules that read it; and its names in the framework's state.
  void setAliases();

private:
  void setStateNames(nn::ParameterOp op) const;
  nn::ParameterOp create(const StoredTensor &tensor, ArrayRef<int64_t> hashes);

  Block *entry;
  MLIRContext *context;
  bool withoutContent;
  Operation *last = nullptr;
  std::map<const StoredTensor *, nn::ParameterOp> parameters; ///< tied ones share one
  std::map<std::string, std::vector<std::string>> tied;       ///< name of a parameter -> the other tensors that it holds
  std::map<std::string, std::vector<std::string>> tiedStates; ///< of these the ones that the framework's state has, too
  /// (file of an absent tensor; dtype, whether a buffer, whether a default, shape, hashes or offset) -> tensors of
  /// different content
  std::map<std::pair<std::string, std::vector<int64_t>>, std::vector<const StoredTensor *>> byContent;
};

} // namespace hpc::onnx
