// One block has a group of heads, whose keys and values are its own: it sums over all their queries without atomics, in
// one order. Three numbers of each query (RowFacts) wait where its gradient will be written.
//   1. for each tile of queries, along the keys: facts
//   2. for each tile of keys, along the queries of all heads: gradients of keys and values
//   3. for each tile of queries, along the keys: gradient of queries
#include "passes/Kernels/Device/DeviceScores.h"

namespace hpc::kernels {

namespace {
using States = DeviceTiles::States;
constexpr int64_t tileRows = DeviceTiles::rows, threadsOfRow = DeviceTiles::threadsOfRow;

/// Numbers of a query: its probabilities are exp(score - base) * inverse, and mean is the sum of probability times its gradient.
struct RowFacts {
  Value base, inverse, mean;
};

struct Backward {
  DeviceTiles &t;
  const DeviceAttention &a;
  Value batch, group;
  ScalarBuilder &s = t.s;
  const DeviceMatrices &queryGradient = a.results[0], &keyGradient = a.results[1], &valueGradient = a.results[2];
  int64_t repeat = a.heads / a.groups;
  const DeviceMatrices &allKeys = a.parts[0].key, &allValues = a.parts[0].value;
  Value zero = s.constant(t.wide, 0);
  Value weights = t.reserveSquare(), scoreGradients = t.reserveSquare();
  Value keyMemory = t.reserve(allKeys), queryMemory = t.reserve(a.query), valueMemory = t.reserve(allValues),
        gradientMemory = t.reserve(a.gradient); // the most frequently read first
  Value keyBase = t.baseOf(allKeys, batch, group), valueBase = t.baseOf(allValues, batch, group);
  DeviceTile queries = {}, gradients = {}, keys = {}, values = {}; ///< the current ones

  void stageQueries(Value head, Value first) {
    queries = t.stage(a.query, queryMemory, t.baseOf(a.query, batch, head), first);
    gradients = t.stage(a.gradient, gradientMemory, t.baseOf(a.gradient, batch, head), first);
  }
  void stageKeys(Value first) {
    keys = t.stage(allKeys, keyMemory, keyBase, first);
    values = t.stage(allValues, valueMemory, valueBase, first);
  }
  Value query() { return t.add(queries.first, t.row()); }
  void forEachHead(function_ref<void(Value)> body) {
    t.loop(t.number(0), t.number(repeat), 1, {}, [&](Value i, ValueRange) -> States {
      body(t.add(t.mul(group, repeat), i));
      return {};
    });
  }
  void forEachTile(Value first, int64_t last, function_ref<void(Value)> body) {
    t.loop(first, t.number(last), tileRows, {}, [&](Value i, ValueRange) -> States {
      body(i);
      return {};
    });
  }

  // ---- facts of queries -------------------------------------------------------------------------

  /// For this thread's row of `queries`. All barriers are complete at its end.
  RowFacts findFacts(DeviceScores &scores) {
    return a.isPart ? factsOfAllKeys(scores.head) : sumFacts(scores);
  }
  /// For a part of the keys: the facts of all of them.
  RowFacts factsOfAllKeys(Value head) {
    auto numberOf = [&](const DeviceMatrices &m, int64_t column) {
      return t.load(m, t.baseOf(m, batch, head), t.least(query(), t.number(a.queries - 1)), t.number(column));
    };
    Value top = numberOf(a.elsewhere[0], 0), total = numberOf(a.elsewhere[0], 1);
    Value isSeen = s.compare(a.guarded ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::UNE, total, zero);
    return {finiteBase(s, top), s.select(isSeen, s.divReal(s.constant(t.wide, 1), total), zero), s.select(isSeen, numberOf(a.elsewhere[1], 0), zero)};
  }
  RowFacts sumFacts(DeviceScores &scores) {
    States states = t.loop(t.number(0), scores.keysEnd(queries.first), tileRows,
                           {s.constant(t.wide, -INFINITY), zero, zero}, [&](Value firstKey, ValueRange states) {
      t.nest.barrier();
      stageKeys(firstKey);
      t.nest.barrier();
      OnlineSoftmax online(t, scores.masked(queries, keys), states[0], states[1]);
      Value sum;
      States ofWeights = scores.dropped(t.dots(gradients, values, t.row()), scores.kept(queries, keys));
      for (auto [weight, gradient] : llvm::zip_equal(online.weights, ofWeights)) {
        Value term = s.mul(weight, gradient);
        sum = sum ? s.add(sum, term) : term;
      }
      sum = t.joinRow(sum, [&](Value x, Value y) { return s.add(x, y); });
      return States{online.maximum, online.sum, s.add(s.mul(states[2], online.shrink), sum)};
    });
    Value inverse = s.divReal(s.constant(t.wide, 1), states[1]), mean = s.mul(states[2], inverse);
    if (a.guarded || a.mayBeBlind) { // guarded, of NaN too
      Value isSeen = s.compare(a.guarded ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::UNE, states[1], zero);
      inverse = s.select(isSeen, inverse, zero);
      mean = s.select(isSeen, mean, zero);
    }
    return {finiteBase(s, states[0]), inverse, mean};
  }

  /// Facts have to fit in the bytes of a query's gradient; where its channels are fewer, they are found again each time.
  bool keepsFacts() const { return !a.isPart && a.query.columns >= 3 * piecesOfFact(); }
  /// Elements of the query's gradient that a number of type `wide` takes.
  int64_t piecesOfFact() const { return (bits(t.wide) + bits(queryGradient.element) - 1) / bits(queryGradient.element); }
  static int64_t bits(Type type) { return type.getIntOrFloatBitWidth(); }

  /// The position of element `i` of this row's query gradient.
  Value placeOfPiece(Value head, int64_t i) {
    const DeviceMatrices &m = queryGradient;
    Value row = t.least(query(), t.number(a.queries - 1));
    return t.add(t.baseOf(m, batch, head), t.add(t.mul(row, m.stride[2]), i * m.stride[3]));
  }
  void keepFacts(Value head, const RowFacts &facts) {
    Type piece = t.builder.getIntegerType(unsigned(bits(queryGradient.element)));
    Value isFirst = s.compare(arith::CmpIPredicate::eq, t.column(), t.number(0));
    t.nest.onlyIf(s.make<arith::AndIOp>(isFirst, t.isLess(query(), t.number(a.queries))), [&] {
      int64_t i = 0;
      for (Value fact : {facts.base, facts.inverse, facts.mean}) {
        Value whole = s.bitcast(t.builder.getIntegerType(unsigned(bits(t.wide))), fact);
        for (int64_t p = 0; p < piecesOfFact(); ++p, ++i) {
          Value part = p == 0 ? whole : s.shiftRight(whole, p * bits(piece));
          if (bits(piece) < bits(part.getType()))
            part = arith::TruncIOp::create(t.builder, t.loc, piece, part);
          else if (bits(piece) > bits(part.getType()))
            part = arith::ExtUIOp::create(t.builder, t.loc, piece, part);
          t.nest.store(part, queryGradient.buffer, placeOfPiece(head, i));
        }
      }
    });
  }
  RowFacts keptFacts(Value head) {
    Type piece = t.builder.getIntegerType(unsigned(bits(queryGradient.element)));
    Type whole = t.builder.getIntegerType(unsigned(bits(t.wide)));
    std::array<Value, 3> facts;
    int64_t i = 0;
    for (Value &fact : facts) {
      Value sum;
      for (int64_t p = 0; p < piecesOfFact(); ++p, ++i) {
        Value part = t.nest.load(piece, queryGradient.buffer, placeOfPiece(head, i));
        if (bits(piece) < bits(whole))
          part = arith::ExtUIOp::create(t.builder, t.loc, whole, part);
        else if (bits(piece) > bits(whole))
          part = arith::TruncIOp::create(t.builder, t.loc, whole, part);
        if (p > 0)
          part = s.make<arith::ShLIOp>(part, s.whole(whole, p * bits(piece)));
        sum = sum ? s.make<arith::OrIOp>(sum, part) : part;
      }
      fact = s.bitcast(t.wide, sum);
    }
    return {facts[0], facts[1], facts[2]};
  }

  // ---- probabilities and the gradients of scores ------------------------------------------------

  /// For this thread's row of `queries` and its columns of `keys`, into the given squares.
  void exchange(DeviceScores &scores, const RowFacts &facts, Value probabilities) {
    States ofScores = scores.masked(queries, keys), kept = scores.kept(queries, keys);
    States visible = scores.visible(queries, keys);
    States ofWeights = scores.dropped(t.dots(gradients, values, t.row()), kept);
    Value isQuery = t.isLess(query(), t.number(a.queries));
    for (auto [n, score, ofWeight] : llvm::enumerate(ofScores, ofWeights)) {
      Value weight = s.mul(emitExpBelowZero(s, s.sub(score, facts.base)), facts.inverse);
      if (a.guarded)
        weight = s.select(s.compare(arith::CmpFPredicate::OEQ, facts.inverse, zero), zero, weight);
      Value gradient = s.mul(s.mul(weight, s.sub(ofWeight, facts.mean)), s.constant(t.wide, a.scale));
      if (!visible.empty())
        gradient = s.select(visible[n], gradient, zero);
      if (a.queries % tileRows != 0) {
        weight = s.select(isQuery, weight, zero);
        gradient = s.select(isQuery, gradient, zero);
      }
      Value column = t.add(t.column(), int64_t(n) * threadsOfRow);
      if (probabilities)
        t.storeSquare(probabilities, t.row(), column, kept.empty() ? weight : a.dropped(weight, kept[n]));
      t.storeSquare(scoreGradients, t.row(), column, gradient);
    }
    t.nest.barrier();
  }

  /// Columns first + column() + 4 u of this thread's row.
  void write(const DeviceMatrices &target, Value base, Value row, int64_t first, ArrayRef<Value> sums) {
    t.nest.onlyIf(t.isLess(row, t.number(target.rows)), [&] {
      for (auto [u, sum] : llvm::enumerate(sums)) {
        int64_t at = first + int64_t(u) * threadsOfRow;
        Value column = t.add(t.column(), at);
        auto store = [&, sum = sum] { t.store(target, base, row, column, sum); };
        if (at + threadsOfRow <= target.columns)
          store();
        else
          t.nest.onlyIf(t.isLess(column, t.number(target.columns)), store);
      }
    });
  }
  /// Sums that a thread keeps for the columns of a chunk.
  static size_t sumsOf(int64_t columns, int64_t first) {
    int64_t mine = std::clamp<int64_t>(columns - first, 0, DeviceAttention::maxGradientColumns);
    return size_t((mine + threadsOfRow - 1) / threadsOfRow);
  }

  // ---- the three steps --------------------------------------------------------------------------

  void findAllFacts() {
    forEachHead([&](Value head) {
      DeviceScores scores(t, a, batch, head);
      forEachTile(t.number(0), a.queries, [&](Value first) {
        t.nest.barrier();
        stageQueries(head, first);
        keepFacts(head, findFacts(scores));
      });
    });
    t.nest.barrier();
  }

  /// Columns of a chunk of both gradients, of the tile of keys from `firstKey` on.
  void keyGradients(Value firstKey, int64_t firstColumn) {
    const size_t ofKey = sumsOf(allKeys.columns, firstColumn), ofValue = sumsOf(allValues.columns, firstColumn);
    t.nest.barrier();
    stageKeys(firstKey);
    DeviceTile ownKeys = keys, ownValues = values;
    States sums(ofKey + ofValue, zero);
    sums = t.loop(t.number(0), t.number(repeat), 1, sums, [&](Value i, ValueRange sums) {
      Value head = t.add(t.mul(group, repeat), i);
      DeviceScores scores(t, a, batch, head);
      return t.loop(scores.queriesStart(firstKey), t.number(a.queries), tileRows, sums, [&](Value first, ValueRange sums) {
        t.nest.barrier();
        stageQueries(head, first);
        t.nest.barrier();
        RowFacts facts;
        if (keepsFacts() || a.isPart) {
          facts = a.isPart ? findFacts(scores) : keptFacts(head);
          std::tie(keys, values) = std::tie(ownKeys, ownValues);
        } else {
          facts = findFacts(scores);
          t.nest.barrier();
          stageKeys(firstKey);
          t.nest.barrier();
        }
        exchange(scores, facts, weights);
        auto along = [&](Value square) {
          return [this, square](Value query) { return t.loadSquare(square, query, t.row()); };
        };
        States next = t.addProduct(sums.take_front(ofKey), along(scoreGradients), queries, firstColumn);
        next.append(t.addProduct(sums.drop_front(ofKey), along(weights), gradients, firstColumn));
        return next;
      });
    });
    Value key = t.add(firstKey, t.row());
    write(keyGradient, t.baseOf(keyGradient, batch, group), key, firstColumn, ArrayRef<Value>(sums).take_front(ofKey));
    write(valueGradient, t.baseOf(valueGradient, batch, group), key, firstColumn,
          ArrayRef<Value>(sums).drop_front(ofKey));
  }

  void queryGradients(Value head, Value first) {
    DeviceScores scores(t, a, batch, head);
    t.nest.barrier();
    stageQueries(head, first);
    t.nest.barrier();
    RowFacts facts = keepsFacts() ? keptFacts(head) : findFacts(scores);
    t.nest.barrier(); // before they are written over
    for (int64_t firstColumn = 0; firstColumn < a.query.columns; firstColumn += DeviceAttention::maxGradientColumns) {
      States sums(sumsOf(a.query.columns, firstColumn), zero);
      sums = t.loop(t.number(0), scores.keysEnd(first), tileRows, sums, [&](Value firstKey, ValueRange sums) {
        t.nest.barrier();
        stageKeys(firstKey);
        t.nest.barrier();
        exchange(scores, facts, Value());
        return t.addProduct(sums, [&](Value key) { return t.loadSquare(scoreGradients, t.row(), key); }, keys, firstColumn);
      });
      write(queryGradient, t.baseOf(queryGradient, batch, head), query(), firstColumn, sums);
    }
  }

  void emit() {
    if (keepsFacts())
      findAllFacts();
    forEachTile(t.number(0), a.keys, [&](Value firstKey) {
      for (int64_t first = 0; first < std::max(allKeys.columns, allValues.columns); first += DeviceAttention::maxGradientColumns)
        keyGradients(firstKey, first);
    });
    t.nest.barrier();
    forEachHead([&](Value head) {
      forEachTile(t.number(0), a.queries, [&](Value first) { queryGradients(head, first); });
    });
  }
};
} // namespace

void emitAttentionGrad(DeviceTiles &t, const DeviceAttention &attention, Value item) {
  auto [batch, group] = t.split(item, attention.groups);
  Backward{t, attention, batch, group}.emit();
}

} // namespace hpc::kernels
