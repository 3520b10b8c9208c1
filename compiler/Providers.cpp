// The table of providers. A library that computes a composite whole (attention, a norm) claims it by a line here; a line in
// lower (passes/Lower) then says which instruction it is.
#include "compiler/Providers.h"

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/Pipe/Pipe.h"

namespace hpc {

namespace {
using Table = llvm::StringMap<Provider>;

template <typename... Ops> void add(Table &table, Provider provider) {
  (table.insert({Ops::getOperationName(), provider}), ...);
}

Table makeTable() {
  Table table;
  add<nn::MatmulOp>(table, Provider::Library);
  add<nn::FusedOp>(table, Provider::Generated);
  add<nn::ParameterOp, nn::ConstantOp>(table, Provider::Storage);
  add<nn::ReshapeOp, dist::FillTailOp>(table, Provider::Alias);
  add<dist::AllReduceOp, dist::PermuteOp, dist::RawAllGatherOp, dist::RawReduceScatterOp, dist::RawAllToAllOp>(
      table, Provider::Collective);
  add<dist::AccumulateOp>(table, Provider::Time);
  add<ModuleOp, func::FuncOp, func::ReturnOp, pipe::StageOp, pipe::YieldOp, pipe::TransferOp>(table,
                                                                                               Provider::Structure);
  return table;
}
} // namespace

Provider providerOf(Operation *op) {
  static const Table table = makeTable();
  return table.lookup(op->getName().getStringRef());
}

} // namespace hpc
