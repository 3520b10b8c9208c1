// A region as a host function: the loops of RegionBody on HostLoops, and the way in.
// Two functions: the exported one unpacks the argument array, so that the inner one can promise that no result overlaps
// another argument.
#include "passes/Kernels/Host/RegionEmitter.h"

#include "compiler/Diagnostics.h"
#include "passes/Kernels/Elements/ColumnRegion.h"
#include "passes/Kernels/Elements/RegionBody.h"
#include "passes/Kernels/Host/AttentionEmitter.h"
#include "passes/Kernels/Host/HostLoops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace hpc::kernels {

int64_t countItems(nn::FusedOp region) {
  if (std::optional<AttentionRegion> attention = findAttentionRegion(region))
    return countAttentionItems(*attention);
  if (std::optional<ColumnRegion> columns = findColumnRegion(region))
    return columns->items();
  std::optional<RegionShape> shape = findRegionShape(region);
  return shape ? shape->items() : 0;
}

/// The body of the inner function.
static LogicalResult emitLoops(OpBuilder &builder, nn::FusedOp region, func::FuncOp function, VectorUnit unit) {
  Block *entry = &function.getBody().front();
  size_t numOperands = region.getNumOperands(), numResults = region.getNumResults();
  ValueRange arguments(entry->getArguments());
  ValueRange buffers = arguments.take_front(numOperands);
  // A result in place is written through its operand's pointer and never through its own: so no two pointers of the
  // function overlap, and each is noalias.
  SmallVector<Value> outputs(arguments.drop_front(numOperands).take_front(numResults));
  for (unsigned i = 0; i < numResults; ++i)
    if (int64_t operand = region.inPlaceOperand(i); operand >= 0)
      outputs[i] = buffers[operand];
  ValueRange scalars = arguments.drop_front(numOperands + numResults).drop_back(2);
  HostLoops nest(builder, builder.getUnknownLoc(), entry, arguments.drop_back().back(), arguments.back());
  ElementEmitter emitter(builder, nest, region, buffers, scalars, entry);
  if (std::optional<AttentionRegion> attention = findAttentionRegion(region)) {
    emitAttention(emitter, *attention, buffers, outputs, unit);
    return success();
  }
  return emitBody(emitter, region, outputs);
}

LogicalResult emitRegion(nn::FusedOp region, ModuleOp kernels, VectorUnit unit) {
  if (failed(checkOps(region)))
    return failure();

  OpBuilder builder(kernels.getContext());
  Location loc = builder.getUnknownLoc();
  Type pointer = LLVM::LLVMPointerType::get(kernels.getContext()), i64 = builder.getI64Type();
  size_t numBuffers = region.getNumOperands() + region.getNumResults(), numScalars = collectScalars(region).size();

  SmallVector<Type> innerTypes(numBuffers, pointer);
  innerTypes.append(numScalars + 2, i64);
  builder.setInsertionPointToEnd(kernels.getBody());
  auto inner =
      func::FuncOp::create(builder, loc, (region.getSymbol() + ".rows").str(), builder.getFunctionType(innerTypes, {}));
  inner.setPrivate();
  inner->setAttr("llvm.linkage", LLVM::LinkageAttr::get(builder.getContext(), LLVM::Linkage::Internal));
  for (size_t i = 0; i < numBuffers; ++i)
    inner.setArgAttr(unsigned(i), "llvm.noalias", builder.getUnitAttr());
  builder.setInsertionPointToStart(inner.addEntryBlock());
  if (failed(emitLoops(builder, region, inner, unit)))
    return userError(region, ErrorKind::Internal)
           << "results of region '" << region.getSymbol() << "' have no common root shape; split the region";
  func::ReturnOp::create(builder, loc);
  eraseDeadOps(inner);

  builder.setInsertionPointToEnd(kernels.getBody());
  auto outer =
      func::FuncOp::create(builder, loc, region.getSymbol(), builder.getFunctionType({pointer, pointer, i64, i64}, {}));
  Block *entry = outer.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  SmallVector<Value> arguments;
  auto unpack = [&](Value array, Type type, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      Value address = LLVM::GEPOp::create(builder, loc, pointer, type, array, LLVM::GEPArg(int32_t(i)));
      arguments.push_back(LLVM::LoadOp::create(builder, loc, type, address));
    }
  };
  unpack(entry->getArgument(0), pointer, numBuffers);
  unpack(entry->getArgument(1), i64, numScalars);
  arguments.append({entry->getArgument(2), entry->getArgument(3)});
  func::CallOp::create(builder, loc, inner, arguments);
  func::ReturnOp::create(builder, loc);
  return success();
}

} // namespace hpc::kernels
