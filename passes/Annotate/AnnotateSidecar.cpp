// The user's rules become seeds that nothing overrules. Values without a rule are left to the default layouts.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/WholeOutput.h"
#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/Sidecar/Cuts.h"
#include "compiler/Sidecar/ModuleSidecar.h"
#include "compiler/Sidecar/ParamRules.h"
#include "compiler/Sidecar/TensorRules.h"
#include "compiler/StepPart.h"
#include "compiler/Subject.h"
#include "passes/Annotate/Passes.h"
#include "runtime/base/File.h"

namespace hpc {

#define GEN_PASS_DEF_ANNOTATESIDECAR
#include "passes/Annotate/Passes.h.inc"

/// The dims of an op's result that have the factors of dim `dim` of an operand.
static SmallVector<int64_t> resultDims(OpOperand &use, int64_t dim) {
  SmallVector<int64_t> dims;
  auto ruled = dyn_cast<ShardingRuleOpInterface>(use.getOwner());
  if (!ruled || use.getOwner()->getNumResults() != 1)
    return dims;
  ShardingRule rule = ruled.getShardingRule();
  const auto &factors = rule.operands[use.getOperandNumber()][dim];
  for (auto [resultDim, resultFactors] : llvm::enumerate(rule.results[0]))
    if (llvm::any_of(resultFactors, [&](int factor) { return llvm::is_contained(factors, factor); }))
      dims.push_back(int64_t(resultDim));
  return dims;
}

static bool isForward(Operation *op) { return stepPartOf(op->getLoc()) == StepPart::Forward; }

/// The op that adds a bias to `value`: its only reader in the graph, elementwise; the other operand is a weight.
static OpOperand *biasOf(Value value, const nn::Dependences &dependences) {
  auto readers = llvm::make_filter_range(value.getUses(), [](OpOperand &use) { return isForward(use.getOwner()); });
  if (!llvm::hasSingleElement(readers))
    return nullptr;
  OpOperand &use = *readers.begin();
  bool isBias = accessOf(use.getOwner()) == Access::Elementwise && use.getOwner()->getNumOperands() == 2;
  for (Value operand : use.getOwner()->getOperands())
    isBias &= operand == value || dependences.lookup(operand).isWeight();
  return isBias ? &use : nullptr;
}

/// Marks the dim that dim `dim` of a parameter becomes in an activation: in the first op that reads one beside it, or
/// in the last bias after that. A dim that is summed away leaves nothing to gather: the sum is whole.
static void markOutput(Value value, int64_t dim, const nn::Dependences &dependences, StringRef subject) {
  for (OpOperand &use : value.getUses()) {
    if (!isForward(use.getOwner())) // gradients and updates do not count as output
      continue;
    for (int64_t resultDim : resultDims(use, dim)) {
      Value result = use.getOwner()->getResult(0);
      if (dependences.lookup(result).isWeight()) { // a transpose of it
        markOutput(result, resultDim, dependences, subject);
        continue;
      }
      for (OpOperand *bias = biasOf(result, dependences); bias; bias = biasOf(result, dependences)) {
        SmallVector<int64_t> dims = resultDims(*bias, resultDim);
        if (dims.size() != 1)
          break;
        resultDim = dims.front();
        result = bias->getOwner()->getResult(0);
      }
      dist::addWholeOutputDim(result.getDefiningOp(), resultDim, subject);
    }
  }
}

namespace {
struct AnnotateSidecar : impl::AnnotateSidecarBase<AnnotateSidecar> {
  using AnnotateSidecarBase::AnnotateSidecarBase;

  Status annotateParams(const Sidecar &sidecar, func::FuncOp function, const dist::Mesh &mesh, SidecarPlaces &places) {
    Expected<std::vector<ParamDecision>> decisions = decideParams(sidecar, function);
    if (!decisions.ok())
      return decisions.status();
    nn::Dependences dependences = nn::findDependences(function);
    for (ParamDecision &decision : *decisions) {
      if (!decision.cut)
        continue; // it is about training: hpc-build-gradients has read it
      const ParamRule &rule = *decision.cut;
      Value value = decision.parameter.getResult();
      std::string place = sidecar.place(rule), subject = subjectOf(value);
      std::vector<int64_t> shape = nn::shapeOf(value).vec();
      Expected<dist::Sharding> sharding = resolveCuts(rule.shard, shape, decision.isTransposed, mesh,
                                                      place + ": parameter '" + subject + "'");
      if (!sharding.ok())
        return sharding.status();
      if (std::vector<std::string> time = dist::axesWithRole(dist::cutAxes(*sharding), mesh, dist::AxisRole::Time);
          !time.empty())
        return Status::error(ErrorKind::Sidecar, place + ": parameter '" + subject + "': axis \"" + time[0] +
                                                     "\" is time (micro-batches), and a parameter lives through all "
                                                     "of it; cut it over another axis");
      if (rule.inferred) {
        // No layout decides about a vector, nor did one where nothing is cut: cuts reach these by propagation again.
        if (shape.size() >= 2 && !rule.shard.empty())
          dist::setSeed(value, dist::layoutSeed(*sharding));
        continue;
      }
      dist::setSeed(value, {*sharding, std::vector<bool>(shape.size(), false), 0, dist::Seed::sidecarOrigin});
      places[subject] = place;
      for (size_t dim = 0; rule.outputReplicate && dim < shape.size(); ++dim)
        if (dist::isCut(sharding->dims[dim]))
          markOutput(value, int64_t(dim), dependences, subject);
    }
    return Status::success();
  }

  Status annotateTensors(const Sidecar &sidecar, func::FuncOp function, const dist::Mesh &mesh, SidecarPlaces &places) {
    Expected<std::vector<TensorDecision>> decisions = decideTensors(sidecar, function);
    if (!decisions.ok())
      return decisions.status();
    for (TensorDecision &decision : *decisions) {
      std::string place = sidecar.place(*decision.rule), subject = subjectOf(decision.value);
      std::string where = place + ": tensor '" + subject + "'";
      Expected<dist::Sharding> wanted = resolveCuts(decision.rule->shard, decision.shape, false, mesh, where);
      if (!wanted.ok())
        return wanted.status();
      std::vector<int64_t> shape = nn::shapeOf(decision.value).vec();
      places[subject] = place;
      // "Whole" is a promise to the value's readers: the layout decides how it is computed.
      if (Operation *op = decision.value.getDefiningOp(); op && decision.rule->shard.empty()) {
        for (size_t dim = 0; dim < shape.size(); ++dim)
          dist::addWholeOutputDim(op, int64_t(dim), subject);
        continue;
      }
      std::optional<dist::Sharding> sharding = reshapedCuts(*wanted, shape, mesh);
      if (!sharding)
        return Status::error(ErrorKind::Sidecar, where + " is computed with the shape " +
                                                     dist::toString(dist::replicated(shape)) + ", none of whose dims " +
                                                     dist::toString(*wanted) +
                                                     " cuts into equal parts; cut a dim that both shapes have");
      dist::Seed seed{*sharding, std::vector<bool>(shape.size(), false), 0, dist::Seed::sidecarOrigin};
      for (size_t dim = 0; !decision.rule->shard.empty() && dim < shape.size(); ++dim)
        seed.open[dim] = !dist::isCut(sharding->dims[dim]);
      dist::setSeed(decision.value, seed);
    }
    return Status::success();
  }

  /// The module's own sidecar, or the one that the option names.
  Status load() {
    if (spec.empty())
      return Status::success();
    Expected<MappedFile> file = MappedFile::open(spec);
    if (!file.ok())
      return file.status();
    setSidecar(getOperation(), spec, file->text());
    return Status::success();
  }

  Status annotate() {
    HPC_RETURN_IF_ERROR(load());
    Expected<std::optional<Sidecar>> sidecar = sidecarOf(getOperation());
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!sidecar.ok() || !*sidecar || !function)
      return sidecar.status();
    SidecarPlaces places;
    HPC_RETURN_IF_ERROR(annotateParams(**sidecar, function, dist::meshOf(getOperation()), places));
    HPC_RETURN_IF_ERROR(annotateTensors(**sidecar, function, dist::meshOf(getOperation()), places));
    setSidecarPlaces(getOperation(), places);
    return Status::success();
  }

  void runOnOperation() override {
    if (Status status = annotate(); !status.ok()) {
      userError(getOperation(), status.kind()) << status.message();
      signalPassFailure();
    }
  }
};
} // namespace

} // namespace hpc
