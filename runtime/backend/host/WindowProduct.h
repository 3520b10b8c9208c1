// Products whose B is windows (plan::Windows): as a convolution of oneDNN's where that is fast, plane by plane where there
// are few channels, else of columns that are written a part at a time and multiplied while they are in the cache.
#pragma once

#include "runtime/backend/host/Convolution.h"
#include "runtime/backend/host/PlaneProduct.h"

namespace hpc::host {

class WindowProduct {
public:
  /// An error for types that the host cannot multiply.
  static Expected<WindowProduct> create(const GemmCall &call, bool mayUseTiles);

  /// Bytes that each thread needs: for columns or slabs, for the product's own scratch, and for oneDNN's allocations.
  struct Needs {
    int64_t columns = 0, scratch = 0, library = 0;
  };
  const Needs &needs() const { return need; }
  /// Bytes of the rearranged weight, 0 if it is read as it is.
  int64_t weightBytes() const { return convolution ? convolution->weightBytes() : 0; }
  bool packsInPlace() const { return convolution && convolution->packsInPlace(); }
  /// The weight is rearranged in so many consecutive blobs, each from storedBytes() to blobBytes() bytes.
  int64_t blobs() const { return convolution->blobs(); }
  int64_t storedBytes() const { return convolution->storedBytes(); }
  int64_t blobBytes() const { return convolution->blobBytes(); }
  Status pack(const std::byte *a, std::byte *to) const { return convolution->pack(a, to); }

  /// `weight`: rearranged, where weightBytes() is not 0. `columns` and `scratch` have one for each thread.
  Status run(const GemmCall &call, const std::byte *weight, ThreadPool &threads, std::vector<Scratch> &columns,
             std::vector<Scratch> &scratch) const;

private:
  Status runPart(const GemmCall &call, int64_t part, Scratch &columns, Scratch &scratch) const;

  std::unique_ptr<Convolution> convolution; ///< null: another way
  std::unique_ptr<PlaneProduct> planes;     ///< likewise
  ProductCut cut;                           ///< for products that are no convolution: columns of C; by the shape alone
  bool mayUseTiles = true;
  Needs need;
};

} // namespace hpc::host
