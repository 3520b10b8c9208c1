// Zip archives as .npz files use them: stored and deflated members, zip64, no encryption.
// No field of an archive is trusted: offsets, sizes and checksums are checked before memory is
// allocated.
#pragma once

#include "runtime/base/File.h"
#include "runtime/base/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace hpc {

/// One file within an archive.
struct ZipMember {
  std::string name;
  bool deflated = false;
  uint32_t checksum = 0; ///< CRC-32 of the content
  uint64_t packedBytes = 0, bytes = 0;
  uint64_t headerOffset = 0;
};

/// Reads an archive that lies in memory, which must outlive the reader.
class ZipReader {
public:
  /// `name` is the archive's name in errors.
  static Expected<ZipReader> open(std::string_view archive, const std::string &name);

  const std::vector<ZipMember> &members() const { return list; }
  /// The content of a member; `storage` keeps it where it had to be inflated.
  Expected<std::string_view> read(const ZipMember &member, std::string &storage) const;

private:
  Status wrong(const std::string &what) const;
  Status readDirectory();
  Status findDirectory(uint64_t &offset, uint64_t &bytes, uint64_t &count) const;
  Status readMember(uint64_t &at, uint64_t end);
  Status checkOverlaps() const;

  std::string_view archive;
  std::string name;
  std::vector<ZipMember> list;
};

/// Writes stored members one after the other. The same calls give the same bytes: dates are 1980-01-01.
class ZipWriter {
public:
  explicit ZipWriter(AtomicFile &file) : file(file) {}

  /// A member whose content is `head` followed by `body`.
  Status add(const std::string &name, std::string_view head, std::string_view body);
  /// Writes the directory; the last call.
  Status finish();

private:
  Status put(std::string_view bytes);

  AtomicFile &file;
  std::vector<ZipMember> list;
  uint64_t written = 0;
};

} // namespace hpc
