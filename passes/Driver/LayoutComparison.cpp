// Every layout in its most even shape, beside the user's own. A layout that the model refuses has a row without numbers.
#include "passes/Driver/LayoutComparison.h"

#include "passes/Annotate/LayoutStrategy.h"
#include "runtime/plan/TextTable.h"

#include "mlir/IR/Threading.h"

namespace hpc {

static std::string flagsOf(const Options &options) { return "--tp-layout=" + options.tpLayout + (options.sp ? " --sp" : ""); }

/// The layout with its sizes, as 2d:2x2 of 2d.
static std::string withSizes(const Options &options) {
  Expected<dist::Mesh> arranged = arrangeTensorAxis(options.degrees, options.tpLayout);
  if (!arranged.ok() || *arranged == options.degrees || StringRef(options.tpLayout).contains(':'))
    return options.tpLayout;
  SmallVector<std::string> sizes;
  for (const dist::Mesh::Axis &axis : arranged->axes)
    if (dist::degreesOf().index(axis.name) < 0)
      sizes.push_back(std::to_string(axis.size));
  return options.tpLayout + ":" + llvm::join(sizes, "x");
}

/// The user's own first; the others as the table of layouts has them.
static std::vector<Options> candidates(const Options &own) {
  std::vector<Options> all = {own};
  all.front().tpLayout = withSizes(own);
  for (const std::string &layout : layoutsOf(own.degrees.sizeOf(dist::AxisRole::Tensor))) {
    Options next = own;
    next.budgets.clear();
    next.setLayout(layout);
    if (flagsOf(next) != flagsOf(all.front()))
      all.push_back(next);
  }
  return all;
}

std::string compareLayouts(ModuleOp program, const Options &options, const plan::PlanSummary &own) {
  const int64_t ranks = options.degrees.sizeOf(dist::AxisRole::Tensor);
  if (ranks == 1)
    return "";
  const std::vector<Options> all = candidates(options);
  std::vector<std::optional<plan::PlanSummary>> found(all.size());
  found.front() = own;
  Trials trials(program);
  ManyThreads threads(trials.context());
  mlir::parallelFor(trials.context(), 1, all.size(), [&](size_t number) {
    StagedTrials tries;
    if (Expected<Trial> trial = trials.run(all[number], tries); trial.ok())
      found[number] = trial->summary;
  });
  plan::TextTable table({"layout", "bytes received", "collectives", "memory", "weights", "states", "kept for gradients", "all else"});
  for (auto [each, summary] : llvm::zip_equal(all, found)) {
    std::vector<std::string> cells = {(&each == &all.front() ? "* " : "") + flagsOf(each)};
    if (summary) {
      const plan::MemoryFacts &memory = summary->memory;
      int64_t rest = memory.step + memory.slot + memory.temp - summary->kept;
      for (int64_t number : {summary->received, summary->collectives, memory.total(), memory.weight, memory.state, summary->kept, rest})
        cells.push_back(std::to_string(number));
    } else {
      cells.insert(cells.end(), 7, "-");
    }
    table.add(std::move(cells));
  }
  return "layouts of --tp=" + std::to_string(ranks) + ", bytes of one rank: received in a step, and memory of the fullest rank (*: this plan; -: not of this model):\n" +
         table.text();
}

} // namespace hpc
