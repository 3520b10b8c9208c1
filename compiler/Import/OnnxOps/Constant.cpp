// Values that come from attributes, shapes and numbers alone; all of them fold.
#include "compiler/Import/OnnxOps/OnnxOp.h"
#include "runtime/base/CountText.h"

#include <cmath>
#include <cstring>

namespace hpc::onnx {
namespace {

/// A tensor with all dims held once: `shape` full of one number.
KnownTensor filled(DType dtype, ArrayRef<int64_t> shape, const Tensor &element) {
  SmallVector<int64_t> compactShape;
  for (int64_t size : shape)
    compactShape.push_back(std::min<int64_t>(size, 1));
  Tensor compact(dtype, compactShape);
  compact.floats.assign(compact.floats.size(), element.floats.empty() ? 0 : element.floats[0]);
  compact.ints.assign(compact.ints.size(), element.ints.empty() ? 0 : element.ints[0]);
  return KnownTensor(SmallVector<int64_t>(shape), std::move(compact));
}

Results constant(NodeImport &n) {
  if (n.hasAttribute("value_int")) {
    Tensor value(DType::I64, {});
    value.ints[0] = n.integer("value_int", 0);
    return {n.b.known(std::move(value))};
  }
  if (n.hasAttribute("value_float"))
    return {n.b.scalar(n.number("value_float", 0), DType::F32)};
  if (auto values = n.hasAttribute("value_ints") ? n.integers("value_ints") : std::nullopt)
    return {n.b.indices(*values)};
  if (auto found = n.node.attributes.find("value_floats"); found != n.node.attributes.end()) {
    const std::vector<float> &floats = found->second.floats;
    StoredTensor value;
    value.dtype = DType::F32;
    value.shape = {int64_t(floats.size())};
    value.bytes = int64_t(floats.size() * sizeof(float));
    value.owned = std::make_shared<std::vector<std::byte>>(size_t(value.bytes));
    if (!floats.empty())
      std::memcpy(value.owned->data(), floats.data(), size_t(value.bytes));
    value.data = value.owned->data();
    return {n.b.constant(&floats, std::move(value), n.node.outputs[0])};
  }
  std::shared_ptr<const StoredTensor> value = n.hasAttribute("value") ? n.tensor("value") : nullptr;
  if (!value)
    return {n.unsupported("a constant that is no dense tensor of numbers")};
  if (!value->dtype)
    return {n.unsupported("a constant of type " + value->typeName)};
  if (value->isAbsent())
    return {n.unsupported("a constant in " + value->file + ", which was not read")};
  return {n.b.constant(value.get(), *value, n.node.outputs[0])};
}

Results constantOfShape(NodeImport &n) {
  SmallVector<int64_t> shape = n.b.integers(n.in(0), "shape");
  for (int64_t size : shape)
    if (size < 0)
      return {n.b.fail("a negative size " + std::to_string(size))};
  std::shared_ptr<const StoredTensor> value = n.hasAttribute("value") ? n.tensor("value") : nullptr;
  if (!value)
    return {n.b.known(filled(DType::F32, shape, Tensor(DType::F32, {})))};
  if (!value->dtype || value->elements() != 1 || value->isAbsent())
    return {n.b.fail("its value must be one number")};
  return {n.b.known(filled(*value->dtype, shape, tensorFromBytes(*value->dtype, {}, value->data)))};
}

/// Dims start .. end-1 of the input's shape, as values known from here on.
Results shape(NodeImport &n) {
  SmallVector<int64_t> dims = n.b.shape(n.in(0));
  int64_t rank = int64_t(dims.size());
  auto clamped = [&](const char *name, int64_t fallback) {
    int64_t value = n.integer(name, fallback);
    return std::clamp<int64_t>(value < 0 ? value + rank : value, 0, rank);
  };
  int64_t start = clamped("start", 0), end = std::max(start, clamped("end", rank));
  return {n.b.indices(ArrayRef<int64_t>(dims).slice(size_t(start), size_t(end - start)))};
}

Results size(NodeImport &n) {
  Tensor value(DType::I64, {});
  value.ints[0] = elementCount(n.b.shape(n.in(0)));
  return {n.b.known(std::move(value))};
}

Results range(NodeImport &n) {
  DType type = n.b.dtype(n.in(0));
  int64_t count = 0;
  auto tooLong = [&] { return n.unsupported("a range of more than " + countText(maxFoldedElements, "element")); };
  if (isFloat(type)) {
    double start = n.b.number(n.in(0), "start"), limit = n.b.number(n.in(1), "limit"),
           delta = n.b.number(n.in(2), "delta");
    if (delta == 0 || std::isnan(start) || std::isnan(limit) || std::isnan(delta))
      return {n.b.fail("its delta is 0, or one of its numbers is none")};
    double steps = std::ceil((limit - start) / delta);
    if (!(std::fabs(steps) <= double(maxFoldedElements)))
      return {tooLong()};
    count = std::max<int64_t>(0, int64_t(steps));
    Tensor result(type, {count});
    for (int64_t i = 0; i < count; ++i)
      result.floats[size_t(i)] = start + double(i) * delta;
    round(result);
    return {n.b.known(std::move(result))};
  }
  SmallVector<int64_t> start = n.b.integers(n.in(0), "start"), limit = n.b.integers(n.in(1), "limit"),
                       delta = n.b.integers(n.in(2), "delta");
  if (start.size() != 1 || limit.size() != 1 || delta.size() != 1 || delta[0] == 0)
    return {n.b.fail("start, limit and delta must be one number each, delta not 0")};
  __int128 distance = __int128(limit[0]) - start[0];
  __int128 steps = (distance + (delta[0] > 0 ? delta[0] - 1 : delta[0] + 1)) / delta[0];
  if (steps > maxFoldedElements)
    return {tooLong()};
  count = distance == 0 || (distance > 0) != (delta[0] > 0) ? 0 : int64_t(steps);
  Tensor result(type, {count});
  for (int64_t i = 0; i < count; ++i)
    result.ints[size_t(i)] = start[0] + i * delta[0];
  return {n.b.known(std::move(result))};
}

/// Ones on the diagonal that `k` shifts.
Results eyeLike(NodeImport &n) {
  SmallVector<int64_t> dims = n.b.shape(n.in(0));
  auto type = n.hasAttribute("dtype") ? dtypeOfCode(n.integer("dtype", 1)) : n.b.dtype(n.in(0));
  if (dims.size() != 2)
    return {n.b.fail("its input must have two dims")};
  if (!type)
    return {n.unsupported("a matrix of type " + typeNameOfCode(n.integer("dtype", 1)))};
  if (Status size = checkFolded(elementCount(dims)); !size.ok())
    return {n.unsupported(size.message())};
  Tensor result(*type, dims);
  int64_t k = std::clamp(n.integer("k", 0), -dims[0], dims[1]); // beyond, the diagonal is outside as well
  for (int64_t row = std::max<int64_t>(0, -k); row < dims[0] && row + k < dims[1]; ++row)
    result.setNumber(row * dims[1] + row + k, 1);
  return {n.b.known(std::move(result))};
}

/// For a tensor, or no input; a program has no optional values.
Results optionalHasElement(NodeImport &n) {
  Tensor answer(DType::Bool, {});
  answer.ints[0] = n.has(0);
  return {n.b.known(std::move(answer))};
}
Results optionalGetElement(NodeImport &n) { return {n.in(0)}; }

const OnnxOp constantTable[] = {
    {"OptionalHasElement", 15, optionalHasElement},
    {"OptionalGetElement", 15, optionalGetElement},
    {"Constant", 1, constant}, {"ConstantOfShape", 9, constantOfShape},
    {"Shape", 1, shape},       {"Size", 1, size},
    {"Range", 11, range},      {"EyeLike", 9, eyeLike},
};

} // namespace

ArrayRef<OnnxOp> constantOps() { return constantTable; }

} // namespace hpc::onnx
