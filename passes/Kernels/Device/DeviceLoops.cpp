// Every barrier is reached by all threads of a block: `share` stands at the top of an item or of its rows, and a team
// of more than a warp is the block, whose threads have the same items.
#include "passes/Kernels/Device/DeviceLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace hpc::kernels {

constexpr int64_t maxSharedBytes = 48 << 10; // available on every card without an attribute
constexpr int64_t sharedAlignment = 16;
constexpr int sharedSpace = 3; // NVPTX's address space of shared memory

DeviceLoops::DeviceLoops(OpBuilder &builder, Location loc, Block *entry, const DeviceShape &shape,
                         ArrayRef<Value> written)
    : builder(builder), loc(loc), entry(entry), shape(shape), written(written) {
  laneIndex = special("llvm.nvvm.read.ptx.sreg.tid.x");
  if (shape.teams > 1 && shape.team > 1)
    laneIndex = arith::RemUIOp::create(builder, loc, laneIndex, constant(shape.team));
}

Value DeviceLoops::constant(int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
}

Value DeviceLoops::special(const char *which) {
  Value number = LLVM::CallIntrinsicOp::create(builder, loc, builder.getI32Type(), builder.getStringAttr(which),
                                               ValueRange())
                     .getResult(0);
  return arith::ExtUIOp::create(builder, loc, builder.getI64Type(), number);
}

void DeviceLoops::onlyIf(Value condition, function_ref<void()> body) {
  auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  body();
}

void DeviceLoops::forEachItem(int64_t count, function_ref<void(Value)> body) {
  // Teams in the order of threads: neighbours have neighbouring items.
  Value item = special("llvm.nvvm.read.ptx.sreg.ctaid.x");
  if (shape.teams > 1) {
    Value thread = special("llvm.nvvm.read.ptx.sreg.tid.x");
    Value team = shape.team > 1 ? arith::DivUIOp::create(builder, loc, thread, constant(shape.team)) : thread;
    item = arith::AddIOp::create(builder, loc, arith::MulIOp::create(builder, loc, item, constant(shape.teams)), team);
  }
  int64_t atOnce = shape.blocks() * shape.teams;
  if (atOnce == count) {
    body(item);
  } else if (atOnce > count) {
    onlyIf(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, item, constant(count)), [&] { body(item); });
  } else {
    auto loop = scf::ForOp::create(builder, loc, item, constant(count), constant(atOnce));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
    if (shape.team > DeviceShape::warp)
      barrier(); // shared memory is written again
  }
}

Value DeviceLoops::loop(Value first, Value last, Value state, function_ref<Value(Value, Value)> body) {
  ++depth;
  auto loop = scf::ForOp::create(builder, loc, first, last, constant(1), state ? ValueRange(state) : ValueRange());
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value next = body(loop.getInductionVar(), state ? Value(loop.getRegionIterArg(0)) : Value());
    if (state) {
      builder.setInsertionPointToEnd(loop.getBody());
      scf::YieldOp::create(builder, loc, next);
    }
  }
  --depth;
  return state ? loop.getResult(0) : Value();
}

void DeviceLoops::forEachRow(int64_t count, function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(builder, loc, constant(0), constant(count), constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
  if (shape.team > DeviceShape::warp)
    barrier(); // shared memory is written again
}

Value DeviceLoops::share(int64_t count, Value state, function_ref<Value(Value)> term,
                         function_ref<Value(Value, Value)> join) {
  auto body = [&](Value i, Value inner) {
    Value next = term(i);
    return inner ? join(inner, next) : Value();
  };
  if (!isShared())
    return loop(constant(0), constant(count), state, body);
  // Thread t does t, t + team, t + 2 team, ...: a warp's accesses are adjacent, and the trip count is a constant, so
  // that a short loop is unrolled and its loads stay in registers for the next one.
  int64_t whole = count / shape.team, rest = count % shape.team;
  Value sum = state;
  if (whole > 0)
    sum = loop(constant(0), constant(whole), sum, [&](Value i, Value inner) {
      Value start = arith::MulIOp::create(builder, loc, i, constant(shape.team));
      return body(arith::AddIOp::create(builder, loc, start, laneIndex), inner);
    });
  if (rest > 0) {
    ++depth;
    Value isInside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, laneIndex, constant(rest));
    auto branch = scf::IfOp::create(builder, loc, state ? TypeRange(state.getType()) : TypeRange(), isInside,
                                    /*withElseRegion=*/bool(state));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value next = body(arith::AddIOp::create(builder, loc, constant(whole * shape.team), laneIndex), sum);
    if (state) {
      scf::YieldOp::create(builder, loc, next);
      builder.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(builder, loc, sum);
      sum = branch.getResult(0);
    }
    --depth;
  }
  return state ? joinTeam(sum, join) : Value();
}

Value DeviceLoops::shuffle(Value state, int64_t distance) {
  Type type = state.getType(), i32 = builder.getI32Type(), i64 = builder.getI64Type();
  unsigned width = type.getIntOrFloatBitWidth();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(int32_t(value)));
  };
  auto exchange = [&](Value word) -> Value {
    return LLVM::CallIntrinsicOp::create(builder, loc, i32, builder.getStringAttr("llvm.nvvm.shfl.sync.bfly.i32"),
                                         ValueRange{number(-1), word, number(distance), number(DeviceShape::warp - 1)})
        .getResult(0);
  };
  auto bitcast = [&](Type to, Value a) -> Value {
    return a.getType() == to ? a : arith::BitcastOp::create(builder, loc, to, a).getResult();
  };
  if (width < 32)
    return arith::TruncIOp::create(builder, loc, type, exchange(arith::ExtUIOp::create(builder, loc, i32, state)));
  if (width == 32)
    return bitcast(type, exchange(bitcast(i32, state)));
  Value bits = bitcast(i64, state), half = constant(32);
  Value low = exchange(arith::TruncIOp::create(builder, loc, i32, bits));
  Value high = exchange(
      arith::TruncIOp::create(builder, loc, i32, arith::ShRUIOp::create(builder, loc, bits, half).getResult()));
  high = arith::ShLIOp::create(builder, loc, arith::ExtUIOp::create(builder, loc, i64, high), half);
  low = arith::ExtUIOp::create(builder, loc, i64, low);
  return bitcast(type, arith::OrIOp::create(builder, loc, high, low));
}

Value DeviceLoops::joinTeam(Value state, function_ref<Value(Value, Value)> join) {
  // 1. Within a warp, where both sides of an exchange add the same two numbers: all have the same bits.
  for (int64_t distance = DeviceShape::warp / 2; distance > 0; distance /= 2)
    state = join(state, shuffle(state, distance));
  int64_t warps = shape.team / DeviceShape::warp;
  if (warps == 1)
    return state;
  // 2. Over the warps, in order. Each sum has shared memory of its own, so one barrier is enough.
  Type type = state.getType(), stored = type.isInteger(1) ? Type(builder.getI8Type()) : type;
  Value slots = shared(stored, warps);
  Value warpSize = constant(DeviceShape::warp);
  Value inWarp = arith::RemUIOp::create(builder, loc, laneIndex, warpSize);
  onlyIf(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, inWarp, constant(0)), [&] {
    Value held = stored == type ? state : arith::ExtUIOp::create(builder, loc, stored, state).getResult();
    store(held, slots, arith::DivUIOp::create(builder, loc, laneIndex, warpSize));
  });
  barrier();
  auto slot = [&](int64_t warp) {
    Value held = load(stored, slots, constant(warp));
    return stored == type ? held : arith::TruncIOp::create(builder, loc, type, held).getResult();
  };
  Value total = slot(0);
  for (int64_t warp = 1; warp < warps; ++warp)
    total = join(total, slot(warp));
  return total;
}

void DeviceLoops::once(function_ref<void()> body) {
  if (!isShared())
    return body();
  onlyIf(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, laneIndex, constant(0)), body);
}

void DeviceLoops::barrier() {
  Value all = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  LLVM::CallIntrinsicOp::create(builder, loc, TypeRange(),
                                builder.getStringAttr("llvm.nvvm.barrier.cta.sync.aligned.all"), ValueRange(all),
                                LLVM::FastmathFlagsAttr::get(builder.getContext(), {}));
}

Value DeviceLoops::shared(Type stored, int64_t count) {
  int64_t size = (count * int64_t(stored.getIntOrFloatBitWidth() / 8) + sharedAlignment - 1) / sharedAlignment * sharedAlignment;
  if (size > maxSharedBytes - bytes)
    return {};
  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto global = module.lookupSymbol<LLVM::GlobalOp>(sharedMemoryName);
  OpBuilder::InsertionGuard guard(builder);
  if (!global) {
    builder.setInsertionPointToStart(module.getBody());
    global = LLVM::GlobalOp::create(builder, loc, LLVM::LLVMArrayType::get(builder.getI8Type(), 0), /*isConstant=*/false,
                                    LLVM::Linkage::External, sharedMemoryName, Attribute(), sharedAlignment,
                                    sharedSpace);
  }
  builder.setInsertionPointToStart(entry);
  Value start = LLVM::AddressOfOp::create(builder, loc, global);
  Value place = LLVM::GEPOp::create(builder, loc, start.getType(), builder.getI8Type(), start, LLVM::GEPArg(int32_t(bytes)));
  bytes += size;
  return place;
}

Value DeviceLoops::ownRow(Type stored, int64_t count) {
  constexpr int64_t most = maxSharedBytes / 2; // two blocks find room on any card
  int64_t perRow = count * int64_t(stored.getIntOrFloatBitWidth() / 8);
  if (count > most || perRow * shape.teams > most - bytes)
    return {};
  Value rows = shared(stored, count * shape.teams);
  if (!rows || shape.teams == 1)
    return rows;
  Value thread = special("llvm.nvvm.read.ptx.sreg.tid.x");
  Value team = arith::DivUIOp::create(builder, loc, thread, constant(shape.team));
  return address(stored, rows, arith::MulIOp::create(builder, loc, team, constant(count)));
}

Value DeviceLoops::address(Type stored, Value buffer, Value position) {
  return LLVM::GEPOp::create(builder, loc, buffer.getType(), stored, buffer, position);
}
Value DeviceLoops::load(Type stored, Value buffer, Value position) {
  bool isConstant = isa<BlockArgument>(buffer) && !llvm::is_contained(written, buffer);
  return LLVM::LoadOp::create(builder, loc, stored, address(stored, buffer, position), /*alignment=*/0,
                              /*isVolatile=*/false, /*isNonTemporal=*/false, /*isInvariant=*/isConstant);
}
void DeviceLoops::store(Value element, Value buffer, Value position) {
  LLVM::StoreOp::create(builder, loc, element, address(element.getType(), buffer, position));
}

Value DeviceLoops::scratch(Type stored, int64_t count) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(entry);
  return LLVM::AllocaOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext()), stored, constant(count));
}

} // namespace hpc::kernels
