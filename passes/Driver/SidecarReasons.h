// Adds the sidecar's lines to the reasons of a plan, for --explain. The plan itself names the rule's subject only: it
// stays the same when a line is inserted above.
#pragma once

#include "compiler/Sidecar/ModuleSidecar.h"
#include "runtime/plan/Plan.h"

namespace hpc {

/// "giving up the sidecar's cut of wte.weight" becomes "giving up the sidecar's cut of wte.weight (gpt2.shard.json:7)".
plan::Plan withSidecarPlaces(plan::Plan plan, const SidecarPlaces &places);

} // namespace hpc
