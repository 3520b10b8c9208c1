// Questions about the bytes of stored tensors, answered on all cores: compiling a model reads each of its weights once,
// and nothing else in a compilation takes as long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hpc {

/// One XXH3-64 per MiB, as hashChunks.
std::vector<uint64_t> hashContent(const std::byte *data, int64_t bytes);

bool sameContent(const std::byte *a, const std::byte *b, int64_t bytes);

/// Whether b [columns, rows] is a [rows, columns] transposed; `width`: bytes of an element.
bool isTransposed(const std::byte *a, const std::byte *b, int64_t rows, int64_t columns, int64_t width);

/// Whether all elements have the same bits. Fresh biases and norms do, so their equality proves nothing.
bool isFilled(const std::byte *data, int64_t bytes, int64_t width);

} // namespace hpc
