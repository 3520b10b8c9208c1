// The numbers that a kernel takes besides buffers: the start of this rank's part of a cut dim, and its extent. Both are
// functions of the rank's coordinate; `lower` turns each into a table.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

struct KernelScalar {
  bool isExtent = false;
  dist::SubDim subDim;
  int64_t shift = 0; ///< of the rank so much further along the last axis, in a ring
  bool operator==(const KernelScalar &other) const { return isExtent == other.isExtent && subDim == other.subDim && shift == other.shift; }

  /// `#nn.scalar<extent of #dist.sharding<"[5@tp]">>`.
  nn::KernelScalarAttr toAttribute(MLIRContext *context) const;
};

/// One factor of a dim that dist.fill_tail fills: (local index / stride) % box, padding from `extent` on.
struct PaddedDigit {
  int64_t dim, stride, box;
  KernelScalar extent;
};
SmallVector<PaddedDigit> paddedDigits(dist::FillTailOp op);

/// The index change of dist.slice in one dim: factor `(index / stride) % box` becomes factor + offset (at most
/// `fromBox` - 1) of a box of fromBox.
struct SlicedDigit {
  int64_t dim, stride, box, fromBox;
  KernelScalar offset;
};
SlicedDigit slicedDigit(dist::SliceOp op);

/// The offset that dist.offset returns.
KernelScalar offsetScalar(dist::OffsetOp op);

/// If the region adds to sums of earlier micro-batches (compiler/Accumulations.h): a number that is 0 in the first.
std::optional<KernelScalar> laterScalar(nn::FusedOp region);

/// The scalars of a region in the order of the kernel's table.
SmallVector<KernelScalar> collectScalars(nn::FusedOp region);

} // namespace hpc::kernels
