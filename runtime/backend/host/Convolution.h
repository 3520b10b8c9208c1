// A product of a weight with windows as oneDNN's convolution: f32, with the channels of a position adjacent, which is
// fastest. Image and result are processed in slabs that stay in the cache, transposed when they are read and written,
// so no tensor is in memory twice.
#pragma once

#include "runtime/backend/host/Gemm.h"

#include <dnnl.hpp>
#include <memory>

namespace hpc::host {

class Convolution {
public:
  /// Null if the product is no convolution, oneDNN has no fast code for it, or columns are faster (WindowProduct.h).
  /// Depends on the machine, types and extents alone.
  static std::unique_ptr<Convolution> create(const GemmCall &call, bool mayUseTiles);

  /// The weight [groups, m, k] is rearranged into consecutive blobs: as large as their source, or larger if oneDNN pads
  /// channels.
  int64_t blobs() const { return groups * rowParts; }
  int64_t storedBytes() const { return rows * k * int64_t(sizeof(float)); }
  int64_t blobBytes() const { return int64_t(weightFormat.get_size()); }
  int64_t weightBytes() const { return blobs() * blobBytes(); }
  bool packsInPlace() const { return blobBytes() == storedBytes(); }
  /// Bytes of scratch for each thread.
  int64_t scratch() const;

  /// Rearranges the part of the weight at `a` into the blob `to`; the two do not overlap.
  Status pack(const std::byte *a, std::byte *to) const;
  /// `weight`: all blobs. The bits depend on the shape alone.
  Status run(const GemmCall &call, const std::byte *weight, ThreadPool &threads, std::vector<Scratch> &scratch) const;

private:
  /// So many positions of the first dim, with all of the others.
  struct Slab {
    int64_t positions = 0;
    dnnl::memory::desc source, target, scratch;
    dnnl::convolution_forward primitive;
  };

  explicit Convolution(const GemmCall &call);
  void cut();
  Slab makeSlab(int64_t positions) const;
  Status runPart(const GemmCall &call, const std::byte *weight, int64_t part, Scratch &memory) const;
  void readSlab(const float *image, const Slab &slab, int64_t first, float *to) const;
  /// Positions of the padded image that so many windows along a dim reach over.
  int64_t reach(size_t dim, int64_t count) const {
    return (count - 1) * windows.strides[dim] + (windows.sizes[dim] - 1) * windows.dilations[dim] + 1;
  }

  /// Whether the zeros around the image are in the slab: along the first dim, where only some slabs have some. Elsewhere
  /// oneDNN leaves them out.
  bool isPadded(size_t dim) const { return dim == 0 && slabs > 1; }

  const plan::Windows windows;
  const int64_t m, k;
  int64_t products = 1, groups = 1;           ///< of the batch; matrices of A
  int64_t rows = 0, rowParts = 1, slabs = 1; ///< how a product is cut: rows of C in a part
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::memory::desc weightFormat; ///< of `rows` of a group; unset until the first slab is made
  Slab slab, lastSlab; ///< the last one has what is left
};

} // namespace hpc::host
