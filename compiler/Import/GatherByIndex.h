// Gathers whose indices are known and affine: a slice of the data, brought into the order of the result's dims.
// So the position embedding of an exporter's arange becomes a slice of the table.
#pragma once

#include "compiler/Import/GraphBuilder.h"
#include "compiler/Import/KnownTensor.h"

namespace hpc::onnx {

/// Indices counted from the start. `sizes`: of the dim that they index (Gather), or of one dim per index along the last
/// dim (GatherND). Error: an index out of range.
Expected<KnownTensor> normalizedIndices(const KnownTensor &indices, ArrayRef<int64_t> sizes);

/// GatherND's indices [batch..., ..., k] as k affine components over the dims between; nullopt if one is not affine.
std::optional<SmallVector<std::optional<AffineIndex>>> affineComponents(const KnownTensor &indices, int64_t batchDims);

/// slice, transpose, reshape, broadcast.
struct GatherPlan {
  SmallVector<int64_t> starts, steps, sizes, permutation, shape, result;
};

/// Data dims first .. first + components.size() - 1 are indexed by the components (dims counted within `indexShape`);
/// the result is data[:first], indexShape, data[rest]. nullopt if two components vary with the same dim.
std::optional<GatherPlan> planGather(int64_t first, ArrayRef<int64_t> indexShape,
                                     ArrayRef<std::optional<AffineIndex>> components, ArrayRef<int64_t> data);
Value gatherBySlice(GraphBuilder &builder, Value data, const GatherPlan &plan);

/// An indexed dim split into factors, each of which varies with at most one dim of the indices: a mask [B, S] that is
/// read flat, at b * S + k, is read at (b, k).
struct IndexDigits {
  SmallVector<int64_t> sizes; ///< of the factors, most significant first; their product is the dim
  SmallVector<std::optional<AffineIndex>> components;
};
/// nullopt if the indices are not affine with steps that nest, or if a sum of them would carry.
std::optional<IndexDigits> findDigits(const KnownTensor &indices, int64_t size);

} // namespace hpc::onnx
