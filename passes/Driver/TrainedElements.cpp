// A transposed tensor is gathered row by row of the result, so its pieces need no copy of the whole.
#include "passes/Driver/TrainedElements.h"

#include "runtime/base/File.h"
#include "runtime/base/HalfFloat.h"
#include "runtime/base/NumberText.h"
#include "runtime/core/WideningConversion.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hpc {

std::vector<int64_t> TrainedTensor::shape() const {
  return isTransposed ? std::vector<int64_t>(tensor->shape.rbegin(), tensor->shape.rend()) : tensor->shape;
}

static bool isHalf(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

bool canBecome(DType from, DType to) { return isExactIn(from, to) || (isHalf(to) && isExactIn(from, DType::F32) && isFloat(from)); }

/// `count` f32 as f16 or bf16.
static Status roundElements(const std::string &name, const std::byte *from, int64_t count, DType to, std::byte *out) {
  for (int64_t i = 0; i < count; ++i) {
    float value;
    std::memcpy(&value, from + i * 4, sizeof(value));
    const uint16_t bits = to == DType::F16 ? floatToHalf(value) : floatToBfloat(value);
    const bool isInfinite = to == DType::F16 ? (bits & 0x7fff) == 0x7c00 : (bits & 0x7fff) == 0x7f80;
    if (isInfinite && std::isfinite(value))
      return Status::error(ErrorKind::Usage, "tensor '" + name + "' has " + numberText(value) + ", which is too large for " + hpc::name(to) +
                                                 ", the model's type of it; train with weight decay or a lower rate, or export the model in f32");
    std::memcpy(out + i * 2, &bits, sizeof(bits));
  }
  return Status::success();
}

Status writeElements(const TrainedTensor &trained, DType to, const std::function<Status(const std::byte *data, int64_t bytes)> &write) {
  const NamedTensor &tensor = *trained.tensor;
  const DType from = *tensor.dtype;
  const int64_t width = byteSize(from), all = tensor.bytes / width, rows = trained.isTransposed ? tensor.shape[1] : 1,
                columns = trained.isTransposed ? tensor.shape[0] : all; // of the result
  constexpr int64_t piece = 1 << 20;
  std::vector<std::byte> turned, wide, result;
  for (int64_t first = 0; first < all; first += piece) {
    const int64_t count = std::min(piece, all - first);
    const std::byte *elements = tensor.data + first * width;
    if (trained.isTransposed) {
      turned.resize(size_t(count * width));
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = (first + i) / columns, column = (first + i) % columns;
        std::memcpy(turned.data() + i * width, tensor.data + (column * rows + row) * width, size_t(width));
      }
      elements = turned.data();
    }
    if (from != to && isExactIn(from, to)) {
      result.resize(size_t(count * byteSize(to)));
      widen(from, elements, to, result.data(), count);
      elements = result.data();
    } else if (from != to) {
      if (from != DType::F32) {
        wide.resize(size_t(count * 4));
        widen(from, elements, DType::F32, wide.data(), count);
        elements = wide.data();
      }
      result.resize(size_t(count * 2));
      HPC_RETURN_IF_ERROR(roundElements(trained.name, elements, count, to, result.data()));
      elements = result.data();
    }
    HPC_RETURN_IF_ERROR(write(elements, count * byteSize(to)));
    if (trained.isMapped && !trained.isTransposed)
      dropMappedPages(tensor.data + first * width, count * width);
  }
  if (trained.isMapped)
    dropMappedPages(tensor.data, tensor.bytes);
  return Status::success();
}

bool isSameTensor(const NamedTensor &a, const NamedTensor &b) {
  return a.typeName == b.typeName && a.shape == b.shape && (a.data == b.data || std::memcmp(a.data, b.data, size_t(a.bytes)) == 0);
}

} // namespace hpc
