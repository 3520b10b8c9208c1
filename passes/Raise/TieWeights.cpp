// Duplicates of a weight become uses of it; their names live on as its aliases.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/MadeOf.h"
#include "compiler/Dialect/NN/StateNames.h"
#include "compiler/Dialect/NN/TransposedAliases.h"
#include "passes/Raise/Passes.h"
#include "passes/Raise/Ties.h"

namespace hpc {

#define GEN_PASS_DEF_TIEWEIGHTS
#include "passes/Raise/Passes.h.inc"

/// Adds the names of `duplicate` to the aliases of `weight`, and notes which of them speak of the transpose.
static void joinAliases(nn::ParameterOp weight, nn::ParameterOp duplicate, bool isTransposed) {
  SmallVector<StringRef> aliases, transposed = nn::transposedAliases(weight);
  if (std::optional<ArrayAttr> own = weight.getAliases())
    llvm::append_range(aliases, own->getAsValueRange<StringAttr>());
  auto add = [&](StringRef alias) {
    if (alias == weight.getName() || llvm::is_contained(aliases, alias))
      return;
    aliases.push_back(alias);
    if (isTransposed != nn::isTransposedAlias(duplicate, alias))
      transposed.push_back(alias);
  };
  add(duplicate.getName());
  if (std::optional<ArrayAttr> more = duplicate.getAliases())
    for (StringRef alias : more->getAsValueRange<StringAttr>())
      add(alias);
  weight.setAliasesAttr(Builder(weight.getContext()).getStrArrayAttr(aliases));
  nn::setTransposedAliases(weight, transposed);
}

/// Training says so. An absent weight is tied to none but itself, read at the same place.
static void noteTied(nn::ParameterOp weight, nn::ParameterOp duplicate) {
  SmallVector<StringRef> names;
  if (auto known = weight->getAttrOfType<ArrayAttr>(nn::tiedNamesAttrName))
    llvm::append_range(names, known.getAsValueRange<StringAttr>());
  if (duplicate.isAbsent() || weight.getName() == duplicate.getName() || llvm::is_contained(names, duplicate.getName()))
    return;
  names.push_back(duplicate.getName());
  weight->setAttr(nn::tiedNamesAttrName, Builder(weight.getContext()).getStrArrayAttr(names));
}

/// Both names are in the framework's state, where neither is an exporter's own.
static void joinStateNames(nn::ParameterOp weight, nn::ParameterOp duplicate) {
  auto namesOf = [](nn::ParameterOp op) {
    std::vector<std::string> names = nn::stateNamesOf(op);
    return names.empty() ? std::vector<std::string>{op.getName().str()} : names;
  };
  if (duplicate->hasAttr(nn::isMadeAttrName) || duplicate->hasAttr(nn::isExportersAttrName) || weight.getName() == duplicate.getName())
    return;
  std::vector<std::string> names;
  if (!weight->hasAttr(nn::isMadeAttrName) && !weight->hasAttr(nn::isExportersAttrName))
    names = namesOf(weight);
  for (const std::string &name : namesOf(duplicate))
    if (!llvm::is_contained(names, name))
      names.push_back(name);
  weight->removeAttr(nn::isMadeAttrName);
  weight->removeAttr(nn::isExportersAttrName);
  nn::setStateNames(weight, names);
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
