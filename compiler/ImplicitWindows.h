// Windows that are never written: the products that read them take the image, and the plan says how the windows lie in it
// (plan::Windows). Found by hpc-multiply-windows on the host, used by lower.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "runtime/plan/Plan.h"

namespace hpc {

/// On an nn.window and the nn.pad of zeros before it: the result lies in the buffer of the operand, and matrix products
/// alone read it, as their right operand. Also on an nn.slice along one dim, in steps of 1: products read the part where it lies.
constexpr const char *implicitAttrName = "hpc.implicit";
inline bool isImplicit(Operation *op) { return op->hasAttr(implicitAttrName); }

/// Sizes and counts of a window, the last dims of its result.
struct WindowExtents {
  ArrayRef<int64_t> sizes, counts;
};
WindowExtents extentsOf(nn::WindowOp op);

/// Whether a value is an image under the shape of its windows, or with the padding of these.
bool isSeenAsWindows(Value value);

/// The windows that the right operand of a product is, where they are implicit.
std::optional<plan::Windows> implicitWindowsOf(nn::MatmulOp op);

} // namespace hpc
