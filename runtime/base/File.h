// The only opener of files: read-only mappings, folders that cannot be left, and files that appear whole or not at all.
// Everything read here is data of a stranger: ranges are checked with arithmetic that cannot overflow.
#pragma once

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hpc {

/// A regular file mapped for reading; the mapping lives as long as the object. A file that another process shortens
/// while it is mapped raises SIGBUS, which the tools turn into an error (tools/ShortenedFiles.h).
class MappedFile {
public:
  static Expected<MappedFile> open(const std::string &path);

  /// Opens `relative` beneath `folder`: without `..` out of it, without symbolic links on the path, and only a regular
  /// file with one name. For files that a model names, as ONNX external data does. `followLinks`: follows links
  /// wherever they lead, for callers that trust their author; the name itself still stays beneath the folder.
  static Expected<MappedFile> openBeneath(const std::string &folder, const std::string &relative,
                                          bool followLinks = false);

  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept { swap(other); }
  MappedFile &operator=(MappedFile &&other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedFile();

  const std::string &path() const { return name; }
  const std::byte *data() const { return start; }
  int64_t size() const { return length; }
  std::string_view text() const { return {reinterpret_cast<const char *>(start), size_t(length)}; }

  /// Gives the memory of its pages back; they are read again when they are touched.
  void release() const;

  /// The address of bytes offset .. offset+bytes-1, or an error that names `what`.
  Expected<const std::byte *> range(int64_t offset, int64_t bytes, const std::string &what) const;

private:
  static Expected<MappedFile> map(int descriptor, const std::string &path, bool singleName);
  void swap(MappedFile &other) noexcept;

  std::string name;
  const std::byte *start = nullptr;
  int64_t length = 0;
};

/// A file being written in the folder of `path`, without a name, or under a temporary one if the file system needs one.
/// commit() makes it durable and moves it into place; without commit() the old content of `path` stays and no file
/// remains. A killed process may leave a temporary file, which the next writer of that path removes: a writer locks its
/// own. A symbolic link at `path` stays, and its target is written. A device or a pipe (/dev/null, /dev/stdout) is
/// never replaced: it is written directly.
class AtomicFile {
public:
  static Expected<AtomicFile> create(const std::string &path);

  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  Status write(const void *data, int64_t bytes);
  Status write(std::string_view text) { return write(text.data(), int64_t(text.size())); }
  /// Replaces bytes that write() has written; no device or pipe has any.
  Status overwrite(int64_t offset, std::string_view text);
  Status commit();

private:
  AtomicFile() = default;
  Status failed(const char *what) const;
  bool createNamed();
  Status giveName();

  std::string path;      ///< as given, for messages
  std::string target;    ///< the same without links
  std::string temporary; ///< empty: there is no name yet
  bool isInPlace = false; ///< `target` is written to itself
  int descriptor = -1;
};

/// The path that symbolic links at `path` lead to in the end, whether a file is there or not.
std::string withoutLinks(std::string path);

/// The text of `error` (an errno) after a failed write, with a remedy where there is one: "File too large; ...".
std::string writeErrorText(int error);

/// Lets the system take back the memory of whole pages of a MappedFile, which are read again where they are needed again.
void dropMappedPages(const std::byte *data, int64_t bytes);

/// Makes the names in a folder durable: files that were made, renamed or removed.
Status syncFolder(const std::string &path);

/// Writes a whole file through AtomicFile.
Status writeFile(const std::string &path, std::string_view content);

/// "a/b/c.plan" -> "a/b", "c.plan" -> ".", "/c" -> "/".
std::string folderOf(const std::string &path);

/// `path` if it is absolute, else beside what is in `folder`.
std::string resolvePath(const std::string &folder, const std::string &path);

} // namespace hpc
