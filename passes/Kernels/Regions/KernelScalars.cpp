// Finds the scalars that the ops of a region need. Order: first use in the region, each once.
#include "passes/Kernels/Regions/KernelScalars.h"

#include "compiler/Accumulations.h"

namespace hpc::kernels {

nn::KernelScalarAttr KernelScalar::toAttribute(MLIRContext *context) const {
  return nn::KernelScalarAttr::get(context, isExtent ? nn::KernelScalarKind::extent : nn::KernelScalarKind::offset,
                                   dist::ShardingAttr::get(context, dist::Sharding{{{subDim}}, {}}), shift);
}

SmallVector<PaddedDigit> paddedDigits(dist::FillTailOp op) {
  dist::Mesh mesh = dist::meshOf(op);
  dist::Sharding sharding = dist::shardingOf(op.getOperand());
  SmallVector<PaddedDigit> digits;
  for (int64_t dim : op.getDims()) {
    int64_t stride = 1;
    SmallVector<PaddedDigit> ofDim;
    for (const dist::SubDim &sub : llvm::reverse(sharding.dims[dim])) {
      int64_t box = dist::boxSize(sub, mesh);
      if (dist::hasPadding({sub}, mesh))
        ofDim.push_back({dim, stride, box, {true, sub}});
      stride *= box;
    }
    digits.append(ofDim.rbegin(), ofDim.rend());
  }
  return digits;
}

SlicedDigit slicedDigit(dist::SliceOp op) {
  dist::Mesh mesh = dist::meshOf(op);
  int64_t dim = op.getToDim(), sub = op.getToSub();
  dist::DimSharding before = op.getBefore().getValue().dims[dim], after = op.getAfter().getValue().dims[dim];
  int64_t stride = 1;
  for (size_t minor = sub + 1; minor < after.size(); ++minor)
    stride *= dist::boxSize(after[minor], mesh);
  int64_t fromBox = dist::boxSize(before[sub], mesh);
  // The new axis cuts the block that the earlier axes left.
  return {dim, stride, dist::boxSize(after[sub], mesh), fromBox, {false, dist::SubDim{fromBox, {op.getAxis().str()}}}};
}

KernelScalar offsetScalar(dist::OffsetOp op) {
  dist::DimSharding dim = op.getDim().getValue().dims[0];
  auto cut = llvm::find_if(dim, [](const dist::SubDim &sub) { return !sub.axes.empty(); });
  return {false, cut == dim.end() ? dist::SubDim{} : *cut, int64_t(op.getShift())};
}

std::optional<KernelScalar> laterScalar(nn::FusedOp region) {
  StringAttr axis = region.getAddsOverAttr();
  if (!axis)
    return std::nullopt;
  return KernelScalar{false, dist::SubDim{dist::meshOf(region).size(axis.getValue()), {axis.str()}}};
}

SmallVector<KernelScalar> collectScalars(nn::FusedOp region) {
  SmallVector<KernelScalar> scalars;
  auto add = [&](const KernelScalar &scalar) {
    if (!llvm::is_contained(scalars, scalar))
      scalars.push_back(scalar);
  };
  region.walk([&](Operation *op) {
    if (auto offset = dyn_cast<dist::OffsetOp>(op))
      add(offsetScalar(offset));
    if (auto slice = dyn_cast<dist::SliceOp>(op))
      add(slicedDigit(slice).offset);
    if (auto fill = dyn_cast<dist::FillTailOp>(op))
      for (const PaddedDigit &digit : paddedDigits(fill))
        add(digit.extent);
  });
  if (std::optional<KernelScalar> later = laterScalar(region))
    add(*later);
  return scalars;
}

} // namespace hpc::kernels
