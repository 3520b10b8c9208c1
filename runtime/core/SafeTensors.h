// The directory of a .safetensors file: a JSON header of names, types, shapes and byte ranges before the data.
// A header that is read is a stranger's: every number in it is checked against the file.
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

/// `metadata`, where it is given, gets the texts of `__metadata__`.
Expected<std::map<std::string, SafeTensor>> readSafeTensors(const MappedFile &file,
                                                            std::map<std::string, std::string> *metadata = nullptr);

struct SafeTensorEntry {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape; ///< that checkedBytes accepts
};
/// Everything before the data, which follows in the order of the entries without gaps. It takes a multiple of 8 bytes.
std::string safeTensorsHeader(const std::vector<SafeTensorEntry> &entries,
                              const std::map<std::string, std::string> &metadata);

} // namespace hpc
