// Where an op comes from: its ONNX node and module path, kept in MLIR locations as NameLoc(node, NameLoc(path)).
// Passes that merge ops fuse their locations; the first named part speaks for the whole.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

/// In the text of a program (passes/Driver/ProgramText.h), on an op: its location, which all passes keep; on one with blocks: an array of the locations of their
/// arguments; on a module between reading and writing: that it had such.
constexpr const char *locationAttrName = "hpc.location", *argumentLocationsAttrName = "hpc.argument_locations", *hadLocationsAttrName = "hpc.had_locations";

inline Location onnxLocation(MLIRContext *context, StringRef node, StringRef path) {
  Location place =
      path.empty() ? Location(UnknownLoc::get(context)) : Location(NameLoc::get(StringAttr::get(context, path)));
  return NameLoc::get(StringAttr::get(context, node), place);
}

/// The first NameLoc inside a location, or null.
inline NameLoc findNameLoc(Location location) {
  if (auto named = dyn_cast<NameLoc>(location))
    return named;
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (NameLoc named = findNameLoc(part))
        return named;
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return findNameLoc(call.getCallee());
  return {};
}

/// The ONNX node's name, "" when unknown.
inline std::string nodeName(Location location) {
  NameLoc named = findNameLoc(location);
  return named ? named.getName().str() : std::string();
}

/// The module path ("transformer.h.0.attn"), "" when unknown.
inline std::string modulePath(Location location) {
  NameLoc named = findNameLoc(location);
  NameLoc path = named ? findNameLoc(named.getChildLoc()) : NameLoc();
  return path ? path.getName().str() : std::string();
}

/// An op for messages: "nn.matmul (/h.0/MatMul)".
inline std::string describeOp(Operation *op) {
  std::string node = nodeName(op->getLoc());
  return op->getName().getStringRef().str() + (node.empty() ? "" : " (" + node + ")");
}

} // namespace hpc
