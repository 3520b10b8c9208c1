// Subjects stand at the end of a reason, as hpc-propagate-shardings wrote it.
#include "passes/Driver/SidecarReasons.h"

namespace hpc {

static void addPlace(std::string &text, const SidecarPlaces &places) {
  for (const std::string &begin : {std::string("the sidecar's cut of "), std::string("the sidecar's gather of ")})
    if (size_t at = text.rfind(begin); at != std::string::npos)
      if (auto place = places.find(text.substr(at + begin.size())); place != places.end())
        text += " (" + place->second + ")";
}

plan::Plan withSidecarPlaces(plan::Plan plan, const SidecarPlaces &places) {
  if (places.empty())
    return plan;
  for (plan::Stage &stage : plan.stages)
    for (plan::Program &program : stage.programs)
      for (plan::Instruction &instruction : program.instructions)
        if (auto *collective = std::get_if<plan::Collective>(&instruction.action))
          addPlace(collective->reason.avoid, places);
  return plan;
}

} // namespace hpc
