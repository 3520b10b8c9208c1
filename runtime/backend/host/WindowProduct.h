// Products whose B is windows (plan::Windows): as a convolution of oneDNN's where that is fast, plane by plane where there
// are few channels, else of columns that are written a part at a time and multiplied while they are in the cache.
#pragma once

#include "runtime/backend/host/Convolution.h"
#include "runtime/backend/host/PlaneProduct.h"

namespace hpc::host {

class WindowProduct {
public:
  /// An error for what the host cannot multiply.
  static Expected<WindowProduct> create(const GemmCall &call, bool mayUseTiles);

  /// Bytes that each thread needs: of columns or slabs, of the product's own, and what oneDNN allocates.
  struct Needs {
    int64_t columns = 0, scratch = 0, library = 0;
  };
  const Needs &needs() const { return need; }
  /// Bytes that the weight takes rearranged, 0 where it is read as it is.
  int64_t weightBytes() const { return convolution ? convolution->weightBytes() : 0; }
  bool packsInPlace() const { return convolution && convolution->packsInPlace(); }
  /// It is rearranged in so many blobs, one after the other, each from so many bytes and into so many.
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
  ProductCut cut;                           ///< of what is no convolution: columns of C; by the shape alone
  bool mayUseTiles = true;
  Needs need;
};

} // namespace hpc::host
