// Which part of a training step an op is: forward, a repetition of forward, a gradient, the update. It is kept in the op's location, around that of what
// it serves: MLIR gives the location of an op to whatever a pass makes of it, which it does with no other attribute. In text it is hpc.location (passes/Driver/ProgramText.h).
#pragma once

#include "compiler/Location.h"

namespace hpc {

/// In the order in which a step runs them.
enum class StepPart {
  Forward,  ///< the graph itself, and the loss
  Repeated, ///< an op of the graph once more, for the gradients that read it (phase recompute)
  Gradient, ///< its location is that of the op which it differentiates, so stage puts it where that one is
  Update,   ///< once a step, from complete gradients: clipping, the optimizer. Its location names the parameter
};

namespace detail {
constexpr const char *gradientMark = "gradient", *updateMark = "update", *repeatedMark = "repeated";
inline Location marked(Location location, const char *mark) {
  return FusedLoc::get({location}, StringAttr::get(location.getContext(), mark), location.getContext());
}
} // namespace detail

/// Of an op that is made to differentiate the one at `of`.
inline Location gradientLocation(Location of) { return detail::marked(of, detail::gradientMark); }
/// Of an op that repeats the one at `of`.
inline Location repeatedLocation(Location of) { return detail::marked(of, detail::repeatedMark); }
/// Of an op that serves the update of a parameter (of all of them: "").
inline Location updateLocation(MLIRContext *context, StringRef parameter) {
  return detail::marked(onnxLocation(context, parameter, ""), detail::updateMark);
}

/// Of a location that was fused from several, the part of the first that has a name.
inline StepPart stepPartOf(Location location) {
  auto fused = dyn_cast<FusedLoc>(location);
  if (!fused)
    return StepPart::Forward;
  if (auto mark = dyn_cast_or_null<StringAttr>(fused.getMetadata())) {
    if (mark.getValue() == detail::gradientMark)
      return StepPart::Gradient;
    if (mark.getValue() == detail::updateMark)
      return StepPart::Update;
    if (mark.getValue() == detail::repeatedMark)
      return StepPart::Repeated;
  }
  for (Location part : fused.getLocations())
    if (findNameLoc(part))
      return stepPartOf(part);
  return StepPart::Forward;
}

} // namespace hpc
