// Ops that take parts of tensors, put them together or mask them.
#include "compiler/Import/OnnxOps/OnnxOp.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/CheckedMath.h"

#include "runtime/base/IntegerMath.h"

namespace hpc::onnx {
namespace {

/// ONNX's clamping of one dim's start, end and step, which may be INT64_MIN or INT64_MAX.
struct SlicedDim {
  int64_t start, step, size;
};
SlicedDim sliceDim(int64_t start, int64_t end, int64_t step, int64_t dim) {
  if (dim == 0)
    return {0, 1, 0};
  start += start < 0 ? dim : 0;
  end += end < 0 ? dim : 0;
  start = step > 0 ? std::clamp<int64_t>(start, 0, dim) : std::clamp<int64_t>(start, 0, dim - 1);
  end = step > 0 ? std::clamp<int64_t>(end, 0, dim) : std::clamp<int64_t>(end, -1, dim - 1);
  step = std::clamp<int64_t>(step, -dim - 1, dim + 1); // a longer step has one element as well
  int64_t distance = step > 0 ? end - start : start - end;
  int64_t size = distance <= 0 ? 0 : (distance - 1) / std::abs(step) + 1;
  if (size == 0)
    return {0, 1, 0};
  return {start, size == 1 ? 1 : step, size};
}

Results slice(NodeImport &n) {
  SmallVector<int64_t> from = n.b.shape(n.in(0));
  auto starts = n.attributeOrInput("starts", 1), ends = n.attributeOrInput("ends", 2);
  if (!starts || !ends || starts->size() != ends->size())
    return {n.b.fail("it needs as many starts as ends")};
  SmallVector<int64_t> axes, steps(starts->size(), 1);
  for (size_t i = 0; i < starts->size(); ++i)
    axes.push_back(int64_t(i));
  if (auto given = n.attributeOrInput("axes", 3))
    axes = *given;
  if (n.has(4))
    steps = n.b.integers(n.in(4), "steps");
  if (axes.size() != starts->size() || steps.size() != starts->size())
    return {n.b.fail("axes and steps must be as many as starts")};
  SmallVector<int64_t> first(from.size(), 0), step(from.size(), 1), sizes = from;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0)
      return {n.b.fail("its steps hold a 0; a step goes forward (1 or more) or back (-1 or less)")};
    int64_t dim = n.axis(axes[i], int64_t(from.size()));
    if (!n.b.status().ok())
      return {n.in(0)};
    SlicedDim part = sliceDim((*starts)[i], (*ends)[i], steps[i], from[size_t(dim)]);
    first[size_t(dim)] = part.start;
    step[size_t(dim)] = part.step;
    sizes[size_t(dim)] = part.size;
  }
  return {n.b.slice(n.in(0), first, step, sizes)};
}

/// Sizes given, or equal parts; with num_outputs the last may be smaller.
Results split(NodeImport &n) {
  SmallVector<int64_t> from = n.b.shape(n.in(0));
  if (from.empty())
    return {n.b.fail("a scalar cannot be split")};
  size_t dim = size_t(n.axis(n.integer("axis", 0), int64_t(from.size())));
  int64_t parts = int64_t(n.node.outputs.size());
  auto sizes = n.attributeOrInput("split", 1);
  if (!sizes) {
    int64_t wanted = n.integer("num_outputs", parts);
    if (wanted != parts)
      return {n.b.fail("its num_outputs is " + std::to_string(wanted) + ", but it has " + countText(parts, "output") +
                       "; the two must be the same, 1 or more")};
    if (!n.hasAttribute("num_outputs") && from[dim] % parts)
      return {n.b.fail("size " + std::to_string(from[dim]) + " of dim " + std::to_string(dim) + " does not split into " +
                       countText(parts, "equal part") + "; give sizes, or num_outputs for a smaller last part")};
    int64_t size = ceilDiv(from[dim], parts);
    sizes.emplace();
    for (int64_t i = 0; i < parts; ++i)
      sizes->push_back(std::clamp<int64_t>(from[dim] - i * size, 0, size));
  }
  int64_t sum = 0;
  for (int64_t size : *sizes)
    sum = size < 0 ? plan::saturated : plan::addSizes(sum, size);
  if (int64_t(sizes->size()) != parts || sum != from[dim])
    return {n.b.fail("its sizes do not add up to " + std::to_string(from[dim]) + " in " + countText(parts, "part"))};
  Results results;
  SmallVector<int64_t> starts(from.size(), 0), steps(from.size(), 1);
  for (int64_t size : *sizes) {
    SmallVector<int64_t> part = from;
    part[dim] = size;
    results.push_back(n.b.slice(n.in(0), starts, steps, part));
    starts[dim] += size;
  }
  return results;
}

Results concat(NodeImport &n) {
  SmallVector<Value> parts;
  for (size_t i = 0; i < n.numInputs(); ++i)
    parts.push_back(n.in(i));
  if (parts.empty())
    return {n.b.fail("nothing to concatenate")};
  return {n.b.concat(parts, n.axis(n.integer("axis", 1), n.b.rank(parts[0])))};
}

/// Keeps the triangle at and above (upper) or below diagonal k: a band of row and column numbers.
Results trilu(NodeImport &n) {
  SmallVector<int64_t> dims = n.b.shape(n.in(0));
  if (dims.size() < 2)
    return {n.b.fail("a triangle needs two dims")};
  int64_t rows = dims[dims.size() - 2], columns = dims.back();
  SmallVector<int64_t> offset = n.has(1) ? n.b.integers(n.in(1), "k") : SmallVector<int64_t>{0};
  if (offset.size() != 1)
    return {n.b.fail("its k must be one number")};
  if (Status size = checkFolded(plan::multiplySizes(rows, columns)); !size.ok())
    return {n.unsupported(size.message())};
  int64_t k = std::clamp<int64_t>(offset[0], -rows - 1, columns + 1);
  bool upper = n.integer("upper", 1);
  Tensor mask(DType::Bool, {rows, columns});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      mask.ints[size_t(i * columns + j)] = upper ? j >= i + k : j <= i + k;
  return {n.b.select(n.b.known(std::move(mask)), n.in(0), n.b.scalar(0, n.in(0)))};
}

/// The index in a dim of `size` for position `at`, which may be outside: edge, reflect (border not repeated), wrap.
int64_t paddedIndex(const std::string &mode, int64_t at, int64_t size) {
  if (mode == "edge" || size == 1)
    return std::clamp<int64_t>(at, 0, size - 1);
  int64_t period = mode == "wrap" ? size : 2 * (size - 1), phase = (at % period + period) % period;
  return phase < size ? phase : period - phase;
}

/// Elements of x before and after its dims, by known indices dim by dim.
Value padByElements(NodeImport &n, Value x, ArrayRef<int64_t> low, ArrayRef<int64_t> high, const std::string &mode) {
  for (size_t dim = 0; dim < low.size(); ++dim) {
    int64_t size = n.b.shape(x)[dim], to = plan::addSizes(size, plan::addSizes(low[dim], high[dim]));
    if (to == size)
      continue;
    if (size == 0)
      return n.b.fail("dim " + std::to_string(dim) + " is empty; padding of mode '" + mode + "' needs an element");
    constexpr int64_t most = int64_t(1) << 22; // worked out one by one
    if (to > most)
      return n.unsupported("padding of mode '" + mode + "' to " + countText(to, "element") + "; at most " +
                           std::to_string(most) + " along a dim are possible");
    Tensor indices(DType::I64, {to});
    for (int64_t i = 0; i < to; ++i)
      indices.ints[size_t(i)] = paddedIndex(mode, i - low[dim], size);
    x = n.b.gather(x, n.b.known(std::move(indices)), int64_t(dim));
  }
  return x;
}

Results pad(NodeImport &n) {
  std::string mode = n.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    return {n.b.fail("its mode is '" + mode + "'; constant, edge, reflect and wrap are possible")};
  SmallVector<int64_t> from = n.b.shape(n.in(0));
  auto pads = n.attributeOrInput("pads", 1);
  Tensor fill(n.b.dtype(n.in(0)), {});
  if (n.has(2)) {
    fill = n.b.element(n.in(2), "value");
    if (n.b.status().ok() && fill.dtype != n.b.dtype(n.in(0)))
      return {n.b.fail("its value has another element type than its data")};
  } else {
    fill.setNumber(0, n.number("value", 0));
    round(fill);
  }
  SmallVector<int64_t> axes;
  for (size_t dim = 0; dim < from.size(); ++dim)
    axes.push_back(int64_t(dim));
  if (n.has(3))
    axes = n.b.integers(n.in(3), "axes");
  if (!pads || pads->size() != 2 * axes.size())
    return {n.b.fail("it needs two pads for each axis")};
  SmallVector<int64_t> low(from.size(), 0), high(from.size(), 0), starts(from.size(), 0), steps(from.size(), 1),
      sizes = from;
  for (size_t i = 0; i < axes.size(); ++i) {
    size_t dim = size_t(n.axis(axes[i], int64_t(from.size())));
    if (!n.b.status().ok())
      return {n.in(0)};
    constexpr int64_t most = int64_t(1) << 53; // positions further out are not legal, and within it nothing overflows
    if (int64_t larger = std::max((*pads)[i], (*pads)[i + axes.size()]); larger > most)
      return {n.b.fail("its pads have " + std::to_string(larger) + " for dim " + std::to_string(dim) +
                       "; at most 2^53 are possible")};
    int64_t before = std::max((*pads)[i], -most), after = std::max((*pads)[i + axes.size()], -most);
    // Negative padding takes elements away.
    starts[dim] = std::max<int64_t>(0, -before);
    sizes[dim] = from[dim] - starts[dim] - std::max<int64_t>(0, -after);
    low[dim] = std::max<int64_t>(0, before);
    high[dim] = std::max<int64_t>(0, after);
    if (sizes[dim] < 0)
      return {n.b.fail("pads that take more from dim " + std::to_string(dim) + " than it has")};
  }
  Value kept = n.b.slice(n.in(0), starts, steps, sizes);
  return {mode == "constant" ? n.b.pad(kept, low, high, fill) : padByElements(n, kept, low, high, mode)};
}

const OnnxOp sliceTable[] = {
    {"Slice", 1, slice}, {"Split", 2, split}, {"Concat", 4, concat}, {"Trilu", 14, trilu}, {"Pad", 2, pad},
};

} // namespace

ArrayRef<OnnxOp> sliceOps() { return sliceTable; }

} // namespace hpc::onnx
