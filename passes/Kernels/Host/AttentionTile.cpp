// Lanes are independent: the values of a lane without a query stay in that lane, and are not stored.
#include "passes/Kernels/Host/AttentionTile.h"

#include <limits>

namespace hpc::kernels {
using arith::CmpFPredicate;
using arith::CmpIPredicate;

static int64_t lanesOf(const AttentionRegion &region, VectorUnit unit, Type element) {
  int64_t most = unit.bytes * 8 / element.getIntOrFloatBitWidth(), least = 128 / element.getIntOrFloatBitWidth();
  int64_t queries = std::max<int64_t>(region.queries * region.repeat, 1);
  return std::clamp<int64_t>(int64_t(llvm::PowerOf2Ceil(uint64_t(queries))), least, most);
}

static Step chooseStep(const AttentionRegion &region, VectorUnit unit) {
  auto isBFloat = [](const AttentionTensor &tensor) { return tensor.elementType.isBF16() && tensor.casts.empty(); };
  const bool arePairs = unit.multipliesPairs && !region.isGradient() && !region.isPart() && region.parts.size() == 1 &&
                        isBFloat(region.query) && isBFloat(region.parts[0].key) && isBFloat(region.parts[0].value) &&
                        isBFloat(region.results[0]);
  return arePairs ? Step::PairOfBFloats : Step::Number;
}

AttentionTile::AttentionTile(ElementEmitter &emitter, const AttentionRegion &region, ValueRange buffers,
                             VectorUnit unit)
    : emitter(emitter), s(emitter.registers()), indices(emitter.index()), region(region), buffers(buffers),
      offset(region.causalOffset ? std::clamp<int64_t>(*region.causalOffset, -region.queries, region.keys)
                                 : region.keys),
      lanes(emitter, unit, registerType(region.query.elementType),
            lanesOf(region, unit, registerType(region.query.elementType))),
      stepOfSums(chooseStep(region, unit)) {
  int64_t most = std::clamp<int64_t>(numQueries(), 1, queriesOfBlock);
  numColumns = (most + lanes.lanes() - 1) / lanes.lanes();
  turned = lanes.scratch(width() * llvm::alignTo(std::max(region.depth, region.width), lanes.lanes()));
  if (region.bias && !isPerKey(region, region.bias))
    biasRows = lanes.scratchRows(keysOfBlock, numColumns);
  if (region.visible && !isPerKey(region, region.visible))
    visibleRows = lanes.scratchRows(keysOfBlock, numColumns);
  if (region.isPlaced())
    lastKeys = lanes.scratch(width(), limitType());
}

std::pair<Value, Value> keysOfPart(ElementEmitter &emitter, const AttentionRegion &region, const AttentionKeys &part,
                                   const IndexExpr &first, Value count) {
  ScalarBuilder &s = emitter.registers();
  IndexBuilder &indices = emitter.index();
  Value begin = indices.constant(0), end = count;
  if (part.first > 0)
    begin = s.make<arith::MaxSIOp>(begin, s.sub(indices.constant(part.first), indices.value(first)));
  if (part.end < region.keys)
    end = s.make<arith::MinSIOp>(end, s.sub(indices.constant(part.end), indices.value(first)));
  return {begin, end};
}

static Value maskElement(ElementEmitter &emitter, Value mask, Index at) {
  for (auto [index, size] : llvm::zip_equal(at, nn::shapeOf(mask)))
    if (size == 1)
      index = 0;
  return emitter.element(mask, at);
}
Value biasElement(ElementEmitter &emitter, const AttentionRegion &region, Index at) {
  return emitCast(emitter.registers(), maskElement(emitter, region.bias, std::move(at)),
                  nn::tensorType(region.bias).getElementType(), registerType(region.query.elementType));
}
Value visibleElement(ElementEmitter &emitter, const AttentionRegion &region, Index at) {
  ScalarBuilder &s = emitter.registers();
  Type type = registerType(region.query.elementType);
  return s.select(maskElement(emitter, region.visible, std::move(at)), s.constant(type, 1), s.constant(type, 0));
}
bool isPerKey(const AttentionRegion &region, Value mask) {
  ArrayRef<int64_t> shape = nn::shapeOf(mask);
  return shape[2] == 1 && (shape[1] == 1 || region.repeat == 1);
}

// ---- the place of the tile -----------------------------------------------------------------------

void AttentionTile::enterGroup(const IndexExpr &batchIndex, const IndexExpr &groupIndex) {
  batch = batchIndex;
  group = groupIndex;
  if (region.moves())
    movingOffset = emitCausalOffset(emitter, region);
  if (region.dropout)
    dropout.emplace(emitter, *region.dropout);
  if (region.dropout && region.queryPositions && !weightPositions)
    weightPositions = lanes.scratch(width(), dropout->type());
}

Type AttentionTile::limitType() const {
  constexpr int64_t narrowest = std::numeric_limits<int32_t>::max() / 4;
  return numQueries() < narrowest && region.keys < narrowest ? s.builder.getI32Type() : s.builder.getI64Type();
}

std::pair<IndexExpr, IndexExpr> AttentionTile::queryOf(const IndexExpr &lane) {
  return indices.split(indices.clamp(indices.add(firstQuery, lane), numQueries()), region.repeat);
}

/// Loads what mask and dropout read of the positions of a block's queries, if these have positions of their own.
void AttentionTile::placeQueries() {
  SmallVector<Value> range;
  if (region.isPlaced())
    range = {indices.constant(region.keys), indices.constant(-1)};
  range = lanes.loop(indices.constant(0), indices.constant(width()), 1, width(), range, [&](const IndexExpr &lane, ValueRange states) {
    IndexExpr query = queryOf(lane).first;
    if (region.dropout)
      lanes.storeScalar(dropout->positionOf(emitQueryPosition(emitter, region, batch, query)), weightPositions, lane);
    if (states.empty())
      return SmallVector<Value>();
    Value last = emitLastKey(emitter, region, batch, query, movingOffset);
    lanes.storeScalar(limitType().isInteger(64) ? last : arith::TruncIOp::create(s.builder, s.loc, limitType(), last), lastKeys, lane);
    return SmallVector<Value>{s.make<arith::MinSIOp>(states[0], last), s.make<arith::MaxSIOp>(states[1], last)};
  });
  if (region.isPlaced())
    std::tie(fewestSeen, mostSeen) = std::tie(range[0], range[1]);
}

/// first, first + 1, ...: the queries of a column's lanes.
Value AttentionTile::queriesOf(int64_t column, Value first) {
  SmallVector<Attribute> numbers;
  for (int64_t lane = 0; lane < lanes.lanes(); ++lane)
    numbers.push_back(IntegerAttr::get(first.getType(), column * lanes.lanes() + lane));
  auto type = cast<VectorType>(lanes.type().clone(first.getType()));
  return s.add(lanes.splat(first), s.make<arith::ConstantOp>(DenseElementsAttr::get(type, numbers)));
}

void AttentionTile::enterBlock(const IndexExpr &first) {
  firstQuery = first;
  Value start = indices.value(first);
  count = indices.constant(width());
  if (numQueries() % width() != 0)
    count = s.make<arith::MinSIOp>(count, s.sub(indices.constant(numQueries()), start));
  if (region.queryPositions)
    placeQueries();
  if (region.dropout)
    findFirstWeights();
  limits.clear();
  if (!isMasked())
    return;
  Type integer = limitType();
  const bool isNarrow = integer.isInteger(32);
  if (region.isPlaced()) {
    for (int64_t column = 0; column < numColumns; ++column)
      limits.push_back(lanes.loadLanes(integer, lastKeys, column));
    return;
  }
  VectorType type = lanes.type().clone(integer);
  if (isNarrow)
    start = arith::TruncIOp::create(s.builder, s.loc, integer, start);
  Value moving = movingOffset;
  if (moving && isNarrow)
    moving = arith::TruncIOp::create(s.builder, s.loc, integer, moving);
  for (int64_t column = 0; column < numColumns; ++column) {
    Value query = queriesOf(column, start);
    if (region.repeat > 1)
      query = s.make<arith::DivUIOp>(query, s.whole(type, region.repeat));
    limits.push_back(s.add(query, moving ? lanes.splat(moving) : s.whole(type, offset)));
  }
}

Value AttentionTile::whereLeftOut(Value number, Value otherwise) {
  if (!region.moves() || region.guarded || region.isPart())
    return number;
  Value ofFirst = region.isPlaced() ? fewestSeen : movingOffset;
  return s.select(s.compare(CmpIPredicate::sge, ofFirst, indices.constant(0)), number, otherwise);
}

Value AttentionTile::keyEnd() {
  Value all = indices.constant(region.keys);
  if (!mayLeaveOut())
    return all;
  if (region.isPlaced())
    return whereLeftOut(s.add(mostSeen, indices.constant(1)), all);
  // The block's last query sees the most.
  Value last = s.sub(s.add(indices.value(firstQuery), count), indices.constant(1));
  if (region.repeat > 1)
    last = s.make<arith::DivUIOp>(last, indices.constant(region.repeat));
  Value next = region.moves() ? s.add(movingOffset, indices.constant(1)) : indices.constant(offset + 1);
  Value end = s.add(last, next);
  end = s.make<arith::MinSIOp>(s.make<arith::MaxSIOp>(end, indices.constant(0)), all);
  return whereLeftOut(end, all);
}

Value AttentionTile::firstBlockThatSees(const IndexExpr &key) {
  if (!mayLeaveOut() || region.isPlaced())
    return indices.constant(0);
  Value position = s.sub(indices.value(key), region.moves() ? movingOffset : indices.constant(offset));
  Value query = s.mul(s.make<arith::MaxSIOp>(position, indices.constant(0)), indices.constant(region.repeat));
  return whereLeftOut(s.make<arith::DivUIOp>(query, indices.constant(width())), indices.constant(0));
}

// ---- queries ------------------------------------------------------------------------------------

IndexExpr AttentionTile::positionOf(const AttentionTensor &tensor, const IndexExpr &lane) {
  auto [position, member] = queryOf(lane);
  IndexExpr head = indices.add(IndexBuilder::mul(group, region.repeat), member);
  IndexExpr at = indices.add(tensor.offset, IndexBuilder::mul(batch, tensor.strides[0]));
  return indices.add(indices.add(at, IndexBuilder::mul(head, tensor.strides[1])),
                     IndexBuilder::mul(position, tensor.strides[2]));
}

VectorRows AttentionTile::turnedRows(int64_t steps) const {
  const int64_t columns = llvm::divideCeil(steps, lanes.lanes());
  return {turned, 0, columns * lanes.lanes(), columns};
}

/// To memory[to + channel]: as numbers in registers' type, or, if steps are pairs, as bf16, with a 0 that completes the
/// last pair. `to` counts stored elements.
void AttentionTile::copyChannels(int64_t channels, const AttentionTensor &tensor, const IndexExpr &from, Value memory,
                                 const IndexExpr &to) {
  const bool arePairs = stepOfSums == Step::PairOfBFloats;
  lanes.loop(channels, [&](const IndexExpr &channel) {
    Value element = emitter.load(tensor.elementType, buffers[tensor.buffer],
                                 indices.add(from, IndexBuilder::mul(channel, tensor.strides[3])));
    element = emitCasts(s, element, tensor.elementType, tensor.casts);
    lanes.storeScalar(arePairs ? s.narrow(element, s.builder.getBF16Type()) : element, memory,
                      indices.add(to, channel));
  });
  if (arePairs && channels % 2 != 0)
    lanes.storeScalar(s.whole(s.builder.getI16Type(), 0), memory, indices.add(to, channels));
}

void AttentionTile::loadTransposed(const AttentionTensor &tensor, int64_t channels, const VectorRows &to) {
  VectorRows rows = turnedRows(stepsOf(channels));
  lanes.loop(width(), [&](const IndexExpr &lane) {
    copyChannels(channels, tensor, positionOf(tensor, lane), rows.pointer,
                 IndexBuilder::mul(lane, rows.stride * depthOfStep()));
  });
  lanes.transpose(rows, to);
}

void AttentionTile::storeTransposed(const VectorRows &from, int64_t channels, const AttentionTensor &tensor,
                                    Value buffer) {
  VectorRows rows = turnedRows(channels);
  lanes.transpose(from, rows);
  lanes.loop(indices.constant(0), count, 1, width(), [&](const IndexExpr &lane) {
    IndexExpr row = IndexBuilder::mul(lane, rows.stride), to = positionOf(tensor, lane);
    lanes.loop(channels, [&](const IndexExpr &channel) {
      Value element = lanes.loadScalar(lanes.element(), rows.pointer, indices.add(row, channel));
      element = emitCast(s, element, lanes.element(), tensor.elementType);
      emitter.store(element, tensor.elementType, buffer,
                    indices.add(to, IndexBuilder::mul(channel, tensor.strides[3])));
    });
  });
}

VectorRows AttentionTile::rowsMemory(const AttentionTensor &tensor, int64_t channels, int64_t rows) {
  int64_t columnsOfRow = (channels + lanes.lanes() - 1) / lanes.lanes();
  bool isThere = tensor.elementType == lanes.element() && region.repeat == 1 && tensor.strides[3] == 1 &&
                 channels % lanes.lanes() == 0;
  if (!isThere)
    return lanes.scratchRows(rows, columnsOfRow);
  return {Value(), 0, tensor.strides[2], columnsOfRow};
}

VectorRows AttentionTile::rowsOf(const AttentionTensor &tensor, int64_t channels, const VectorRows &memory) {
  VectorRows rows = memory;
  if (!memory.pointer) {
    rows.pointer = buffers[tensor.buffer];
    rows.offset = positionOf(tensor, 0);
    return rows;
  }
  lanes.loop(indices.constant(0), count, 1, width(), [&](const IndexExpr &lane) {
    IndexExpr from = positionOf(tensor, lane), to = indices.add(rows.offset, IndexBuilder::mul(lane, rows.stride));
    lanes.loop(channels, [&](const IndexExpr &channel) {
      Value element = emitter.load(tensor.elementType, buffers[tensor.buffer],
                                   indices.add(from, IndexBuilder::mul(channel, tensor.strides[3])));
      lanes.storeScalar(element, rows.pointer, indices.add(to, channel));
    });
    if (rows.stride > channels)
      lanes.loop(rows.stride - channels, [&](const IndexExpr &channel) {
        lanes.storeScalar(s.constant(lanes.element(), 0), rows.pointer,
                          indices.add(to, indices.add(channel, channels)));
      });
  });
  return rows;
}

// ---- keys ---------------------------------------------------------------------------------------

IndexExpr AttentionTile::positionOfKey(const AttentionTensor &tensor, const IndexExpr &key) {
  IndexExpr at = indices.add(tensor.offset, IndexBuilder::mul(batch, tensor.strides[0]));
  return indices.add(indices.add(at, IndexBuilder::mul(group, tensor.strides[1])),
                     IndexBuilder::mul(key, tensor.strides[2]));
}

/// Whether the buffer has steps of channels in the form in which they are multiplied.
bool AttentionTile::isReadInPlace(const AttentionTensor &tensor, int64_t channels) const {
  if (region.parts.size() > 1 || !tensor.casts.empty())
    return false;
  return stepOfSums == Step::Number ? tensor.elementType == lanes.element()
                                    : tensor.strides[3] == 1 && channels % 2 == 0;
}

Value AttentionTile::scalarsMemory(KeysOrValues which, int64_t channels) {
  if (isReadInPlace(region.parts.front().*which, channels))
    return {};
  // A tile of a product may begin before the block's first key.
  return lanes.scratch((keysOfBlock + 2 * maxTileRows) * stepsOf(channels));
}

ScalarMatrix AttentionTile::scalarsOf(KeysOrValues which, int64_t channels, const IndexExpr &first, Value keyCount,
                                      Value memory) {
  Type unit = stepOfSums == Step::Number ? lanes.element() : s.builder.getI16Type();
  const int64_t depth = depthOfStep();
  if (!memory) {
    const AttentionTensor &tensor = region.parts.front().*which;
    return {buffers[tensor.buffer], positionOfKey(tensor, first), tensor.strides[2], tensor.strides[3] * depth, unit};
  }
  const int64_t stride = stepsOf(channels) * depth;
  ScalarMatrix scalars{memory, maxTileRows * stride, stride, depth, unit};
  for (const AttentionKeys &part : region.parts) {
    const AttentionTensor &tensor = part.*which;
    IndexExpr from = positionOfKey(tensor, first);
    auto [begin, end] = keysOfPart(emitter, region, part, first, keyCount);
    lanes.loop(begin, end, 1, keysOfBlock, [&](const IndexExpr &key) {
      copyChannels(channels, tensor, indices.add(from, IndexBuilder::mul(key, tensor.strides[2])), memory,
                   indices.add(scalars.offset, IndexBuilder::mul(key, stride)));
    });
  }
  return scalars;
}

Value AttentionTile::keySteps(Value keyCount) {
  if (depthOfStep() == 1)
    return keyCount;
  return s.make<arith::DivUIOp>(s.add(keyCount, indices.constant(1)), indices.constant(2));
}

ScalarMatrix AttentionTile::valuesOf(const IndexExpr &first, Value keyCount, Value memory) {
  if (stepOfSums == Step::Number)
    return scalarsOf(&AttentionKeys::value, region.width, first, keyCount, memory);
  const AttentionTensor &tensor = region.parts.front().value;
  IndexExpr from = positionOfKey(tensor, first);
  Type word = s.builder.getI32Type(), element = s.builder.getBF16Type();
  auto bitsAt = [&](const IndexExpr &key, const IndexExpr &channel) {
    IndexExpr row = indices.add(from, IndexBuilder::mul(key, tensor.strides[2]));
    Value number = emitter.load(element, buffers[tensor.buffer],
                                indices.add(row, IndexBuilder::mul(channel, tensor.strides[3])));
    return arith::ExtUIOp::create(s.builder, s.loc, word, s.narrow(number, element)).getResult();
  };
  // Step `step`, which has `keys` keys.
  auto putTogether = [&](const IndexExpr &step, int64_t keys) {
    IndexExpr to = IndexBuilder::mul(step, region.width), key = IndexBuilder::mul(step, 2);
    lanes.loop(region.width, [&](const IndexExpr &channel) {
      Value bits = bitsAt(key, channel);
      if (keys == 2)
        bits = s.make<arith::OrIOp>(
            bits, s.make<arith::ShLIOp>(bitsAt(indices.add(key, 1), channel), s.whole(word, 16)));
      lanes.storeScalar(bits, memory, indices.add(to, channel));
    });
  };
  constexpr int64_t steps = keysOfBlock / 2;
  Value whole = s.make<arith::DivUIOp>(keyCount, indices.constant(2));
  lanes.loop(indices.constant(0), whole, 1, steps, [&](const IndexExpr &step) { putTogether(step, 2); });
  lanes.loop(whole, keySteps(keyCount), 1, steps, [&](const IndexExpr &step) { putTogether(step, 1); });
  return {memory, 0, region.width, 1};
}

VectorRows AttentionTile::keyRows() {
  VectorRows rows = lanes.scratchRows(keysOfBlock + 2 * maxTileRows, numColumns);
  rows.offset = maxTileRows * rows.stride;
  return rows;
}

void AttentionTile::sumChannels(const VectorRows &to, const ScalarMatrix &scalars, int64_t channels,
                                const VectorRows &transposed, const IndexExpr &firstKey, Value keyCount) {
  ProductRows rows;
  Value zero = lanes.constant(0);
  auto start = [&](const IndexExpr &, int64_t) { return zero; };
  // No tile may read after the last key; if there are fewer keys than a tile has rows, the one tile has so many rows.
  int64_t tileRows = lanes.tileRows(0, std::min(numColumns, lanes.widestTile()));
  if (region.keys < tileRows) {
    rows.fixed = region.keys;
  } else {
    rows.count = keyCount;
    rows.lastTile = s.sub(indices.constant(region.keys - tileRows), indices.value(firstKey));
  }
  lanes.product(to, rows, scalars, transposed, indices.constant(stepsOf(channels)), start, stepOfSums);
}

void AttentionTile::sumKeys(const VectorRows &to, const ScalarMatrix &scalars, int64_t channels, const VectorRows &from,
                            Value keyCount, function_ref<Value(const IndexExpr &, int64_t)> start) {
  ScalarMatrix byChannel{scalars.pointer, scalars.offset, scalars.depthStride, scalars.rowStride};
  lanes.product(to, {channels, {}, {}}, byChannel, from, keySteps(keyCount), start, stepOfSums);
}

void AttentionTile::storeKeys(const VectorRows &from, int64_t channels, const IndexExpr &firstKey, Value keyCount,
                              const AttentionTensor &tensor, Value buffer) {
  IndexExpr to = positionOfKey(tensor, firstKey);
  lanes.loop(indices.constant(0), keyCount, 1, std::max<int64_t>(region.keys, 2), [&](const IndexExpr &key) {
    IndexExpr row = indices.add(to, IndexBuilder::mul(key, tensor.strides[2]));
    lanes.loop(channels, [&](const IndexExpr &channel) {
      IndexExpr at = indices.add(from.offset, indices.add(IndexBuilder::mul(key, from.stride), channel));
      Value element = lanes.loadScalar(lanes.element(), from.pointer, at);
      element = emitCast(s, element, lanes.element(), tensor.elementType);
      emitter.store(element, tensor.elementType, buffer,
                    indices.add(row, IndexBuilder::mul(channel, tensor.strides[3])));
    });
  });
}

// ---- softmax ------------------------------------------------------------------------------------

/// The index of the score of a key and a lane.
Index AttentionTile::positionOfScore(const IndexExpr &key, const IndexExpr &lane) {
  auto [position, member] = queryOf(lane);
  IndexExpr head = indices.add(IndexBuilder::mul(group, region.repeat), member);
  return {batch, head, position, key};
}

void AttentionTile::fillRows(const VectorRows &rows, MaskElement element, const IndexExpr &firstKey, Value keyCount) {
  lanes.loop(width(), [&](const IndexExpr &lane) {
    lanes.loop(indices.constant(0), keyCount, 1, keysOfBlock, [&](const IndexExpr &key) {
      IndexExpr to = indices.add(lane, IndexBuilder::mul(key, rows.stride));
      lanes.storeScalar(element(emitter, region, positionOfScore(indices.add(firstKey, key), lane)), rows.pointer, to);
    });
  });
}

SmallVector<Value>
AttentionTile::overScores(const VectorRows &products, const IndexExpr &firstKey, Value keyCount, ValueRange states,
                          function_ref<SmallVector<Value>(const IndexExpr &, ArrayRef<Value>, ValueRange)> body) {
  Type type = lanes.type();
  Value scale = s.constant(type, FloatAttr::get(lanes.element(), region.scale).getValueAsDouble());
  Value unseen = s.constant(type, -std::numeric_limits<double>::infinity());
  Value hidden = s.constant(type, region.hidden), no = lanes.constant(0);
  if (biasRows)
    fillRows(*biasRows, biasElement, firstKey, keyCount);
  if (visibleRows)
    fillRows(*visibleRows, visibleElement, firstKey, keyCount);
  SmallVector<Value> results = lanes.loop(indices.constant(0), keyCount, 1, keysOfBlock, states, [&](const IndexExpr &key, ValueRange inner) {
    Value biasOfKey, position;
    if (region.bias && !biasRows)
      biasOfKey = lanes.splat(biasElement(emitter, region, positionOfScore(indices.add(firstKey, key), 0)));
    visibleNow.clear();
    if (region.visible) {
      Value ofKey =
          visibleRows ? Value() : lanes.splat(visibleElement(emitter, region, positionOfScore(indices.add(firstKey, key), 0)));
      for (int64_t column = 0; column < numColumns; ++column)
        visibleNow.push_back(s.compare(CmpFPredicate::UNE, ofKey ? ofKey : lanes.load(*visibleRows, key, column), no));
    }
    if (!limits.empty()) {
      position = indices.value(indices.add(firstKey, key));
      Type integer = getElementTypeOrSelf(limits[0].getType());
      if (position.getType() != integer)
        position = arith::TruncIOp::create(s.builder, s.loc, integer, position);
      position = lanes.splat(position);
    }
    SmallVector<Value> scores;
    for (int64_t column = 0; column < numColumns; ++column) {
      Value score = whereVisible(s.mul(lanes.load(products, key, column), scale), hidden, column);
      if (region.bias)
        score = s.add(score, biasRows ? lanes.load(*biasRows, key, column) : biasOfKey);
      if (!limits.empty())
        score = s.select(s.compare(CmpIPredicate::sge, limits[size_t(column)], position), score, unseen);
      scores.push_back(score);
    }
    return body(key, scores, inner);
  });
  visibleNow.clear();
  return results;
}

Value AttentionTile::larger(Value score, Value top) {
  return s.select(s.compare(CmpFPredicate::OGT, score, top), score, top);
}
Value AttentionTile::shiftOf(Value top) {
  Value lowest = s.constant(lanes.type(), -std::numeric_limits<double>::infinity());
  return s.select(s.compare(CmpFPredicate::OEQ, top, lowest), lanes.constant(0), top);
}
Value AttentionTile::exponential(Value score, Value shift) { return emitExpBelowZero(s, s.sub(score, shift)); }

// ---- dropout ------------------------------------------------------------------------------------

/// Positions wrap in their type as those of the whole tensor do: those of a lane without a query are not used.
void AttentionTile::findFirstWeights() {
  enum Dim : size_t { Batch, Group, Member, Query };
  IndexExpr matrix = indices.add(IndexBuilder::mul(batch, dropout->stride(Batch)),
                                 IndexBuilder::mul(group, dropout->stride(Group)));
  Value first = lanes.splat(s.add(dropout->start(), dropout->positionOf(indices.value(matrix))));
  Value block = dropout->positionOf(indices.value(firstQuery));
  firstWeights.clear();
  for (int64_t column = 0; column < numColumns; ++column) {
    Value query = queriesOf(column, block);
    auto times = [&](Value index, int64_t stride) { return s.mul(index, s.whole(index.getType(), stride)); };
    Value at = first;
    if (region.repeat > 1) {
      Value repeat = s.whole(query.getType(), region.repeat), member = s.make<arith::RemUIOp>(query, repeat);
      at = s.add(at, times(member, dropout->stride(Member)));
      query = s.make<arith::DivUIOp>(query, repeat);
    }
    if (region.queryPositions)
      query = lanes.loadLanes(dropout->type(), weightPositions, column);
    firstWeights.push_back(s.add(at, times(query, dropout->stride(Query))));
  }
}

Value AttentionTile::keeps(const IndexExpr &key, int64_t column) {
  if (!dropout)
    return {};
  Value along = lanes.splat(dropout->positionOf(indices.value(key)));
  return dropout->keeps(s.add(firstWeights[size_t(column)], along));
}

} // namespace hpc::kernels
