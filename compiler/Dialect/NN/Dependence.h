// What a value is made of: graph inputs, weights, both or neither. Passes that look for structure (where a model's
// trunk runs, which matrix products have weights) ask this instead of names.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::nn {

struct Dependence {
  bool fromInputs = false, fromWeights = false;
  /// Activations: what depends on both.
  bool isTrunk() const { return fromInputs && fromWeights; }
  /// A weight, or what is made of weights and constants alone.
  bool isWeight() const { return fromWeights && !fromInputs; }
};

/// The origin of every value of a single-block function.
using Dependences = llvm::DenseMap<Value, Dependence>;
Dependences findDependences(func::FuncOp function);

/// A weight as it is stored, before ops on each of its elements alone (the casts of 16 bits); `weight` itself where it is none.
Value storedForm(Value weight);

/// Whether an op is a product that is worth a device. An outer product (two operations an element) is no more than an
/// elementwise op, whatever its name: rotary angles.
bool isProduct(Operation *op);

} // namespace hpc::nn
