// A degree that nobody gives is 1.
#include "tools/hpc-opt/Degrees.h"

#include "runtime/plan/PlanStructure.h"

namespace hpc {

Status resolveDegrees(const GivenDegrees &given, const SidecarMesh &mesh, Options &options) {
  auto usage = [](const Twine &message) { return Status::error(ErrorKind::Usage, message.str()); };
  auto degree = [](std::optional<int64_t> flag, std::optional<int64_t> own) { return flag ? *flag : own.value_or(1); };
  options.tp = degree(given.tp, mesh.tp);
  options.pp = degree(given.pp, mesh.pp);
  options.dp = degree(given.dp, mesh.dp);
  options.microBatches = degree(given.microBatches, mesh.mb);
  int64_t devices = given.devices.value_or(0);
  if (devices && !given.dp) {
    if (devices % (options.tp * options.pp))
      return usage("--devices=" + Twine(devices) + " is no multiple of tp * pp = " + Twine(options.tp * options.pp) +
                   "; use a multiple, or other degrees");
    options.dp = devices / (options.tp * options.pp);
  }
  int64_t ranks = options.tp * options.pp * options.dp;
  std::string product = ("tp * pp * dp = " + Twine(options.tp) + " * " + Twine(options.pp) + " * " + Twine(options.dp) +
                         " = " + Twine(ranks) + " ranks")
                            .str();
  if (devices && ranks != devices)
    return usage(product + ", but --devices=" + Twine(devices) + "; leave out --dp or --devices");
  if (ranks > plan::maxRanks)
    return usage(product + "; a plan has at most " + Twine(plan::maxRanks));
  return Status::success();
}

} // namespace hpc
