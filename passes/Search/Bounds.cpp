// A mean over ranks is no more than the fullest or the slowest of them; nothing is cut more often than its axes have ranks.
#include "passes/Search/Bounds.h"

#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "compiler/Sidecar/ModuleSidecar.h"

namespace hpc::search {

static int64_t bytesOf(RankedTensorType type) { return type.getNumElements() * elementBytes(type.getElementType()); }

/// Of the most efficient products.
static double bestFlops(const cost::ProductSpeed &speed) {
  double share = speed.efficiency.empty() ? 1 : 0;
  for (const cost::Efficiency &point : speed.efficiency)
    share = std::max(share, point.share);
  return speed.flops * share;
}

Work workOf(ModuleOp program, const cost::Machine &machine, bool narrows) {
  Work work;
  auto function = program.lookupSymbol<func::FuncOp>("main");
  if (!function || function.isExternal())
    return work;
  const std::map<std::string, unsigned> written = nn::writtenBy(function);
  std::map<std::string, int64_t> weights; // a parameter may have several ops
  for (BlockArgument argument : function.getArguments())
    if (nn::ArgumentPort port = nn::argumentPort(function, argument.getArgNumber()); written.count(port.state))
      work.states += bytesOf(nn::tensorType(argument));
  double ofF32 = 0, fastest = 0;
  for (const cost::ProductSpeed &speed : machine.products)
    fastest = std::max(fastest, bestFlops(speed));
  ofF32 = bestFlops(machine.speedOf(DType::F32));
  function.walk([&](Operation *op) {
    ++work.ops;
    if (auto parameter = dyn_cast<nn::ParameterOp>(op); parameter && written.count(parameter.getName().str()))
      weights[parameter.getName().str()] = bytesOf(nn::tensorType(parameter.getResult()));
    auto cost = dyn_cast<CostOpInterface>(op);
    if (!cost || !nn::isProduct(op))
      return;
    const bool isF32 = !narrows && nn::tensorType(op->getResult(0)).getElementType().isF32();
    work.flops += double(cost.getFlops());
    work.seconds += double(cost.getFlops()) / (isF32 ? ofF32 : fastest);
  });
  for (auto &[name, bytes] : weights)
    work.weights += bytes;
  Expected<std::optional<Sidecar>> sidecar = hpc::sidecarOf(program);
  work.userCuts = sidecar.ok() && *sidecar && !((*sidecar)->params.empty() && (*sidecar)->tensors.empty());
  return work;
}

int64_t leastMemory(const Candidate &candidate, const Work &work) {
  if (work.userCuts)
    return (work.weights + work.states) / candidate.ranks();
  const int64_t cuts = candidate.tp * candidate.pp, rows = candidate.dp * candidate.cp;
  return work.weights / (cuts * (candidate.zero >= 3 ? rows : 1)) + work.states / (cuts * (candidate.zero >= 1 ? rows : 1));
}

double leastSeconds(const Candidate &candidate, const Work &work, const cost::Machine &machine) {
  double computing = work.seconds / double(candidate.ranks());
  const double rows = double(candidate.dp * candidate.cp);
  if (work.userCuts || rows == 1)
    return computing;
  double fastest = 0;
  for (const cost::Link &link : machine.links)
    fastest = std::max(fastest, link.bytesPerSecond);
  const double gradients = 2 * double(work.weights) / double(candidate.tp * candidate.pp) * (rows - 1) / rows;
  return std::max(computing, gradients / fastest);
}

} // namespace hpc::search
