// Ops that make or read indices: iota, embedding, gather, gather_nd, update_slice, cumsum.
// Indices are data: whatever they hold (padding included), nothing is read outside its tensor.
#include "compiler/Interpreter/Evaluators.h"

namespace hpc::interpreter {

/// Rows before, the dim, and elements after: a tensor as [outer, size, inner] around `axis`.
struct Split {
  int64_t outer, size, inner;
  Split(ArrayRef<int64_t> shape, int64_t axis)
      : outer(elementCount(shape.take_front(axis))), size(shape[axis]),
        inner(elementCount(shape.drop_front(axis + 1))) {}
};

/// A possibly negative index of a dim of `size`, or -1 where it names nothing.
static int64_t normalizeIndex(int64_t index, int64_t size) {
  if (index < -size || index >= size)
    return -1;
  return index < 0 ? index + size : index;
}

/// Copies `count` elements, or marks them as missing where `from` is negative.
static void copyOrMiss(const Tensor &source, int64_t from, Tensor &result, int64_t to, int64_t count) {
  if (from < 0)
    for (int64_t i = 0; i < count; ++i)
      setMissing(result, to + i);
  else if (source.isFloat())
    std::copy_n(source.floats.begin() + from, count, result.floats.begin() + to);
  else
    std::copy_n(source.ints.begin() + from, count, result.ints.begin() + to);
}

static Results evaluateIota(nn::IotaOp op, Operands operands) {
  Tensor result = emptyLike(op.getResult());
  int64_t offset = op.getOffset() ? operands[0]->ints[0] : 0;
  Split split(result.shape, op.getDim());
  for (int64_t i = 0, count = result.size(); i < count; ++i) {
    uint64_t position = uint64_t(i / split.inner % split.size) + uint64_t(offset);
    int64_t value = int64_t(uint64_t(int64_t(op.getStart())) + uint64_t(int64_t(op.getStep())) * position);
    if (result.isFloat())
      result.floats[i] = double(value);
    else
      result.ints[i] = value;
  }
  return one(std::move(result));
}

static Results evaluateEmbedding(nn::EmbeddingOp op, Operands operands) {
  const Tensor &table = *operands[0], &ids = *operands[1];
  Tensor result = emptyLike(op.getResult());
  int64_t rows = table.shape[0], width = table.shape[1], vocabulary = op.getVocabulary();
  int64_t offset = op.getOffset() ? operands[2]->ints[0] : 0;
  for (int64_t i = 0; i < ids.size(); ++i) {
    int64_t id = normalizeIndex(ids.ints[i], vocabulary);
    int64_t row = id - offset;
    if (id < 0)
      copyOrMiss(table, -1, result, i * width, width);
    else if (row >= 0 && row < rows) // held elsewhere: stays 0
      copyOrMiss(table, row * width, result, i * width, width);
  }
  return one(std::move(result));
}

/// In the order of the ids, which fixes how f32 sums round.
static Results evaluateEmbeddingGrad(nn::EmbeddingGradOp op, Operands operands, const EvalOptions &options) {
  const Tensor &rows = *operands[0], &ids = *operands[1];
  Tensor result = emptyLike(op.getResult());
  int64_t held = result.shape[0], width = result.shape[1];
  int64_t offset = op.getOffset() ? operands[2]->ints[0] : 0;
  bool inSingle = sumsInSingle(options, result.dtype);
  for (int64_t i = 0; i < ids.size(); ++i) {
    int64_t id = normalizeIndex(ids.ints[i], op.getVocabulary()), row = id - offset;
    if (id < 0 || row < 0 || row >= held)
      continue;
    for (int64_t e = 0; e < width; ++e) {
      double &sum = result.floats[row * width + e], term = rows.floats[i * width + e];
      sum = inSingle ? double(float(sum) + float(term)) : sum + term;
    }
  }
  return one(std::move(result));
}

static Results evaluateGather(nn::GatherOp op, Operands operands) {
  const Tensor &data = *operands[0], &indices = *operands[1];
  Tensor result = emptyLike(op.getResult());
  Split split(data.shape, op.getAxis());
  int64_t to = 0;
  for (int64_t outer = 0; outer < split.outer; ++outer)
    for (int64_t i = 0; i < indices.size(); ++i, to += split.inner) {
      int64_t index = normalizeIndex(indices.ints[i], split.size);
      copyOrMiss(data, index < 0 ? -1 : (outer * split.size + index) * split.inner, result, to, split.inner);
    }
  return one(std::move(result));
}

static Results evaluateGatherNd(nn::GatherNdOp op, Operands operands) {
  const Tensor &data = *operands[0], &indices = *operands[1];
  Tensor result = emptyLike(op.getResult());
  ArrayRef<int64_t> dataShape = data.shape;
  int64_t batchDims = op.getBatchDims(), depth = indices.shape.back();
  int64_t batches = elementCount(dataShape.take_front(batchDims));
  int64_t batchSize = elementCount(dataShape.drop_front(batchDims));
  int64_t inner = elementCount(dataShape.drop_front(batchDims + depth));
  SmallVector<int64_t> strides = stridesOf(dataShape);
  int64_t perBatch = batches ? elementCount(ArrayRef<int64_t>(indices.shape).drop_back()) / batches : 0;
  for (int64_t i = 0; i < batches * perBatch; ++i) {
    int64_t from = i / perBatch * batchSize;
    for (int64_t d = 0; d < depth && from >= 0; ++d) {
      int64_t index = normalizeIndex(indices.ints[i * depth + d], dataShape[batchDims + d]);
      from = index < 0 ? -1 : from + index * strides[batchDims + d];
    }
    copyOrMiss(data, from, result, i * inner, inner);
  }
  return one(std::move(result));
}

static Results evaluateCumsum(nn::CumsumOp op, Operands operands, const EvalOptions &options) {
  const Tensor &operand = *operands[0];
  Tensor result = emptyLike(op.getResult());
  Split split(operand.shape, op.getAxis());
  auto run = [&](const auto &from, auto &to, auto zero) {
    for (int64_t outer = 0; outer < split.outer; ++outer)
      for (int64_t inner = 0; inner < split.inner; ++inner) {
        auto sum = zero;
        for (int64_t i = 0; i < split.size; ++i) {
          int64_t along = op.getReverse() ? split.size - 1 - i : i;
          int64_t at = (outer * split.size + along) * split.inner + inner;
          if (op.getExclusive())
            to[at] = sum;
          sum += decltype(zero)(from[at]);
          if (!op.getExclusive())
            to[at] = sum;
        }
      }
  };
  if (operand.isFloat() && sumsInSingle(options, result.dtype))
    run(operand.floats, result.floats, 0.0f);
  else if (operand.isFloat())
    run(operand.floats, result.floats, 0.0);
  else
    run(operand.ints, result.ints, uint64_t(0)); // wraps
  return one(std::move(result));
}

static Results evaluateUpdateSlice(nn::UpdateSliceOp op, Operands operands) {
  const Tensor &rows = *operands[1];
  Tensor result = *operands[0];
  Split to(result.shape, op.getDim()), from(rows.shape, op.getDim());
  const int64_t position = operands[2]->ints[0];
  for (int64_t outer = 0; outer < to.outer; ++outer)
    for (int64_t i = 0; i < from.size; ++i)
      if (const int64_t at = op.getWraps() ? (position + i) % to.size : position + i; at >= 0 && at < to.size)
        copyOrMiss(rows, (outer * from.size + i) * from.inner, result, (outer * to.size + at) * to.inner, to.inner);
  return one(std::move(result));
}

void addIndices(Evaluators &evaluators) {
  evaluators.add<nn::IotaOp>(evaluateIota);
  evaluators.add<nn::EmbeddingOp>(evaluateEmbedding);
  evaluators.add<nn::EmbeddingGradOp>(evaluateEmbeddingGrad);
  evaluators.add<nn::GatherOp>(evaluateGather);
  evaluators.add<nn::GatherNdOp>(evaluateGatherNd);
  evaluators.add<nn::UpdateSliceOp>(evaluateUpdateSlice);
  evaluators.add<nn::CumsumOp>(evaluateCumsum);
}

} // namespace hpc::interpreter
