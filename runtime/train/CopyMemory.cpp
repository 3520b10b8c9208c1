// mmap, since malloc gives no advice about pages.
#include "runtime/train/CopyMemory.h"

#include <sys/mman.h>

namespace hpc {

Expected<std::unique_ptr<CopyMemory>> CopyMemory::create(int64_t bytes) {
  if (bytes == 0)
    return std::unique_ptr<CopyMemory>(new CopyMemory(nullptr, 0));
  void *address = ::mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return Status::error(ErrorKind::Capacity, "there is no memory for a copy of " + std::to_string(bytes) +
                                                  " bytes of weights and states; save without --save-async, or with more processes");
  ::madvise(address, size_t(bytes), MADV_HUGEPAGE);
  return std::unique_ptr<CopyMemory>(new CopyMemory(static_cast<std::byte *>(address), bytes));
}

CopyMemory::~CopyMemory() {
  if (start)
    ::munmap(start, size_t(bytes));
}

void CopyMemory::touch() {
  constexpr int64_t pageBytes = 4096;
  for (int64_t at = 0; at < bytes; at += pageBytes)
    *const_cast<volatile std::byte *>(start + at) = std::byte{0};
}

} // namespace hpc
