// The mesh: its axes exist even at size 1, so that shardings can name them; a layout may arrange the tensor axis as several.
// Stages are no axis of it: they hold other ops, not other parts of a tensor.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/MeshDegrees.h"
#include "passes/Annotate/LayoutStrategy.h"
#include "passes/Annotate/Passes.h"

namespace hpc {

#define GEN_PASS_DEF_BUILDMESH
#include "passes/Annotate/Passes.h.inc"

namespace {
struct BuildMesh : impl::BuildMeshBase<BuildMesh> {
  using BuildMeshBase::BuildMeshBase;

  void runOnOperation() override {
    dist::Mesh mesh = dist::degreesOf();
    for (StringRef text : degrees) {
      auto [name, size] = text.split('=');
      int index = mesh.index(name);
      if (index < 0 || size.getAsInteger(10, mesh.axes[size_t(index)].size) || mesh.axes[size_t(index)].size < 1) {
        userError(getOperation(), ErrorKind::Usage)
            << "'" << text << "' is no degree; write an axis and a size, as in degrees=tp=2";
        return signalPassFailure();
      }
    }
    Expected<dist::Mesh> arranged = arrangeTensorAxis(dist::axesWithout(mesh, dist::AxisRole::Pipeline), layout);
    if (!arranged.ok()) {
      userError(getOperation(), arranged.status().kind()) << arranged.status().message();
      return signalPassFailure();
    }
    getOperation()->setAttr(dist::meshAttrName, dist::MeshAttr::get(&getContext(), *arranged));
  }
};
} // namespace

} // namespace hpc
