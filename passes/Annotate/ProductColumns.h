// Columns of products, for layouts whose hidden dim stays cut between products: which part of them a cut follows, and which
// composites (norms) read whole rows of them.
#pragma once

#include "passes/Annotate/LayoutStrategy.h"
#include "passes/Annotate/WeightLayout.h"

namespace hpc {

/// A dim of a composite's result that is a whole row: of products' columns, or of tables.
struct RowInParts {
  OpResult result;
  unsigned dim;
};

/// The composites of activations along whose rows nothing but columns of whole products, or rows of tables, lies. `parts`: products whose columns
/// are cut along a part of them (heads, whole matrices), whose rows are not one dim. Each such row may stay in parts.
std::vector<RowInParts> rowsInParts(const LayoutProgram &program, llvm::function_ref<bool(Operation *)> hasParts);

/// Whether a table is cut by its rows, the vocabulary: the weight of a head, or at least as large as what a lookup's sum moves.
bool paysByRows(const WeightLookup &lookup, const LayoutProgram &program);

} // namespace hpc
