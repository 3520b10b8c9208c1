// Resize and Upsample, one axis after the other. The positions that an axis reads depend on sizes alone and are
// computed here: each element is a weighted sum of a few elements of the input, by a gather with known indices.
#include "compiler/Import/OnnxOps/OnnxOp.h"
#include "runtime/base/CountText.h"
#include "runtime/base/NumberText.h"
#include "runtime/plan/CheckedMath.h"

#include <cmath>

namespace hpc::onnx {
namespace {

/// The interpolation of a node.
struct Interpolation {
  enum Kind { Nearest, Linear, Cubic } kind = Nearest;
  std::string coordinates = "half_pixel", rounding = "round_prefer_floor";
  bool antialias = false, excludesOutside = false;
  double cubic = -0.75, extrapolation = 0;
};

/// One axis. Its scale is the ratio up / down, since a quotient that was rounded would move positions off exact ties.
struct Axis {
  int64_t dim = 0, from = 0, to = 0;
  double up = 1, down = 1, roiStart = 0, roiEnd = 1;
  double scale() const { return up / down; }
  double width() const { return double(from) * up / down; } ///< need not be whole
  bool keepsPlaces() const { return up == down && from == to; }
};

/// Limit on the elements that an axis reads, which are computed one by one.
constexpr int64_t mostTaps = int64_t(1) << 22;

/// Weighted elements of the input for each element of the result.
struct Taps {
  SmallVector<SmallVector<std::pair<int64_t, double>>> rows;
  bool extrapolates = false;
  SmallVector<bool> isOutside; ///< takes the extrapolation value instead
};

/// The position in the input of element `at` of the result. Products of halves and sizes are exact, so one division alone rounds it.
double sourceOf(const Axis &axis, const std::string &mode, int64_t at) {
  double x = double(at), from = double(axis.from), width = axis.width();
  double center = (2 * x + 1) * axis.down / (2 * axis.up); // of the element, in the input
  if (mode == "asymmetric")
    return x * axis.down / axis.up;
  if (mode == "align_corners")
    return width == 1 ? 0 : x * (from - 1) / (width - 1);
  if (mode == "pytorch_half_pixel" && axis.to == 1)
    return -0.5;
  if (mode == "tf_half_pixel_for_nn")
    return center;
  if (mode == "half_pixel_symmetric")
    return from / 2 * (1 - double(axis.to) / width) + center - 0.5;
  if (mode == "tf_crop_and_resize") {
    double length = (axis.roiEnd - axis.roiStart) * (from - 1);
    return axis.roiStart * (from - 1) + (axis.to == 1 ? length / 2 : x * length / (width - 1));
  }
  return ((2 * x + 1) * axis.down - axis.up) / (2 * axis.up);
}

double roundedTo(double x, const std::string &mode) {
  return mode == "floor"               ? std::floor(x)
         : mode == "ceil"              ? std::ceil(x)
         : mode == "round_prefer_ceil" ? std::floor(x + 0.5)
                                       : std::ceil(x - 0.5);
}

/// The weight of an element at distance x. Cubic: Keys 1981, with parameter a.
double kernelAt(const Interpolation &how, double x) {
  x = std::fabs(x);
  if (how.kind == Interpolation::Linear)
    return std::max(0.0, 1 - x);
  double a = how.cubic;
  return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// The distance from a position within which an element can have a weight.
double supportOf(const Interpolation &how, const Axis &axis) {
  double stretch = how.antialias ? std::min(axis.scale(), 1.0) : 1;
  return (how.kind == Interpolation::Linear ? 1 : 2) / stretch;
}

SmallVector<std::pair<int64_t, double>> tapsAt(const Interpolation &how, const Axis &axis, double x) {
  auto clamped = [&](double at) { return int64_t(std::clamp(at, 0.0, double(axis.from - 1))); };
  if (how.kind == Interpolation::Nearest)
    return {{clamped(roundedTo(x, how.rounding)), 1}};
  double stretch = how.antialias ? std::min(axis.scale(), 1.0) : 1, support = supportOf(how, axis), sum = 0;
  SmallVector<std::pair<int64_t, double>> taps;
  for (double at = std::floor(x - support) + 1; at < x + support; ++at) {
    double weight = kernelAt(how, (at - x) * stretch);
    if (weight == 0 || (how.excludesOutside && (at < 0 || at > double(axis.from - 1))))
      continue;
    taps.push_back({clamped(at), weight});
    sum += weight;
  }
  if (how.antialias || how.excludesOutside)
    for (auto &[at, weight] : taps)
      weight /= sum;
  return taps;
}

Taps tapsOf(const Interpolation &how, const Axis &axis) {
  Taps taps;
  for (int64_t at = 0; at < axis.to; ++at) {
    double x = sourceOf(axis, how.coordinates, at);
    taps.rows.push_back(tapsAt(how, axis, x));
    taps.isOutside.push_back(how.coordinates == "tf_crop_and_resize" && (x < 0 || x > double(axis.from - 1)));
    taps.extrapolates |= taps.isOutside.back();
  }
  return taps;
}

/// Every element `times` times: a broadcast.
Value repeated(NodeImport &n, Value x, int64_t dim, int64_t times) {
  SmallVector<int64_t> shape = n.b.shape(x), split = shape, full;
  split.insert(split.begin() + dim + 1, 1);
  full = split;
  full[size_t(dim) + 1] = times;
  shape[size_t(dim)] *= times;
  return n.b.reshape(n.b.broadcast(n.b.reshape(x, split), full), shape);
}

/// x with an axis resized by gathers; x is f32 or f64 unless every row is one element.
Value gathered(NodeImport &n, Value x, const Axis &axis, const Taps &taps) {
  size_t most = 0;
  bool isWhole = true; // one element of weight 1 each
  for (const auto &row : taps.rows) {
    most = std::max(most, row.size());
    isWhole &= row.size() == 1 && row[0].second == 1;
  }
  if (isWhole) {
    int64_t times = axis.to / axis.from;
    bool repeats = times * axis.from == axis.to;
    Tensor indices(DType::I64, {axis.to});
    for (int64_t i = 0; i < axis.to; ++i) {
      indices.ints[size_t(i)] = taps.rows[size_t(i)][0].first;
      repeats &= indices.ints[size_t(i)] == i / std::max<int64_t>(times, 1);
    }
    if (repeats)
      return times == 1 ? x : repeated(n, x, axis.dim, times);
    return n.b.gather(x, n.b.known(std::move(indices)), axis.dim);
  }
  // [.., taps, to, ..] times its weights, summed over the taps.
  SmallVector<int64_t> shape = n.b.shape(x), aligned(shape.size() - size_t(axis.dim), 1);
  aligned[0] = axis.to;
  aligned.insert(aligned.begin(), int64_t(most));
  Tensor indices(DType::I64, {int64_t(most), axis.to}), weights(n.b.dtype(x), aligned);
  for (int64_t i = 0; i < axis.to; ++i)
    for (size_t tap = 0; tap < most; ++tap) {
      const auto &row = taps.rows[size_t(i)];
      bool isThere = tap < row.size();
      indices.ints[tap * size_t(axis.to) + size_t(i)] = isThere ? row[tap].first : row.empty() ? 0 : row[0].first;
      weights.setNumber(int64_t(tap) * axis.to + i, isThere ? row[tap].second : 0);
    }
  round(weights);
  Value parts = n.b.mul(n.b.gather(x, n.b.known(std::move(indices)), axis.dim), n.b.known(std::move(weights)));
  shape[size_t(axis.dim)] = axis.to;
  return n.b.reshape(n.b.reduce(ReduceKind::Sum, parts, {axis.dim}), shape);
}

Value resizeAxis(NodeImport &n, Value x, const Axis &axis, const Interpolation &how) {
  // ONNX Runtime moves nothing here either, though tf_half_pixel_for_nn by its formula would.
  if (axis.keepsPlaces() && how.coordinates != "tf_crop_and_resize")
    return x;
  if (axis.to == 0 || axis.from == 0) {
    SmallVector<int64_t> shape = n.b.shape(x);
    if (axis.from == 0 && axis.to != 0)
      return n.b.fail("dim " + std::to_string(axis.dim) + " is empty and cannot become " + std::to_string(axis.to));
    SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
    shape[size_t(axis.dim)] = 0;
    return n.b.slice(x, starts, steps, shape);
  }
  double width = how.kind == Interpolation::Nearest ? 1 : 2 * supportOf(how, axis) + 1;
  if (!(width * double(axis.to) <= double(mostTaps)))
    return n.unsupported("dim " + std::to_string(axis.dim) + " resized to " + countText(axis.to, "element") + " of " +
                         std::to_string(int64_t(std::min(width, 0x1p53))) + " others each; at most " +
                         std::to_string(mostTaps) + " in all are possible");
  Taps taps = tapsOf(how, axis);
  Value result = gathered(n, x, axis, taps);
  if (!taps.extrapolates)
    return result;
  SmallVector<int64_t> aligned(n.b.shape(x).size() - size_t(axis.dim), 1);
  aligned[0] = axis.to;
  Tensor isOutside(DType::Bool, aligned);
  for (int64_t i = 0; i < axis.to; ++i)
    isOutside.ints[size_t(i)] = taps.isOutside[size_t(i)];
  return n.b.select(n.b.known(std::move(isOutside)), n.b.scalar(how.extrapolation, result), result);
}

Value resizeAll(NodeImport &n, Value x, ArrayRef<Axis> axes, const Interpolation &how) {
  DType own = n.b.dtype(x);
  bool interpolates = how.kind != Interpolation::Nearest;
  if (interpolates && !isFloat(own))
    return n.unsupported(std::string("interpolation of ") + name(own) + "; cast to a float type before it");
  bool isWide = interpolates && (own == DType::F16 || own == DType::BF16);
  Value result = isWide ? n.b.cast(x, DType::F32) : x;
  for (const Axis &axis : axes)
    if (n.b.status().ok())
      result = resizeAxis(n, result, axis, how);
  return n.b.status().ok() ? n.b.cast(result, own) : x;
}

// ---- attributes and inputs of nodes --------------------------------------------------------------

/// Whether `value` is one of `modes`; an error if not.
bool isOneOf(NodeImport &n, const std::string &what, const std::string &value, ArrayRef<const char *> modes) {
  if (llvm::is_contained(modes, value))
    return true;
  n.b.fail("its " + what + " is '" + value + "'; " + llvm::join(modes, ", ") + " are possible");
  return false;
}

std::optional<Interpolation> readInterpolation(NodeImport &n) {
  Interpolation how;
  std::string mode = n.text("mode", "nearest");
  bool isOld = n.version < 11; // asymmetric, and down to the nearest
  how.coordinates = isOld ? "asymmetric" : n.text("coordinate_transformation_mode", "half_pixel");
  how.rounding = isOld ? "floor" : n.text("nearest_mode", "round_prefer_floor");
  how.antialias = n.integer("antialias", 0);
  how.excludesOutside = n.integer("exclude_outside", 0);
  how.cubic = n.number("cubic_coeff_a", -0.75);
  how.extrapolation = n.number("extrapolation_value", 0);
  if (!isOneOf(n, "mode", mode, {"nearest", "linear", "bilinear", "cubic"}) ||
      !isOneOf(n, "coordinate_transformation_mode", how.coordinates,
               {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                "tf_crop_and_resize", "tf_half_pixel_for_nn"}) ||
      !isOneOf(n, "nearest_mode", how.rounding, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}))
    return std::nullopt;
  how.kind = mode == "nearest" ? Interpolation::Nearest
             : mode == "cubic" ? Interpolation::Cubic
                               : Interpolation::Linear;
  return how;
}

/// All numbers of a known input, as doubles.
SmallVector<double> numbersOf(NodeImport &n, Value value, const std::string &what) {
  int64_t most = 2 * maxRank; // a start and an end for each dim
  if (elementCount(n.b.shape(value)) > most) {
    n.b.fail("its " + what + " has more than " + countText(most, "number"));
    return {};
  }
  std::shared_ptr<const KnownTensor> known = n.b.content(value);
  if (!known) {
    n.b.fail("its " + what + n.b.unknownText(value), ErrorKind::Unsupported);
    return {};
  }
  Tensor full = broadcastTo(known->compact, known->shape);
  SmallVector<double> numbers;
  for (int64_t i = 0; i < full.size(); ++i)
    numbers.push_back(full.number(i));
  return numbers;
}

/// The ratio that was rounded to a scale: that of the sizes, or the one of the smallest denominator (Stern and Brocot's
/// tree), as in ONNX Runtime's f32 arithmetic: 2/3 for 0.6666667. A scale near no small ratio stays as it is.
void setRatio(Axis &axis, float scale) {
  constexpr double largest = 1 << 16;
  if (float(axis.to) / float(axis.from) == scale) {
    axis.up = double(axis.to), axis.down = double(axis.from);
    return;
  }
  axis.up = scale, axis.down = 1;
  if (!(scale < largest))
    return;
  double lowUp = std::floor(scale), lowDown = 1, highUp = lowUp + 1, highDown = 1;
  while (lowDown + highDown <= largest && float(lowUp / lowDown) != scale) {
    double up = lowUp + highUp, down = lowDown + highDown;
    if (float(up / down) <= scale)
      lowUp = up, lowDown = down;
    else
      highUp = up, highDown = down;
  }
  if (float(lowUp / lowDown) == scale)
    axis.up = lowUp, axis.down = lowDown;
}

/// Computes the new size from a scale, rounded as in ONNX's shape inference. Returns false, with an error, on failure.
bool setScale(NodeImport &n, Axis &axis, double scale, bool isNearest) {
  double size = std::floor(float(axis.from) * float(scale));
  if (!(scale > 0) || !(size < 0x1p53)) {
    n.b.fail("its scale " + numberText(scale) + " makes of the " + countText(axis.from, "element") + " of dim " +
             std::to_string(axis.dim) + " no size from 0 to 2^53; scales are above 0");
    return false;
  }
  axis.to = int64_t(size);
  axis.up = scale, axis.down = 1;
  if (isNearest) // the jumps of the nearest element; an interpolation has none
    setRatio(axis, float(scale));
  return true;
}

/// Sizes of the axes, with keep_aspect_ratio_policy.
bool setSizes(NodeImport &n, MutableArrayRef<Axis> axes, ArrayRef<double> sizes) {
  std::string policy = n.text("keep_aspect_ratio_policy", "stretch");
  if (!isOneOf(n, "keep_aspect_ratio_policy", policy, {"stretch", "not_larger", "not_smaller"}))
    return false;
  std::optional<std::pair<double, double>> common; // up and down of the axis that decides for all
  for (auto [axis, size] : llvm::zip_equal(axes, sizes)) {
    if (!(size >= 0 && size < 0x1p53)) {
      n.b.fail("its sizes have " + numberText(size) + "; 0 to 2^53 are possible");
      return false;
    }
    axis.to = int64_t(size);
    if (axis.from != 0)
      axis.up = size, axis.down = double(axis.from);
    bool isLess = common && axis.up * common->second < common->first * axis.down;
    if (!common || isLess == (policy == "not_larger"))
      common = {axis.up, axis.down};
  }
  if (policy != "stretch")
    for (Axis &axis : axes) {
      std::tie(axis.up, axis.down) = *common;
      axis.to = int64_t(std::min(std::floor(axis.width() + 0.5), 0x1p53));
    }
  return true;
}

Results resize(NodeImport &n) {
  Value x = n.in(0);
  std::optional<Interpolation> how = readInterpolation(n);
  SmallVector<int64_t> shape = n.b.shape(x);
  int64_t rank = int64_t(shape.size());
  if (!how)
    return {x};
  // 1. The axes, in the order in which the other inputs list them.
  SmallVector<Axis> axes;
  SmallVector<int64_t> named = n.integers("axes").value_or(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  n.axes(named, rank); // none twice
  for (int64_t axis : named) {
    int64_t dim = n.axis(axis, rank);
    if (!n.b.status().ok())
      return {x};
    axes.push_back({dim, shape[size_t(dim)], shape[size_t(dim)]});
  }
  // 2. The new sizes. An empty input counts as left out.
  auto isGiven = [&](size_t input) { return n.has(input) && elementCount(n.b.shape(n.in(input))) != 0; };
  size_t scalesInput = n.version < 11 ? 1 : 2, sizesInput = 3;
  bool hasSizes = n.version >= 11 && isGiven(sizesInput);
  if (!hasSizes && !isGiven(scalesInput))
    return {n.b.fail("it has neither scales nor sizes")};
  SmallVector<double> amounts =
      hasSizes ? numbersOf(n, n.in(sizesInput), "sizes") : numbersOf(n, n.in(scalesInput), "scales");
  if (!n.b.status().ok())
    return {x};
  if (amounts.size() != axes.size())
    return {n.b.fail("it has " + std::to_string(amounts.size()) + (hasSizes ? " sizes" : " scales") + " for " +
                     std::to_string(axes.size()) + " axes")};
  if (hasSizes && !setSizes(n, axes, amounts))
    return {x};
  if (!hasSizes)
    for (auto [axis, scale] : llvm::zip_equal(axes, amounts))
      if (!setScale(n, axis, scale, how->kind == Interpolation::Nearest))
        return {x};
  // 3. From which part. Exporters give an empty roi, and scales beside the sizes that count.
  for (size_t index = 1; index < n.node.inputs.size() && index < 4; ++index)
    n.ignore(index);
  if (how->coordinates == "tf_crop_and_resize") {
    SmallVector<double> roi = numbersOf(n, n.in(1), "roi");
    if (n.b.status().ok() && roi.size() != 2 * axes.size())
      return {n.b.fail("its roi needs a start and an end for each of " + std::to_string(axes.size()) + " axes")};
    for (size_t i = 0; i < axes.size() && n.b.status().ok(); ++i) {
      axes[i].roiStart = roi[i];
      axes[i].roiEnd = roi[axes.size() + i];
    }
  }
  return {n.b.status().ok() ? resizeAll(n, x, axes, *how) : x};
}

/// Before Resize: scales as an attribute (opset 7) or input (9).
Results upsample(NodeImport &n) {
  Value x = n.in(0);
  Interpolation how;
  how.coordinates = "asymmetric";
  how.rounding = "floor";
  std::string mode = n.text("mode", "nearest");
  if (!isOneOf(n, "mode", mode, {"nearest", "linear", "bilinear"}))
    return {x};
  how.kind = mode == "nearest" ? Interpolation::Nearest : Interpolation::Linear;
  SmallVector<double> scales;
  if (auto found = n.node.attributes.find("scales"); found != n.node.attributes.end())
    scales.assign(found->second.floats.begin(), found->second.floats.end());
  else if (n.has(1))
    scales = numbersOf(n, n.in(1), "scales");
  SmallVector<int64_t> shape = n.b.shape(x);
  if (n.b.status().ok() && scales.size() != shape.size())
    return {n.b.fail("it needs one scale for each of " + countText(shape.size(), "dim"))};
  SmallVector<Axis> axes;
  for (size_t dim = 0; dim < shape.size() && n.b.status().ok(); ++dim) {
    axes.push_back({int64_t(dim), shape[dim], shape[dim]});
    if (!setScale(n, axes.back(), scales[dim], how.kind == Interpolation::Nearest))
      return {x};
  }
  return {resizeAll(n, x, axes, how)};
}

const OnnxOp resizeTable[] = {{"Resize", 10, resize}, {"Upsample", 7, upsample}};

} // namespace

ArrayRef<OnnxOp> resizeOps() { return resizeTable; }

} // namespace hpc::onnx
