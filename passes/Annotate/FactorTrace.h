// Origins of a dim of a value, traced through ops that only move or combine elements at equal indices: the parameter's dim
// of a weight that is computed from it, and the products whose results are a gradient's terms.
#pragma once

#include "passes/Annotate/DimTrace.h"

namespace hpc {

/// A piece of a dim of a value.
struct DimPlace {
  Value value;
  unsigned dim = 0;
  Piece piece;
};

/// The parameters' dims that a piece of a weight's dim is; of a piece that a view tears apart, none.
SmallVector<DimPlace> parametersOf(const DimPlace &weight);

/// The products that values (a gradient, scores) add up, and the piece of their results: through scalings, sums, views and
/// concatenations. What several values are made of is walked once.
SmallVector<DimPlace> productsOf(ArrayRef<DimPlace> values);

/// The complete gradients of a function, by parameter.
std::map<std::string, Value> gradientsOf(func::FuncOp function);

} // namespace hpc
