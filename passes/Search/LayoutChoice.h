// Which weights and values of a program are cut how over the tensor axes: the cheapest layout by exact search, as a sidecar that the
// ordinary compilation takes. All axes are chosen at once; blocks that repeat are laid out alike.
#pragma once

#include "compiler/Sidecar/Sidecar.h"
#include "passes/Options.h"
#include "passes/Search/LayoutCosts.h"

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
  double bound = 0; ///< seconds by the model of cost (computing, collectives): no layout takes fewer
  double seconds = 0; ///< of what the compilation makes of the sidecar, by the same model
  std::vector<LayoutCollective> collectives; ///< of that
  std::vector<WeightReason> reasons;         ///< where asked for
};

/// `program` has been through phase precision (or the last one before it that is part of `options`) and stays as it is; `options` give the axes: those of role tensor of their
/// layout are free. Rules of the program's sidecar hold. `explains`: with reasons, which takes one more search for each cut of each weight.
/// Errors: those of the phases annotate and propagate; (unsupported) a graph too wide for the axes; (usage) no axis of more than one rank is free.
/// The answer is a function of the program, the options and the machine alone.
Expected<LayoutChoice> chooseLayout(ModuleOp program, const Options &options, const cost::Machine &machine, bool explains = false);

} // namespace hpc::search
