// Opening, mapping and atomic writing by plain system calls. A descriptor never outlives the function that opened it,
// but for AtomicFile's own.
#include "runtime/base/File.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

void MappedFile::release() const {
  if (start)
    ::madvise(const_cast<std::byte *>(start), size_t(length), MADV_DONTNEED);
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

/// Tries names beside `path` until one is free; `take` returns below 0 with errno if it fails. Returns its last
/// result.
template <typename Take> static int forNames(const std::string &path, Take take) {
  int result = -1;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    result = take(path + "." + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".tmp");
    if (result >= 0 || errno != EEXIST)
      break;
  }
  return result;
}

/// Whether `name` is one that forNames gives to a file beside `base`.
static bool isTemporaryOf(std::string_view base, std::string_view name) {
  constexpr std::string_view ending = ".tmp", digits = "0123456789";
  if (name.size() <= base.size() + 1 + ending.size() || name.substr(0, base.size()) != base || name[base.size()] != '.' ||
      name.substr(name.size() - ending.size()) != ending)
    return false;
  name = name.substr(base.size() + 1, name.size() - base.size() - 1 - ending.size());
  const size_t dash = name.find('-');
  return dash != name.npos && dash > 0 && dash + 1 < name.size() && name.find_first_not_of(digits) == dash &&
         name.find_first_not_of(digits, dash + 1) == name.npos;
}

/// Removes files that killed writers of `path` left. A living writer, on whatever machine, holds a lock on its own.
static void removeAbandoned(const std::string &path) {
  const std::string folder = folderOf(path), base = path.substr(path.rfind('/') + 1);
  DIR *entries = ::opendir(folder.c_str());
  if (!entries)
    return;
  while (const dirent *entry = ::readdir(entries)) {
    if (!isTemporaryOf(base, entry->d_name))
      continue;
    const std::string name = resolvePath(folder, entry->d_name);
    Descriptor file(::open(name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info;
    if (file.value >= 0 && ::fstat(file.value, &info) == 0 && S_ISREG(info.st_mode) && ::flock(file.value, LOCK_EX | LOCK_NB) == 0)
      ::unlink(name.c_str());
  }
  ::closedir(entries);
}

/// The open file of this process of which a path is another name; -1 for none. The target of such a link must not be
/// replaced: it may be the file of standard output, and the link is the system's.
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

std::string withoutLinks(std::string path) {
  constexpr int most = 40; // as the kernel follows
  char target[4096];
  for (int i = 0; i < most && openFileOf(path) < 0; ++i) {
    const ssize_t length = ::readlink(path.c_str(), target, sizeof(target));
    if (length <= 0 || size_t(length) == sizeof(target))
      break;
    path = resolvePath(folderOf(path), std::string(target, size_t(length)));
  }
  return path;
}

std::string writeErrorText(int error) {
  std::string text = std::strerror(error);
  struct rlimit limit;
  if (error == EFBIG && ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    text += "; files may have " + std::to_string(limit.rlim_cur) + " bytes here: raise the limit (ulimit -f)";
  else if (error == ENOSPC || error == EDQUOT)
    text += "; make room there, or name a file on another disk";
  return text;
}

/// For file systems without files that have no name.
bool AtomicFile::createNamed() {
  for (;;) {
    // With O_EXCL, as mkstemp would ignore the process' mask.
    forNames(target, [&](const std::string &name) {
      temporary = name;
      return descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    });
    if (descriptor < 0)
      return false;
    struct stat info;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 || ::fstat(descriptor, &info) != 0 || info.st_nlink > 0)
      return true;
    ::close(std::exchange(descriptor, -1)); // another writer took it for abandoned before it was locked
  }
}

Expected<AtomicFile> AtomicFile::create(const std::string &path) {
  AtomicFile file;
  file.path = path;
  file.target = withoutLinks(path);
  if (int own = openFileOf(file.target); own >= 0) {
    std::fflush(stdout);
    file.descriptor = ::fcntl(own, F_DUPFD_CLOEXEC, 0);
    if (file.descriptor < 0)
      return systemError(path, "cannot open for writing");
    file.isInPlace = true;
    return file;
  }
  const std::string &target = file.target;
  struct stat info;
  if (::lstat(target.c_str(), &info) == 0 && S_ISLNK(info.st_mode))
    return ioError(path, std::string("cannot open for writing: ") + std::strerror(ELOOP));
  const bool isThere = ::stat(target.c_str(), &info) == 0;
  if ((isThere && S_ISDIR(info.st_mode)) || (!target.empty() && target.back() == '/'))
    return Status::error(ErrorKind::Io, "'" + path + "': is a folder; give the name of a file in it");
  if (isThere && !S_ISREG(info.st_mode)) {
    file.descriptor = ::open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (file.descriptor < 0)
      return systemError(path, "cannot open for writing");
    file.isInPlace = true;
    return file;
  }
  removeAbandoned(target);
  file.descriptor = ::open(folderOf(target).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (file.descriptor >= 0 && ::access(linkOf(file.descriptor).c_str(), F_OK) == 0) {
    ::flock(file.descriptor, LOCK_EX | LOCK_NB); // before it has a name
    return file;
  }
  if (file.descriptor >= 0) // no /proc: there would be no way to give it a name
    ::close(std::exchange(file.descriptor, -1));
  if (!file.createNamed())
    return systemError(path, "cannot create a file beside it");
  return file;
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : path(std::move(other.path)), target(std::move(other.target)), temporary(std::move(other.temporary)),
      isInPlace(other.isInPlace), descriptor(std::exchange(other.descriptor, -1)) {}

AtomicFile::~AtomicFile() {
  if (descriptor < 0)
    return;
  if (!temporary.empty())
    ::unlink(temporary.c_str());
  ::close(descriptor);
}

Status AtomicFile::failed(const char *what) const { return ioError(path, std::string(what) + ": " + writeErrorText(errno)); }

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

Status AtomicFile::overwrite(int64_t offset, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::pwrite(descriptor, text.data(), text.size(), offset);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return failed("cannot write");
    text.remove_prefix(size_t(written));
    offset += written;
  }
  return Status::success();
}

/// If the target does not exist, the file takes that name at once; only a rename can replace a file.
Status AtomicFile::giveName() {
  const std::string self = linkOf(descriptor);
  if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, target.c_str(), AT_SYMLINK_FOLLOW) == 0)
    return Status::success();
  std::string name;
  int linked = forNames(target, [&](const std::string &free) {
    name = free;
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
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
  if (temporary.empty())
    HPC_RETURN_IF_ERROR(giveName());
  if (!temporary.empty() && ::rename(temporary.c_str(), target.c_str()) != 0)
    return failed("cannot move the finished file into place");
  ::close(std::exchange(descriptor, -1));
  return Status::success();
}

void dropMappedPages(const std::byte *data, int64_t bytes) {
  const uintptr_t page = uintptr_t(::sysconf(_SC_PAGESIZE)), begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page,
                  end = (reinterpret_cast<uintptr_t>(data) + uintptr_t(bytes)) / page * page;
  if (begin < end)
    ::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

Status syncFolder(const std::string &path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.value >= 0 && ::fsync(folder.value) == 0 ? Status::success() : systemError(path, "cannot write the folder");
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
