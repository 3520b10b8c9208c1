// Reads the central directory from the end of the archive (APPNOTE.TXT 6.3, sections 4.3 and 4.5), then members by it.
// The local headers are used for one thing only: how long they are.
#include "runtime/base/Zip.h"

#include "runtime/base/AvailableMemory.h"

#include <algorithm>
#include <zlib.h>

namespace hpc {

namespace {

constexpr uint32_t endSignature = 0x06054b50, end64Signature = 0x06064b50, locatorSignature = 0x07064b50;
constexpr uint32_t memberSignature = 0x02014b50, localSignature = 0x04034b50;
constexpr uint64_t endBytes = 22, end64Bytes = 56, locatorBytes = 20, memberBytes = 46, localBytes = 30;
/// Deflate cannot make more than this out of one byte.
constexpr uint64_t maxDeflateRatio = 1032;

uint64_t field(std::string_view bytes, uint64_t at, int width) {
  uint64_t value = 0;
  for (int i = width - 1; i >= 0; --i)
    value = value << 8 | uint8_t(bytes[at + uint64_t(i)]);
  return value;
}

uint32_t crc(std::string_view bytes) {
  return uint32_t(::crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

/// Inflates into exactly `bytes` bytes; false when the stream is broken or of another length.
bool inflateRaw(std::string_view packed, uint64_t bytes, std::string &result) {
  result.resize(bytes);
  z_stream stream = {};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return false;
  uint64_t in = 0, out = 0;
  char none = 0;
  int code = Z_OK;
  while (code == Z_OK) {
    constexpr uint64_t step = uint64_t(1) << 30; // zlib counts in 32 bits
    uInt give = uInt(std::min(step, packed.size() - in)), room = uInt(std::min(step, bytes - out));
    stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(packed.data() + in));
    stream.avail_in = give;
    stream.next_out = reinterpret_cast<Bytef *>(room ? result.data() + out : &none);
    stream.avail_out = room;
    code = ::inflate(&stream, Z_NO_FLUSH);
    in += give - stream.avail_in;
    out += room - stream.avail_out;
  }
  ::inflateEnd(&stream);
  return code == Z_STREAM_END && out == bytes && in == packed.size();
}

} // namespace

Status ZipReader::wrong(const std::string &what) const {
  return Status::error(ErrorKind::Io, "'" + name + "': " + what);
}

Status ZipReader::findDirectory(uint64_t &offset, uint64_t &bytes, uint64_t &count) const {
  // The end record is last, but for a comment of up to 64 KiB.
  if (archive.size() < endBytes)
    return wrong("is not a zip archive (.npz): it is too short");
  uint64_t end = archive.size() - endBytes, lowest = end > 0xffff ? end - 0xffff : 0;
  while (field(archive, end, 4) != endSignature || field(archive, end + 20, 2) != archive.size() - end - endBytes) {
    if (end == lowest)
      return wrong("is not a zip archive (.npz), or its end is cut off");
    --end;
  }
  uint64_t disk = field(archive, end + 4, 2), directoryDisk = field(archive, end + 6, 2);
  count = field(archive, end + 10, 2);
  bytes = field(archive, end + 12, 4);
  offset = field(archive, end + 16, 4);
  uint64_t limit = end;
  if (end >= locatorBytes && field(archive, end - locatorBytes, 4) == locatorSignature) {
    uint64_t at = field(archive, end - locatorBytes + 8, 8);
    if (at > end - locatorBytes || end - locatorBytes - at < end64Bytes || field(archive, at, 4) != end64Signature)
      return wrong("its zip64 end record is not where it should be");
    disk = field(archive, at + 16, 4);
    directoryDisk = field(archive, at + 20, 4);
    count = field(archive, at + 32, 8);
    bytes = field(archive, at + 40, 8);
    offset = field(archive, at + 48, 8);
    limit = at;
  }
  if (disk != 0 || directoryDisk != 0)
    return wrong("is one part of an archive of several parts");
  if (offset > limit || bytes > limit - offset)
    return wrong("its directory is outside the file");
  return Status::success();
}

Status ZipReader::readMember(uint64_t &at, uint64_t end) {
  if (end - at < memberBytes || field(archive, at, 4) != memberSignature)
    return wrong("its directory is broken");
  uint64_t flags = field(archive, at + 8, 2), method = field(archive, at + 10, 2);
  uint64_t nameBytes = field(archive, at + 28, 2), extraBytes = field(archive, at + 30, 2);
  uint64_t commentBytes = field(archive, at + 32, 2);
  ZipMember member;
  member.checksum = uint32_t(field(archive, at + 16, 4));
  member.packedBytes = field(archive, at + 20, 4);
  member.bytes = field(archive, at + 24, 4);
  member.headerOffset = field(archive, at + 42, 4);
  if (end - at - memberBytes < nameBytes + extraBytes + commentBytes)
    return wrong("its directory is broken");
  member.name = std::string(archive.substr(at + memberBytes, nameBytes));

  // Zip64 sizes are in extra field 1, only those that are all ones above, in this order.
  uint64_t extra = at + memberBytes + nameBytes, extraEnd = extra + extraBytes;
  while (extraEnd - extra >= 4) {
    uint64_t id = field(archive, extra, 2), size = field(archive, extra + 2, 2), next = extra + 4;
    if (size > extraEnd - next)
      return wrong("'" + member.name + "': its extra fields are broken");
    extra = next + size;
    if (id != 1)
      continue;
    for (uint64_t *value : {&member.bytes, &member.packedBytes, &member.headerOffset}) {
      if (*value != 0xffffffff)
        continue;
      if (extra - next < 8)
        return wrong("'" + member.name + "': its zip64 field is too short");
      *value = field(archive, next, 8);
      next += 8;
    }
  }
  at += memberBytes + nameBytes + extraBytes + commentBytes;

  if (flags & 1)
    return wrong("'" + member.name + "' is encrypted");
  if (method != 0 && method != 8)
    return wrong("'" + member.name + "' is packed by method " + std::to_string(method) +
                 "; use numpy.savez or savez_compressed");
  member.deflated = method == 8;
  list.push_back(std::move(member));
  return Status::success();
}

Status ZipReader::readDirectory() {
  uint64_t offset, bytes, count;
  HPC_RETURN_IF_ERROR(findDirectory(offset, bytes, count));
  uint64_t end = offset + bytes;
  list.reserve(std::min(count, bytes / memberBytes));
  for (uint64_t i = 0; i < count; ++i)
    HPC_RETURN_IF_ERROR(readMember(offset, end));
  if (offset != end)
    return wrong("its directory has more bytes than members");
  return checkOverlaps();
}

/// Members that share their bytes make an archive of any size out of a small file.
Status ZipReader::checkOverlaps() const {
  std::vector<const ZipMember *> inOrder;
  inOrder.reserve(list.size());
  for (const ZipMember &member : list)
    inOrder.push_back(&member);
  std::sort(inOrder.begin(), inOrder.end(),
            [](const ZipMember *a, const ZipMember *b) { return a->headerOffset < b->headerOffset; });
  for (size_t i = 1; i < inOrder.size(); ++i) {
    const ZipMember &before = *inOrder[i - 1], &next = *inOrder[i];
    if (next.headerOffset - before.headerOffset < localBytes || next.headerOffset - before.headerOffset - localBytes < before.packedBytes)
      return wrong("'" + before.name + "' and '" + next.name + "' overlap in the file");
  }
  return Status::success();
}

Expected<ZipReader> ZipReader::open(std::string_view archive, const std::string &name) {
  ZipReader reader;
  reader.archive = archive;
  reader.name = name;
  HPC_RETURN_IF_ERROR(reader.readDirectory());
  return reader;
}

Expected<std::string_view> ZipReader::read(const ZipMember &member, std::string &storage) const {
  auto broken = [&](const std::string &what) { return wrong("'" + member.name + "' " + what); };
  uint64_t at = member.headerOffset;
  if (at > archive.size() || archive.size() - at < localBytes || field(archive, at, 4) != localSignature)
    return broken("is not where the directory says");
  uint64_t skip = localBytes + field(archive, at + 26, 2) + field(archive, at + 28, 2);
  if (archive.size() - at < skip || archive.size() - at - skip < member.packedBytes)
    return broken("is cut off");
  std::string_view packed = archive.substr(at + skip, member.packedBytes), content = packed;
  if (member.deflated) {
    constexpr uint64_t littleBytes = 64 << 20;
    bool isPossible = member.bytes / maxDeflateRatio <= member.packedBytes;
    if (int64_t free = isPossible && member.bytes > littleBytes ? availableMemory() : INT64_MAX; member.bytes > uint64_t(free))
      return broken("takes " + std::to_string(member.bytes) + " bytes when it is inflated, and this machine has " +
                    std::to_string(free) + " free");
    if (!isPossible || !inflateRaw(packed, member.bytes, storage))
      return broken("cannot be inflated: its data is damaged or not of the size that is stated");
    content = storage;
  } else if (member.bytes != member.packedBytes) {
    return broken("is stored with two different sizes");
  }
  if (crc(content) != member.checksum)
    return broken("has a wrong checksum: the file is damaged");
  return content;
}

} // namespace hpc
