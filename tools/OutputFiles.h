// What a tool writes replaces what was there, whole: so it may be none of the files that the tool reads, nor two
// outputs.
#pragma once

#include "runtime/base/Status.h"

#include <filesystem>
#include <string>
#include <vector>

namespace hpc {

struct NamedFile {
  std::string name; ///< in messages: "--output=a.npz", "the plan"
  std::string path; ///< "": there is none
};

/// Whether both are one regular file, by whatever path and link, or would be the same new one.
inline bool isSameFile(const std::string &a, const std::string &b) {
  std::error_code error;
  const bool isNew = !std::filesystem::exists(a, error) && !std::filesystem::exists(b, error);
  if (isNew)
    return std::filesystem::weakly_canonical(std::filesystem::absolute(a, error), error) ==
           std::filesystem::weakly_canonical(std::filesystem::absolute(b, error), error);
  return std::filesystem::is_regular_file(a, error) && std::filesystem::equivalent(a, b, error);
}

inline Status checkOutputFiles(const std::vector<NamedFile> &written, const std::vector<NamedFile> &read) {
  auto usage = [](const std::string &message) { return Status::error(ErrorKind::Usage, message); };
  for (size_t i = 0; i < written.size(); ++i) {
    const NamedFile &output = written[i];
    if (output.path.empty())
      continue;
    for (const NamedFile &input : read)
      if (!input.path.empty() && isSameFile(output.path, input.path))
        return usage(output.name + " would replace " + input.name + "; give it another name");
    for (size_t other = 0; other < i; ++other)
      if (!written[other].path.empty() && isSameFile(output.path, written[other].path))
        return usage(written[other].name + " and " + output.name + " are one file; give them two names");
  }
  return Status::success();
}

} // namespace hpc
