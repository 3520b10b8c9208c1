// A text file that grows by whole lines while a run goes on, for whoever watches it: each line is there when add() returns.
#pragma once

#include "runtime/base/Status.h"

#include <string>

namespace hpc {

class LineFile {
public:
  /// `append`: behind what is there; else the file starts empty.
  static Expected<LineFile> open(const std::string &path, bool append);
  LineFile(LineFile &&other) noexcept;
  LineFile &operator=(LineFile &&) = delete;
  ~LineFile();

  /// `line` without its end.
  Status add(const std::string &line);

private:
  LineFile(std::string path, int descriptor) : path(std::move(path)), descriptor(descriptor) {}

  std::string path;
  int descriptor = -1;
};

} // namespace hpc
