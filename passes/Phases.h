// The phases in order. Each is a pipeline of passes that ends with its verify pass; the file Phases.cpp is the table of
// contents.
#pragma once

#include "passes/Options.h"

#include <functional>

namespace hpc {

struct Phase {
  StringRef name;
  void (*build)(OpPassManager &, const Options &);
  bool (*isWanted)(const Options &) = nullptr; ///< null: always

  bool isPartOf(const Options &options) const { return !isWanted || isWanted(options); }
};

/// raise, train, precision, generate, annotate, propagate, partition, stage, recompute, kernels. (import comes before them, lower and place after: they are
/// not passes.)
ArrayRef<Phase> phases();

/// "import, raise, ...": for messages.
std::string phaseNames();
/// How many of phases() have run when `name` has: 0 for import; nullopt where there is no such phase.
std::optional<size_t> phasesUpTo(StringRef name);
/// The same of a module, by its attribute hpc.phase; a module without it has been through none.
std::optional<size_t> phasesDone(ModuleOp module);

/// Runs the phases that `module` has not been through, up to and including `last` ("" = all), calling `afterPhase`
/// when one has succeeded. Errors are diagnostics; that `module` is past `last` or names no phase is one.
LogicalResult runPhases(ModuleOp module, const Options &options, StringRef last,
                        const std::function<LogicalResult(StringRef)> &afterPhase,
                        const std::function<void(PassManager &)> &configure);

/// Every dialect that a phase may read or make.
void registerDialects(DialectRegistry &registry);
/// Loads those that passes would load when they begin, which must not happen while other threads print or make types.
void loadDialectsOfPasses(MLIRContext &context);
/// Every pass under its flag.
void registerPasses();

} // namespace hpc
