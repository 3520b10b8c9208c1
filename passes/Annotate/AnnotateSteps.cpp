// A step of generation as a part of a sequence: the virtual ranks of axis `cp` are the steps, each with the rows of one. What no
// later step reads keeps one row of them, over axis `row`: the steps that the phase makes say which (passes/Generate).
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Location.h"
#include "passes/Annotate/Passes.h"
#include "passes/Annotate/SequenceCut.h"

namespace hpc {

#define GEN_PASS_DEF_ANNOTATESTEPS
#include "passes/Annotate/Passes.h.inc"

/// The values from which keys and values of attention are computed.
static llvm::DenseSet<Value> findSourcesOfKeys(func::FuncOp function) {
  SmallVector<Value> open;
  for (Operation &op : function.front()) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || op.getNumOperands() == 0)
      continue;
    ShardingRule rule = ruled.getShardingRule();
    for (auto [operand, dims] : llvm::zip(op.getOperands(), rule.operands)) {
      bool isOfQueries = false, isOfKeys = false;
      for (ArrayRef<int> factors : dims)
        for (int factor : factors)
          if (rule.factors[factor].isSequence)
            (rule.factors[factor].canCut ? isOfQueries : isOfKeys) = true;
      if (isOfKeys && !isOfQueries)
        open.push_back(operand);
    }
  }
  llvm::DenseSet<Value> sources;
  while (!open.empty())
    if (Value value = open.pop_back_val(); sources.insert(value).second && value.getDefiningOp())
      llvm::append_range(open, value.getDefiningOp()->getOperands());
  return sources;
}

namespace {
struct AnnotateSteps : impl::AnnotateStepsBase<AnnotateSteps> {
  using AnnotateStepsBase::AnnotateStepsBase;

  InFlightDiagnostic refuse(Operation *op) {
    signalPassFailure();
    return userError(op, ErrorKind::Unsupported) << "--generate: ";
  }

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    // 1. The virtual mesh.
    if (rows < 1 || length < rows || length % rows) {
      userError(getOperation(), ErrorKind::Usage) << "steps of " << int64_t(rows) << " positions do not make up a sequence of " << int64_t(length)
                                                  << "; --max-length must be a multiple of --prefill-chunk";
      return signalPassFailure();
    }
    dist::Mesh mesh;
    mesh.axes = {{"cp", length / rows, dist::AxisRole::Sequence}, {"row", rows, dist::AxisRole::Sequence}};
    getOperation()->setAttr(dist::meshAttrName, dist::MeshAttr::get(&getContext(), mesh));
    // 2. What may be derived.
    SequenceDims sequence(function);
    if (sequence.all().empty()) {
      refuse(function) << "no attention is in the model, so nothing of it continues a sequence from keys and values; export a decoder";
      return;
    }
    if (Operation *op = sequence.spelledOut()) {
      refuse(op) << describeOp(op) << " makes scores of an attention that is written out in other ops, and keys are kept for nn.attention alone; export the model "
                 << "with torch.nn.functional.scaled_dot_product_attention, or its softmax(q k^T + mask) v with one softmax on the scores";
      return;
    }
    if (Operation *op = findMixer(function, sequence)) {
      refuse(op) << describeOp(op) << " needs all positions of a sequence at once, and a step has the keys and values of attention alone of those before; "
                 << "generate with a model whose positions meet in causal attention alone";
      return;
    }
    // 3. The seeds: one row where no attention has its keys from, the rows of a step everywhere.
    const llvm::DenseSet<Value> sources = findSourcesOfKeys(function);
    if (rows > 1)
      cutSequence(function, sequence, {"row"}, [&](Value value) { return !sources.contains(value); });
    cutSequence(function, sequence, {"cp"});
  }
};
} // namespace

} // namespace hpc
