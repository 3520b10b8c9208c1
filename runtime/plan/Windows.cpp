// Windows as an operand: their extents, and what a file may say of them.
#include "runtime/plan/Windows.h"

#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/PlanStructure.h"

#include <tuple>

namespace hpc::plan {

bool Windows::operator==(const Windows &other) const {
  auto all = [](const Windows &w) { return std::tie(w.channels, w.image, w.sizes, w.counts, w.strides, w.dilations, w.low); };
  return all(*this) == all(other);
}
int64_t Windows::rowsOfChannel() const { return productOf(sizes); }
int64_t Windows::columns() const { return productOf(counts); }
int64_t Windows::imageSize() const { return productOf(image); }

Status checkWindows(const Plan &plan, const Gemm &gemm) {
  auto fault = [](const std::string &message) { return Status::error(ErrorKind::Plan, message); };
  const Operand &b = gemm.b;
  const Windows &windows = *gemm.windows;
  const size_t dims = windows.image.size();
  if (dims == 0 || dims > size_t(maxDims))
    return fault("windows over " + std::to_string(dims) + " dims; 1 to " + std::to_string(maxDims) + " are possible");
  for (const auto *each : {&windows.sizes, &windows.counts, &windows.strides, &windows.dilations, &windows.low})
    if (each->size() != dims)
      return fault("windows over " + std::to_string(dims) + " dims have " + std::to_string(each->size()) +
                   " sizes, counts, strides, dilations or paddings");
  if (b.ld != 0 || b.packed || !isFloat(b.dtype))
    return fault("windows are floats that are neither packed nor have a leading dim");
  if (windows.channels < 1 || windows.channels > maxBytes)
    return fault("windows of " + std::to_string(windows.channels) + " channels");
  for (size_t d = 0; d < dims; ++d) {
    for (int64_t size : {windows.image[d], windows.sizes[d], windows.counts[d], windows.strides[d], windows.dilations[d]})
      if (size < 1 || size > maxBytes)
        return fault("windows have a size, count, stride or dilation of " + std::to_string(size) + " along dim " +
                     std::to_string(d) + "; 1 to 2^46 are possible");
    if (windows.low[d] < 0 || windows.low[d] > maxBytes)
      return fault("windows have a padding of " + std::to_string(windows.low[d]) + " along dim " + std::to_string(d));
    // So that no position overflows.
    const int64_t reach = addSizes(multiplySizes(windows.counts[d], windows.strides[d]),
                                   multiplySizes(windows.sizes[d], windows.dilations[d]));
    if (reach > maxBytes)
      return fault("windows reach position " + std::to_string(reach) + " of dim " + std::to_string(d));
  }
  const int64_t rows = multiplySizes(windows.channels, windows.rowsOfChannel());
  if (multiplySizes(windows.channels, windows.imageSize()) > maxBytes || multiplySizes(rows, windows.columns()) > maxBytes)
    return fault("windows of more than 2^46 elements");
  HPC_RETURN_IF_ERROR(checkTable(plan, b.transpose ? gemm.n : gemm.k, "rows of windows", 0, rows));
  return checkTable(plan, b.transpose ? gemm.k : gemm.n, "columns of windows", 0, windows.columns());
}

} // namespace hpc::plan
