// Sums of floats on a CPU, in an order that their number alone decides: lane l adds up elements l, l + lanes, ..., then
// lanes are joined by halves.
#include "passes/Kernels/Host/HostLanes.h"

#include "passes/Kernels/Code/LoopAnnotation.h"

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

/// LLVM would unroll it whole. A block's lanes are enough beside each other, and straight code of thousands of
/// instructions is slower where a region has several sums.
static void keepAsLoop(scf::ForOp loop) {
  MLIRContext *context = loop.getContext();
  auto unroll = LLVM::LoopUnrollAttr::get(context, BoolAttr::get(context, true), {}, {}, {}, {}, {}, {});
  loop->setAttr(loopAnnotationName, LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {}, {}, {}, {}, {},
                                                                  {}, {}, {}, {}));
}

HostLanes::HostLanes(HostLoops &nest, Type element, int64_t count) : nest(nest), element(element) {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  lanes = std::min(bytesOfLanes / bytes, int64_t(llvm::bit_floor(uint64_t(count))));
  width = std::min(bytesOfPiece / bytes, lanes);
  terms = nest.scratch(element, lanes);
}

SmallVector<Value> HostLanes::start(Value state) {
  VectorType piece = VectorType::get({width}, element);
  Value none = LLVM::PoisonOp::create(nest.builder, nest.loc, piece);
  Value one = LLVM::InsertElementOp::create(nest.builder, nest.loc, none, state, nest.constant(0));
  Value all = LLVM::ShuffleVectorOp::create(nest.builder, nest.loc, one, one, SmallVector<int32_t>(size_t(width), 0));
  return SmallVector<Value>(size_t(lanes / width), all);
}

SmallVector<Value> HostLanes::takeIn(ValueRange states, Value first, int64_t elements, Value none,
                                     function_ref<Value(Value)> term, function_ref<Value(Value, Value)> join) {
  nest.loop(nest.constant(0), nest.constant(elements), {}, [&](Value lane, Value) -> Value {
    nest.store(term(arith::AddIOp::create(nest.builder, nest.loc, first, lane)), terms, lane);
    return {};
  });
  SmallVector<Value> next(states);
  int64_t pieces = llvm::divideCeil(elements, width);
  if (elements < pieces * width) // lanes that no element is left for
    nest.loop(nest.constant(elements), nest.constant(pieces * width), {}, [&](Value lane, Value) -> Value {
      nest.store(none, terms, lane);
      return {};
    });
  for (int64_t i = 0; i < pieces; ++i)
    next[size_t(i)] =
        join(next[size_t(i)],
             LLVM::LoadOp::create(nest.builder, nest.loc, VectorType::get({width}, element),
                                  nest.address(element, terms, nest.constant(i * width)), unsigned(bytesOfPiece)));
  return next;
}

SmallVector<Value> HostLanes::takeInWhole(ValueRange states, Value first, Value last, Value none,
                                          function_ref<Value(Value)> term, function_ref<Value(Value, Value)> join) {
  auto blocks = scf::ForOp::create(nest.builder, nest.loc, first, last, nest.constant(lanes), states);
  keepAsLoop(blocks);
  OpBuilder::InsertionGuard guard(nest.builder);
  nest.builder.setInsertionPointToStart(blocks.getBody());
  SmallVector<Value> next = takeIn(blocks.getRegionIterArgs(), blocks.getInductionVar(), lanes, none, term, join);
  nest.builder.setInsertionPointToEnd(blocks.getBody());
  scf::YieldOp::create(nest.builder, nest.loc, next);
  return SmallVector<Value>(blocks.result_begin(), blocks.result_end());
}

Value HostLanes::join(ValueRange states, function_ref<Value(Value, Value)> join) {
  SmallVector<Value> left(states);
  while (left.size() > 1) {
    size_t half = left.size() / 2;
    for (size_t i = 0; i < half; ++i)
      left[i] = join(left[i], left[i + half]);
    left.resize(half);
  }
  Value all = left.front();
  for (int64_t half = width / 2; half > 0; half /= 2)
    all = join(lanesOf(nest.builder, nest.loc, all, 0, half), lanesOf(nest.builder, nest.loc, all, half, half));
  return LLVM::ExtractElementOp::create(nest.builder, nest.loc, all, nest.constant(0));
}

Value HostLoops::share(int64_t count, Value state, function_ref<Value(Value)> term,
                       function_ref<Value(Value, Value)> join) {
  if (state && isa<FloatType>(state.getType()) && count >= fewest)
    return shareInLanes(count, state, term, join);
  return loop(constant(0), constant(count), state, [&](Value i, Value inner) {
    Value next = term(i);
    return inner ? join(inner, next) : Value();
  });
}

Value HostLoops::shareInLanes(int64_t count, Value state, function_ref<Value(Value)> term,
                              function_ref<Value(Value, Value)> join) {
  HostLanes lanes(*this, state.getType(), count);
  // Whole blocks of all lanes, then the rest.
  SmallVector<Value> sums = lanes.start(state);
  int64_t whole = count / lanes.count() * lanes.count();
  sums = whole == lanes.count() ? lanes.takeIn(sums, constant(0), whole, state, term, join)
                                : lanes.takeInWhole(sums, constant(0), constant(whole), state, term, join);
  if (whole < count)
    sums = lanes.takeIn(sums, constant(whole), count - whole, state, term, join);
  return lanes.join(sums, join);
}

} // namespace hpc::kernels
