// A tensor as a file of weights holds it, whatever the format of the file.
// Its bytes stay where they are: in a mapped file, or in memory that whoever read them owns.
#pragma once

#include "runtime/base/DType.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpc {

struct NamedTensor {
  std::optional<DType> dtype; ///< none: a type that no plan has
  std::string typeName;       ///< as the format calls it, for messages
  std::vector<int64_t> shape;
  const std::byte *data = nullptr; ///< row-major, little endian
  int64_t bytes = 0;
  std::string madeOf = {}; ///< the one tensor that an exporter made it of, as the file says; ""
};

using NamedTensorMap = std::map<std::string, NamedTensor>;

} // namespace hpc
