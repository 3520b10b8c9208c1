// Sums of floats on a CPU, in an order that their number alone decides: lane l adds up elements l, l + lanes, ..., then
// lanes are joined by halves. LLVM vectorizes what makes the terms, but no operation lets it choose an order.
#include "passes/Kernels/HostLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

namespace hpc::kernels {

namespace {
constexpr int64_t bytesOfLanes = 256; ///< four of the widest vectors, so that additions need not wait for each other
constexpr int64_t bytesOfPiece = 64;  ///< one of them; LLVM cuts it where the target's are narrower
constexpr int64_t fewest = 8;         ///< fewer elements are added one after the other

/// Lanes first .. first + count - 1 of a vector.
Value lanesOf(OpBuilder &builder, Location loc, Value vector, int64_t first, int64_t count) {
  SmallVector<int32_t> which(static_cast<size_t>(count));
  std::iota(which.begin(), which.end(), int32_t(first));
  return LLVM::ShuffleVectorOp::create(builder, loc, vector, vector, which);
}
} // namespace

Value HostLoops::share(int64_t count, Value state, function_ref<Value(Value)> term,
                       function_ref<Value(Value, Value)> join) {
  if (state && isa<FloatType>(state.getType()) && count >= fewest)
    return shareInLanes(count, state, term, join);
  return loop(constant(0), constant(count), state, [&](Value i, Value inner) {
    Value next = term(i);
    return inner ? join(inner, next) : Value();
  });
}

/// Terms of a block lie in scratch memory between the loop that makes them and the vectors that take them in; where LLVM
/// unrolls the loop, in registers.
Value HostLoops::shareInLanes(int64_t count, Value state, function_ref<Value(Value)> term,
                              function_ref<Value(Value, Value)> join) {
  Type element = state.getType();
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  int64_t lanes = std::min(bytesOfLanes / bytes, int64_t(llvm::bit_floor(uint64_t(count))));
  int64_t width = std::min(bytesOfPiece / bytes, lanes); // lanes of a piece
  VectorType piece = VectorType::get({width}, element);
  Value terms = scratch(element, lanes);

  auto takeIn = [&](Value first, int64_t elements, ValueRange sums) {
    loop(constant(0), constant(elements), {}, [&](Value lane, Value) -> Value {
      store(term(arith::AddIOp::create(builder, loc, first, lane)), terms, lane);
      return {};
    });
    SmallVector<Value> next(sums);
    int64_t pieces = llvm::divideCeil(elements, width);
    if (elements < pieces * width) // lanes that no element is left for
      loop(constant(elements), constant(pieces * width), {}, [&](Value lane, Value) -> Value {
        store(state, terms, lane);
        return {};
      });
    for (int64_t i = 0; i < pieces; ++i)
      next[size_t(i)] = join(next[size_t(i)], LLVM::LoadOp::create(builder, loc, piece,
                                                                   address(element, terms, constant(i * width)),
                                                                   unsigned(bytesOfPiece)));
    return next;
  };

  // 1. Whole blocks of all lanes, then the rest.
  Value none = LLVM::PoisonOp::create(builder, loc, piece);
  Value one = LLVM::InsertElementOp::create(builder, loc, none, state, constant(0));
  Value start = LLVM::ShuffleVectorOp::create(builder, loc, one, one, SmallVector<int32_t>(size_t(width), 0));
  SmallVector<Value> sums(size_t(lanes / width), start);
  int64_t whole = count / lanes * lanes;
  if (whole == lanes) {
    sums = takeIn(constant(0), lanes, sums);
  } else {
    auto blocks = scf::ForOp::create(builder, loc, constant(0), constant(whole), constant(lanes), sums);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(blocks.getBody());
    SmallVector<Value> next = takeIn(blocks.getInductionVar(), lanes, blocks.getRegionIterArgs());
    builder.setInsertionPointToEnd(blocks.getBody());
    scf::YieldOp::create(builder, loc, next);
    sums.assign(blocks.result_begin(), blocks.result_end());
  }
  if (whole < count)
    sums = takeIn(constant(whole), count - whole, sums);
  // 2. The lanes by halves.
  while (sums.size() > 1) {
    size_t half = sums.size() / 2;
    for (size_t i = 0; i < half; ++i)
      sums[i] = join(sums[i], sums[i + half]);
    sums.resize(half);
  }
  Value sum = sums.front();
  for (int64_t half = width / 2; half > 0; half /= 2)
    sum = join(lanesOf(builder, loc, sum, 0, half), lanesOf(builder, loc, sum, half, half));
  return LLVM::ExtractElementOp::create(builder, loc, sum, constant(0));
}

} // namespace hpc::kernels
