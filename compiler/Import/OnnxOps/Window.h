// Sliding windows as ONNX's convolutions and pools describe them: kernel sizes, strides, dilations and padding of the
// spatial dims, and the views that read them. Every size is checked here once; each result has at least one window
// offset and no dim that overflows.
#pragma once

#include "compiler/Import/OnnxOps/OnnxOp.h"

namespace hpc::onnx {

struct SlidingWindow {
  SmallVector<int64_t> sizes, strides, dilations; ///< one per spatial dim
  SmallVector<int64_t> low, high;                 ///< elements of padding that the node declares
  SmallVector<int64_t> counts;                    ///< positions of the window

  size_t rank() const { return sizes.size(); }
  /// From the first to the last element of a window.
  int64_t extent(size_t dim) const;
  /// Padding after the dim that the last window reaches: `high`, or more where counts were rounded up.
  int64_t highOf(size_t dim, int64_t dimSize) const;
};

/// Reads kernel_shape (or takes `sizes`), strides, dilations, pads, auto_pad and ceil_mode. nullopt, with an error, if
/// they do not fit `spatial`.
std::optional<SlidingWindow> readWindow(NodeImport &n, ArrayRef<int64_t> spatial,
                                        std::optional<ArrayRef<int64_t>> sizes = std::nullopt);

/// [lead.., dims..] to [lead.., sizes.., counts..], padded with `fill` (rank 0, of x's type).
Value slideWindow(NodeImport &n, Value x, const SlidingWindow &window, const Tensor &fill);

/// The adjoint: [lead.., sizes.., counts..] to [lead.., length..]; elements of windows that fall on one another are
/// summed. The result begins where the first window does and holds at least its last element.
Value overlapAdd(NodeImport &n, Value windows, ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations);

/// `sizes` elements of the last dims from `starts` on; zeros where that is outside.
Value takeRange(NodeImport &n, Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes);

/// The sizes after batch and channels.
SmallVector<int64_t> spatialDims(NodeImport &n, Value x);
/// `values` one after the other.
SmallVector<int64_t> joined(std::initializer_list<ArrayRef<int64_t>> values);

} // namespace hpc::onnx
