// Operands of matrix products that are gathered along a dim of the product: what hpc-panel-products may take panel by panel.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc {

/// A dim of a product: rows of the left operand, columns of the right one, or what is summed over.
enum class ProductDim : uint8_t { Rows, Columns, Sum };

/// Which dim of the operand it is; none where the operand does not have it.
std::optional<unsigned> dimOfOperand(nn::MatmulOp product, unsigned operand, ProductDim dim);

/// A value that is gathered along one of its dims, each rank's part in one block.
struct GatheredValue {
  struct View {
    Operation *op;
    unsigned dim; ///< of its result
  };
  mutable dist::AllGatherOp gather; ///< a handle: asking it something is no change
  mutable dist::FillTailOp fill; ///< right behind the gather, of other dims; or null
  SmallVector<View> views;       ///< from there to the value

  std::string axis() const { return gather.getAxis().str(); }
  /// How the gathered dim is cut before; the first sub-dim by the axis alone.
  dist::DimSharding cut() const { return gather.getBefore().getValue().dims[size_t(gather.getFromDim())]; }
};
/// Through reshapes, transposes, casts and filled tails.
std::optional<GatheredValue> gatheredAlong(Value value, unsigned dim);

/// Whether one axis cuts the first sub-dim, and nothing the others: then each rank's part is one block.
bool isCutInBlocks(const dist::DimSharding &dim);

/// Whether a product sums over the gathered dim, or has it in a result that is scattered.
bool isForPanels(dist::AllGatherOp gather);

} // namespace hpc
