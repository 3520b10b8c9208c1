// Indices follow cuDNN's documentation: dims of one element are broadcast, groups of heads share a matrix of a product, and
// a reduction sums what one element of its result stands for.
#include "test/gpu/standin/CudnnGraph.h"

#include "runtime/backend/cuda/CudnnApi.h"
#include "runtime/base/HalfFloat.h"

#include <cmath>
#include <cstring>
#include <map>

using namespace hpc::cuda;

namespace standin {

int64_t DnnTensor::bytesOfElement() const { return type == dnnF32 || type == dnnI32 ? 4 : type == dnnBool ? 1 : 2; }

namespace {

using Index = std::array<int64_t, 4>;

double rounded(int type, double value) {
  switch (type) {
  case dnnF32:
    return double(float(value));
  case dnnF16:
    return double(hpc::halfToFloat(hpc::floatToHalf(float(value))));
  case dnnBF16:
    return double(hpc::bfloatToFloat(hpc::floatToBfloat(float(value))));
  default:
    return value;
  }
}

double load(int type, const std::byte *data) {
  uint16_t bits = 0;
  switch (type) {
  case dnnF32: {
    float value;
    std::memcpy(&value, data, 4);
    return double(value);
  }
  case dnnI32: {
    int32_t value;
    std::memcpy(&value, data, 4);
    return double(value);
  }
  default:
    std::memcpy(&bits, data, 2);
    return double(type == dnnF16 ? hpc::halfToFloat(bits) : hpc::bfloatToFloat(bits));
  }
}

void store(int type, std::byte *data, double value) {
  if (type == dnnF32) {
    const float narrow = float(value);
    std::memcpy(data, &narrow, 4);
    return;
  }
  const uint16_t bits = type == dnnF16 ? hpc::floatToHalf(float(value)) : hpc::floatToBfloat(float(value));
  std::memcpy(data, &bits, 2);
}

template <typename F> void forEach(const DnnTensor &tensor, F body) {
  int64_t i = 0;
  for (int64_t a = 0; a < tensor.dims[0]; ++a)
    for (int64_t b = 0; b < tensor.dims[1]; ++b)
      for (int64_t c = 0; c < tensor.dims[2]; ++c)
        for (int64_t d = 0; d < tensor.dims[3]; ++d)
          body(Index{a, b, c, d}, size_t(i++));
}
int64_t offsetOf(const DnnTensor &tensor, const Index &at) {
  int64_t offset = 0;
  for (size_t i = 0; i < 4; ++i)
    offset += at[i] * tensor.strides[i];
  return offset;
}
size_t numberOf(const DnnTensor &tensor, const Index &at) {
  size_t number = 0;
  for (size_t i = 0; i < 4; ++i)
    number = number * size_t(tensor.dims[i]) + size_t(tensor.dims[i] == 1 ? 0 : at[i]);
  return number;
}

struct Evaluation {
  const std::vector<DnnPlace> &places;
  const Running &running;
  std::map<int64_t, std::vector<double>> values;
  bool failed = false;

  const DnnPlace *placeOf(const DnnTensor &tensor) const {
    for (const DnnPlace &place : places)
      if (place.id == tensor.id)
        return &place;
    return nullptr;
  }
  /// All elements, each range of the memory noted and checked.
  std::vector<std::byte *> reach(const DnnTensor &tensor, bool isWrite) {
    std::vector<std::byte *> all(size_t(tensor.size()));
    std::vector<Range> ranges;
    const int64_t bytes = tensor.bytesOfElement();
    forEach(tensor, [&](const Index &at, size_t i) {
      const uint64_t address = placeOf(tensor)->address + uint64_t(offsetOf(tensor, at) * bytes);
      if (!ranges.empty() && ranges.back().begin + ranges.back().bytes == address)
        ranges.back().bytes += uint64_t(bytes);
      else
        ranges.push_back({address, uint64_t(bytes)});
      all[i] = failed ? nullptr : running.access(address, uint64_t(bytes));
      failed |= !all[i];
    });
    if (!failed)
      running.note(ranges, isWrite);
    return all;
  }
  const std::vector<double> &read(const DnnTensor &tensor) {
    auto [found, isNew] = values.emplace(tensor.id, std::vector<double>());
    if (!isNew)
      return found->second;
    found->second.resize(size_t(tensor.size()), NAN);
    if (tensor.isByValue) {
      found->second[0] = load(tensor.type, reinterpret_cast<const std::byte *>(placeOf(tensor)->value.data()));
      return found->second;
    }
    std::vector<std::byte *> all = reach(tensor, false);
    for (size_t i = 0; i < all.size() && !failed; ++i)
      found->second[i] = load(tensor.type, all[i]);
    return found->second;
  }
  void write(const DnnTensor &tensor, std::vector<double> result) {
    for (double &value : result)
      value = rounded(tensor.type, value);
    if (!tensor.isVirtual) {
      std::vector<std::byte *> all = reach(tensor, true);
      for (size_t i = 0; i < all.size() && !failed; ++i)
        store(tensor.type, all[i], result[i]);
    }
    values[tensor.id] = std::move(result);
  }

  std::vector<double> product(const DnnOperation &op) {
    const std::vector<double> a = read(op.x), b = read(op.b);
    std::vector<double> result(size_t(op.y.size()), 0.0);
    const int64_t depth = op.x.dims[3];
    forEach(op.y, [&](const Index &at, size_t i) {
      for (int64_t k = 0; k < depth; ++k) {
        const int64_t headA = at[1] * op.x.dims[1] / op.y.dims[1], headB = at[1] * op.b.dims[1] / op.y.dims[1];
        result[i] += a[numberOf(op.x, {at[0], headA, at[2], k})] * b[numberOf(op.b, {at[0], headB, k, at[3]})];
      }
    });
    return result;
  }
  std::vector<double> pointwise(const DnnOperation &op) {
    const std::vector<double> x = read(op.x), b = op.hasB ? read(op.b) : x, t = op.hasT ? read(op.t) : x;
    std::vector<double> result(size_t(op.y.size()));
    forEach(op.y, [&](const Index &at, size_t i) {
      const double p = x[numberOf(op.x, at)], q = op.hasB ? b[numberOf(op.b, at)] : 0;
      switch (op.mode) {
      case modeAdd:
        result[i] = p + q;
        break;
      case modeMul:
        result[i] = p * q;
        break;
      case modeDiv:
        result[i] = p / q;
        break;
      case modeSub:
        result[i] = p - q;
        break;
      case modeExp:
        result[i] = std::exp(p);
        break;
      case modeLog:
        result[i] = std::log(p);
        break;
      case modeIdentity:
        result[i] = p;
        break;
      case modeGreaterEqual:
        result[i] = p >= q;
        break;
      case modeIndex:
        result[i] = double(at[size_t(op.axis)]);
        break;
      case modeSelect:
        result[i] = t[numberOf(op.t, at)] != 0 ? p : q;
        break;
      }
    });
    return result;
  }
  std::vector<double> reduction(const DnnOperation &op) {
    const std::vector<double> x = read(op.x);
    std::vector<double> result(size_t(op.y.size()), op.mode == reduceMax ? -INFINITY : 0.0);
    forEach(op.x, [&](Index at, size_t i) {
      for (size_t dim = 0; dim < 4; ++dim)
        at[dim] = at[dim] * op.y.dims[dim] / op.x.dims[dim];
      double &target = result[numberOf(op.y, at)];
      target = op.mode == reduceMax ? std::fmax(target, x[i]) : target + x[i];
    });
    return result;
  }
  /// The same places in memory under other dims.
  std::vector<double> reshape(const DnnOperation &op) {
    const std::vector<double> x = read(op.x);
    std::map<int64_t, double> byOffset;
    forEach(op.x, [&](const Index &at, size_t i) { byOffset[offsetOf(op.x, at)] = x[i]; });
    std::vector<double> result(size_t(op.y.size()), NAN);
    forEach(op.y, [&](const Index &at, size_t i) {
      if (auto found = byOffset.find(offsetOf(op.y, at)); found != byOffset.end())
        result[i] = found->second;
    });
    return result;
  }
};

} // namespace

std::vector<DnnTensor> DnnGraph::inMemory() const {
  std::map<int64_t, DnnTensor> all;
  for (const DnnOperation &op : operations)
    for (const DnnTensor *tensor : {&op.x, &op.b, &op.t, &op.y})
      if (tensor->id != 0 && !tensor->isVirtual && !tensor->isByValue)
        all[tensor->id] = *tensor;
  std::vector<DnnTensor> list;
  for (auto &[id, tensor] : all)
    list.push_back(tensor);
  return list;
}

void evaluate(const DnnGraph &graph, const std::vector<DnnPlace> &places, const Running &running) {
  Evaluation evaluation{places, running, {}, false};
  for (const DnnOperation &op : graph.operations) {
    std::vector<double> result = op.kind == DnnOperation::Matmul      ? evaluation.product(op)
                                 : op.kind == DnnOperation::Pointwise ? evaluation.pointwise(op)
                                 : op.kind == DnnOperation::Reduction ? evaluation.reduction(op)
                                                                      : evaluation.reshape(op);
    if (evaluation.failed)
      return;
    evaluation.write(op.y, std::move(result));
  }
}

} // namespace standin
