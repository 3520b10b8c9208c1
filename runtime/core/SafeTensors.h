// The directory of a .safetensors file: a JSON header of names, types, shapes and byte ranges before the data.
// A header that is read is a stranger's: every rule of the format is checked (github.com/huggingface/safetensors, "Format").
#pragma once

#include "runtime/base/File.h"
#include "runtime/core/NamedTensor.h"

namespace hpc {

/// `metadata`, where it is given, gets the texts of `__metadata__`.
/// Errors: what is no such file; names, keys or metadata twice; a type that the format has not; a range that does not fit shape and
/// type; tensors that overlap, leave a hole, or do not end where the file ends.
Expected<NamedTensorMap> readSafeTensors(const MappedFile &file, std::map<std::string, std::string> *metadata = nullptr);

struct SafeTensorEntry {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape; ///< that checkedBytes accepts
};
/// Everything before the data, which follows in the order of the entries without gaps. It takes a multiple of 8 bytes.
std::string safeTensorsHeader(const std::vector<SafeTensorEntry> &entries,
                              const std::map<std::string, std::string> &metadata);

} // namespace hpc
