// Owners of handles from driver and libraries: each releases its handle exactly once. They refer to the table of
// functions, which outlives them.
#pragma once

#include "runtime/backend/cuda/CublasLtApi.h"
#include "runtime/backend/cuda/CudnnApi.h"

#include <utility>

namespace hpc::cuda {

/// `Table` has the function `Release` that gives a handle back.
template <typename Table, typename Handle, auto Release> class Owned {
public:
  Owned() = default;
  Owned(const Table &table, Handle handle) : table(&table), handle(handle) {}
  Owned(Owned &&other) noexcept { swap(other); }
  Owned &operator=(Owned &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Owned() {
    if (handle)
      (table->*Release)(handle);
  }
  Handle get() const { return handle; }
  explicit operator bool() const { return bool(handle); }

private:
  void swap(Owned &other) noexcept {
    std::swap(table, other.table);
    std::swap(handle, other.handle);
  }
  const Table *table = nullptr;
  Handle handle = {};
};

using Stream = Owned<Driver, StreamHandle, &Driver::destroyStream>;
using Event = Owned<Driver, EventHandle, &Driver::destroyEvent>;
using DeviceMemory = Owned<Driver, DevicePointer, &Driver::free>;
using PinnedMemory = Owned<Driver, void *, &Driver::freeHost>;
using Graph = Owned<Driver, GraphHandle, &Driver::destroyGraph>;
using GraphRun = Owned<Driver, GraphRunHandle, &Driver::destroyGraphRun>;
using CodeLibrary = Owned<Driver, LibraryHandle, &Driver::unloadLibrary>;
using Blas = Owned<CublasLt, BlasHandle, &CublasLt::destroy>;
using ProductDescriptor = Owned<CublasLt, ProductHandle, &CublasLt::destroyProduct>;
using Layout = Owned<CublasLt, LayoutHandle, &CublasLt::destroyLayout>;
using Preference = Owned<CublasLt, PreferenceHandle, &CublasLt::destroyPreference>;

using Dnn = Owned<Cudnn, DnnHandle, &Cudnn::destroy>;
using Descriptor = Owned<Cudnn, DescriptorHandle, &Cudnn::destroyDescriptor>;

} // namespace hpc::cuda
