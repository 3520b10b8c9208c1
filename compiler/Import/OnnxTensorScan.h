// Finds where the bytes of a model's initializers lie inside the .onnx file, by walking protobuf's wire format.
// protobuf itself only gives copies; a plan refers to the bytes where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hpc::onnx {

/// Where an initializer's elements are stored verbatim (raw_data, or one packed run of floats or doubles); offset -1:
/// nowhere.
struct StoredBytes {
  int64_t offset = -1, bytes = 0;
};

/// One entry per initializer of the main graph, in file order. Stops quietly at malformed input: the caller compares
/// the count.
std::vector<StoredBytes> scanInitializers(const std::byte *data, int64_t size);

} // namespace hpc::onnx
