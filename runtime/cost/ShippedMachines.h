// The texts of machines/*.json, compiled in, so that a tool has them wherever it lies. CMakeLists.txt generates the definition.
#pragma once

#include <string_view>
#include <vector>

namespace hpc::cost {

struct ShippedMachine {
  const char *name; ///< of the file, without .json
  std::string_view text;
};
const std::vector<ShippedMachine> &shippedMachineFiles();

} // namespace hpc::cost
