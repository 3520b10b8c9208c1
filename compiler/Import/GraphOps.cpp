// GraphBuilder's ops, one short function each: shape checks that the op's builder relies on, then creation.
#include "compiler/Import/GraphBuilder.h"

#include "compiler/ElementType.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Import/GatherByIndex.h"
#include "compiler/Import/KnownTensor.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/StepPorts.h"

namespace hpc::onnx {

static std::string shapeText(ArrayRef<int64_t> shape) { return hpc::shapeText(shape.vec()); }

Value GraphBuilder::compare(nn::ComparePredicate predicate, Value x, Value y) {
  return broadcasts({x, y}) ? finish(nn::CompareOp::create(builder, loc, predicate, x, y), true) : x;
}

Value GraphBuilder::select(Value condition, Value onTrue, Value onFalse) {
  if (dtype(condition) != DType::Bool)
    return fail("its condition is " + std::string(name(dtype(condition))) + ", not bool");
  if (!broadcasts({onTrue, onFalse}))
    return onTrue;
  if (!nn::broadcastType({condition, onTrue, onFalse}))
    return fail("its condition of shape " + shapeText(shape(condition)) + " and branches of " + shapeText(shape(onTrue)) + " and " +
                shapeText(shape(onFalse)) + " do not broadcast; each dim, counted from the last, must be the same or 1");
  return finish(nn::SelectOp::create(builder, loc, condition, onTrue, onFalse), true);
}

Value GraphBuilder::cast(Value x, DType to) {
  if (dtype(x) == to)
    return x;
  return finish(nn::CastOp::create(builder, loc, type(shape(x), to), x), true);
}

Value GraphBuilder::widened(Value x) {
  DType own = dtype(x);
  return own == DType::F16 || own == DType::BF16 ? cast(x, DType::F32) : x;
}

Value GraphBuilder::bitcast(Value x, DType to) {
  if (dtype(x) == to)
    return x;
  return finish(nn::BitcastOp::create(builder, loc, type(shape(x), to), x), true);
}

Value GraphBuilder::gelu(Value x, bool tanhApproximation) {
  return finish(nn::GeluOp::create(builder, loc, x.getType(), x, tanhApproximation), true);
}

// ---- views --------------------------------------------------------------------------------------

Value GraphBuilder::reshape(Value x, ArrayRef<int64_t> to) {
  if (ArrayRef<int64_t>(shape(x)) == to)
    return x;
  return finish(nn::ReshapeOp::create(builder, loc, type(to, dtype(x)), x), false);
}

Value GraphBuilder::transpose(Value x, ArrayRef<int64_t> permutation) {
  SmallVector<bool> seen(size_t(rank(x)), false);
  bool valid = int64_t(permutation.size()) == rank(x), identity = true;
  for (auto [index, dim] : llvm::enumerate(permutation)) {
    valid = valid && dim >= 0 && dim < rank(x) && !seen[size_t(dim)];
    if (!valid)
      return fail("its permutation is not one of the operand's " + countText(rank(x), "dim"));
    seen[size_t(dim)] = true;
    identity &= int64_t(index) == dim;
  }
  if (!valid)
    return fail("its permutation is not one of the operand's " + countText(rank(x), "dim"));
  return identity ? x : finish(nn::TransposeOp::create(builder, loc, x, permutation), false);
}

Value GraphBuilder::broadcast(Value x, ArrayRef<int64_t> to) {
  SmallVector<int64_t> from = shape(x);
  if (ArrayRef<int64_t>(from) == to)
    return x;
  bool fits = from.size() <= to.size();
  for (size_t i = 0; fits && i < from.size(); ++i)
    fits = from[from.size() - 1 - i] == 1 || from[from.size() - 1 - i] == to[to.size() - 1 - i];
  if (!fits)
    return fail("its operand of shape " + shapeText(from) + " does not broadcast to " + shapeText(to) +
                "; each dim, counted from the last, must be the same or 1");
  return finish(nn::BroadcastOp::create(builder, loc, type(to, dtype(x)), x), false);
}

Value GraphBuilder::slice(Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<int64_t> sizes) {
  bool whole = ArrayRef<int64_t>(shape(x)) == sizes && llvm::all_of(starts, [](int64_t start) { return start == 0; });
  if (whole)
    return x;
  return finish(nn::SliceOp::create(builder, loc, type(sizes, dtype(x)), x, starts, steps), false);
}

Value GraphBuilder::concat(ArrayRef<Value> parts, int64_t axis) {
  if (parts.size() == 1)
    return parts[0];
  constexpr size_t most = 64; // a kernel has code for every operand
  if (parts.size() > most) {
    SmallVector<Value> groups;
    for (size_t first = 0; first < parts.size(); first += most)
      groups.push_back(concat(parts.slice(first, std::min(most, parts.size() - first)), axis));
    return concat(groups, axis);
  }
  SmallVector<int64_t> to = shape(parts[0]);
  if (axis < 0 || axis >= int64_t(to.size()))
    return fail("axis " + std::to_string(axis) + " is not a dim of its operands");
  to[size_t(axis)] = 0;
  for (Value part : parts) {
    if (rank(part) != int64_t(to.size()) || dtype(part) != dtype(parts[0]))
      return fail("its operands differ in rank or element type");
    for (size_t dim = 0; dim < to.size(); ++dim)
      if (int64_t(dim) != axis && shape(part)[dim] != to[dim])
        return fail("its operands have the sizes " + std::to_string(to[dim]) + " and " + std::to_string(shape(part)[dim]) +
                    " in dim " + std::to_string(dim) + "; only along the axis, " + std::to_string(axis) + ", may they differ");
    to[size_t(axis)] = plan::addSizes(to[size_t(axis)], shape(part)[size_t(axis)]);
  }
  return finish(nn::ConcatOp::create(builder, loc, type(to, dtype(parts[0])), parts, axis), false);
}

Value GraphBuilder::pad(Value x, ArrayRef<int64_t> low, ArrayRef<int64_t> high, const Tensor &fill) {
  SmallVector<int64_t> to = shape(x);
  for (size_t dim = 0; dim < to.size(); ++dim)
    to[dim] = plan::addSizes(to[dim], plan::addSizes(low[dim], high[dim]));
  if (to == shape(x))
    return x;
  mlir::Attribute value = *tensorToAttr(fill, builder.getContext()).value_begin<mlir::Attribute>();
  return finish(nn::PadOp::create(builder, loc, type(to, dtype(x)), x, low, high, value), false);
}

Value GraphBuilder::window(Value x, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                           ArrayRef<int64_t> counts) {
  size_t windowed = sizes.size(), leading = size_t(rank(x)) - windowed;
  SmallVector<int64_t> lead = shape(x), to;
  SmallVector<int64_t> whole = lead;
  lead.truncate(leading);
  to = lead;
  to.append(sizes.begin(), sizes.end());
  to.append(counts.begin(), counts.end());
  // Windows of one element are every stride-th element; adjacent ones are a reshape.
  bool isApart = true;
  for (size_t i = 0; i < windowed; ++i)
    isApart &= sizes[i] == 1 || (sizes[i] == strides[i] && dilations[i] == 1);
  if (!isApart)
    return finish(nn::WindowOp::create(builder, loc, type(to, dtype(x)), x, strides, dilations), false);
  SmallVector<int64_t> starts(whole.size(), 0), steps(whole.size(), 1), kept = lead, split = lead, order;
  for (size_t dim = 0; dim < leading; ++dim)
    order.push_back(int64_t(dim));
  for (size_t i = 0; i < windowed; ++i) {
    steps[leading + i] = counts[i] > 1 && sizes[i] == 1 ? strides[i] : 1;
    kept.push_back(counts[i] * sizes[i]);
    split.append({counts[i], sizes[i]});
    order.push_back(int64_t(leading + 2 * i + 1));
  }
  for (size_t i = 0; i < windowed; ++i)
    order.push_back(int64_t(leading + 2 * i));
  Value parted = reshape(slice(x, starts, steps, kept), split);
  bool isOne = llvm::all_of(sizes, [](int64_t size) { return size == 1; });
  return isOne ? reshape(parted, to) : transpose(parted, order);
}

// ---- the rest -----------------------------------------------------------------------------------

static Value swapLastTwo(GraphBuilder &b, Value x) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, b.rank(x)));
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return b.transpose(x, order);
}

/// nn.matmul is a product of floats, which libraries offer. Whole numbers wrap, so they are multiplied and summed as
/// integers.
static Value integerProduct(GraphBuilder &b, Value x, Value y) {
  SmallVector<int64_t> left = b.shape(x), right = b.shape(y);
  left.push_back(1);
  right.insert(right.end() - 2, 1);
  Value terms = b.mul(b.reshape(x, left), b.reshape(y, right)); // [..., m, k, n]
  if (!b.status().ok())
    return x;
  Value sums = b.reduce(ReduceKind::Sum, terms, {b.rank(terms) - 2});
  SmallVector<int64_t> to = b.shape(sums);
  to.erase(to.end() - 2);
  return b.reshape(sums, to);
}

/// "2x3x4", or "2x3x4 (transposed)".
static std::string matrixText(ArrayRef<int64_t> shape, bool transposed) {
  return shapeText(shape) + (transposed ? " (transposed)" : "");
}

Value GraphBuilder::matmul(Value x, Value y, bool transposeX, bool transposeY) {
  return product(x, y, transposeX, transposeY, dtype(x));
}

Value GraphBuilder::wideMatmul(Value x, Value y, bool transposeX, bool transposeY) {
  bool isNarrow = dtype(x) == DType::F16 || dtype(x) == DType::BF16;
  return product(x, y, transposeX, transposeY, isNarrow ? DType::F32 : dtype(x));
}

Value GraphBuilder::product(Value x, Value y, bool transposeX, bool transposeY, DType to) {
  if (rank(x) < 2 || rank(y) < 2)
    return fail("operands of a matrix product need two dims or more");
  if (dtype(x) != dtype(y) || dtype(x) == DType::Bool)
    return fail(std::string("a matrix product of ") + name(dtype(x)) + " and " + name(dtype(y)) +
                "; its operands must have one type of numbers");
  std::string left = matrixText(shape(x), transposeX), right = matrixText(shape(y), transposeY);
  int64_t columns = shape(x)[size_t(rank(x)) - (transposeX ? 2 : 1)], rows = shape(y)[size_t(rank(y)) - (transposeY ? 1 : 2)];
  if (columns != rows)
    return fail("a product of " + left + " by " + right + ", whose " + countText(columns, "column") + " and " + countText(rows, "row") +
                " must be as many; check the shape of its weight, and whether it should be transposed");
  for (int64_t back = 3; back <= std::min(rank(x), rank(y)); ++back)
    if (int64_t a = shape(x)[size_t(rank(x) - back)], b = shape(y)[size_t(rank(y) - back)]; a != b && a != 1 && b != 1)
      return fail("a product of " + left + " by " + right + ", whose leading dims " + std::to_string(a) + " and " + std::to_string(b) +
                  " must be equal, or one of them 1");
  if (isKnown(x) != isKnown(y))
    (isKnown(x) ? x : y) = parameter(isKnown(x) ? x : y);
  if (!isFloat(dtype(x)))
    return integerProduct(*this, transposeX ? swapLastTwo(*this, x) : x, transposeY ? swapLastTwo(*this, y) : y);
  auto op = nn::MatmulOp::create(builder, loc, x, y, transposeX, transposeY);
  op.getResult().setType(type(nn::shapeOf(op), to)); // before it is folded
  return finish(op, false);
}

Value GraphBuilder::reduce(ReduceKind kind, Value x, ArrayRef<int64_t> axes) {
  if (axes.empty())
    return x;
  for (int64_t axis : axes)
    if (axis < 0 || axis >= rank(x))
      return fail("axis " + std::to_string(axis) + " is not a dim of its operand of rank " + std::to_string(rank(x)));
  return finish(nn::ReduceOp::create(builder, loc, kind, x, axes), false);
}

Value GraphBuilder::mean(Value x, ArrayRef<int64_t> axes) {
  Value total = reduce(ReduceKind::Sum, widened(x), axes);
  if (!status().ok())
    return total;
  double count = 1;
  for (int64_t axis : axes)
    count *= double(shape(x)[size_t(axis)]);
  return cast(div(total, scalar(count, total)), dtype(x));
}

Value GraphBuilder::cumsum(Value x, int64_t axis, bool exclusive, bool reverse) {
  return finish(nn::CumsumOp::create(builder, loc, x.getType(), x, axis, exclusive, reverse), false);
}

Value GraphBuilder::sortPosition(Value x, int64_t axis, bool descending) {
  return finish(nn::SortPositionOp::create(builder, loc, type(shape(x), DType::I64), x, axis, descending), false);
}

Value GraphBuilder::gather(Value data, Value index, int64_t axis) {
  SmallVector<int64_t> from = shape(data), to(from.begin(), from.begin() + axis);
  // Rows of a matrix are looked up where the indices are known as well: positions, the only token type.
  if (isFloat(dtype(data)) && (!isKnown(index) || (axis == 0 && from.size() == 2)))
    data = parameter(data);
  llvm::append_range(to, shape(index));
  to.append(from.begin() + axis + 1, from.end());
  if (auto known = find(index)) {
    Expected<KnownTensor> inRange = normalizedIndices(*known, {from[size_t(axis)]});
    if (!inRange.ok())
      return fail(inRange.status().message() + ", dim " + std::to_string(axis) + " of " + valueText(data));
    ArrayRef<int64_t> indexShape = inRange->shape;
    if (!isKnown(data)) {
      if (auto plan = planGather(axis, indexShape, {findAffine(*inRange)}, from))
        return gatherBySlice(*this, data, *plan);
      if (auto digits = findDigits(*inRange, from[size_t(axis)])) {
        SmallVector<int64_t> parted(from.begin(), from.begin() + axis);
        llvm::append_range(parted, digits->sizes);
        parted.append(from.begin() + axis + 1, from.end());
        if (auto plan = planGather(axis, indexShape, digits->components, parted))
          return gatherBySlice(*this, reshape(data, parted), *plan);
      }
    }
  }
  if (axis == 0 && from.size() == 2 && isFloat(dtype(data)) && !(isKnown(data) && isKnown(index)))
    return finish(nn::EmbeddingOp::create(builder, loc, type(to, dtype(data)), data, index, Value(), from[0]), false);
  return finish(nn::GatherOp::create(builder, loc, type(to, dtype(data)), data, index, axis), false);
}

Value GraphBuilder::gatherNd(Value data, Value index, int64_t batchDims) {
  SmallVector<int64_t> from = shape(data), at = shape(index);
  if (isFloat(dtype(data)) && !isKnown(index))
    data = parameter(data);
  if (at.empty() || batchDims < 0 || batchDims >= int64_t(at.size()) || batchDims + at.back() > int64_t(from.size()))
    return fail("its indices do not fit its data");
  int64_t depth = at.back();
  SmallVector<int64_t> to(at.begin(), at.end() - 1);
  to.append(from.begin() + batchDims + depth, from.end());
  if (auto known = find(index)) {
    Expected<KnownTensor> inRange =
        normalizedIndices(*known, ArrayRef<int64_t>(from).slice(size_t(batchDims), size_t(depth)));
    if (!inRange.ok())
      return fail(inRange.status().message() + " of " + valueText(data));
    SmallVector<int64_t> indexShape(at.begin() + batchDims, at.end() - 1);
    if (!isKnown(data))
      if (auto components = affineComponents(*inRange, batchDims))
        if (auto plan = planGather(batchDims, indexShape, *components, from))
          return gatherBySlice(*this, data, *plan);
  }
  return finish(nn::GatherNdOp::create(builder, loc, type(to, dtype(data)), data, index, batchDims), false);
}

Value GraphBuilder::layerNorm(Value x, Value weight, Value bias, double epsilon) {
  return finish(nn::LayerNormOp::create(builder, loc, x.getType(), x, weight, bias, APFloat(epsilon)), false);
}

Value GraphBuilder::rmsNorm(Value x, Value weight, double epsilon) {
  return finish(nn::RmsNormOp::create(builder, loc, x.getType(), x, weight, APFloat(epsilon)), false);
}

Value GraphBuilder::stepScalar(StringRef name) {
  for (BlockArgument argument : function.getArguments())
    if (nn::argumentPort(function, argument.getArgNumber()).stepScalar == name)
      return argument;
  nn::ArgumentPort port;
  port.stepScalar = name.str();
  unsigned index = function.getNumArguments();
  if (failed(function.insertArgument(index, type({}, DType::F64), {}, loc)))
    llvm_unreachable("a function of nn has the type of its block");
  nn::setArgumentPort(function, index, port);
  return function.getArgument(index);
}

Value GraphBuilder::dropout(Value x, int64_t site, double rate) {
  return finish(nn::DropoutOp::create(builder, loc, x, stepScalar(plan::stepName), stepScalar(plan::seedName), site, rate), false);
}

Value GraphBuilder::crossEntropy(Value logits, Value labels, std::optional<int64_t> ignored) {
  return finish(nn::CrossEntropyOp::create(builder, loc, logits, labels, ignored.value_or(nn::CrossEntropyOp::ignoresNone)), false);
}

Value GraphBuilder::attention(Value query, Value key, Value value, Value bias, double scale,
                              std::optional<int64_t> causalOffset) {
  SmallVector<int64_t> to = shape(query);
  to.back() = shape(value).back();
  // A known bias broadcasts inside the op, so its compact form is enough.
  if (auto known = bias ? find(bias) : nullptr) {
    if (known->isSplat()) {
      Tensor one = known->compact;
      one.shape.assign(4, 1);
      bias = this->known(std::move(one));
    } else {
      bias = writtenOut(bias, true);
    }
  }
  IntegerAttr offset = causalOffset ? builder.getI64IntegerAttr(*causalOffset) : IntegerAttr();
  return finish(nn::AttentionOp::create(builder, loc, type(to, dtype(query)), query, key, value, bias,
                                        builder.getF64FloatAttr(scale), offset, UnitAttr()),
                false);
}

} // namespace hpc::onnx
