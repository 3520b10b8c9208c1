// One write each, so that a reader never sees half of a line.
#include "runtime/base/LineFile.h"

#include "runtime/base/File.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace hpc {

Expected<LineFile> LineFile::open(const std::string &path, bool append) {
  int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC), 0644);
  if (descriptor < 0)
    return Status::error(ErrorKind::Io, "'" + path + "': cannot open for writing: " + std::strerror(errno));
  return LineFile(path, descriptor);
}

LineFile::LineFile(LineFile &&other) noexcept : path(std::move(other.path)), descriptor(other.descriptor) {
  other.descriptor = -1;
}

LineFile::~LineFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

Status LineFile::append(const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return Status::error(ErrorKind::Io, "'" + path + "': cannot write: " + writeErrorText(errno));
    done += size_t(written);
  }
  return Status::success();
}

} // namespace hpc
