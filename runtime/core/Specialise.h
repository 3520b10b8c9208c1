// What a rank makes of its stage before a session runs it, since its device has ways of its own. Each rewrite is a file; the
// result is a stage again, of the same programs and instructions: those that nobody has to do any more are skipped.
#pragma once

#include "runtime/core/Backend.h"
#include "runtime/core/DirectPorts.h"

#include <functional>
#include <memory>

namespace hpc {

/// What a device can do. The default is a device that runs plans as they are.
struct DeviceTraits {
  bool worksInHostMemory = false; ///< Device::worksInHostMemory
  std::function<Expected<bool>(const GemmCall &)> fuses = {}; ///< Device::fuses; empty: never
};

struct SpecialStage {
  std::shared_ptr<const plan::Stage> stage; ///< the plan's own, which outlives this, where the device runs it as it is
  std::vector<DirectPort> directPorts;
};

/// `plan` has passed its check and has no entries. `storesOutputs`: this process has the arrays of the outputs. Errors are those
/// of the device.
Expected<SpecialStage> specialise(const plan::Plan &plan, const RankPlace &place, const DeviceTraits &traits, bool storesOutputs);

} // namespace hpc
