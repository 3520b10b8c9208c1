// From known operands to known results, and from those back into the program.
// Folding is exact: the interpreter computes it.
#pragma once

#include "compiler/Import/KnownTensor.h"
#include "compiler/MLIR.h"

namespace hpc::onnx {

/// The results of an nn op whose operands are all known. Elementwise ops and views work on the compact form; other ops
/// on all elements. `elementwise`: the op broadcasts its operands and has one result.
Expected<std::vector<KnownTensor>> foldOp(Operation *op, ArrayRef<const KnownTensor *> operands, bool elementwise);

// clang-format off
/// Writes a known tensor into the program in the form that later passes understand best: a value of the compact shape
/// (one element: of rank 0). In this order of preference:
///   one element                       nn.constant : tensor<f32>
///   affine in its coordinates         nn.iota, one per dim, added; cast when the type is a float
///   a boolean band i+a <= j <= i+c    comparisons of nn.iota over rows [n,1] and columns [1,m]; causal: nn.compare ge (i + c), j
///   a boolean prefix or suffix        one comparison of nn.iota with a constant
///   two values a, b over such a mask  nn.select mask, a, b
///   anything else                     nn.constant up to maxConstantElements, then nn.parameter with a `value` called `name`
// clang-format on
Value buildConstant(OpBuilder &builder, Location loc, const KnownTensor &known, StringRef name);

constexpr int64_t maxConstantElements = 64 * 1024;

} // namespace hpc::onnx
