// A compilation that is only looked at: what its plan would take and cost. Nothing is generated, printed or written, and
// tries of one program share the phases in which they do not differ.
#pragma once

#include "compiler/MLIR.h"
#include "passes/Options.h"
#include "runtime/cost/StageCosts.h"
#include "runtime/plan/PlanSummary.h"

#include <atomic>
#include <deque>
#include <map>
#include <mutex>

namespace hpc {

struct Trial {
  std::vector<plan::MemoryFacts> memory; ///< by stage
  std::vector<int64_t> kept;             ///< by stage: bytes that forward keeps for backward
  int64_t ranks = 1;
  double seconds = 0;             ///< of a step on the machine of the options, simulated
  double exposed = 0, bubble = 0; ///< shares of all ranks' time: they stand at transfers, and are idle
  std::vector<cost::StageCosts> costs; ///< by stage
  plan::PlanSummary summary;
  Status fits; ///< the error of place where a rank takes more than `options.memory`

  /// Seconds that all ranks together spend on a step.
  double rankSeconds() const { return seconds * double(ranks); }
  int64_t peak() const;
  /// Bytes of the fullest rank that live longer than a micro-batch: no recomputation takes less of them.
  int64_t lasting() const;
};

/// Tries of programs that have been through phase stage. Budgets that lead to the same choices lead to the same plan, which
/// is made once.
class StagedTrials {
public:
  /// With `options.budgets`.
  Expected<Trial> run(ModuleOp staged, const Options &options);
  int64_t made() const { return plans; }

private:
  struct Known {
    Options options;
    OwningOpRef<ModuleOp> recomputed;
    Trial trial;
  };
  std::deque<Known> known; ///< the last few
  int64_t plans = 0;
};

/// --recompute=auto: how many bytes each stage may keep such that it takes no more than `options.memory`, as place
/// counts them. `staged` has been through phase stage. Where nothing fits, the least of each stage that does not.
Expected<SmallVector<int64_t>> chooseBudgets(StagedTrials &trials, ModuleOp staged, const Options &options);

/// Tries of one program, which stays as it is. Threads may try at the same time, where the context allows it.
class Trials {
public:
  explicit Trials(ModuleOp module) : module(module) {}
  /// What the phases up to partition make of the program with `options`, where it is known already.
  void takePartitioned(const Options &options, OwningOpRef<ModuleOp> program);

  /// Runs on a copy the phases that the program has not been through, with `options`. --recompute=auto is chosen for
  /// `options.memory` as it is in earnest, where `options.budgets` says nothing. Errors are those of a compilation; their diagnostics are not printed, so the
  /// message may be empty. `tries`: of a thread's own.
  Expected<Trial> run(const Options &options, StagedTrials &tries);
  /// At most as many bytes as the plan's Trial::lasting, without any compilation: nothing is cut more often than there are ranks.
  int64_t meanLasting(const Options &options);
  /// At most as many bytes as the plan's Trial::lasting: of states and trained parameters alone. It compiles no further than
  /// it has to, to see that they are more than `options.memory`.
  Expected<int64_t> leastLasting(const Options &options);
  /// Whether some stage takes more than `options.memory` for that and for what forward keeps for backward, by their mean over
  /// the stages alone: no plan is made to see it.
  Expected<bool> keepsTooMuch(const Options &options);
  /// How many programs were made that went through a phase, "partition" or "stage", and how many plans of them.
  int64_t made(StringRef phase) const;
  std::atomic<int64_t> madePlans = 0; ///< counted by those who try
  MLIRContext *context() const { return ModuleOp(module).getContext(); }

private:
  /// The program after a phase, which may be shared: copy it.
  Expected<ModuleOp> after(StringRef phase, ModuleOp before, const Options &options);
  Expected<ModuleOp> partitioned(const Options &options);
  Expected<ModuleOp> staged(const Options &options);

  /// A program after a phase: the first thread that wants it makes it, the others wait.
  struct Program {
    std::once_flag once;
    OwningOpRef<ModuleOp> module;
    Status status;
  };
  Program &programOf(StringRef phase, const Options &options);

  ModuleOp module;
  std::mutex mutex; ///< of `done`
  std::map<std::pair<std::string, const void *>, Program> done; ///< by phase and by the options that it follows from
};

/// Threads may try at the same time for as long as this lives.
class ManyThreads {
public:
  explicit ManyThreads(MLIRContext *context);
  ~ManyThreads();
  ManyThreads(const ManyThreads &) = delete;
  ManyThreads &operator=(const ManyThreads &) = delete;

private:
  MLIRContext *context;
  bool had;
};

/// One try.
inline Expected<Trial> tryPlan(ModuleOp module, const Options &options) {
  StagedTrials tries;
  return Trials(module).run(options, tries);
}

} // namespace hpc
