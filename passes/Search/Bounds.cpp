// A mean over ranks is no more than the fullest or the slowest of them; nothing is cut more often than its axes have ranks.
#include "passes/Search/Bounds.h"

#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "compiler/Sidecar/ModuleSidecar.h"

#include <cmath>

namespace hpc::search {

static int64_t bytesOf(RankedTensorType type) { return type.getNumElements() * elementBytes(type.getElementType()); }

/// Operations a second of the most efficient products.
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
  std::map<std::string, int64_t> weights, elements; // a parameter may have several ops
  for (BlockArgument argument : function.getArguments())
    if (nn::ArgumentPort port = nn::argumentPort(function, argument.getArgNumber()); written.count(port.state))
      work.states += bytesOf(nn::tensorType(argument));
  double ofF32 = 0, fastest = 0;
  for (const cost::ProductSpeed &speed : machine.products)
    fastest = std::max(fastest, bestFlops(speed));
  ofF32 = bestFlops(machine.speedOf(DType::F32));
  function.walk([&](Operation *op) {
    ++work.ops;
    if (auto parameter = dyn_cast<nn::ParameterOp>(op); parameter && written.count(parameter.getName().str())) {
      RankedTensorType type = nn::tensorType(parameter.getResult());
      weights[parameter.getName().str()] = bytesOf(type);
      if (type.getRank() == 2)
        elements[parameter.getName().str()] = type.getNumElements();
    }
    auto cost = dyn_cast<CostOpInterface>(op);
    if (!cost || !nn::isProduct(op))
      return;
    const bool isF32 = !narrows && nn::tensorType(op->getResult(0)).getElementType().isF32();
    work.flops += double(cost.getFlops());
    work.seconds += double(cost.getFlops()) / (isF32 ? ofF32 : fastest);
  });
  for (auto &[name, bytes] : weights)
    work.weights += bytes;
  double all = 0;
  for (auto &[name, count] : elements)
    all += double(count);
  work.matrices = int64_t(elements.size());
  work.width = std::sqrt(all / std::max<double>(1, double(work.matrices)));
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

double guessSeconds(const Candidate &candidate, const Work &work, const cost::Machine &machine, const Space &space) {
  constexpr double bytes = 2, matricesOfLayer = 4, keptOfLayer = 34, rounds = 2; // an activation's; forward and backward
  const double tp = double(candidate.tp), cp = double(candidate.cp), pp = double(candidate.pp), rows = double(candidate.dp * candidate.cp);
  const double layers = double(work.matrices) / matricesOfLayer / pp, microBatches = double(candidate.microBatches);
  const double activation = double(space.batch * space.positions) / rows * work.width * bytes; // of all micro-batches of a rank of tp
  auto sent = [&](double amount, int64_t span) { return amount / machine.linkOf(0, span).bytesPerSecond; };
  const double repeats = candidate.recompute == "full" ? 1.0 / 3 : candidate.recompute == "attention" ? 0.05 : 0;
  const double parts = pp * double(candidate.chunks), blocks = double(std::max<int64_t>(1, space.blocks));
  const double unequal = pp == 1 ? 1 : std::ceil(blocks / parts) * parts / blocks;
  double perStep = work.seconds / double(candidate.ranks()) * (1 + repeats) * unequal;
  const bool isPlain = StringRef(candidate.layout).starts_with("1d");
  perStep += (isPlain ? 1 : 1.5) * (1 + repeats) * sent(2 * rounds * 2 * layers * activation * (tp - 1) / tp, candidate.tp);
  perStep += sent(3 * rounds * layers * activation * (cp - 1) / tp, candidate.tp * candidate.cp);
  const double gainOfChunks = candidate.schedule == "zb-h1" ? 3 : double(candidate.chunks);
  perStep *= 1 + (pp - 1) / (microBatches * gainOfChunks);
  const double weights = double(work.weights) / (tp * pp) * (rows - 1) / rows;
  perStep += sent((candidate.zero == 3 ? 1 + 2 * microBatches : 2) * weights, candidate.dp * candidate.cp * candidate.tp);
  const double keptBytes = candidate.recompute == "full" || candidate.recompute == "auto" ? 2 : keptOfLayer / (candidate.layout == "1d" ? tp / (1 + (tp - 1) * 10 / keptOfLayer) : tp);
  const double kept = keptBytes / bytes * layers * activation / microBatches * std::min(microBatches, pp * double(candidate.chunks > 1 ? 1.5 : 1));
  const bool fits = space.options.memory == 0 || double(leastMemory(candidate, work)) + kept <= double(space.options.memory);
  return fits ? perStep : 10 * perStep;
}

} // namespace hpc::search
