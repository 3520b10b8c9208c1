// The axes of a layout in the file's mesh become one degree and a layout with sizes before anything else reads them.
#include "passes/Driver/RequestDegrees.h"

#include "passes/Annotate/LayoutStrategy.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/PlanStructure.h"

namespace hpc {

Status checkRanksOfMachine(const Options &options, int64_t ranks) {
  const cost::Machine machine = machineOf(options);
  if (machine.ranks() == 0 || ranks <= machine.ranks())
    return Status::success();
  return Status::error(ErrorKind::Usage, "a plan of " + std::to_string(ranks) + " ranks is more than --machine has: " + machine.name + " is " +
                                             countText(machine.hosts, "host") + " of " + countText(machine.ranksPerHost, "rank") +
                                             "; use at most " + std::to_string(machine.ranks()) + ", or a machine with more hosts");
}

/// The choices of the file beside degrees and cuts.
static Status takeChoices(CompileRequest &request, const SpecFile &spec) {
  const PlanChoices &choices = spec.sidecar.plan;
  Options &options = request.options;
  auto isOpen = [&](const char *flag) { return request.given.count(flag) == 0; };
  if (choices.chunks && isOpen("pp-chunks"))
    options.ppChunks = *choices.chunks;
  if (!choices.cpMode.empty() && isOpen("cp-mode"))
    options.cpMode = choices.cpMode;
  if (!options.trains())
    return Status::success();
  if (choices.zero && isOpen("zero"))
    options.zero = *choices.zero;
  if (!choices.schedule.empty() && isOpen("pp-schedule"))
    options.ppSchedule = choices.schedule;
  if (choices.recompute.empty() || !isOpen("recompute"))
    return Status::success();
  options.recompute = choices.recompute;
  if (choices.recompute == "auto" && options.memory == 0)
    options.memory = choices.memory.value_or(0);
  if (choices.recompute == "auto" && options.memory == 0)
    return Status::error(ErrorKind::Sidecar, "\"recompute\": \"auto\" computes again what a limit of memory has no room for; add \"memory\", in bytes, or --memory").at(spec.path);
  return Status::success();
}

Status takeDegrees(CompileRequest &request, const std::optional<SpecFile> &spec) {
  dist::GivenSizes sizes = spec ? spec->sidecar.mesh : dist::GivenSizes();
  Expected<std::string> layout = takeOwnAxes(sizes, spec ? spec->sidecar.layout : "");
  if (!layout.ok())
    return layout.status().at(spec->path);
  Expected<dist::Mesh> degrees = dist::resolveDegrees(request.degrees, request.devices, sizes, plan::maxRanks);
  HPC_RETURN_IF_ERROR(degrees.status());
  request.options.degrees = *degrees;
  if (spec)
    HPC_RETURN_IF_ERROR(takeChoices(request, *spec));
  HPC_RETURN_IF_ERROR(checkRanksOfMachine(request.options, dist::ranksOf(*degrees)));
  if (!layout->empty() && !request.givesLayout) {
    const bool isOfFile = degrees->sizeOf(dist::AxisRole::Tensor) == dist::degreesOf(sizes).sizeOf(dist::AxisRole::Tensor);
    const bool sp = request.options.sp;
    request.options.setLayout(isOfFile ? StringRef(*layout) : StringRef(*layout).split(':').first);
    request.options.sp |= sp;
  }
  HPC_RETURN_IF_ERROR(arrangeTensorAxis(*degrees, request.options.tpLayout).status());
  if (!request.options.sp)
    return Status::success();
  HPC_RETURN_IF_ERROR(checkSharesSequence(request.options.tpLayout));
  if (degrees->sizeOf(dist::AxisRole::Tensor) == 1)
    return Status::error(ErrorKind::Usage, "--sp lets the ranks of tensor parallelism share each sequence, and there is one; add --tp=N, or leave --sp out");
  return Status::success();
}

} // namespace hpc
