// Columns of products, for layouts whose hidden dim stays cut between products, and tables of lookups: which part of them a cut follows, and which
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

/// The table that a weight is, or is a view or a 16-bit copy of: a head's.
Value tableOf(Value weight);

/// Whether a table that is also a head's weight moves less if both cut its rows: the head gathers its operand and the lookups sum their results. By
/// its columns the head sums its logits.
bool sumsLessByRows(const WeightLookup &lookup, const LayoutProgram &program);

/// The results that add up rows of a lookup's table, as its gradient does.
SmallVector<OpResult> rowSumsOf(const WeightLookup &lookup, func::FuncOp function);

} // namespace hpc
