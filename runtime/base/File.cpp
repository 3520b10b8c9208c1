// Opening, mapping and atomic writing by plain system calls. A descriptor never outlives the function that opened it,
// but for AtomicFile's own.
#include "runtime/base/File.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hpc {

namespace {

/// Closes a descriptor at the end of a scope.
struct Descriptor {
  int value;
  explicit Descriptor(int value) : value(value) {}
  Descriptor(const Descriptor &) = delete;
  ~Descriptor() {
    if (value >= 0)
      ::close(value);
  }
};

Status ioError(const std::string &path, const std::string &what) {
  return Status::error(ErrorKind::Io, "'" + path + "': " + what);
}

constexpr const char *linkRemedy =
    "copy the file instead, or give --follow-links if you trust whoever linked it (model caches of hubs hold links)";

/// Whether a path never leaves the folder that it is relative to, by its text alone.
bool staysBeneath(const std::string &relative) {
  int64_t depth = 0;
  for (size_t begin = 0; begin <= relative.size();) {
    size_t end = std::min(relative.find('/', begin), relative.size());
    std::string part = relative.substr(begin, end - begin);
    depth += part == ".." ? -1 : !part.empty() && part != ".";
    if (depth < 0)
      return false;
    begin = end + 1;
  }
  return relative[0] != '/';
}

Status systemError(const std::string &path, const char *what) {
  return ioError(path, std::string(what) + ": " + std::strerror(errno));
}

} // namespace

MappedFile::~MappedFile() {
  if (start)
    ::munmap(const_cast<std::byte *>(start), size_t(length));
}

void MappedFile::swap(MappedFile &other) noexcept {
  std::swap(name, other.name);
  std::swap(start, other.start);
  std::swap(length, other.length);
}

Expected<MappedFile> MappedFile::map(int descriptor, const std::string &path, bool singleName) {
  struct stat info;
  if (::fstat(descriptor, &info) != 0)
    return systemError(path, "cannot read its size");
  if (!S_ISREG(info.st_mode))
    return ioError(path, S_ISDIR(info.st_mode) ? "is not a regular file but a folder; give the name of a file"
                                               : "is not a regular file; give one that is");
  if (singleName && info.st_nlink != 1)
    return ioError(path, "has " + std::to_string(info.st_nlink) + " names (hard links); " + linkRemedy);
  MappedFile file;
  file.name = path;
  if (info.st_size > 0) {
    void *address = ::mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED)
      return systemError(path, "cannot map it");
    file.start = static_cast<const std::byte *>(address);
    file.length = info.st_size;
  }
  return file;
}

Expected<MappedFile> MappedFile::open(const std::string &path) {
  // O_NONBLOCK: a pipe must give an error, not wait for a writer.
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.value < 0)
    return systemError(path, "cannot open for reading");
  return map(descriptor.value, path, false);
}

Expected<MappedFile> MappedFile::openBeneath(const std::string &folder, const std::string &relative,
                                             bool followLinks) {
  std::string path = resolvePath(folder, relative);
  if (relative.empty() || relative.find('\0') != std::string::npos)
    return ioError(path, "is not a file name");
  if (!staysBeneath(relative))
    return ioError(relative, "leaves the folder '" + folder + "'; files that a model names must lie beneath it");
  if (followLinks)
    return open(path);
  Descriptor root(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (root.value < 0)
    return systemError(folder, "cannot open the folder");
  struct open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  Descriptor descriptor(int(::syscall(SYS_openat2, root.value, relative.c_str(), &how, sizeof(how))));
  if (descriptor.value < 0) {
    if (errno == EXDEV)
      return ioError(relative, "leaves the folder '" + folder + "'; files that a model names must lie beneath it");
    if (errno == ELOOP)
      return ioError(relative, "is or passes a symbolic link beneath '" + folder + "'; " + linkRemedy);
    return systemError(path, "cannot open for reading");
  }
  return map(descriptor.value, path, true);
}

Expected<const std::byte *> MappedFile::range(int64_t offset, int64_t bytes, const std::string &what) const {
  if (offset < 0 || bytes < 0 || offset > length || bytes > length - offset)
    return ioError(name, what + " needs bytes " + std::to_string(offset) + " to " +
                             std::to_string(uint64_t(offset) + uint64_t(bytes)) + ", the file has " +
                             std::to_string(length));
  return start + offset;
}

/// Where /proc shows an open file.
static std::string linkOf(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

/// Tries names beside `path` until one is free; `take` returns below 0 with errno if it fails. Returns what it does
/// last.
template <typename Take> static int forNames(const std::string &path, Take take) {
  int result = -1;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    result = take(path + "." + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".tmp");
    if (result >= 0 || errno != EEXIST)
      break;
  }
  return result;
}

/// Which open file of this process a path is another name of; -1 for none. What such a link leads to must not be
/// replaced: it may be the file that standard output goes to, and the link is the system's.
static int openFileOf(const std::string &path) {
  if (path == "/dev/stdout")
    return STDOUT_FILENO;
  if (path == "/dev/stderr")
    return STDERR_FILENO;
  for (const std::string folder : {"/dev/fd/", "/proc/self/fd/"}) {
    int number = -1;
    const char *digits = path.c_str() + folder.size(), *end = path.c_str() + path.size();
    if (path.compare(0, folder.size(), folder) == 0 && std::from_chars(digits, end, number).ptr == end)
      return number;
  }
  return -1;
}

Expected<AtomicFile> AtomicFile::create(const std::string &path) {
  AtomicFile file;
  file.path = path;
  if (int own = openFileOf(path); own >= 0) {
    std::fflush(stdout);
    file.descriptor = ::fcntl(own, F_DUPFD_CLOEXEC, 0);
    if (file.descriptor < 0)
      return systemError(path, "cannot open for writing");
    file.isInPlace = true;
    return file;
  }
  struct stat info;
  const bool isThere = ::stat(path.c_str(), &info) == 0;
  if ((isThere && S_ISDIR(info.st_mode)) || (!path.empty() && path.back() == '/'))
    return Status::error(ErrorKind::Io, "'" + path + "': is a folder; give the name of a file in it");
  if (isThere && !S_ISREG(info.st_mode)) {
    file.descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (file.descriptor < 0)
      return systemError(path, "cannot open for writing");
    file.isInPlace = true;
    return file;
  }
  file.descriptor = ::open(folderOf(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (file.descriptor >= 0 && ::access(linkOf(file.descriptor).c_str(), F_OK) == 0)
    return file;
  if (file.descriptor >= 0) // no /proc: there would be no way to give it a name
    ::close(std::exchange(file.descriptor, -1));
  // With O_EXCL, as mkstemp would ignore the process' mask.
  forNames(path, [&](const std::string &name) {
    file.temporary = name;
    return file.descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  });
  if (file.descriptor < 0)
    return systemError(path, "cannot create a file beside it");
  return file;
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : path(std::move(other.path)), temporary(std::move(other.temporary)), isInPlace(other.isInPlace),
      descriptor(std::exchange(other.descriptor, -1)) {}

AtomicFile::~AtomicFile() {
  if (descriptor < 0)
    return;
  ::close(descriptor);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

Status AtomicFile::failed(const char *what) const { return systemError(path, what); }

Status AtomicFile::write(const void *data, int64_t bytes) {
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t written = ::write(descriptor, next, size_t(std::min<int64_t>(bytes, 1 << 30)));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return failed("cannot write");
    next += written;
    bytes -= written;
  }
  return Status::success();
}

Status AtomicFile::giveName() {
  std::string name;
  int linked = forNames(path, [&](const std::string &free) {
    name = free;
    return ::linkat(AT_FDCWD, linkOf(descriptor).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
  });
  if (linked < 0)
    return failed("cannot give the finished file a name");
  temporary = name;
  return Status::success();
}

Status AtomicFile::commit() {
  if (isInPlace) {
    ::close(std::exchange(descriptor, -1));
    return Status::success();
  }
  if (::fsync(descriptor) != 0)
    return failed("cannot write");
  if (temporary.empty()) // nothing replaces a file but a rename
    HPC_RETURN_IF_ERROR(giveName());
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return failed("cannot move the finished file into place");
  ::close(std::exchange(descriptor, -1));
  return Status::success();
}

Status writeFile(const std::string &path, std::string_view content) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file.ok())
    return file.status();
  HPC_RETURN_IF_ERROR(file->write(content));
  return file->commit();
}

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string resolvePath(const std::string &folder, const std::string &path) {
  if (!path.empty() && path[0] == '/')
    return path;
  return folder == "." ? path : folder + (folder.back() == '/' ? "" : "/") + path;
}

} // namespace hpc
