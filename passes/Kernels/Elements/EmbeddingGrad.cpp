// The work is (rows of the table that ids select) x (ids) comparisons, a vector at a time, and the necessary additions.
// Where each row is computed on its own, or ids are few, all rows are compared: cheap beside the product of a
// vocabulary with the same ids. No element has two writers, so no atomics.
#include "passes/Kernels/Elements/EmbeddingGrad.h"

namespace hpc::kernels {

namespace {
struct TableRow {
  ElementEmitter &emitter;
  nn::EmbeddingGradOp op;
  Index index; ///< of the current element

  ScalarBuilder &s() { return emitter.registers(); }
  IndexBuilder &indices() { return emitter.index(); }
  Type elementType() { return nn::tensorType(op.getRows()).getElementType(); }
  int64_t ids() { return nn::tensorType(op.getIds()).getNumElements(); }
  int64_t width() { return nn::shapeOf(op.getResult())[1]; }

  /// The number of this row in the whole table.
  Value number() {
    Value row = indices().value(index[0]);
    return op.getOffset() ? s().add(row, emitter.element(op.getOffset(), Index(nn::tensorType(op.getOffset()).getRank())))
                          : row;
  }
  Value idAt(const IndexExpr &i) {
    return emitCast(s(), emitter.element(op.getIds(), place(i)), nn::tensorType(op.getIds()).getElementType(),
                    s().builder.getI64Type());
  }
  Index place(const IndexExpr &i) { return delinearize(indices(), i, nn::shapeOf(op.getIds())); }
  /// Whether id `i` names the row, counted from either end.
  Value matches(Value number, const IndexExpr &i) {
    Value id = idAt(i);
    Value fromEnd = s().sub(number, s().like(number, double(int64_t(op.getVocabulary()))));
    return s().make<arith::OrIOp>(s().compare(arith::CmpIPredicate::eq, id, number),
                                  s().compare(arith::CmpIPredicate::eq, id, fromEnd));
  }
  Value term(const IndexExpr &i, const IndexExpr &column) {
    Index at = place(i);
    at.push_back(column);
    return emitter.element(op.getRows(), at);
  }
};

/// A bit for each row of the result, in words; bits of a call's rows are set if an id selects the row.
constexpr int64_t bitsOfWord = 64, shiftOfWord = 6;
Value wordOf(ScalarBuilder &s, Value row) { return s.shiftRight(row, shiftOfWord); }
Value bitOf(ScalarBuilder &s, Value row, Value bit) {
  return s.make<arith::ShLIOp>(bit, s.make<arith::AndIOp>(row, s.whole(row.getType(), bitsOfWord - 1)));
}
} // namespace

void prepareEmbeddingGrad(ElementEmitter &emitter, nn::EmbeddingGradOp op, int64_t rowsOfItem) {
  constexpr int64_t fewIds = 128, mostRows = 1 << 20; // 128 KiB of bits
  TableRow table{emitter, op, {}};
  const int64_t rows = nn::shapeOf(op.getResult())[0], ids = table.ids(), vocabulary = int64_t(op.getVocabulary());
  std::optional<std::pair<Value, Value>> items = emitter.nest().itemsOfCall();
  if (!items || ids < fewIds || rows > mostRows)
    return;
  ScalarBuilder &s = table.s();
  LoopNest &nest = emitter.nest();
  Type word = s.builder.getI64Type();
  auto number = [&](int64_t value) { return s.whole(word, value); };
  Value first = s.mul(items->first, number(rowsOfItem)), end = s.mul(items->second, number(rowsOfItem));
  Value bits = nest.scratch(word, rows / bitsOfWord + 1);
  nest.loop(wordOf(s, first), wordOf(s, s.add(end, number(bitsOfWord - 1))), {}, [&](Value i, Value) -> Value {
    nest.store(number(0), bits, i);
    return {};
  });
  Value offset = op.getOffset() ? emitter.element(op.getOffset(), Index(nn::tensorType(op.getOffset()).getRank()))
                                : number(0);
  emitter.loop(ids, {}, [&](const IndexExpr &i, Value) -> Value {
    Value id = table.idAt(i);
    Value isFromEnd = s.compare(arith::CmpIPredicate::slt, id, number(0));
    Value row = s.sub(s.select(isFromEnd, s.add(id, number(vocabulary)), id), offset);
    Value isHere = emitter.index().isWithin(row, first, end);
    row = s.select(isHere, row, first);
    Value place = wordOf(s, row), bit = bitOf(s, row, s.select(isHere, number(1), number(0)));
    nest.store(s.make<arith::OrIOp>(nest.load(word, bits, place), bit), bits, place);
    return {};
  });
  emitter.preparedFor(op) = bits;
}

RowNumbers startEmbeddingGrad(ElementEmitter &emitter, nn::EmbeddingGradOp op, const Index &index,
                              const std::optional<RowMemory> &memory) {
  TableRow row{emitter, op, index};
  ScalarBuilder &s = row.s();
  Value number = row.number();
  int64_t ids = row.ids();
  auto search = [&](int64_t start, function_ref<Value(Value, Value)> choose) {
    auto find = [&](const IndexExpr &i) {
      Value found = row.indices().value(i);
      return s.select(row.matches(number, i), found, s.whole(found.getType(), start));
    };
    return emitter.share(ids, row.indices().constant(start), find, choose);
  };
  Value searches; // 1 where the row is named, else 0
  if (Value bits = emitter.preparedFor(op)) {
    Value local = row.indices().value(index[0]);
    Value word = emitter.nest().load(s.builder.getI64Type(), bits, wordOf(s, local));
    Value bit = bitOf(s, local, row.indices().constant(1));
    Value isNamed = s.compare(arith::CmpIPredicate::ne, s.make<arith::AndIOp>(word, bit), row.indices().constant(0));
    searches = s.select(isNamed, row.indices().constant(1), row.indices().constant(0));
  }
  auto extreme = [&](int64_t start, function_ref<Value(Value, Value)> choose) {
    if (!searches)
      return search(start, choose);
    return emitter.loop(row.indices().constant(0), searches, 1, row.indices().constant(start),
                        [&](const IndexExpr &, Value) { return search(start, choose); });
  };
  Value first = extreme(ids, [&](Value a, Value b) { return s.make<arith::MinSIOp>(a, b); });
  Value last = extreme(-1, [&](Value a, Value b) { return s.make<arith::MaxSIOp>(a, b); });
  Value end = s.add(last, s.whole(last.getType(), 1));
  // The type in memory must not be narrower than the type of the sums.
  bool isExact = registerType(row.elementType()) == storageType(row.elementType());
  if (!memory || emitter.nest().isShared() || !isExact)
    return {{first, end}, std::nullopt};
  auto position = [&](const IndexExpr &column) { return row.indices().add(memory->base, column); };
  // Sums of earlier micro-batches stay; a row that no id names is not touched.
  Value start = row.indices().constant(row.width()), later = memory->isResult ? emitter.isLater() : Value();
  if (later)
    start = s.select(later, row.indices().constant(0), start);
  emitter.loop(row.indices().constant(0), start, row.width(), {}, [&](const IndexExpr &column, Value) -> Value {
    emitter.store(s.constant(registerType(row.elementType()), 0), row.elementType(), memory->buffer, position(column));
    return {};
  });
  emitter.loop(first, end, ids, {}, [&](const IndexExpr &i, Value) -> Value {
    Value columns = s.select(row.matches(number, i), row.indices().constant(row.width()), row.indices().constant(0));
    emitter.loop(row.indices().constant(0), columns, row.width(), {}, [&](const IndexExpr &column, Value) -> Value {
      Value sum = emitter.load(row.elementType(), memory->buffer, position(column));
      emitter.store(s.add(sum, row.term(i, column)), row.elementType(), memory->buffer, position(column));
      return {};
    });
    return {};
  });
  return {{first, end}, memory};
}

Value finishEmbeddingGrad(ElementEmitter &emitter, nn::EmbeddingGradOp op, const Index &index,
                          const RowNumbers &numbers) {
  TableRow row{emitter, op, index};
  ScalarBuilder &s = row.s();
  if (numbers.memory)
    return emitter.load(row.elementType(), numbers.memory->buffer,
                        row.indices().add(numbers.memory->base, row.index.back()));
  Value number = row.number(), zero = s.constant(registerType(row.elementType()), 0);
  const bool isDevice = !emitter.nest().itemsOfCall();
  Value sum = emitter.loop(numbers.numbers[0], numbers.numbers[1], row.ids(), zero,
                           [&](const IndexExpr &i, Value state) {
                             if (isDevice) { // threads wait for what they load, and few ids name the row
                               Value times = s.select(row.matches(number, i), row.indices().constant(1),
                                                      row.indices().constant(0));
                               return emitter.loop(row.indices().constant(0), times, 1, state,
                                                   [&](const IndexExpr &, Value inner) {
                                                     return s.add(inner, row.term(i, row.index.back()));
                                                   });
                             }
                             Value more = s.add(state, row.term(i, row.index.back()));
                             return s.select(row.matches(number, i), more, state);
                           });
  return s.round(sum, row.elementType());
}

} // namespace hpc::kernels
