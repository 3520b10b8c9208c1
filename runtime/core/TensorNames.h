// Which tensor of a file is meant by which name of a plan: frameworks save one model under names that differ by the module it is
// wrapped in, and a tied weight under one of its names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpc {

/// A tensor that is looked for: its own name, then others that stand for the same tensor.
struct WantedTensor {
  std::vector<std::string> names;
  std::vector<int64_t> shape; ///< decides where an output head and an embedding could be one
  bool mayBeTransposed = false;
};

struct NameMatch {
  std::string found; ///< in the file
  size_t name = 0;   ///< which of the names matched; names.size(): none, it is tied by convention
};

struct NameMatches {
  std::vector<std::optional<NameMatch>> of; ///< by wanted tensor
  std::vector<std::string> notes; ///< what was done besides taking equal names: "names of the file have no 'transformer.'"
};

/// `available`: names of the file and their shapes. In this order:
/// 1. an equal name;
/// 2. an equal name without what wrappers put into it (_orig_mod, module, and others of PyTorch);
/// 3. a module prefix more or less, the same for all, if only one fits most; wrappers' prefixes may be exchanged;
/// 4. an output head that the file has not is tied to its only embedding of that shape, and the reverse, as Hugging Face saves it.
/// A tensor of the file is taken once.
NameMatches matchNames(const std::vector<WantedTensor> &wanted,
                       const std::map<std::string, std::vector<int64_t>> &available);

} // namespace hpc
