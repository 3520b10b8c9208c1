// Which weights and values of a program are cut how over the tensor axes: the cheapest layout by exact search, as a sidecar that the
// ordinary compilation takes. All axes are chosen at once; blocks that repeat are laid out alike.
#pragma once

#include "compiler/Sidecar/Sidecar.h"
#include "passes/Options.h"
#include "passes/Search/LayoutCosts.h"
#include "passes/Search/LayoutProblem.h"

namespace hpc::search {

/// Why a weight is cut as it is; equal weights of equal blocks have one.
struct WeightReason {
  std::vector<std::string> weights; ///< in program order
  std::string cut;                  ///< "[32, 128@tp]"
  std::string nextCut;              ///< the cheapest other one; "" where there is none
  double more = 0;                  ///< seconds of a step that the other one would take beyond this one, all else chosen anew
  /// "h.0.mlp.c_fc.weight and 3 more are [32, 128@tp]: [32@tp, 128] would take 12 us more of a step"
  std::string text() const;
};

struct LayoutChoice {
  Sidecar sidecar;  ///< the program's own rules, and one for each other parameter; for inputs and values where these do not decide
  double solution = 0; ///< seconds of the problem's solution, the fewest of all
  std::vector<LayoutCollective> predicted; ///< its collectives
  double seconds = 0; ///< of the whole program that the compilation makes of the sidecar, by the same costs
  std::vector<LayoutCollective> collectives; ///< of that, before any are put together
  std::vector<WeightReason> reasons;         ///< where asked for
  LayoutProblem problem;                     ///< that was solved
};

/// Notes the shapes of all values of a program that no phase has changed, which are those that rules for values speak of. Before the phases that lead to
/// chooseLayout; a sidecar of a program without these notes speaks of the shapes that raise made.
void noteShapes(ModuleOp imported);

/// `program` has been through phase precision, or the last one before it that is part of `options`, and stays as it is. `options` give the axes: those
/// of role tensor of their layout are free; `options.memory` is a limit of weights and states. Rules of the program's sidecar hold. `explains`: with
/// reasons, which takes one more search for each cut of each weight.
/// Errors: those of the phases annotate and propagate; (capacity) weights and states that no layout makes small enough; (unsupported) a graph
/// too wide for the axes; (usage) no axis of more than one rank is free.
/// The answer is a function of the program, the options and the machine alone.
Expected<LayoutChoice> chooseLayout(ModuleOp program, const Options &options, const cost::Machine &machine, bool explains = false);

} // namespace hpc::search
