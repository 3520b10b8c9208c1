// The table of providers: what holds on every target, then a column for each. A library that computes a composite whole
// (attention, a norm) claims it by a line in its target's column; a line in lower (passes/Lower) then says which
// instruction it is.
#include "compiler/Providers.h"

#include "compiler/Accumulations.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/ImplicitWindows.h"
#include "compiler/ModuleAttributes.h"

namespace hpc {

namespace {
using Column = llvm::StringMap<Provider>;

template <typename... Ops> void add(Column &column, Provider provider) {
  (column.insert({Ops::getOperationName(), provider}), ...);
}

Column makeEverywhere() {
  Column column;
  add<nn::MatmulOp>(column, Provider::Library);
  add<nn::FusedOp>(column, Provider::Generated);
  add<nn::ParameterOp, nn::ConstantOp>(column, Provider::Storage);
  add<nn::ReshapeOp, dist::FillTailOp, dist::RawBlockOp>(column, Provider::Alias);
  add<dist::AllReduceOp, dist::PermuteOp, dist::RawAllGatherOp, dist::RawReduceScatterOp, dist::RawAllToAllOp,
      dist::RawPermuteOp>(column, Provider::Collective);
  add<dist::AccumulateOp>(column, Provider::Time);
  add<ModuleOp, func::FuncOp, func::ReturnOp, pipe::StageOp, pipe::YieldOp, pipe::TransferOp>(column,
                                                                                                Provider::Structure);
  return column;
}

llvm::StringMap<Column> makeTargets() {
  llvm::StringMap<Column> targets;
  for (const char *target : {hostTarget, deviceTarget})
    add<nn::SoftmaxOp, nn::LayerNormOp, nn::RmsNormOp, nn::EmbeddingGradOp, nn::AttentionOp, nn::AttentionGradOp, nn::UpdateSliceOp>(
        targets[target], Provider::Region);
  return targets;
}
} // namespace

Provider providerOf(Operation *op, StringRef targets) {
  static const Column everywhere = makeEverywhere();
  static const llvm::StringMap<Column> columns = makeTargets();
  StringRef name = op->getName().getStringRef();
  if (isImplicit(op) || addsInProduct(op))
    return Provider::Alias;
  if (auto found = everywhere.find(name); found != everywhere.end())
    return found->second;
  std::optional<Provider> common;
  for (StringRef target : splitTargets(targets)) {
    auto column = columns.find(target);
    Provider provider = column == columns.end() ? Provider::None : column->second.lookup(name);
    if (common && *common != provider)
      return Provider::None;
    common = provider;
  }
  return *common;
}

Provider providerOf(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  return providerOf(op, targetOf(module ? module : op->getParentOfType<ModuleOp>()));
}

bool isBufferAlias(Operation *op) { return providerOf(op, "") == Provider::Alias; }

Value aliasRoot(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isBufferAlias(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

} // namespace hpc
