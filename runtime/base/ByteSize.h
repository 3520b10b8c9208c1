// Sizes of memory as people write them: 24GiB, 80GB, 500000000.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <string>

namespace hpc {

/// Bytes of "N", "NKiB", "NMiB", "NGiB", "NTiB" (powers of 1024), "NKB", "NMB", "NGB", "NTB" (of 1000); N may have a
/// fraction. Errors (Usage): anything else, less than a byte, 2^62 or more.
Expected<int64_t> parseByteSize(const std::string &text);

/// "23.4 GiB", "1.5 KiB", "100 bytes": three or four digits.
std::string byteSizeText(int64_t bytes);

} // namespace hpc
