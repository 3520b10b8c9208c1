// Every step rounds to its type as the composite's definition does (compiler/Dialect/NN/Norm.cpp; a 16-bit softmax is
// all in f32), so that both agree on NaN, infinity and zero. Only the definition's last division is a multiplication by
// the row's reciprocal here.
#include "passes/Kernels/Elements/RowComposites.h"

#include "passes/Kernels/Elements/Accumulation.h"
#include "passes/Kernels/Elements/EmbeddingGrad.h"

namespace hpc::kernels {

namespace {
/// One composite on one row.
struct Row {
  ElementEmitter &emitter;
  Operation *op;
  Index index; ///< of the current element

  ScalarBuilder &s() { return emitter.registers(); }
  Type elementType() const { return nn::tensorType(op->getOperand(0)).getElementType(); }
  int64_t size() const { return nn::shapeOf(op->getOperand(0)).back(); }

  Value rounded(Value a) { return s().round(a, elementType()); }
  /// A constant of the definition, in the element type.
  Value constant(double value) {
    double held = FloatAttr::get(elementType(), value).getValueAsDouble();
    return s().constant(registerType(elementType()), held);
  }
  Value reciprocal(Value a) { return s().divReal(s().like(a, 1), a); }
  Value operand() { return emitter.element(op->getOperand(0), index); }

  /// The sum over the row, not yet rounded: `element` reads operand() at the current index.
  Value sum(function_ref<Value(const IndexExpr &)> element) {
    Accumulation sum{s(), ReduceKind::Sum, registerType(elementType()), false};
    Value total = emitter.share(
        size(), sum.start(),
        [&](const IndexExpr &column) {
          index.back() = column;
          return sum.term(element(column));
        },
        [&](Value a, Value b) { return sum.join(a, b); });
    return sum.finish(total);
  }
  /// The largest element. It may miss a NaN and return a zero of either sign, which is enough for a sum relative to it.
  Value largest() {
    auto larger = [&](Value a, Value b) { return s().select(s().compare(arith::CmpFPredicate::OGT, b, a), b, a); };
    return emitter.share(
        size(), s().constant(registerType(elementType()), -std::numeric_limits<double>::infinity()),
        [&](const IndexExpr &column) {
          index.back() = column;
          return operand();
        },
        larger);
  }
  Value mean(function_ref<Value(const IndexExpr &)> element) {
    return rounded(s().divReal(sum(element), s().constant(registerType(elementType()), double(size()))));
  }
  /// 1 / sqrt(variance + epsilon).
  Value scaleOf(Value variance, double epsilon) {
    Value shifted = rounded(s().add(variance, constant(epsilon)));
    return reciprocal(rounded(s().make<math::SqrtOp>(shifted)));
  }
  /// x * weight + bias, where present.
  Value affine(Value x, Value weight, Value bias) {
    if (weight)
      x = rounded(s().mul(x, emitter.element(weight, {index.back()})));
    if (bias)
      x = rounded(s().add(x, emitter.element(bias, {index.back()})));
    return x;
  }
};

/// A composite's code.
struct Code {
  int64_t passes;
  bool keepsRow;
  RowNumbers (*start)(Row &, const std::optional<RowMemory> &);
  Value (*finish)(Row &, const RowNumbers &);
  bool addsToRow = false;
};

// ---- softmax: numbers are the maximum and 1 / sum; memory holds the exponentials -----------------

Value exponential(Row &row, Value top) { return emitExpBelowZero(row.s(), row.s().sub(row.operand(), top)); }

RowNumbers startSoftmax(Row &row, const std::optional<RowMemory> &memory) {
  Value top = row.largest();
  Value sum = row.sum([&](const IndexExpr &column) {
    Value term = exponential(row, top);
    if (memory)
      row.emitter.store(term, rowType(row.op), memory->buffer, row.emitter.index().add(memory->base, column));
    return term;
  });
  return {{top, row.reciprocal(sum)}, memory};
}

Value finishSoftmax(Row &row, const RowNumbers &numbers) {
  const std::optional<RowMemory> &memory = numbers.memory;
  Value term = memory ? row.emitter.load(rowType(row.op), memory->buffer,
                                         row.emitter.index().add(memory->base, row.index.back()))
                      : exponential(row, numbers.numbers[0]);
  return row.rounded(row.s().mul(term, numbers.numbers[1]));
}

// ---- norms: numbers are 1 / deviation, and the mean where there is one ---------------------------

Value centered(Row &row, Value mean) { return row.rounded(row.s().sub(row.operand(), mean)); }

RowNumbers startLayerNorm(Row &row, const std::optional<RowMemory> &) {
  Value mean = row.mean([&](const IndexExpr &) { return row.operand(); });
  Value variance = row.mean([&](const IndexExpr &) {
    Value distance = centered(row, mean);
    return row.rounded(row.s().mul(distance, distance));
  });
  return {{row.scaleOf(variance, cast<nn::LayerNormOp>(row.op).getEpsilon().convertToDouble()), mean}, std::nullopt};
}

Value finishLayerNorm(Row &row, const RowNumbers &numbers) {
  auto op = cast<nn::LayerNormOp>(row.op);
  Value x = row.rounded(row.s().mul(centered(row, numbers.numbers[1]), numbers.numbers[0]));
  return row.affine(x, op.getWeight(), op.getBias());
}

RowNumbers startRmsNorm(Row &row, const std::optional<RowMemory> &) {
  Value square = row.mean([&](const IndexExpr &) {
    Value x = row.operand();
    return row.rounded(row.s().mul(x, x));
  });
  return {{row.scaleOf(square, cast<nn::RmsNormOp>(row.op).getEpsilon().convertToDouble())}, std::nullopt};
}

Value finishRmsNorm(Row &row, const RowNumbers &numbers) {
  return row.affine(row.rounded(row.s().mul(row.operand(), numbers.numbers[0])), cast<nn::RmsNormOp>(row.op).getWeight(),
                    {});
}

// ---- rows of a table: numbers are where its ids are; memory holds the sums -----------------------

RowNumbers startTableRow(Row &row, const std::optional<RowMemory> &memory) {
  return startEmbeddingGrad(row.emitter, cast<nn::EmbeddingGradOp>(row.op), row.index, memory);
}
Value finishTableRow(Row &row, const RowNumbers &numbers) {
  return finishEmbeddingGrad(row.emitter, cast<nn::EmbeddingGradOp>(row.op), row.index, numbers);
}

const llvm::StringMap<Code> &table() {
  static const llvm::StringMap<Code> codes = {
      {nn::SoftmaxOp::getOperationName(), {2, true, startSoftmax, finishSoftmax}},
      {nn::LayerNormOp::getOperationName(), {2, false, startLayerNorm, finishLayerNorm}},
      {nn::RmsNormOp::getOperationName(), {1, false, startRmsNorm, finishRmsNorm}},
      {nn::EmbeddingGradOp::getOperationName(), {2, true, startTableRow, finishTableRow, true}},
  };
  return codes;
}
const Code &codeOf(Operation *op) { return table().find(op->getName().getStringRef())->second; }
} // namespace

bool isRowComposite(OperationName name) { return table().contains(name.getStringRef()); }
int64_t passesOverRow(Operation *composite) { return codeOf(composite).passes; }
bool keepsRow(Operation *composite) { return codeOf(composite).keepsRow; }

Type rowType(Operation *composite) {
  Type element = nn::tensorType(composite->getResult(0)).getElementType();
  return isa<nn::SoftmaxOp>(composite) ? registerType(element) : element;
}

bool addsToRow(OperationName name) {
  auto found = table().find(name.getStringRef());
  return found != table().end() && found->second.addsToRow;
}

void prepareRowComposite(ElementEmitter &emitter, Operation *composite, int64_t rowsOfItem) {
  if (auto gradient = dyn_cast<nn::EmbeddingGradOp>(composite))
    prepareEmbeddingGrad(emitter, gradient, rowsOfItem);
}
RowNumbers startRowComposite(ElementEmitter &emitter, Operation *composite, const Index &index,
                             const std::optional<RowMemory> &memory) {
  Row row{emitter, composite, index};
  return codeOf(composite).start(row, memory);
}
Value finishRowComposite(ElementEmitter &emitter, Operation *composite, const Index &index, const RowNumbers &numbers) {
  Row row{emitter, composite, index};
  return codeOf(composite).finish(row, numbers);
}

} // namespace hpc::kernels
