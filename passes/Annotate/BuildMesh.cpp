// The mesh: its axes exist even at size 1, so that shardings can name them.
#include "passes/Annotate/Passes.h"

namespace hpc {

#define GEN_PASS_DEF_BUILDMESH
#include "passes/Annotate/Passes.h.inc"

namespace {
struct BuildMesh : impl::BuildMeshBase<BuildMesh> {
  using BuildMeshBase::BuildMeshBase;

  void runOnOperation() override {
    dist::Mesh mesh{{{"mb", microBatches}, {"dp", dp}, {"tp", tp}}};
    getOperation()->setAttr(dist::meshAttrName, dist::MeshAttr::get(&getContext(), mesh));
  }
};
} // namespace

} // namespace hpc
