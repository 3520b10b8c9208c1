// Pulls one element through the ops of a region. Code is branch-free: an index that data or a neighbour decides is
// clamped, then selected.
#include "passes/Kernels/Elements/ElementEmitter.h"

#include "passes/Kernels/Elements/Accumulation.h"
#include "passes/Kernels/Elements/Dropout.h"
#include "passes/Kernels/Elements/RowComposites.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <limits>

namespace hpc::kernels {

ElementEmitter::ElementEmitter(OpBuilder &builder, LoopNest &nest, nn::FusedOp region, ValueRange buffers,
                               ValueRange scalars, Block *entry)
    : builder(builder), loc(builder.getUnknownLoc()), loops(nest), scalar(builder, loc), indices(builder, loc, entry),
      region(region), buffers(buffers), scalars(scalars), scalarNames(collectScalars(region)), scopes(1) {}

// ---- memory -------------------------------------------------------------------------------------

Type storageType(Type elementType) {
  if (elementType.isInteger(1))
    return IntegerType::get(elementType.getContext(), 8); // a byte, 0 or 1
  if (elementType.isF16() || elementType.isBF16())
    return IntegerType::get(elementType.getContext(), 16);
  return registerType(elementType);
}

Value ElementEmitter::load(Type elementType, Value buffer, const IndexExpr &linear) {
  Type stored = storageType(elementType);
  Value value = loops.load(stored, buffer, indices.value(linear));
  if (elementType.isInteger(1)) // padding holds any byte
    return scalar.compare(arith::CmpIPredicate::ne, value, scalar.whole(stored, 0));
  return registerType(elementType) == stored ? value : scalar.widen(value, elementType);
}

void ElementEmitter::store(Value element, Type elementType, Value buffer, const IndexExpr &linear) {
  Type stored = storageType(elementType);
  if (elementType.isInteger(1))
    element = arith::ExtUIOp::create(builder, loc, stored, element);
  else if (element.getType() != stored)
    element = scalar.narrow(element, elementType);
  loops.store(element, buffer, indices.value(linear));
}

// ---- loops and what they remember ---------------------------------------------------------------

void ElementEmitter::forEachItem(int64_t count, function_ref<void(const IndexExpr &)> body) {
  loops.forEachItem(count, [&](Value item) { inScope([&] { body(indices.atom(item, count)); }); });
}

void ElementEmitter::forEachRow(int64_t count, function_ref<void(const IndexExpr &)> body) {
  loops.forEachRow(count, [&](Value row) { inScope([&] { body(indices.atom(row, count)); }); });
}

Value ElementEmitter::loop(Value first, Value last, int64_t extent, Value state,
                           function_ref<Value(const IndexExpr &, Value)> body) {
  return loops.loop(first, last, state, [&](Value i, Value inner) {
    Value next;
    inScope([&] { next = body(indices.atom(i, extent), inner); });
    return next;
  });
}
Value ElementEmitter::loop(int64_t extent, Value state, function_ref<Value(const IndexExpr &, Value)> body) {
  return loop(indices.constant(0), indices.constant(extent), extent, state, body);
}

Value ElementEmitter::share(int64_t extent, Value state, function_ref<Value(const IndexExpr &)> term,
                            function_ref<Value(Value, Value)> join) {
  return loops.share(
      extent, state,
      [&](Value i) {
        Value next;
        inScope([&] { next = term(indices.atom(i, extent)); });
        return next;
      },
      join);
}

std::optional<ShiftedSum> ElementEmitter::shareShifted(int64_t extent, function_ref<Value(const IndexExpr &)> element,
                                                       function_ref<Value(const IndexExpr &, Value)> term,
                                                       function_ref<Value()> largest) {
  auto scoped = [&](function_ref<Value()> body) {
    Value value;
    inScope([&] { value = body(); });
    return value;
  };
  return loops.shareShifted(
      extent, [&](Value i) { return scoped([&] { return element(indices.atom(i, extent)); }); },
      [&](Value i, Value shift) { return scoped([&] { return term(indices.atom(i, extent), shift); }); },
      [&] { return scoped(largest); });
}

void ElementEmitter::once(function_ref<void()> body) {
  if (loops.isShared())
    loops.once([&] { inScope(body); }); // only one thread has the values that it computes
  else
    body();
}

void ElementEmitter::inScope(function_ref<void()> body) {
  scopes.emplace_back();
  indices.enterLoop();
  body();
  indices.leaveLoop();
  scopes.pop_back();
}

void ElementEmitter::remember(Value tensor, const Index &index, Value element) {
  scopes.back().elements[{tensor.getAsOpaquePointer(), {index.begin(), index.end()}}] = element;
}

RowNumbers ElementEmitter::startRow(Operation *op, Index index, std::optional<RowMemory> memory) {
  index.back() = 0;
  Position row{op, {index.begin(), index.end()}};
  for (auto &scope : llvm::reverse(scopes))
    if (auto found = scope.rows.find(row); found != scope.rows.end())
      return found->second;
  return scopes.back().rows[row] = startRowComposite(*this, op, index, memory);
}

Value ElementEmitter::element(Value tensor, const Index &index) {
  Position position{tensor.getAsOpaquePointer(), {index.begin(), index.end()}};
  for (auto &scope : llvm::reverse(scopes))
    if (auto found = scope.elements.find(position); found != scope.elements.end())
      return found->second;
  Value value;
  if (nn::tensorType(tensor).getNumElements() == 0)
    value = zeroOf(nn::tensorType(tensor).getElementType()); // there is no element; such a loop runs zero times
  else if (auto argument = dyn_cast<BlockArgument>(tensor))
    value = load(nn::tensorType(tensor).getElementType(), buffers[argument.getArgNumber()],
                 linearize(indices, index, nn::shapeOf(tensor)));
  else
    value = compute(tensor.getDefiningOp(), index);
  return scopes.back().elements[position] = value;
}

// ---- ops ----------------------------------------------------------------------------------------

template <typename... Ops> static bool isOneOf(OperationName name) {
  return ((name.getStringRef() == Ops::getOperationName()) || ...);
}

bool hasElementEmitter(OperationName name) {
  return hasScalarEmitter(name) || isRowComposite(name) ||
         isOneOf<nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp, nn::SliceOp, nn::WindowOp, nn::ConstantOp, nn::IotaOp,
                 nn::ConcatOp, nn::PadOp, nn::EmbeddingOp, nn::GatherOp, nn::GatherNdOp, nn::UpdateSliceOp, nn::CumsumOp,
                 nn::SortPositionOp, nn::ReduceOp, nn::DropoutOp,
                 dist::FillTailOp, dist::SliceOp, dist::OffsetOp>(name);
}

/// Whether a position along the last dim is a number that all of the row compare themselves with, as a label's class:
/// in 32 bits where positions have no more, since a vector holds twice as many. Null for other comparisons.
static Value comparePositions(ElementEmitter &emitter, nn::CompareOp op, const Index &index) {
  const bool isEqual = op.getPredicate() == nn::ComparePredicate::eq;
  if (!isEqual && op.getPredicate() != nn::ComparePredicate::ne)
    return {};
  ScalarBuilder &s = emitter.registers();
  IndexBuilder &indices = emitter.index();
  for (auto [first, number] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
    auto positions = first.getDefiningOp<nn::IotaOp>();
    ArrayRef<int64_t> along = nn::shapeOf(first), shape = nn::shapeOf(number);
    if (!positions || !nn::tensorType(first).getElementType().isInteger(64) || index.empty() ||
        positions.getDim() + 1 != along.size() || along.back() == 1 || (!shape.empty() && shape.back() != 1))
      continue;
    const int64_t step = positions.getStep();
    IndexExpr position = indices.add(positions.getStart(), IndexBuilder::mul(index.back(), step));
    IndexBuilder::Range reach = indices.range(position);
    constexpr int64_t none = std::numeric_limits<int32_t>::min(); // no position
    if (reach.min <= none || reach.max > std::numeric_limits<int32_t>::max())
      continue;
    Value wanted = emitter.element(number, broadcastIndex(index, shape));
    if (Value offset = positions.getOffset())
      wanted = s.sub(wanted,
                     s.mul(emitter.element(offset, Index(nn::tensorType(offset).getRank())), indices.constant(step)));
    Type i32 = s.builder.getI32Type();
    Value isPosition =
        s.make<arith::AndIOp>(s.compare(arith::CmpIPredicate::sge, wanted, indices.constant(int64_t(reach.min))),
                              s.compare(arith::CmpIPredicate::sle, wanted, indices.constant(int64_t(reach.max))));
    Value narrow = s.select(isPosition, arith::TruncIOp::create(s.builder, s.loc, i32, wanted), s.whole(i32, none));
    Value here = arith::TruncIOp::create(s.builder, s.loc, i32, indices.value(position));
    return s.compare(isEqual ? arith::CmpIPredicate::eq : arith::CmpIPredicate::ne, here, narrow);
  }
  return {};
}

Value ElementEmitter::compute(Operation *op, const Index &index) {
  Index source;
  if (mapThroughView(indices, op, index, source))
    return element(op->getOperand(0), source);
  if (auto compare = dyn_cast<nn::CompareOp>(op))
    if (Value known = comparePositions(*this, compare, index))
      return known;
  if (hasScalarEmitter(op->getName())) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(element(operand, broadcastIndex(index, nn::shapeOf(operand))));
    return emitScalar(scalar, op, operands);
  }
  if (isRowComposite(op->getName()))
    return finishRowComposite(*this, op, index, startRow(op, index, std::nullopt));
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](nn::ConstantOp op) { return constant(op, index); })
      .Case([&](nn::IotaOp op) { return iota(op, index); })
      .Case([&](nn::ConcatOp op) { return concat(op, index); })
      .Case([&](nn::PadOp op) { return pad(op, index); })
      .Case([&](nn::EmbeddingOp op) { return embedding(op, index); })
      .Case([&](nn::GatherOp op) { return gather(op, index); })
      .Case([&](nn::GatherNdOp op) { return gatherNd(op, index); })
      .Case([&](nn::UpdateSliceOp op) { return element(op.getRows(), index); }) // RegionBody stores it where it belongs
      .Case([&](nn::CumsumOp op) { return cumsum(op, index); })
      .Case([&](nn::SortPositionOp op) { return sortPosition(op, index); })
      .Case([&](nn::ReduceOp op) { return reduce(op, index); })
      .Case([&](nn::DropoutOp op) { return emitDropout(*this, op, index); })
      .Case([&](dist::FillTailOp op) { return fillTail(op, index); })
      .Case([&](dist::SliceOp op) { return slice(op, index); })
      .Case([&](dist::OffsetOp op) { return scalarOf(offsetScalar(op)); })
      .Default([](Operation *) -> Value { llvm_unreachable("checked by hasElementEmitter"); });
}

Value ElementEmitter::scalarOf(const KernelScalar &which) {
  return scalars[llvm::find(scalarNames, which) - scalarNames.begin()];
}

Value ElementEmitter::isLater() {
  std::optional<KernelScalar> later = laterScalar(region);
  return later ? scalar.compare(arith::CmpIPredicate::ne, scalarOf(*later), indices.constant(0)) : Value();
}

Value ElementEmitter::numberOf(Attribute value, Type elementType) {
  Type type = registerType(elementType);
  if (auto real = dyn_cast<FloatAttr>(value))
    return scalar.constant(type, real.getValueAsDouble());
  APInt number = cast<IntegerAttr>(value).getValue();
  return scalar.whole(type, isUnsigned(elementType) ? int64_t(number.getZExtValue()) : number.getSExtValue());
}

Value ElementEmitter::constant(nn::ConstantOp op, const Index &index) {
  auto values = cast<DenseElementsAttr>(op.getValue());
  Type elementType = values.getElementType();
  if (values.isSplat())
    return numberOf(values.getSplatValue<Attribute>(), elementType);
  // The elements become a table in the object; booleans as bytes.
  Type stored = storageType(elementType);
  auto tableType = RankedTensorType::get({values.getNumElements()}, stored);
  DenseElementsAttr table;
  if (elementType.isInteger(1)) {
    SmallVector<int8_t> bytes;
    for (bool value : values.getValues<bool>())
      bytes.push_back(value);
    table = DenseElementsAttr::get(tableType, ArrayRef<int8_t>(bytes));
  } else {
    table = values.bitcast(stored).reshape(tableType);
  }
  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  LLVM::GlobalOp global;
  for (LLVM::GlobalOp other : module.getOps<LLVM::GlobalOp>())
    if (other.getValueOrNull() == table)
      global = other;
  if (!global) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    std::string name = "constant_" + std::to_string(llvm::range_size(module.getOps<LLVM::GlobalOp>()));
    global = LLVM::GlobalOp::create(builder, loc, LLVM::LLVMArrayType::get(stored, values.getNumElements()), true,
                                    LLVM::Linkage::Internal, name, table);
  }
  Value address = LLVM::AddressOfOp::create(builder, loc, global);
  return load(elementType, address, linearize(indices, index, values.getType().getShape()));
}

Value ElementEmitter::iota(nn::IotaOp op, const Index &index) {
  int64_t step = op.getStep();
  Value value = indices.value(indices.add(op.getStart(), IndexBuilder::mul(index[op.getDim()], step)));
  if (op.getOffset()) {
    Value offset = element(op.getOffset(), Index(nn::tensorType(op.getOffset()).getRank()));
    value = scalar.add(value, scalar.mul(offset, indices.constant(step)));
  }
  return emitCast(scalar, value, builder.getI64Type(), nn::tensorType(op.getResult()).getElementType());
}

Value ElementEmitter::concat(nn::ConcatOp op, const Index &index) {
  const IndexExpr &along = index[op.getAxis()];
  IndexBuilder::Range reach = indices.range(along);
  Value chosen;
  int64_t end = nn::shapeOf(op.getResult())[op.getAxis()];
  for (Value operand : llvm::reverse(op.getOperands())) {
    int64_t size = nn::shapeOf(operand)[op.getAxis()], begin = end - size;
    if (reach.min < end && reach.max >= begin && size > 0) {
      Index source = index;
      source[op.getAxis()] = indices.clamp(indices.add(along, -begin), size);
      Value part = element(operand, source);
      Value isBefore =
          chosen ? scalar.compare(arith::CmpIPredicate::slt, indices.value(along), indices.constant(end)) : Value();
      chosen = chosen ? scalar.select(isBefore, part, chosen) : part;
    }
    end = begin;
  }
  return chosen;
}

SmallVector<int64_t> seamsOf(Operation *op) {
  SmallVector<int64_t> seams;
  if (auto concat = dyn_cast<nn::ConcatOp>(op)) {
    const size_t axis = size_t(concat.getAxis());
    int64_t end = 0;
    for (Value operand : concat.getOperands())
      if (axis + 1 == nn::shapeOf(operand).size())
        seams.push_back(end += nn::shapeOf(operand)[axis]);
  } else if (auto pad = dyn_cast<nn::PadOp>(op); pad && !pad.getLow().empty()) {
    const int64_t low = pad.getLow().back();
    seams = {low, low + nn::shapeOf(pad.getOperand()).back()};
  }
  return seams;
}

Value ElementEmitter::pad(nn::PadOp op, const Index &index) {
  ArrayRef<int64_t> shape = nn::shapeOf(op.getOperand());
  Index source;
  Value inside;
  for (auto [i, size, low, high] : llvm::zip_equal(index, shape, op.getLow(), op.getHigh())) {
    if (low == 0 && high == 0) {
      source.push_back(i);
      continue;
    }
    IndexExpr moved = indices.add(i, -low);
    Value within = indices.isWithin(moved, 0, size);
    inside = inside && within ? scalar.make<arith::AndIOp>(inside, within) : within ? within : inside;
    source.push_back(indices.clamp(moved, size));
  }
  Value value = element(op.getOperand(), source);
  return inside ? scalar.select(inside, value, numberOf(op.getValue(), nn::tensorType(op.getResult()).getElementType()))
                : value;
}

// ---- indices that are data ----------------------------------------------------------------------

Value ElementEmitter::missingUnless(Value isValid, Value element) {
  double missing = ScalarBuilder::isReal(element) ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  return scalar.select(isValid, element, scalar.like(element, missing));
}

Value ElementEmitter::normalized(Value id, Type idType, int64_t size, Value &isValid) {
  Value wide = emitCast(scalar, id, idType, builder.getI64Type());
  Value isKnown = indices.isWithin(wide, indices.constant(-size), indices.constant(size));
  isValid = isValid ? scalar.make<arith::AndIOp>(isValid, isKnown) : isKnown;
  Value isNegative = scalar.compare(arith::CmpIPredicate::slt, wide, indices.constant(0));
  return scalar.select(isNegative, scalar.add(wide, indices.constant(size)), wide);
}

Value ElementEmitter::embedding(nn::EmbeddingOp op, const Index &index) {
  int64_t rows = nn::shapeOf(op.getTable())[0];
  Value isValid;
  Value id = element(op.getIds(), Index(ArrayRef<IndexExpr>(index).drop_back()));
  Value row = normalized(id, nn::tensorType(op.getIds()).getElementType(), op.getVocabulary(), isValid);
  Value isHere;
  if (op.getOffset()) {
    row = scalar.sub(row, element(op.getOffset(), Index(nn::tensorType(op.getOffset()).getRank())));
    isHere = indices.isWithin(row, indices.constant(0), indices.constant(rows));
  } else if (rows < int64_t(op.getVocabulary())) {
    isHere = indices.isWithin(row, indices.constant(0), indices.constant(rows));
  }
  Value value = element(op.getTable(), {indices.clamp(row, rows), index.back()});
  if (isHere)
    value = scalar.select(isHere, value, scalar.like(value, 0));
  return missingUnless(isValid, value);
}

Value ElementEmitter::gather(nn::GatherOp op, const Index &index) {
  auto ids = nn::tensorType(op.getIndices());
  int64_t axis = op.getAxis(), size = nn::shapeOf(op.getData())[axis];
  ArrayRef<IndexExpr> all(index);
  Value isValid;
  Value at =
      normalized(element(op.getIndices(), Index(all.slice(axis, ids.getRank()))), ids.getElementType(), size, isValid);
  Index source(all.take_front(axis));
  source.push_back(indices.clamp(at, size));
  ArrayRef<IndexExpr> rest = all.drop_front(axis + ids.getRank());
  source.append(rest.begin(), rest.end());
  return missingUnless(isValid, element(op.getData(), source));
}

Value ElementEmitter::gatherNd(nn::GatherNdOp op, const Index &index) {
  auto ids = nn::tensorType(op.getIndices());
  int64_t batchDims = op.getBatchDims(), depth = ids.getShape().back();
  ArrayRef<IndexExpr> all(index);
  Value isValid;
  Index source(all.take_front(batchDims));
  for (int64_t d = 0; d < depth; ++d) {
    Index at(all.take_front(ids.getRank() - 1));
    at.push_back(d);
    int64_t size = nn::shapeOf(op.getData())[batchDims + d];
    source.push_back(
        indices.clamp(normalized(element(op.getIndices(), at), ids.getElementType(), size, isValid), size));
  }
  ArrayRef<IndexExpr> rest = all.drop_front(ids.getRank() - 1);
  source.append(rest.begin(), rest.end());
  Value value = element(op.getData(), source);
  return isValid ? missingUnless(isValid, value) : value;
}

// ---- accumulation -------------------------------------------------------------------------------

/// The term that counts is added to the zeros of the others: no -0 is left.
Value ElementEmitter::pick(const OneHotSum &sum, Index index) {
  nn::IotaOp positions = sum.positions;
  int64_t size = nn::shapeOf(positions.getResult())[positions.getDim()];
  Value first = indices.constant(int64_t(positions.getStart()));
  if (Value offset = positions.getOffset())
    first = scalar.add(first, element(offset, Index(nn::tensorType(offset).getRank())));
  index[size_t(sum.axis)] = 0;
  Value at = scalar.sub(element(sum.number, broadcastIndex(index, nn::shapeOf(sum.number))), first);
  index[size_t(sum.axis)] = indices.clamp(at, size);
  Value term = element(sum.value, broadcastIndex(index, nn::shapeOf(sum.value)));
  Value zero = scalar.like(term, 0), isHere = indices.isWithin(at, indices.constant(0), indices.constant(size));
  return scalar.add(scalar.select(isHere, term, zero), zero);
}

Value ElementEmitter::reduce(nn::ReduceOp op, const Index &index) {
  if (std::optional<OneHotSum> sum = findOneHotSum(op))
    return pick(*sum, index);
  auto type = nn::tensorType(op.getOperand());
  Accumulation sum{scalar, op.getKind(), registerType(type.getElementType()), isUnsigned(type.getElementType())};
  auto join = [&](Value a, Value b) { return sum.join(a, b); };
  // The order follows from the operand's shape and the axes, so that it is the same in every region.
  SmallVector<int64_t> axes, sizes;
  for (int64_t axis : op.getAxes())
    if (type.getDimSize(axis) != 1) {
      axes.push_back(axis);
      sizes.push_back(type.getDimSize(axis));
    }
  if (loops.isShared()) { // all axes in one, so that there is enough to share
    auto term = [&](const IndexExpr &i) {
      Index at = index;
      for (auto [axis, digit] : llvm::zip_equal(axes, delinearize(indices, i, sizes)))
        at[axis] = digit;
      return sum.term(element(op.getOperand(), at));
    };
    Value total = share(ShapedType::getNumElements(sizes), sum.start(), term, join);
    return scalar.round(sum.finish(total), type.getElementType());
  }
  // Down columns row after row, as a column region does; rows by the nest's order, one after the other.
  bool isByColumn = axes.empty() || (axes.back() != type.getRank() - 1 && type.getShape().back() != 1);
  std::function<Value(Index, ArrayRef<int64_t>, Value)> along = [&](Index at, ArrayRef<int64_t> rest,
                                                                    Value state) -> Value {
    if (rest.empty())
      return sum.combine(state, element(op.getOperand(), at));
    int64_t axis = rest.front(), size = type.getDimSize(axis);
    if (rest.size() == 1 && !isByColumn) {
      Value row = share(
          size, sum.start(),
          [&](const IndexExpr &i) {
            at[axis] = i;
            return sum.term(element(op.getOperand(), at));
          },
          join);
      return axes.size() == 1 ? row : join(state, row);
    }
    return loop(size, state, [&](const IndexExpr &i, Value inner) {
      at[axis] = i;
      return along(at, rest.drop_front(), inner);
    });
  };
  return scalar.round(sum.finish(along(index, axes, sum.start())), type.getElementType());
}

/// The sum of a prefix or a suffix, from the start for every element: quadratic, for the short rows of positions that
/// models have.
Value ElementEmitter::cumsum(nn::CumsumOp op, const Index &index) {
  auto type = nn::tensorType(op.getOperand());
  const IndexExpr along = index[op.getAxis()], next = indices.add(along, 1);
  int64_t size = type.getDimSize(op.getAxis());
  IndexExpr begin = !op.getReverse() ? IndexExpr(0) : op.getExclusive() ? next : along;
  IndexExpr end = op.getReverse() ? IndexExpr(size) : op.getExclusive() ? along : next;
  Accumulation sums{scalar, ReduceKind::Sum, registerType(type.getElementType()), false};
  Value first = indices.value(begin), last = indices.value(end);
  Value sum = loop(first, last, size, sums.start(), [&](const IndexExpr &i, Value state) {
    Index at = index;
    at[op.getAxis()] = i;
    return sums.combine(state, element(op.getOperand(), at));
  });
  return scalar.round(sum, type.getElementType());
}

/// The number of elements of the row sorted before this one; equal ones on its left count too.
Value ElementEmitter::sortPosition(nn::SortPositionOp op, const Index &index) {
  auto type = nn::tensorType(op.getOperand());
  const IndexExpr along = index[op.getAxis()];
  int64_t size = type.getDimSize(op.getAxis());
  Type elementType = type.getElementType();
  // Floats are compared as integers in their order, NaN above all; adding 0 makes -0 +0.
  Accumulation order{scalar, ReduceKind::Max, registerType(elementType), isUnsigned(elementType)};
  auto key = [&](const Index &at) {
    Value value = element(op.getOperand(), at);
    return order.isOrdered() ? order.order(scalar.add(value, scalar.like(value, 0))) : value;
  };
  bool isUnsignedKey = isUnsigned(elementType) && !order.isOrdered();
  auto isBelow = isUnsignedKey ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value own = key(index);
  Type i64 = builder.getI64Type();
  auto count = [&](Value first, Value last, Value state, bool withEqual) {
    return loop(first, last, size, state, [&](const IndexExpr &i, Value inner) {
      Index at = index;
      at[op.getAxis()] = i;
      Value other = key(at), a = op.getDescending() ? own : other, b = op.getDescending() ? other : own;
      Value isBefore = scalar.compare(isBelow, withEqual ? b : a, withEqual ? a : b);
      if (withEqual) // equal elements before this one count
        isBefore = scalar.make<arith::XOrIOp>(isBefore, scalar.whole(builder.getI1Type(), 1));
      return scalar.add(inner, arith::ExtUIOp::create(builder, loc, i64, isBefore));
    });
  };
  Value here = indices.value(along), next = indices.value(indices.add(along, 1));
  Value left = count(indices.constant(0), here, scalar.whole(i64, 0), true);
  return count(next, indices.constant(size), left, false);
}

// ---- what depends on the rank -------------------------------------------------------------------

Value ElementEmitter::fillTail(dist::FillTailOp op, const Index &index) {
  Value value = element(op.getOperand(), index), isHeld;
  for (const PaddedDigit &digit : paddedDigits(op)) {
    IndexExpr position = indices.split(indices.split(index[digit.dim], digit.stride).first, digit.box).second;
    Value within = scalar.compare(arith::CmpIPredicate::slt, indices.value(position), scalarOf(digit.extent));
    isHeld = isHeld ? scalar.make<arith::AndIOp>(isHeld, within) : within;
  }
  if (!isHeld)
    return value;
  Type elementType = nn::tensorType(op.getOperand()).getElementType();
  auto real = dyn_cast<FloatAttr>(op.getValue());
  Value fill = real ? scalar.constant(registerType(elementType), real.getValueAsDouble())
                    : scalar.whole(registerType(elementType), int64_t(cast<IntegerAttr>(op.getValue()).getValue()
                                                                          .getRawData()[0]));
  return scalar.select(isHeld, value, fill);
}

Value ElementEmitter::slice(dist::SliceOp op, const Index &index) {
  SlicedDigit digit = slicedDigit(op);
  auto [upper, minor] = indices.split(index[digit.dim], digit.stride);
  auto [major, position] = indices.split(upper, digit.box);
  IndexExpr from = indices.clamp(scalar.add(indices.value(position), scalarOf(digit.offset)), digit.fromBox);
  Index source = index;
  source[digit.dim] = indices.add(
      IndexBuilder::mul(indices.add(IndexBuilder::mul(major, digit.fromBox), from), digit.stride), minor);
  return element(op.getOperand(), source);
}

} // namespace hpc::kernels
