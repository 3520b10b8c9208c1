// Duplicates of a weight become uses of it; their names live on as its aliases.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "passes/Raise/Passes.h"
#include "passes/Raise/Ties.h"

namespace hpc {

#define GEN_PASS_DEF_TIEWEIGHTS
#include "passes/Raise/Passes.h.inc"

/// Adds the names of `duplicate` to the aliases of `weight`, and notes which of them name the transpose.
static void joinAliases(nn::ParameterOp weight, nn::ParameterOp duplicate, bool isTransposed) {
  std::vector<std::string> aliases = nn::namesIn(weight.getAliases()), transposed = nn::namesIn(weight.getTransposedAliases());
  for (const std::string &alias : nn::namesOf(duplicate)) {
    if (alias == weight.getName() || llvm::is_contained(aliases, alias))
      continue;
    aliases.push_back(alias);
    if (isTransposed != nn::isTransposedAlias(duplicate, alias))
      transposed.push_back(alias);
  }
  weight.setAliasesAttr(nn::namesAttr(weight.getContext(), aliases));
  weight.setTransposedAliasesAttr(transposed.empty() ? ArrayAttr() : nn::namesAttr(weight.getContext(), transposed));
}

/// Notes the tie for a remark in training, except for an absent weight, which is only tied to itself, read twice.
static void noteTied(nn::ParameterOp weight, nn::ParameterOp duplicate) {
  std::vector<std::string> names = nn::namesIn(weight.getTiedNames());
  if (duplicate.isAbsent() || weight.getName() == duplicate.getName() || llvm::is_contained(names, duplicate.getName().str()))
    return;
  names.push_back(duplicate.getName().str());
  weight.setTiedNamesAttr(nn::namesAttr(weight.getContext(), names));
}

/// Both names are in the framework's state, where neither is an exporter's own.
static void joinStateNames(nn::ParameterOp weight, nn::ParameterOp duplicate) {
  auto namesOf = [](nn::ParameterOp op) {
    std::vector<std::string> names = nn::namesIn(op.getStateNames());
    return names.empty() ? std::vector<std::string>{op.getName().str()} : names;
  };
  if (duplicate.getIsMade() || duplicate.getIsExporters() || weight.getName() == duplicate.getName())
    return;
  std::vector<std::string> names;
  if (!weight.getIsMade() && !weight.getIsExporters())
    names = namesOf(weight);
  for (const std::string &name : namesOf(duplicate))
    if (!llvm::is_contained(names, name))
      names.push_back(name);
  weight.setIsMade(false);
  weight.setIsExporters(false);
  weight.setStateNamesAttr(nn::namesAttr(weight.getContext(), names));
}

namespace {
struct TieWeights : impl::TieWeightsBase<TieWeights> {
  using TieWeightsBase::TieWeightsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    Expected<std::vector<Tie>> ties = findTies(function, folder);
    if (!ties.ok()) {
      userError(function, ties.status().kind()) << ties.status().message();
      return signalPassFailure();
    }
    for (Tie &tie : *ties) {
      joinAliases(tie.weight, tie.duplicate, tie.isTransposed);
      noteTied(tie.weight, tie.duplicate);
      if (!tie.isTransposed)
        joinStateNames(tie.weight, tie.duplicate);
      if (!tie.weight->isBeforeInBlock(tie.duplicate))
        tie.weight->moveBefore(tie.duplicate);
      Value value = tie.weight;
      if (tie.isTransposed) {
        OpBuilder builder(tie.duplicate);
        value = nn::TransposeOp::create(builder, tie.duplicate.getLoc(), value, ArrayRef<int64_t>{1, 0});
      }
      tie.duplicate.getResult().replaceAllUsesWith(value);
      tie.duplicate.erase();
    }
  }
};
} // namespace

} // namespace hpc
