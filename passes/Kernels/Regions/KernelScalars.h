// The numbers that a kernel takes besides buffers: where this rank's part of a cut dim starts, and how much of it there
// is. Both are functions of the rank's coordinate; `lower` turns each into a table.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

struct KernelScalar {
  bool isExtent = false;
  dist::SubDim subDim;
  bool operator==(const KernelScalar &other) const { return isExtent == other.isExtent && subDim == other.subDim; }

  /// `#nn.scalar<extent of #dist.sharding<"[5@tp]">>`.
  nn::KernelScalarAttr toAttribute(MLIRContext *context) const;
};

/// One digit of a dim that dist.fill_tail looks at: (local index / stride) % box, padding from `extent` on.
struct PaddedDigit {
  int64_t dim, stride, box;
  KernelScalar extent;
};
SmallVector<PaddedDigit> paddedDigits(dist::FillTailOp op);

/// How dist.slice moves the index of one dim: digit `(index / stride) % box` becomes digit + offset (at most `fromBox`
/// - 1) of a box of fromBox.
struct SlicedDigit {
  int64_t dim, stride, box, fromBox;
  KernelScalar offset;
};
SlicedDigit slicedDigit(dist::SliceOp op);

/// The offset that dist.offset asks for.
KernelScalar offsetScalar(dist::OffsetOp op);

/// Where the region adds to what earlier micro-batches have left (compiler/Accumulations.h) a number that is 0 in the first.
std::optional<KernelScalar> laterScalar(nn::FusedOp region);

/// The scalars of a region in the order of the kernel's table.
SmallVector<KernelScalar> collectScalars(nn::FusedOp region);

} // namespace hpc::kernels
