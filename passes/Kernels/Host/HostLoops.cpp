// LLVM vectorizes these loops itself: indices are sums over their variables, scratch memory is known not to overlap.
#include "passes/Kernels/Host/HostLoops.h"

#include "passes/Kernels/Code/LoopAnnotation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace hpc::kernels {

void HostLoops::forEachItem(int64_t, function_ref<void(Value)> body) {
  loop(begin, end, {}, [&](Value item, Value) -> Value {
    body(item);
    return {};
  });
}

namespace {
constexpr int64_t longChain = 12;     ///< operations on floats: from here on a vector waits for itself
constexpr int64_t lanesOfWidest = 16; ///< f32 of the widest vector
constexpr int64_t shortestTail = 16;  ///< a rest of the loop is negligible if the loop is so many times longer

/// The number of vectors of a loop of `count` iterations to compute at the same time; 1 leaves the choice to LLVM. LLVM
/// counts operations, and takes one vector if there are many; but in a polynomial each operation waits for the one
/// before.
int64_t vectorsAtOnce(Block *body, int64_t count) {
  int64_t operations = 0;
  for (Operation &op : *body) {
    if (op.getNumRegions() > 0)
      return 1;
    operations += op.getNumOperands() > 1 && op.getNumResults() == 1 && isa<FloatType>(op.getResult(0).getType());
  }
  for (int64_t vectors : {4, 2})
    if (operations >= longChain &&
        (count % (vectors * lanesOfWidest) == 0 || count >= vectors * lanesOfWidest * shortestTail))
      return vectors;
  return 1;
}

void annotate(scf::ForOp loop) {
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound()),
                         last = getConstantIntValue(loop.getUpperBound());
  int64_t vectors = first && last ? vectorsAtOnce(loop.getBody(), *last - *first) : 1;
  if (vectors == 1)
    return;
  Builder builder(loop.getContext());
  auto interleave = LLVM::LoopInterleaveAttr::get(loop.getContext(), builder.getI32IntegerAttr(int32_t(vectors)));
  loop->setAttr(loopAnnotationName, LLVM::LoopAnnotationAttr::get(loop.getContext(), {}, {}, interleave, {}, {}, {}, {},
                                                                  {}, {}, {}, {}, {}, {}, {}, {}));
}
} // namespace

Value HostLoops::loop(Value first, Value last, Value state, function_ref<Value(Value, Value)> body) {
  auto loop = scf::ForOp::create(builder, loc, first, last, constant(1), state ? ValueRange(state) : ValueRange());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value next = body(loop.getInductionVar(), state ? Value(loop.getRegionIterArg(0)) : Value());
  if (!state) {
    annotate(loop);
    return {};
  }
  builder.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(builder, loc, next);
  return loop.getResult(0);
}

void HostLoops::forEachRow(int64_t count, function_ref<void(Value)> body) {
  loop(constant(0), constant(count), {}, [&](Value row, Value) -> Value {
    body(row);
    return {};
  });
}

Value HostLoops::constant(int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
}

Value HostLoops::address(Type stored, Value buffer, Value position) {
  return LLVM::GEPOp::create(builder, loc, buffer.getType(), stored, buffer, position);
}
Value HostLoops::load(Type stored, Value buffer, Value position) {
  return LLVM::LoadOp::create(builder, loc, stored, address(stored, buffer, position));
}
void HostLoops::store(Value element, Value buffer, Value position) {
  LLVM::StoreOp::create(builder, loc, element, address(element.getType(), buffer, position));
}

Value HostLoops::scratch(Type stored, int64_t count) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(entry);
  return LLVM::AllocaOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext()), stored,
                                constant(count), /*alignment=*/64);
}

} // namespace hpc::kernels
