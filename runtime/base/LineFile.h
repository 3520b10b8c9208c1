// A file that grows by whole lines or records during a run, for others to watch: each is written when its call returns.
#pragma once

#include "runtime/base/Status.h"

#include <string>

namespace hpc {

class LineFile {
public:
  /// `append`: keeps the present content; otherwise the file starts empty.
  static Expected<LineFile> open(const std::string &path, bool append);
  LineFile(LineFile &&other) noexcept;
  LineFile &operator=(LineFile &&) = delete;
  ~LineFile();

  /// `line` without its end.
  Status add(const std::string &line) { return append(line + "\n"); }
  Status append(const std::string &bytes);

private:
  LineFile(std::string path, int descriptor) : path(std::move(path)), descriptor(descriptor) {}

  std::string path;
  int descriptor = -1;
};

} // namespace hpc
