// One element of any value of a region, pulled from the region's operands at an index. Pulling is correct for every op
// at every index; an element that was computed at the same index in an enclosing loop is used again, so that a row's
// reductions are done once.
#pragma once

#include "passes/Kernels/Elements/LoopNest.h"
#include "passes/Kernels/Elements/ScalarBuilder.h"
#include "passes/Kernels/Regions/IndexMap.h"
#include "passes/Kernels/Regions/KernelScalars.h"
#include "passes/Kernels/Regions/OneHotSum.h"

namespace hpc::kernels {

/// The type that a tensor's elements have in memory: integers for f16 and bf16, a byte, 0 or 1, for i1.
Type storageType(Type elementType);

/// The place of one row of elements: in a buffer of their type, from `base` on.
struct RowMemory {
  Value buffer;
  IndexExpr base;
  bool isResult = false; ///< of the op itself: if the region accumulates, it holds the sums of earlier micro-batches
};
/// The numbers of a row that a composite computes before its elements (RowComposites.h).
struct RowNumbers {
  SmallVector<Value, 2> numbers;
  std::optional<RowMemory> memory; ///< memory that it has filled, if any
};

class ElementEmitter {
public:
  /// `buffers`: of the region's block arguments; `scalars`: as collectScalars orders them; `entry`: the function's first
  /// block.
  ElementEmitter(OpBuilder &builder, LoopNest &nest, nn::FusedOp region, ValueRange buffers, ValueRange scalars,
                 Block *entry);

  /// A register with the element of `tensor` at `index`.
  Value element(Value tensor, const Index &index);
  Value load(Type elementType, Value buffer, const IndexExpr &linear);
  void store(Value element, Type elementType, Value buffer, const IndexExpr &linear);

  /// Sets the element for this index until the end of the loop.
  void remember(Value tensor, const Index &index, Value element);

  /// Computes once the numbers that a composite needs of the row with `index`; its elements use them until the end of
  /// the loop. The composite may use `memory`, if any, until its last element is computed.
  RowNumbers startRow(Operation *composite, Index index, std::optional<RowMemory> memory);

  /// Memory that code before the items has filled for a composite; null if there is none.
  Value &preparedFor(Operation *composite) { return prepared[composite]; }

  /// Whether this micro-batch adds to the content of the result's buffer; null if none does.
  Value isLater();

  /// Elements that the body computes are forgotten after it, as after a loop.
  void inScope(function_ref<void()> body);

  /// The loops of the nest. Elements that a body computes are forgotten after it.
  void forEachItem(int64_t count, function_ref<void(const IndexExpr &)> body);
  void forEachRow(int64_t count, function_ref<void(const IndexExpr &)> body);
  /// For first <= i < last, where 0 <= i < extent.
  Value loop(Value first, Value last, int64_t extent, Value state,
             function_ref<Value(const IndexExpr &, Value)> body);
  Value loop(int64_t extent, Value state, function_ref<Value(const IndexExpr &, Value)> body);
  /// As the nest's `share`, whose rules for the bodies apply.
  Value share(int64_t extent, Value state, function_ref<Value(const IndexExpr &)> term,
              function_ref<Value(Value, Value)> join);
  std::optional<ShiftedSum> shareShifted(int64_t extent, function_ref<Value(const IndexExpr &)> element,
                                         function_ref<Value(const IndexExpr &, Value)> term,
                                         function_ref<Value()> largest);
  void once(function_ref<void()> body);

  IndexBuilder &index() { return indices; }
  ScalarBuilder &registers() { return scalar; }
  LoopNest &nest() { return loops; }

private:
  Value compute(Operation *op, const Index &index);
  Value zeroOf(Type elementType) { return scalar.constant(registerType(elementType), 0); }
  Value numberOf(Attribute value, Type elementType);
  /// The element at an index that data decides: NaN (integers 0) where `isValid` is false, without reading outside.
  Value missingUnless(Value isValid, Value element);
  /// A possibly negative index of a dim, made non-negative; `isValid` is and-ed with whether it names anything.
  Value normalized(Value id, Type idType, int64_t size, Value &isValid);
  Value scalarOf(const KernelScalar &which);

  Value constant(nn::ConstantOp op, const Index &index);
  Value iota(nn::IotaOp op, const Index &index);
  Value concat(nn::ConcatOp op, const Index &index);
  Value pad(nn::PadOp op, const Index &index);
  Value embedding(nn::EmbeddingOp op, const Index &index);
  Value gather(nn::GatherOp op, const Index &index);
  Value gatherNd(nn::GatherNdOp op, const Index &index);
  Value cumsum(nn::CumsumOp op, const Index &index);
  Value sortPosition(nn::SortPositionOp op, const Index &index);
  Value reduce(nn::ReduceOp op, const Index &index);
  Value pick(const OneHotSum &sum, Index index);
  Value fillTail(dist::FillTailOp op, const Index &index);
  Value slice(dist::SliceOp op, const Index &index);

  using Position = std::pair<void *, std::vector<IndexExpr>>; ///< a value at an index

  OpBuilder &builder;
  Location loc;
  LoopNest &loops;
  ScalarBuilder scalar;
  IndexBuilder indices;
  nn::FusedOp region;
  SmallVector<Value> buffers, scalars;
  SmallVector<KernelScalar> scalarNames;
  struct Scope {
    std::map<Position, Value> elements;
    std::map<Position, RowNumbers> rows;
  };
  SmallVector<Scope> scopes; ///< innermost last
  DenseMap<Operation *, Value> prepared;
};

/// Whether the emitter has code for the op at all.
bool hasElementEmitter(OperationName name);

/// The positions along the last dim of its result where an op goes from one source to the next: between two of them its
/// elements have simpler code. From 0 to the dim's size, in no order.
SmallVector<int64_t> seamsOf(Operation *op);

} // namespace hpc::kernels
