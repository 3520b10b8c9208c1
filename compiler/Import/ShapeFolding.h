// Evaluates ops whose operands are all known while importing, with the interpreter, so that folding is exact.
// Elementwise ops and views work on the compact form; only what cannot is written out.
#pragma once

#include "compiler/Import/KnownTensor.h"
#include "compiler/MLIR.h"

namespace hpc::onnx {

/// The results of an nn op. `elementwise`: the op broadcasts its operands and has one result.
Expected<std::vector<KnownTensor>> foldOp(Operation *op, ArrayRef<const KnownTensor *> operands, bool elementwise);

} // namespace hpc::onnx
