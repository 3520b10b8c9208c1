// Steps of the reshard plan, one dist op each. Types carry the normal form of a step's shardings, `before` and `after`
// its own form.
#include "passes/Partition/LowerReshard.h"

#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Correspondence.h"

namespace hpc {

using namespace dist;

static Operation *lowerStep(OpBuilder &builder, Location loc, Value value, Type type, const ReshardStep &step,
                            const CollectiveNote &note) {
  MLIRContext *context = builder.getContext();
  auto before = ShardingAttr::get(context, step.before), after = ShardingAttr::get(context, step.after);
  SmallVector<StringRef> names(step.axes.begin(), step.axes.end());
  ArrayAttr axes = builder.getStrArrayAttr(names);
  StringAttr axis = builder.getStringAttr(step.axes[0]);
  auto number = [&](int value) { return builder.getI64IntegerAttr(value); };
  switch (step.kind) {
  case ReshardStep::Slice:
    return dist::SliceOp::create(builder, loc, type, value, before, after, note.cause, note.avoid, axis,
                                 number(step.toDim), number(step.toSub));
  case ReshardStep::Permute:
    return PermuteOp::create(builder, loc, type, value, before, after, note.cause, note.avoid, axes);
  case ReshardStep::AllToAll:
    return AllToAllOp::create(builder, loc, type, value, before, after, note.cause, note.avoid, axis,
                              number(step.fromDim), number(step.fromSub), number(step.toDim), number(step.toSub));
  case ReshardStep::AllGather:
    return AllGatherOp::create(builder, loc, type, value, before, after, note.cause, note.avoid, axis,
                               number(step.fromDim), number(step.fromSub));
  case ReshardStep::AllReduce:
    return AllReduceOp::create(builder, loc, type, value, before, after, note.cause, note.avoid, axes,
                               ReduceKindAttr::get(context, ReduceKind::Sum));
  case ReshardStep::Accumulate:
    return AccumulateOp::create(builder, loc, type, value, before, after, note.cause, note.avoid, axes);
  case ReshardStep::ReduceScatter:
    return ReduceScatterOp::create(builder, loc, type, value, before, after, note.cause, note.avoid, axis,
                                   number(step.toDim), number(step.toSub));
  }
  return nullptr;
}

FailureOr<Value> lowerReshard(OpBuilder &builder, Location loc, Value local, const Sharding &from, const Sharding &to,
                              const Mesh &mesh, const CollectiveNote &note) {
  Expected<std::vector<ReshardStep>> steps = planReshard(from, to, mesh);
  if (!steps.ok())
    return userError(loc, steps.status().kind()) << steps.status().message();
  Type element = cast<RankedTensorType>(local.getType()).getElementType();
  for (const ReshardStep &step : *steps) {
    Sharding after = normalize(step.after, mesh);
    auto type =
        RankedTensorType::get(boxShape(step.after, mesh), element, ShardingAttr::get(builder.getContext(), after));
    Operation *op = lowerStep(builder, loc, local, type, step, note);
    setValueIds(op, {{}, note.movedId});
    local = op->getResult(0);
  }
  return local;
}

} // namespace hpc
