// The loops of a region: rows, then per row its reductions, then one loop over the last dim for all results.
// Two functions: the exported one unpacks the argument array, so that the inner one can promise that no result overlaps
// another argument.
#include "passes/Kernels/RegionEmitter.h"

#include "compiler/Diagnostics.h"
#include "compiler/ElementType.h"
#include "passes/Kernels/ElementEmitter.h"
#include "passes/Kernels/RegionShape.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace hpc::kernels {

static LogicalResult checkOps(nn::FusedOp region) {
  for (Operation &op : region.getBody().front().without_terminator()) {
    if (!hasElementEmitter(op.getName()))
      return userError(&op, ErrorKind::Internal)
             << op.getName() << " in region '" << region.getSymbol()
             << "' has no code; add it to passes/Kernels/ScalarEmitter.cpp or ElementEmitter.cpp";
    for (Value value : op.getResults())
      if (!findDType(value.getType()))
        return userError(&op, ErrorKind::Unsupported)
               << "element type of " << value.getType() << " has no generated code";
    if (auto constant = dyn_cast<nn::ConstantOp>(op); constant && !isa<DenseElementsAttr>(constant.getValue()))
      return userError(&op, ErrorKind::Internal) << "a constant in region '" << region.getSymbol() << "' must be dense";
  }
  return success();
}

/// The body of the inner function, for rows begin..end-1.
static void emitRows(OpBuilder &builder, nn::FusedOp region, const RegionShape &shape, func::FuncOp function) {
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
  Value begin = arguments.drop_back().back(), end = arguments.back();
  ElementEmitter emitter(builder, region, buffers, scalars, entry);
  IndexBuilder &indices = emitter.index();
  ValueRange yielded = region.getBody().front().getTerminator()->getOperands();

  emitter.loop(begin, end, {}, [&](Value row, Value) -> Value {
    Index rowIndex = indices.delinearize(row, shape.outer());
    Index rowElement = rowIndex; // of a value of row shape
    if (!shape.root.empty())
      rowElement.push_back(indices.constant(0));
    for (nn::ReduceOp op : shape.rowReductions)
      emitter.element(op.getResult(), rowElement);
    auto storeAll = [&](const Index &at, Value linear, bool perRow) {
      auto isDueHere = [&](Value value) {
        return (shape.columns() != 1 && shape.isRowShape(nn::shapeOf(value))) == perRow;
      };
      // All elements before the first store: a result in place overwrites what another may read.
      for (Value value : yielded)
        if (isDueHere(value))
          emitter.element(value, at);
      for (auto [value, output] : llvm::zip_equal(yielded, outputs))
        if (isDueHere(value))
          emitter.store(emitter.element(value, at), nn::tensorType(value).getElementType(), output, linear);
    };
    storeAll(rowElement, row, true);
    if (shape.columns() == 1) {
      storeAll(rowElement, row, false);
      return {};
    }
    emitter.loop(indices.constant(0), indices.constant(shape.columns()), {}, [&](Value column, Value) -> Value {
      Index at = rowIndex;
      at.push_back(column);
      storeAll(at, indices.add(indices.mul(row, shape.columns()), column), false);
      return {};
    });
    return {};
  });
}

LogicalResult emitRegion(nn::FusedOp region, ModuleOp kernels) {
  std::optional<RegionShape> shape = findRegionShape(region);
  if (!shape)
    return userError(region, ErrorKind::Internal)
           << "results of region '" << region.getSymbol() << "' have no common root shape; split the region";
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
  emitRows(builder, region, *shape, inner);
  func::ReturnOp::create(builder, loc);

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
