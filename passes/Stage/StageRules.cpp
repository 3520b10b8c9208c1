// Rules bound every cut from both sides: it lies after all ops that rules give to parts before it, and before all ops
// that rules give to later parts. An op cheap to repeat has no stage of its own.
#include "passes/Stage/StageRules.h"

#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Interfaces/Cost.h"
#include "compiler/StepPart.h"
#include "compiler/ValueNames.h"
#include "runtime/base/CountText.h"

#include <numeric>

namespace hpc {
namespace {

std::vector<std::string> namesOf(Operation *op) {
  if (auto parameter = dyn_cast<nn::ParameterOp>(op))
    return nn::namesOf(parameter);
  std::vector<std::string> names = valueNames(op->getLoc());
  for (const std::string &name : {modulePath(op->getLoc()), nodeName(op->getLoc())})
    if (!name.empty())
      names.push_back(name);
  return names;
}

/// The ONNX node of an op, or the op itself where it has none: a recurrent layer is one reader of its weight.
const void *nodeOf(Operation *op) {
  NameLoc node = findNameLoc(op->getLoc());
  return node ? node.getName().getAsOpaquePointer() : op;
}

/// The parameters that an op reads, directly or through values computed from weights alone.
SmallVector<nn::ParameterOp> weightsOf(Operation *op, const nn::Dependences &dependences) {
  SmallVector<nn::ParameterOp> weights;
  llvm::SetVector<Value> open(op->operand_begin(), op->operand_end());
  for (size_t next = 0; next < open.size(); ++next) {
    Operation *producer = open[next].getDefiningOp();
    if (!producer || !dependences.lookup(open[next]).isWeight())
      continue;
    open.insert(producer->operand_begin(), producer->operand_end());
    if (auto parameter = dyn_cast<nn::ParameterOp>(producer))
      weights.push_back(parameter);
  }
  return weights;
}

/// A place where the program may be cut into two parts: before op `first` of the trunk, at the least, and `last` at the
/// most.
struct Window {
  size_t first = 1, last = 0;
};

class RuleCutter {
public:
  RuleCutter(func::FuncOp function, const Blocks &blocks, int64_t stages, int64_t chunks, const Sidecar &sidecar)
      : function(function), blocks(blocks), trunk(blocks.trunk), stages(stages), chunks(chunks), sidecar(sidecar),
        dependences(nn::findDependences(function)), decidedBy(trunk.ops.size(), nullptr) {}

  Expected<Blocks> run() {
    HPC_RETURN_IF_ERROR(checkNumbers());
    HPC_RETURN_IF_ERROR(matchRules());
    HPC_RETURN_IF_ERROR(findWindows());
    return chooseCuts();
  }

private:
  size_t partOf(const StageRule &rule) const { return size_t(rule.chunk * stages + rule.stage); }

  Status wrong(const StageRule &rule, const std::string &what) const {
    return Status::error(ErrorKind::Sidecar, "\"" + rule.match + "\" " + what).at(sidecar.place(rule));
  }

  Status checkNumbers() const {
    for (const StageRule &rule : sidecar.stages) {
      if (rule.stage >= stages)
        return wrong(rule, "is for stage " + std::to_string(rule.stage) + ", but pp=" + std::to_string(stages) +
                               (stages == 1 ? " has stage 0 alone" : " has stages 0 to " + std::to_string(stages - 1)) +
                               "; use --pp=" + std::to_string(rule.stage + 1) + " or a stage that there is");
      if (rule.chunk >= chunks)
        return wrong(rule, "is for chunk " + std::to_string(rule.chunk) + ", but a stage has " +
                               std::to_string(chunks) + "; use --pp-chunks=" + std::to_string(rule.chunk + 1));
    }
    return Status::success();
  }

  const StageRule *firstMatch(const std::vector<std::string> &names) {
    for (size_t number = 0; number < sidecar.stages.size(); ++number)
      for (const std::string &name : names)
        if (matchesName(sidecar.stages[number].match, name)) {
          isUsed[number] = true;
          return &sidecar.stages[number];
        }
    return nullptr;
  }

  /// Finds the rule of every op of the trunk. A rule that matches only ops cheap to repeat is no error: they are
  /// computed where they are read.
  Status matchRules() {
    isUsed.assign(sidecar.stages.size(), false);
    std::set<std::string> all; // names of ops, and then of weights
    for (Operation &op : function.getBody().front())
      if (!isa<nn::ParameterOp>(op) && stepPartOf(op.getLoc()) == StepPart::Forward)
        for (const std::string &name : namesOf(&op))
          all.insert(name);
    llvm::DenseMap<Operation *, std::set<const void *>> readers; // nodes of the trunk that read a weight
    for (Operation *op : trunk.ops)
      for (nn::ParameterOp weight : weightsOf(op, dependences))
        readers[weight].insert(nodeOf(op));
    for (size_t index = 0; index < trunk.ops.size(); ++index) {
      Operation *op = trunk.ops[index];
      decidedBy[index] = firstMatch(namesOf(op));
      // A weight that other nodes read too does not decide where this op is, nor does a name that an op has as well.
      std::vector<std::string> names;
      for (nn::ParameterOp weight : weightsOf(op, dependences))
        if (readers[weight].size() == 1)
          llvm::copy_if(namesOf(weight), std::back_inserter(names),
                        [&](const std::string &name) { return !all.count(name); });
      if (!decidedBy[index])
        decidedBy[index] = firstMatch(names);
    }
    for (nn::ParameterOp weight : function.getBody().front().getOps<nn::ParameterOp>())
      for (const std::string &name : namesOf(weight))
        all.insert(name);
    for (size_t number = 0; number < sidecar.stages.size(); ++number) {
      const StageRule &rule = sidecar.stages[number];
      if (isUsed[number] || rule.optional)
        continue;
      if (llvm::any_of(all, [&](const std::string &name) { return matchesName(rule.match, name); })) {
        mlir::emitRemark(function.getLoc()) << sidecar.place(rule) << ": an earlier rule decides all that \"" << rule.match
                                            << "\" matches, or it is computed in every stage that reads it";
        continue;
      }
      std::string nearest = nearestMatch(rule.match, std::vector<std::string>(all.begin(), all.end()));
      return wrong(rule, "matches no module, node, value or weight" +
                             (nearest.empty() ? std::string() : "; the nearest is '" + nearest + "'"));
    }
    return Status::success();
  }

  /// windows[k - 1] is the window of the cut before part k.
  Status findWindows() {
    size_t parts = size_t(stages * chunks);
    windows.assign(parts - 1, {1, trunk.ops.empty() ? 0 : trunk.ops.size() - 1});
    for (size_t index = 0; index < trunk.ops.size(); ++index)
      if (const StageRule *rule = decidedBy[index])
        for (size_t cut = 0; cut + 1 < parts; ++cut) {
          if (partOf(*rule) <= cut)
            windows[cut].first = std::max(windows[cut].first, index + 1);
          else
            windows[cut].last = std::min(windows[cut].last, index);
        }
    for (const Window &window : windows)
      if (window.first > window.last && window.first >= 1 && window.last < trunk.ops.size()) {
        size_t late = window.first - 1, early = window.last;
        if (decidedBy[late] && decidedBy[early] && partOf(*decidedBy[late]) < partOf(*decidedBy[early]))
          return wrong(*decidedBy[late], "puts '" + shortName(late) + "' in stage " +
                                             std::to_string(decidedBy[late]->stage) + ", but '" + shortName(early) +
                                             "', which stands before it in the program, is in stage " +
                                             std::to_string(decidedBy[early]->stage) + " (line " +
                                             std::to_string(decidedBy[early]->line) +
                                             "); stages follow the order of the program: exchange them");
        return noRoom();
      }
    return Status::success();
  }

  std::string shortName(size_t index) const {
    std::string path = modulePath(trunk.ops[index]->getLoc());
    return path.empty() ? nodeName(trunk.ops[index]->getLoc()) : path;
  }

  Status noRoom() const {
    return Status::error(ErrorKind::Sidecar,
                         sidecar.file + ": the rules of \"stages\" leave no work for one of the " +
                             countText(stages * chunks, "part") + " (--pp, --pp-chunks) of a program with " +
                             countText(trunk.products.size(), "product") + "; name less, or use fewer stages");
  }

  /// Places to cut: those between blocks, and for a window without one the place where the fewest bytes cross; among
  /// equals the last, so that the ops after a product belong to it.
  std::vector<size_t> candidates() const {
    std::vector<size_t> places(blocks.firstOp.begin() + 1, blocks.firstOp.end());
    for (const Window &window : windows) {
      if (llvm::any_of(places, [&](size_t place) { return window.first <= place && place <= window.last; }))
        continue;
      size_t best = window.last;
      for (size_t place = window.last; place >= window.first; --place)
        if (trunk.crossingBytes[place] < trunk.crossingBytes[best])
          best = place;
      places.push_back(best);
    }
    llvm::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
  }

  /// At the places that blocks offer; where these are too few, anywhere.
  Expected<Blocks> chooseCuts() const {
    std::vector<size_t> everywhere(trunk.ops.size());
    std::iota(everywhere.begin(), everywhere.end(), size_t(0));
    for (const std::vector<size_t> &places : {candidates(), everywhere})
      if (std::optional<Blocks> chosen = leastMaximum(places))
        return *chosen;
    return noRoom();
  }

  /// The least maximum of the parts' costs, by dynamic programming over (cut, its place); among equals the first places.
  std::optional<Blocks> leastMaximum(const std::vector<size_t> &places) const {
    std::vector<double> before(trunk.ops.size() + 1, 0); // cost of the ops before a place
    for (size_t index = 0; index < trunk.ops.size(); ++index) {
      auto op = dyn_cast<CostOpInterface>(trunk.ops[index]);
      before[index + 1] = before[index] + (op ? double(op.getFlops()) : 0);
    }
    const double never = std::numeric_limits<double>::infinity();
    // best[c][i]: the parts before cut c, which is at place i; from[c][i]: where the cut before it is.
    std::vector<std::vector<double>> best(windows.size(), std::vector<double>(places.size(), never));
    std::vector<std::vector<size_t>> from(windows.size(), std::vector<size_t>(places.size(), 0));
    for (size_t cut = 0; cut < windows.size(); ++cut)
      for (size_t i = 0; i < places.size(); ++i) {
        if (places[i] < windows[cut].first || places[i] > windows[cut].last)
          continue;
        if (cut == 0)
          best[cut][i] = before[places[i]];
        for (size_t j = 0; cut > 0 && j < i; ++j)
          if (double cost = std::max(best[cut - 1][j], before[places[i]] - before[places[j]]); cost < best[cut][i]) {
            best[cut][i] = cost;
            from[cut][i] = j;
          }
      }
    Blocks chosen{trunk, {0}, {}};
    if (windows.empty())
      return chosen;
    size_t at = places.size();
    double least = never;
    for (size_t i = 0; i < places.size(); ++i)
      if (double cost = std::max(best.back()[i], before.back() - before[places[i]]); cost < least) {
        least = cost;
        at = i;
      }
    if (at == places.size())
      return std::nullopt;
    for (size_t cut = windows.size(); cut > 0; --cut) {
      chosen.firstOp.insert(chosen.firstOp.begin() + 1, places[at]);
      at = from[cut - 1][at];
    }
    return chosen;
  }

  func::FuncOp function;
  const Blocks &blocks;
  const Trunk &trunk;
  int64_t stages, chunks;
  const Sidecar &sidecar;
  nn::Dependences dependences;
  std::vector<const StageRule *> decidedBy; ///< by op of the trunk; null: no rule names it
  std::vector<bool> isUsed;
  std::vector<Window> windows;
};

} // namespace

Expected<Blocks> cutByRules(func::FuncOp function, const Blocks &blocks, int64_t stages, int64_t chunks,
                            const Sidecar &sidecar) {
  return RuleCutter(function, blocks, stages, chunks, sidecar).run();
}

} // namespace hpc
