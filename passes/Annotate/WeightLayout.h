// Chooses the products of a program to cut by columns and those by rows: Megatron's layout, from structure alone. A
// product whose contracted dim comes from columns of others is cut by rows; where several layouts are possible
// (channels that many convolutions read), the cheapest is taken.
#pragma once

#include "passes/Annotate/DimTrace.h"

namespace hpc {

/// One weight, cut: along its n (columns) or its k (rows).
struct WeightCut {
  WeightMatmul product;
  Piece piece;
  bool isRow = false;
  bool isRecurrent = false; ///< by columns, and the next step gathers the result: the cut may not be given up
};

struct WeightLayout {
  SmallVector<WeightCut> cuts;         ///< as they were found; a weight of several products has the first
  SmallVector<WeightMatmul> heads;     ///< of the others, those whose results are nothing but outputs
  SmallVector<WeightMatmul> whole;     ///< and the rest, which every rank computes
  SmallVector<std::pair<Value, unsigned>> wholeDims; ///< dims of values that stay whole, though a product slices them
  llvm::DenseSet<Operation *> sums;    ///< roots of sums (SumTree.h) with a term that is all-reduced
  llvm::DenseSet<Operation *> columns; ///< products by columns
};

/// Whether the user's rules allow such a cut of a weight.
using MayCut = llvm::function_ref<bool(const WeightCut &)>;

/// `degree`: over how many ranks weights are cut.
WeightLayout chooseLayout(func::FuncOp function, const nn::Dependences &dependences, int64_t degree, MayCut mayCut);

} // namespace hpc
