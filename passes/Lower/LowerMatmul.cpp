// A matrix product becomes one library call: leading dims that the right operand does not have join the rows, the rest
// are batch dims with strides.
#include "passes/Lower/StageLowering.h"

#include "compiler/ImplicitWindows.h"
#include "compiler/Location.h"

namespace hpc {

namespace {
/// A batch dim with the steps of the three operands, in elements; 0 broadcasts.
struct BatchDim {
  int64_t size, a, b, c;
};
} // namespace

namespace {
/// That an operand is a part of a whole tensor along one dim.
struct PartOfWhole {
  Operation *op = nullptr; ///< null where it is whole
  int64_t dim = 0;
};
} // namespace

/// Under the exact extent of its contracted dim.
static PartOfWhole partOf(Value value) {
  if (auto fill = value.getDefiningOp<dist::FillTailOp>())
    value = fill.getOperand();
  if (auto block = value.getDefiningOp<dist::RawBlockOp>())
    return {block, int64_t(block.getDim())};
  auto slice = value.getDefiningOp<nn::SliceOp>();
  if (!slice || !isImplicit(slice))
    return {};
  auto [part, whole] = std::mismatch(nn::shapeOf(value).begin(), nn::shapeOf(value).end(), nn::shapeOf(slice.getOperand()).begin());
  return {slice, part - nn::shapeOf(value).begin()};
}
/// As the operand lies in memory.
static ArrayRef<int64_t> storedShape(Value value) {
  Operation *part = partOf(value).op;
  return nn::shapeOf(part ? part->getOperand(0) : value);
}

/// Batch dims of the result, major to minor, sizes of 1 left out.
static SmallVector<BatchDim> batchDims(nn::MatmulOp op, const std::optional<plan::Windows> &windows) {
  ArrayRef<int64_t> result = nn::shapeOf(op.getResult());
  size_t rank = result.size();
  /// The step of an operand per result dim; `matrix`: elements of one of its matrices in memory.
  auto steps = [&](ArrayRef<int64_t> shape, int64_t matrix = -1) {
    SmallVector<int64_t> strides(rank, 0);
    int64_t step = matrix >= 0 ? matrix : shape[shape.size() - 2] * shape.back();
    for (size_t fromRight = 2; fromRight < shape.size(); ++fromRight) {
      int64_t size = shape[shape.size() - 1 - fromRight];
      strides[rank - 1 - fromRight] = size == 1 ? 0 : step;
      step *= size;
    }
    return strides;
  };
  SmallVector<int64_t> a = steps(storedShape(op.getLhs())), b = steps(storedShape(op.getRhs()), windows ? windows->channels * windows->imageSize() : -1), c = steps(result);
  SmallVector<BatchDim> dims;
  for (size_t dim = 0; dim + 2 < rank; ++dim) {
    if (result[dim] == 1)
      continue;
    // Joins the dim before it when all three walk on evenly.
    if (!dims.empty() && dims.back().a == a[dim] * result[dim] && dims.back().b == b[dim] * result[dim] &&
        dims.back().c == c[dim] * result[dim])
      dims.back() = {dims.back().size * result[dim], a[dim], b[dim], c[dim]};
    else
      dims.push_back({result[dim], a[dim], b[dim], c[dim]});
  }
  return dims;
}

Status StageLowering::lowerMatmul(nn::MatmulOp op) {
  ArrayRef<int64_t> lhs = storedShape(op.getLhs()), rhs = storedShape(op.getRhs()),
                    result = nn::shapeOf(op.getResult());
  plan::Gemm gemm;
  gemm.a.transpose = op.getTransposeLhs();
  gemm.b.transpose = op.getTransposeRhs();
  int64_t m = result[result.size() - 2];
  gemm.n = result.back();
  gemm.a.ld = std::max<int64_t>(lhs.back(), 1);
  gemm.windows = implicitWindowsOf(op);
  gemm.b.ld = gemm.windows ? 0 : std::max<int64_t>(rhs.back(), 1);
  gemm.c.ld = std::max<int64_t>(result.back(), 1);
  // Padding that partition filled with zeros is left out instead.
  gemm.k = nn::shapeOf(op.getLhs())[lhs.size() - (gemm.a.transpose ? 2 : 1)];
  for (Value operand : {op.getLhs(), op.getRhs()})
    if (auto exact = exactK.find(operand); exact != exactK.end())
      gemm.k = exact->second;

  // A part of a whole tensor begins at an offset, and is exact in its dim.
  std::optional<plan::ByCoord> exactM;
  for (auto [operand, value] : {std::pair(&gemm.a, op.getLhs()), std::pair(&gemm.b, op.getRhs())})
    if (auto [op, dim] = partOf(value); op) {
      auto slice = dyn_cast<nn::SliceOp>(op);
      const BlockTable table = slice ? BlockTable{slice.getStarts()[dim], nn::shapeOf(value)[dim]} : blocks.find(op->getResult(0))->second;
      ArrayRef<int64_t> stored = storedShape(value);
      operand->offset = table.start;
      for (int64_t &offset : operand->offset.values)
        offset *= ShapedType::getNumElements(stored.drop_front(dim + 1)) * byteSize(elementDType(value));
      const bool isLast = dim + 1 == int64_t(stored.size()), isLhs = operand == &gemm.a;
      if (dim + 2 < int64_t(stored.size())) // of the batch
        continue;
      if (isLast == (isLhs != operand->transpose))
        gemm.k = table.extent;
      else if (isLhs)
        exactM = table.extent;
      else
        gemm.n = table.extent;
    }

  SmallVector<BatchDim> dims = batchDims(op, gemm.windows);
  // The innermost batch dim joins the rows when the right operand is the same along it and rows follow each other in
  // the left one.
  if (!exactM && !dims.empty() && dims.back().b == 0 && !gemm.a.transpose && dims.back().a == m * gemm.a.ld &&
      dims.back().c == m * gemm.c.ld) {
    m *= dims.back().size;
    dims.pop_back();
  }
  gemm.m = exactM.value_or(m);
  for (const BatchDim &dim : dims) {
    gemm.batch.push_back(dim.size);
    gemm.a.stride.push_back(dim.a);
    gemm.b.stride.push_back(dim.b);
    gemm.c.stride.push_back(dim.c);
  }
  // A panel adds to the sum of those before it. A sum over micro-batches that nothing else reads is made where it ends: the product adds to the accumulator.
  if (Value sum = summandOf(op)) {
    alias(op.getResult(), sum);
    gemm.addToC = 1;
  } else if (dist::AccumulateOp sum = accumulationOf(op.getResult())) {
    HPC_RETURN_IF_ERROR(lowerAccumulator(sum));
    alias(op.getResult(), sum.getResult());
    gemm.addToC = laterMicroBatches(sum.getAxes());
  } else {
    addResult(op.getResult());
  }
  for (auto [operand, value] : {std::pair(&gemm.a, op.getLhs()), std::pair(&gemm.b, op.getRhs()),
                                std::pair(&gemm.c, cast<TypedValue<RankedTensorType>>(op.getResult()))}) {
    operand->place = place(value);
    operand->dtype = elementDType(value);
    gemm.accumulate = byteSize(operand->dtype) > byteSize(gemm.accumulate) ? operand->dtype : gemm.accumulate;
  }
  emit(std::move(gemm), nodeName(op.getLoc()));
  return Status::success();
}

} // namespace hpc
