// Products of few rows with the windows of few channels, in f32: depthwise convolutions. Each plane of the image is copied
// once, so that for every offset in a window the elements under all positions follow one another; a row of C is then a sum
// of multiples of long vectors.
#pragma once

#include "runtime/backend/host/Gemm.h"

namespace hpc::host {

class PlaneProduct {
public:
  /// Null if the product has another form. Depends on types and extents alone.
  static std::unique_ptr<PlaneProduct> create(const GemmCall &call);

  /// Bytes of scratch for each thread.
  int64_t scratch() const;
  /// One of the batch. The bits of an element depend on its row, its position and their depth alone.
  void multiply(const GemmCall &call, const float *a, const float *image, float *c, Scratch &scratch) const;

private:
  explicit PlaneProduct(const GemmCall &call);
  void findLines();

  const plan::Windows windows;
  const int64_t m, k;
  /// A plane [phases.., lines..]: position o * stride + x of the padded image, x = t * stride + r, lies in phase r at o + t.
  std::vector<int64_t> lengths, phases;
  int64_t plane = 1, phase = 1;  ///< elements of a plane, and of one of its phases
  int64_t span = 0;              ///< from the first position to one after the last, unused ones between lines included
  std::vector<int64_t> offsets;  ///< by row of the windows: where its first position lies
  /// Of a plane: `size` elements of the image from `at` on, the first of the line being number `first` of these.
  struct Line {
    int64_t at, size, first;
  };
  std::vector<Line> lines;
  std::vector<int64_t> results; ///< where the sums of each line of positions begin
};

} // namespace hpc::host
