// LLVM vectorizes these loops itself: indices are sums over their variables, scratch memory is known not to overlap.
#include "passes/Kernels/HostLoops.h"

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

Value HostLoops::loop(Value first, Value last, Value state, function_ref<Value(Value, Value)> body) {
  auto loop = scf::ForOp::create(builder, loc, first, last, constant(1), state ? ValueRange(state) : ValueRange());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value next = body(loop.getInductionVar(), state ? Value(loop.getRegionIterArg(0)) : Value());
  if (!state)
    return {};
  builder.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(builder, loc, next);
  return loop.getResult(0);
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
