// The readers of strangers' files, as functions of bytes. Each ends in success or a clear error for any bytes at all:
// a crash, a hang, an error[internal] (it aborts) or more memory than the file deserves is a finding.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hpc::fuzz {

struct Target {
  const char *name;
  bool (*run)(std::string_view bytes); ///< whether they were accepted
  std::vector<std::string> (*seeds)(); ///< valid files to start from
};

/// onnx, compile, plan, npz, safetensors, sidecar. `onnx` reads the protobuf alone, `compile` goes on to a plan over
/// tp=2; `plan` takes a body behind the file's hash, which no flipped byte would get past.
const std::vector<Target> &targets();

} // namespace hpc::fuzz
