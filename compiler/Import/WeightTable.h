// The program's nn.parameter ops: one per distinct weight, at the start of the function, by reference to the file.
// Equal content, or for absent ones the same place, makes two initializers one weight (exporters write a tied weight
// twice), except where all elements are equal: fresh biases and norms are all zeros and ones, which proves nothing; and
// except where PyTorch's exporter notes that they come from two parameters. Buffers, which nothing trains, are tied
// with buffers alone.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Import/OnnxModel.h"
#include "compiler/Interpreter/Tensor.h"

namespace hpc::onnx {

/// Whether an initializer stays a reference: floats that the exporter marks as trained, or floats with more than one
/// element, except for masks (two values, one far below the other); also tensors that are absent or have more than
/// maxFoldedElements, which cannot be folded. All others are constants.
bool isWeight(const StoredTensor &tensor);

/// Whether a product, convolution, recurrent op or lookup that reads the tensor, or views, casts, sums and products of
/// it, reads a parameter: floats that are no mask, and codes of 8 bits or fewer, from which floats are scaled.
bool mayBeParameter(const StoredTensor &tensor);

class WeightTable {
public:
  /// `withoutContent`: tensors with a place in a file count as absent, so that any content fits.
  WeightTable(Block *entry, MLIRContext *context, bool withoutContent)
      : entry(entry), context(context), withoutContent(withoutContent) {}

  /// The parameter that holds the tensor, made at its first use. Tensors of a model have names of their own.
  Value get(const StoredTensor &tensor);
  /// A parameter of these numbers, which are in no file and never trained. `alias`: the tensor that they come from.
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
