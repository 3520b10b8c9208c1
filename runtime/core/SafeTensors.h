// The directory of a .safetensors file: a JSON header of names, types, shapes and byte ranges before the data.
// The header is a stranger's: every number in it is checked against the file.
#pragma once

#include "runtime/base/DType.h"
#include "runtime/base/File.h"

#include <map>
#include <string>
#include <vector>

namespace hpc {

struct SafeTensor {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  const std::byte *data = nullptr; ///< within the mapped file
};

Expected<std::map<std::string, SafeTensor>> readSafeTensors(const MappedFile &file);

} // namespace hpc
