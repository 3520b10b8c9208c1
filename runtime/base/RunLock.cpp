// The file stays: if it were removed, a second process could lock a third one's new file.
#include "runtime/base/RunLock.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace hpc {

/// "process 77 on host a", as the owner has written it.
static std::string ownerIn(int descriptor) {
  char text[300];
  const ssize_t bytes = ::pread(descriptor, text, sizeof(text), 0);
  const std::string all(text, size_t(bytes > 0 ? bytes : 0));
  return all.empty() ? "another process" : all.substr(0, all.find('\n'));
}

Expected<RunLock> RunLock::take(const std::string &folder) {
  const std::string path = folder + "/lock";
  RunLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (lock.descriptor < 0)
    return Status::error(ErrorKind::Io, "'" + path + "' cannot be written: " + std::strerror(errno) + "; name another folder");
  if (::flock(lock.descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      return Status::error(ErrorKind::Io, "'" + path + "' cannot be locked: " + std::strerror(errno) + "; name a folder on a file system that has locks");
    return Status::error(ErrorKind::Usage, "a run is going on in '" + folder + "', by " + ownerIn(lock.descriptor) + "; wait for its end, or name another folder");
  }
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  const std::string owner = "process " + std::to_string(::getpid()) + " on host " + host + "\n";
  if (::ftruncate(lock.descriptor, 0) != 0 || ::pwrite(lock.descriptor, owner.data(), owner.size(), 0) != ssize_t(owner.size()))
    return Status::error(ErrorKind::Io, "'" + path + "' cannot be written: " + std::strerror(errno) + "; name another folder");
  return lock;
}

RunLock::~RunLock() {
  if (descriptor >= 0)
    ::close(descriptor);
}

} // namespace hpc
