// Reading and applying sliding windows.
#include "compiler/Import/OnnxOps/Window.h"

#include "runtime/base/CountText.h"
#include "runtime/base/IntegerMath.h"
#include "runtime/plan/CheckedMath.h"

namespace hpc::onnx {

/// Larger than any tensor, and so small that a product of two and sums of a few do not saturate unnoticed.
constexpr int64_t mostSteps = int64_t(1) << 53;

int64_t SlidingWindow::extent(size_t dim) const {
  return plan::addSizes(plan::multiplySizes(sizes[dim] - 1, dilations[dim]), 1);
}

int64_t SlidingWindow::highOf(size_t dim, int64_t dimSize) const {
  if (counts[dim] == 0)
    return high[dim];
  return std::max(high[dim], (counts[dim] - 1) * strides[dim] + extent(dim) - low[dim] - dimSize);
}

SmallVector<int64_t> spatialDims(NodeImport &n, Value x) {
  SmallVector<int64_t> shape = n.b.shape(x);
  return SmallVector<int64_t>(shape.begin() + std::min<size_t>(2, shape.size()), shape.end());
}

SmallVector<int64_t> joined(std::initializer_list<ArrayRef<int64_t>> values) {
  SmallVector<int64_t> all;
  for (ArrayRef<int64_t> part : values)
    llvm::append_range(all, part);
  return all;
}

/// An attribute with one number per spatial dim (`each` of them), all within [least, mostSteps].
static bool readNumbers(NodeImport &n, const std::string &name, size_t dims, size_t each, int64_t least,
                        SmallVector<int64_t> &values) {
  if (auto given = n.integers(name))
    values = *given;
  if (values.size() != dims * each) {
    n.b.fail("its " + name + " has " + countText(values.size(), "number") + "; " + std::to_string(dims) +
             " spatial dims need " + std::to_string(dims * each));
    return false;
  }
  for (int64_t value : values)
    if (value < least || value > mostSteps) {
      n.b.fail("its " + name + " has " + std::to_string(value) + "; " + std::to_string(least) +
               " to 2^53 are possible");
      return false;
    }
  return true;
}

std::optional<SlidingWindow> readWindow(NodeImport &n, ArrayRef<int64_t> spatial,
                                        std::optional<ArrayRef<int64_t>> sizes) {
  size_t rank = spatial.size();
  SlidingWindow window;
  window.strides.assign(rank, 1);
  window.dilations.assign(rank, 1);
  SmallVector<int64_t> pads(2 * rank, 0);
  if (sizes)
    window.sizes.assign(sizes->begin(), sizes->end());
  if (!readNumbers(n, "kernel_shape", rank, 1, 1, window.sizes) ||
      !readNumbers(n, "strides", rank, 1, 1, window.strides) ||
      !readNumbers(n, "dilations", rank, 1, 1, window.dilations))
    return std::nullopt;
  if (sizes && ArrayRef<int64_t>(window.sizes) != *sizes) {
    n.b.fail("its kernel_shape differs from its weight's");
    return std::nullopt;
  }
  std::string automatic = n.text("auto_pad", "NOTSET");
  bool isSame = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  if (!isSame && automatic != "NOTSET" && automatic != "VALID" && !automatic.empty()) {
    n.b.fail("its auto_pad is '" + automatic + "'; NOTSET, VALID, SAME_UPPER and SAME_LOWER are possible");
    return std::nullopt;
  }
  if (!isSame && automatic != "VALID" && !readNumbers(n, "pads", rank, 2, 0, pads))
    return std::nullopt;
  bool roundsUp = n.integer("ceil_mode", 0);
  for (size_t dim = 0; dim < rank; ++dim) {
    int64_t stride = window.strides[dim], extent = window.extent(dim), low = pads[dim], high = pads[rank + dim];
    if (isSame) {
      int64_t count = ceilDiv(spatial[dim], stride);
      int64_t reach = count == 0 ? 0 : plan::addSizes((count - 1) * stride, extent);
      int64_t padding = std::max<int64_t>(0, reach - spatial[dim]);
      low = automatic == "SAME_UPPER" ? padding / 2 : ceilDiv(padding, 2);
      high = padding - low;
    }
    int64_t padded = plan::addSizes(spatial[dim], plan::addSizes(low, high));
    // Rounded up, a last window may reach over the end, and it may be the only one.
    int64_t missing = std::max<int64_t>(0, extent - padded);
    bool isOnlyPart = roundsUp && missing < stride && spatial[dim] + low > 0;
    if (missing > 0 && !isOnlyPart && !(isSame && spatial[dim] == 0)) {
      n.b.fail("its window of " + std::to_string(window.sizes[dim]) + ", dilated by " +
               std::to_string(window.dilations[dim]) + ", is longer than dim " + std::to_string(2 + dim) + " of size " +
               std::to_string(spatial[dim]) + " with pads of " + std::to_string(low) + " and " + std::to_string(high));
      return std::nullopt;
    }
    int64_t count = missing > 0 ? isOnlyPart : (padded - extent) / stride + 1;
    if (roundsUp && missing == 0) {
      count = ceilDiv(padded - extent, stride) + 1;
      if ((count - 1) * stride >= spatial[dim] + low) // a window that begins in the padding at the end
        --count;
    }
    window.low.push_back(low);
    window.high.push_back(high);
    window.counts.push_back(count);
  }
  return window;
}

Value slideWindow(NodeImport &n, Value x, const SlidingWindow &window, const Tensor &fill) {
  SmallVector<int64_t> shape = n.b.shape(x), low(shape.size(), 0), high(shape.size(), 0);
  size_t leading = shape.size() - window.rank();
  for (size_t dim = 0; dim < window.rank(); ++dim) {
    low[leading + dim] = window.low[dim];
    high[leading + dim] = window.highOf(dim, shape[leading + dim]);
  }
  return n.b.window(n.b.pad(x, low, high, fill), window.sizes, window.strides, window.dilations, window.counts);
}

Value takeRange(NodeImport &n, Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> shape = n.b.shape(x);
  size_t leading = shape.size() - sizes.size();
  SmallVector<int64_t> begin(shape.size(), 0), steps(shape.size(), 1), low(shape.size(), 0), high(shape.size(), 0);
  SmallVector<int64_t> kept = shape;
  for (size_t i = 0; i < sizes.size(); ++i) {
    size_t dim = leading + i;
    int64_t first = std::clamp<int64_t>(starts[i], 0, shape[dim]);
    int64_t last = std::clamp<int64_t>(
        plan::addSizes(std::max<int64_t>(starts[i], 0), sizes[i]) + std::min<int64_t>(starts[i], 0), first, shape[dim]);
    begin[dim] = last == first ? 0 : first;
    kept[dim] = last - first;
    low[dim] = std::min(sizes[i], std::max<int64_t>(0, -starts[i]));
    high[dim] = sizes[i] - kept[dim] - low[dim];
  }
  return n.b.pad(n.b.slice(x, begin, steps, kept), low, high, Tensor(n.b.dtype(x), {}));
}

/// The most rows that are added one by one: each is an op.
constexpr int64_t mostRows = 16;

/// One dim of overlapAdd by shifted sums of K / stride rows: element k = j * stride + r of window o falls on (o + j) *
/// stride + r, so that [stride, O] of every j are summed and transposed in the end.
static Value addRows(NodeImport &n, Value x, int64_t stride, int64_t dilation) {
  SmallVector<int64_t> lead = n.b.shape(x);
  int64_t inner = lead.pop_back_val(), count = lead.pop_back_val(), size = lead.pop_back_val();
  const size_t rank = lead.size();
  const int64_t rows = ceilDiv(size, stride), step = stride > 1 ? 1 : dilation, length = count + (rows - 1) * step;
  Tensor zero(n.b.dtype(x), {});
  SmallVector<int64_t> none(rank + 3, 0), ones(rank + 3, 1), high = none;
  high[rank] = rows * stride - size;
  x = n.b.reshape(n.b.pad(x, none, high, zero), joined({lead, {rows, stride * count, inner}}));
  Value sum;
  for (int64_t row = 0; row < rows; ++row) {
    SmallVector<int64_t> start = none, low = none, after = none;
    start[rank] = row;
    Value part = n.b.slice(x, start, ones, joined({lead, {1, stride * count, inner}}));
    low[rank + 1] = row * step;
    after[rank + 1] = length - count - low[rank + 1];
    part = n.b.pad(n.b.reshape(part, joined({lead, {stride, count, inner}})), low, after, zero);
    sum = sum ? n.b.add(sum, part) : part;
  }
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(rank + 3)));
  std::swap(order[rank], order[rank + 1]);
  return n.b.reshape(stride > 1 ? n.b.transpose(sum, order) : sum, joined({lead, {length * stride, inner}}));
}

/// One dim of overlapAdd: [.., K, O, B] to [.., L, B], with a distance of `stride` in O and `dilation` in K. Rows of K
/// are laid out with zeros between and after their elements, each `dilation` longer than the rows that are read back:
/// so row k is found k * dilation further on, and a read row begins with the zeros of the one before.
///
///     K = 3, dilation 1:   a b 0 0 0          a b 0 0
///                          c d 0 0 0    ->    0 c d 0    (12 of the 15 numbers, in rows of 4)
///                          e f 0 0 0          0 0 e f
static Value overlapOne(NodeImport &n, Value x, int64_t stride, int64_t dilation) {
  SmallVector<int64_t> shape = n.b.shape(x);
  int64_t inner = shape.pop_back_val(), count = shape.pop_back_val(), size = shape.pop_back_val();
  SmallVector<int64_t> lead = shape;
  size_t rank = lead.size();
  // Narrower types are rounded once, after the sum.
  if ((n.b.dtype(x) == DType::F32 || n.b.dtype(x) == DType::F64) && (stride == 1 || dilation == 1) && size > 0 && count > 0 &&
      ceilDiv(size, stride) <= mostRows && plan::multiplySizes(plan::addSizes(count, size), plan::addSizes(stride, dilation)) <= mostSteps)
    return addRows(n, x, stride, dilation);
  Tensor zero(n.b.dtype(x), {});
  auto padded = [&](Value value, size_t dim, int64_t high) {
    SmallVector<int64_t> none(n.b.shape(value).size(), 0), after = none;
    after[dim] = high;
    return n.b.pad(value, none, after, zero);
  };
  // 1. `stride` apart.
  if (stride > 1) {
    x = padded(n.b.reshape(x, joined({lead, {size, count, 1, inner}})), rank + 2, stride - 1);
    count = plan::multiplySizes(count, stride);
    x = n.b.reshape(x, joined({lead, {size, count, inner}}));
  }
  // 2. Each row moves on by `dilation`.
  if (size > 1) {
    int64_t behind = plan::multiplySizes(size, dilation), row = plan::addSizes(count, behind - dilation);
    x = padded(x, rank + 1, behind);
    int64_t whole = plan::multiplySizes(size, plan::addSizes(row, dilation));
    x = n.b.reshape(x, joined({lead, {whole, inner}}));
    SmallVector<int64_t> starts(rank + 2, 0), steps(rank + 2, 1);
    x = n.b.slice(x, starts, steps, joined({lead, {plan::multiplySizes(size, row), inner}}));
    x = n.b.reduce(ReduceKind::Sum, n.b.reshape(x, joined({lead, {size, row, inner}})), {int64_t(rank)});
    count = row;
  }
  return n.b.reshape(x, joined({lead, {count, inner}}));
}

Value overlapAdd(NodeImport &n, Value windows, ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations) {
  SmallVector<int64_t> shape = n.b.shape(windows);
  size_t dims = strides.size(), leading = shape.size() - 2 * dims;
  ArrayRef<int64_t> lead = ArrayRef<int64_t>(shape).take_front(leading);
  // 1. [lead.., sizes.., counts..] to [lead.., size, count, size, count, ..].
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(leading)));
  for (size_t dim = 0; dim < dims; ++dim)
    order.append({int64_t(leading + dim), int64_t(leading + dims + dim)});
  Value x = n.b.transpose(windows, order);
  // 2. From the last dim to the first: [lead.., outer, size, count, inner] to [lead.., outer, length, inner].
  int64_t inner = 1;
  SmallVector<int64_t> lengths;
  for (size_t dim = dims; dim-- > 0;) {
    int64_t outer = elementCount(ArrayRef<int64_t>(shape).slice(leading, dim)) *
                    elementCount(ArrayRef<int64_t>(shape).slice(leading + dims, dim));
    x = n.b.reshape(x, joined({lead, {outer, shape[leading + dim], shape[leading + dims + dim], inner}}));
    x = overlapOne(n, x, strides[dim], dilations[dim]);
    if (!n.b.status().ok())
      return x;
    lengths.insert(lengths.begin(), n.b.shape(x)[leading + 1]);
    inner = elementCount(lengths);
  }
  return n.b.reshape(x, joined({lead, lengths}));
}

} // namespace hpc::onnx
