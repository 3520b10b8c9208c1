// A compilation that can be stopped, broken and continued: the same sequence as hpc-opt's, in pieces. Everything that
// would find a fault (verify passes, op verifiers, the plan's check, --verify) reports into one text.
#pragma once

#include "passes/Lower/Lower.h"
#include "passes/Options.h"

#include <functional>
#include <memory>

namespace hpc::test {

/// A model and how it is cut.
struct Layout {
  const char *model; ///< below models/
  Options options;
  std::map<std::string, int64_t> dims;
};

/// 5 heads of 8 over tp=2, blocks 0 and 1 | block 2 and head, two micro-batches of 2 rows.
Layout oddLayout();
/// The same without stages, over dp=2 as well.
Layout oddDataParallel();
/// 4 heads of 8 over tp=2: a plain column cut has the same width.
Layout tinyLayout();
/// 4 blocks in 4 stages: stages 1 and 2 have the same types.
Layout tinyFourStages();
/// Three linear layers.
Layout mlpLayout();
/// The odd model on rows over x, columns over y.
Layout oddTwoDimensional();
/// The odd model on two ranks that share each sequence in zigzag.
Layout oddZigzag();
/// A training step of the linear layers, rows over x and z, columns over y.
Layout mlpDepth();
/// A training step of oddLayout()'s cut over dp=2 as well, Adam with clipped gradients, backward split into B and W.
Layout oddTraining();
/// A training step of tinyLayout().
Layout tinyTraining();
/// A training step of the tiny model on one rank, with exact sums.
Layout tinyExact();
/// A training step of the tiny model whose positions are cut over cp=3, keys in a ring.
Layout tinyRing();

using BreakModule = std::function<void(ModuleOp)>;
using BreakPlan = std::function<void(plan::Plan &)>;

class Compilation {
public:
  /// Compiled until `phase` ("partition", "stage"); one for each layout and phase, kept. Dies on errors: that would be
  /// no fault of the test's.
  static Compilation &of(const Layout &layout, StringRef phase);

  /// What the phase's own verify pass says of a broken module: "" when nothing.
  std::string verifyPhase(const BreakModule &breakIt);
  /// Goes on to the plan with the verify pass of this phase left out, checks and verifies it: "" when nobody objects.
  std::string compileAndVerify(const BreakModule &breakIt);
  /// The message of --verify about a serial program that was broken before it was propagated: "" when nothing.
  std::string verifySerial(const BreakModule &breakIt);
  /// What checkPlan says of a broken plan.
  std::string checkPlan(const BreakPlan &breakIt);
  /// The message of --verify about a broken plan.
  std::string verifyPlan(const BreakPlan &breakIt);

private:
  Compilation(const Layout &layout, StringRef phase);
  LogicalResult runTo(ModuleOp module, StringRef last);
  Expected<Lowered> lower(ModuleOp module);
  const Lowered &unbroken();

  Layout layout;
  std::string phase;
  std::unique_ptr<MLIRContext> context;
  std::string errors; ///< of diagnostics, as hpc-opt prints them
  OwningOpRef<ModuleOp> serial, propagated, module;
  OwningOpRef<ModuleOp> compiled; ///< of `plan`
  std::optional<Lowered> plan;    ///< once somebody asked for it
};

} // namespace hpc::test
