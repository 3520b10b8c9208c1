// Finds the elements of a model's initializers inside the file, so that nobody copies them.
#pragma once

#include "runtime/base/WireFormat.h"

#include <string>
#include <vector>

namespace hpc::onnx {

/// The place of an initializer's verbatim elements (raw_data, or one packed run of floats or doubles); offset -1:
/// nowhere.
struct StoredBytes {
  int64_t offset = -1, bytes = 0;
};

/// One entry per initializer of the main graph, in file order. Stops quietly at malformed input: the caller compares
/// the count.
std::vector<StoredBytes> scanInitializers(const std::byte *data, int64_t size);

/// The model without the stored bytes of its larger initializers, whose fields stay, empty: protobuf would copy them.
/// "" where that spares less than half of the file, or where it is malformed.
std::string withoutStoredBytes(const std::byte *data, int64_t size);

} // namespace hpc::onnx
