// Context parallelism as annotation: seeds that cut positions, and around attention heads. Refuses models whose positions
// meet anywhere but in attention: each such op would gather all of them.
#include "compiler/Diagnostics.h"
#include "compiler/Location.h"
#include "passes/Annotate/Passes.h"
#include "passes/Annotate/SequenceCut.h"
#include "passes/Annotate/ZigzagOrder.h"

namespace hpc {

#define GEN_PASS_DEF_ANNOTATESEQUENCE
#include "passes/Annotate/Passes.h.inc"

namespace {
struct AnnotateSequence : impl::AnnotateSequenceBase<AnnotateSequence> {
  using AnnotateSequenceBase::AnnotateSequenceBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    dist::Mesh mesh = dist::meshOf(getOperation());
    std::vector<std::string> axes;
    llvm::copy_if(mesh.axesOf(dist::AxisRole::Sequence), std::back_inserter(axes), [&](const std::string &axis) { return mesh.size(axis) > 1; });
    if (!function)
      return;
    if (axes.empty()) {
      for (auto [name, given, usual] : {std::tuple("mode", StringRef(mode), "gather"), {"balance", StringRef(balance), "zigzag"}})
        if (given != usual)
          mlir::emitRemark(function.getLoc()) << "--cp-" << name << "=" << given << " is about ranks that share a sequence, and there is one such rank: it changes nothing; "
                                              << "add --cp=N, or leave it out";
      return;
    }
    const std::string flag = "--" + axes.front() + "=" + std::to_string(mesh.size(axes.front()));
    SequenceDims sequence(function);
    if (sequence.all().empty()) {
      userError(function, ErrorKind::Unsupported) << flag << ": no attention is in the model, so it has no positions to share; use --dp or --tp";
      return signalPassFailure();
    }
    if (Operation *op = findMixer(function, sequence)) {
      userError(op, ErrorKind::Unsupported)
          << flag << ": " << describeOp(op) << " needs all positions of a sequence at once, and ranks that share a sequence "
          << "meet in attention alone; use --dp or --tp";
      return signalPassFailure();
    }
    if (llvm::all_of(sequence.all(), [&](const auto &found) { return sequence.isOfKeysAlone(found.first); }))
      mlir::emitRemark(function.getLoc()) << flag << ": a step computes one position of each sequence, so these ranks compute the same; use --tp or --dp";
    else if (mode == "ulysses") // each rank has all positions of its heads, and as much work
      exchangeHeads(function, sequence, mesh, axes);
    else if (balance == "zigzag" && sequence.spelledOut())
      mlir::emitRemark(sequence.spelledOut()->getLoc()) << "--cp-balance=zigzag: the attention of " << describeOp(sequence.spelledOut())
                                                        << " is written out in other ops, whose masks name positions, so all stay in plain order";
    else if (balance == "zigzag" && orderInZigzag(function, sequence, mesh, axes))
      sequence = SequenceDims(function);
    else if (balance == "zigzag")
      mlir::emitRemark(function.getLoc()) << "--cp-balance=zigzag: no attention is causal, so all positions have equal work and stay in plain order";
    cutSequence(function, sequence, axes);
  }
};
} // namespace

} // namespace hpc
