#include "runtime/core/WeightPacking.h"

#include "runtime/plan/Packing.h"
#include "runtime/plan/PlanNames.h"

namespace hpc {

void WeightPacking::add(const plan::Gemm &product, const std::vector<GemmHandle> &handles) {
  if (!plan::packable(product).packed)
    return;
  Use &use = uses[plan::packable(product).place.buffer];
  use.product = &product;
  use.handles.insert(use.handles.end(), handles.begin(), handles.end());
}

Status WeightPacking::pack(const plan::Stage &stage, const Arena &arena, Device &device) const {
  for (const auto &[buffer, use] : uses) {
    const plan::PackedSize size = plan::packedSize(stage, *use.product);
    HPC_RETURN_IF_ERROR(device.pack(*use.product, arena.buffer(buffer, 0), size.k, size.n, use.handles)
                            .at(plan::bufferText(stage, buffer)));
  }
  return Status::success();
}

} // namespace hpc
