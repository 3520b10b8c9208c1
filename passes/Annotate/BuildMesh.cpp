// The mesh: its axes exist even at size 1, so that shardings can name them.
#include "passes/Annotate/Passes.h"

namespace hpc {

#define GEN_PASS_DEF_BUILDMESH
#include "passes/Annotate/Passes.h.inc"

namespace {
struct BuildMesh : impl::BuildMeshBase<BuildMesh> {
  using BuildMeshBase::BuildMeshBase;

  void runOnOperation() override {
    using dist::AxisRole;
    dist::Mesh mesh{
        {{"mb", microBatches, AxisRole::Time}, {"dp", dp, AxisRole::Data}, {"tp", tp, AxisRole::Tensor}}};
    getOperation()->setAttr(dist::meshAttrName, dist::MeshAttr::get(&getContext(), mesh));
  }
};
} // namespace

} // namespace hpc
