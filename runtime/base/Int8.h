// int8 weights: the one rule for converting and for reading them. Along one dim of a tensor each line has a scale, its
// largest magnitude / 127, and an element becomes the whole number nearest to element / scale (ties to even).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hpc {

/// A row-major tensor as [outer, size, inner] with its lines along the middle. Line (o, i) has number o * inner + i.
struct Lines {
  int64_t outer = 1, size = 1, inner = 1;

  static Lines along(const std::vector<int64_t> &shape, size_t dim);
  int64_t count() const { return outer * inner; }
  /// The line of an element by its row-major index.
  int64_t of(int64_t element) const { return element / (size * inner) * inner + element % inner; }
};

/// Writes a scale for every line of the f32 at `from`, which need not be aligned; a line of zeros has the scale 0.
/// Returns the index of an element that is not finite, if there is one: it has no int8.
std::optional<int64_t> int8Scales(const std::byte *from, const Lines &lines, float *scales);

/// Codes of `count` elements that follow `first`, from -127 to 127. `from` is the tensor's first element.
void toInt8(const std::byte *from, const Lines &lines, const float *scales, int64_t first, int64_t count, int8_t *codes);

} // namespace hpc
