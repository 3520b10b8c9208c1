// A tool's output replaces the old file as a whole: so it may be none of the files that the tool reads, nor another
// output. Whether it can be written is checked before anything is computed: an error at the end would waste the
// run.
#pragma once

#include "runtime/base/File.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace hpc {

struct NamedFile {
  std::string name; ///< in messages: "--output=a.npz", "the plan"
  std::string path; ///< "": there is none
};

/// Whether both are one regular file, by any path and link, or would become the same new one.
inline bool isSameFile(const std::string &first, const std::string &second) {
  const std::string a = withoutLinks(first), b = withoutLinks(second);
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

/// For a flag that is given: `kind` names its content, as "a plan". "-" is only allowed for text, which is printed.
inline Status checkOutputName(const NamedFile &file, const std::string &kind) {
  if (file.path.empty())
    return Status::error(ErrorKind::Usage, file.name + " names no file; give it a name, or leave it out");
  if (file.path == "-")
    return Status::error(ErrorKind::Usage, file.name + ": " + kind +
                                               " is not printed on standard output; name a file (./- is one "
                                               "that is called so)");
  return Status::success();
}

enum class Writing { Replaces, Appends };

/// An error where nothing can be written there. Opens no pipe, whose reader would see its end.
inline Status checkDestination(const NamedFile &file, Writing how = Writing::Replaces) {
  const std::string path = withoutLinks(file.path), folder = folderOf(path);
  auto wrong = [&](const std::string &why) {
    return Status::error(ErrorKind::Io, file.name + " cannot be written: " + why);
  };
  auto denied = [&](const std::string &what) {
    return wrong(what + ": " + std::strerror(errno) + "; give it the rights, or name another file");
  };
  if (path.empty())
    return Status::success();
  std::error_code error;
  const std::filesystem::file_status own = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(own) || path.back() == '/')
    return wrong("it is a folder; give the name of a file in it");
  const bool isReplaced = std::filesystem::is_regular_file(own) && how == Writing::Replaces;
  if (std::filesystem::exists(own) && !isReplaced)
    return ::access(path.c_str(), W_OK) == 0 ? Status::success() : denied("the file that is there");
  const std::filesystem::file_status around = std::filesystem::status(folder, error);
  if (around.type() == std::filesystem::file_type::not_found)
    return wrong("the folder '" + folder + "' is not there; make it, or name another file");
  if (std::filesystem::exists(around) && !std::filesystem::is_directory(around))
    return wrong("'" + folder + "' is no folder; name another file");
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return denied("the folder '" + folder + "'");
  struct stat info;
  const std::string longest = path + ".4194304-999.tmp"; // AtomicFile's name for an unfinished file
  if (::lstat(longest.c_str(), &info) != 0 && errno == ENAMETOOLONG)
    return wrong("its name is too long; give it a shorter one");
  Status status = AtomicFile::create(file.path).status();
  return status.ok() ? status : wrong(status.message() + "; name another file");
}

} // namespace hpc
