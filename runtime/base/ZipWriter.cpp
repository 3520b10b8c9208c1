// Writes stored members with fixed dates, and zip64 records only for fields beyond 32 bits.
#include "runtime/base/Zip.h"

#include <zlib.h>

namespace hpc {

namespace {

constexpr uint64_t max32 = 0xffffffff, max16 = 0xffff;
constexpr uint64_t dateOf1980 = 1 << 5 | 1, utf8Names = 1 << 11;

void put(std::string &to, uint64_t value, int width) {
  for (int i = 0; i < width; ++i)
    to.push_back(char(value >> (8 * i) & 255));
}

bool isLarge(const ZipMember &member) { return member.bytes >= max32 || member.headerOffset >= max32; }
uint64_t capped(uint64_t value, bool large) { return large ? max32 : value; }

/// The fields that local header and directory entry share: from "version needed" to "file name length".
void putCommon(std::string &to, const ZipMember &member, bool large) {
  put(to, large ? 45 : 20, 2);
  put(to, utf8Names, 2);
  put(to, 0, 2); // stored
  put(to, 0, 2); // time
  put(to, dateOf1980, 2);
  put(to, member.checksum, 4);
  put(to, capped(member.bytes, large), 4);
  put(to, capped(member.bytes, large), 4);
  put(to, member.name.size(), 2);
}

std::string localHeader(const ZipMember &member) {
  bool large = member.bytes >= max32;
  std::string header;
  put(header, 0x04034b50, 4);
  putCommon(header, member, large);
  put(header, large ? 20 : 0, 2);
  header += member.name;
  if (large) {
    put(header, 1, 2);
    put(header, 16, 2);
    put(header, member.bytes, 8);
    put(header, member.bytes, 8);
  }
  return header;
}

std::string directoryEntry(const ZipMember &member) {
  bool large = isLarge(member);
  std::string entry;
  put(entry, 0x02014b50, 4);
  put(entry, 3 << 8 | 45, 2); // made by: Unix
  putCommon(entry, member, large);
  put(entry, large ? 28 : 0, 2);
  put(entry, 0, 2); // comment
  put(entry, 0, 2); // disk
  put(entry, 0, 2); // internal attributes
  put(entry, 0100644u << 16, 4);
  put(entry, capped(member.headerOffset, large), 4);
  entry += member.name;
  if (large) {
    put(entry, 1, 2);
    put(entry, 24, 2);
    put(entry, member.bytes, 8);
    put(entry, member.bytes, 8);
    put(entry, member.headerOffset, 8);
  }
  return entry;
}

std::string endRecords(uint64_t count, uint64_t offset, uint64_t bytes) {
  bool large = count >= max16 || offset >= max32 || bytes >= max32;
  std::string end;
  if (large) {
    put(end, 0x06064b50, 4);
    put(end, 44, 8);
    put(end, 3 << 8 | 45, 2);
    put(end, 45, 2);
    put(end, 0, 4);
    put(end, 0, 4);
    put(end, count, 8);
    put(end, count, 8);
    put(end, bytes, 8);
    put(end, offset, 8);
    put(end, 0x07064b50, 4);
    put(end, 0, 4);
    put(end, offset + bytes, 8);
    put(end, 1, 4);
  }
  put(end, 0x06054b50, 4);
  put(end, 0, 4);
  put(end, large ? max16 : count, 2);
  put(end, large ? max16 : count, 2);
  put(end, capped(bytes, large), 4);
  put(end, capped(offset, large), 4);
  put(end, 0, 2);
  return end;
}

} // namespace

Status ZipWriter::put(std::string_view bytes) {
  written += bytes.size();
  return file.write(bytes);
}

Status ZipWriter::add(const std::string &name, std::string_view head, std::string_view body) {
  if (name.size() > 0xff00)
    return Status::error(ErrorKind::Io, "a name of " + std::to_string(name.size()) + " bytes does not fit into a .npz");
  ZipMember member;
  member.name = name;
  member.bytes = member.packedBytes = head.size() + body.size();
  member.headerOffset = written;
  uLong sum = ::crc32_z(0, reinterpret_cast<const Bytef *>(head.data()), head.size());
  if (!body.empty()) // zlib would return the initial value for a null pointer
    sum = ::crc32_z(sum, reinterpret_cast<const Bytef *>(body.data()), body.size());
  member.checksum = uint32_t(sum);
  HPC_RETURN_IF_ERROR(put(localHeader(member)));
  HPC_RETURN_IF_ERROR(put(head));
  HPC_RETURN_IF_ERROR(put(body));
  list.push_back(std::move(member));
  return Status::success();
}

Status ZipWriter::finish() {
  uint64_t offset = written;
  for (const ZipMember &member : list)
    HPC_RETURN_IF_ERROR(put(directoryEntry(member)));
  return put(endRecords(list.size(), offset, written - offset));
}

} // namespace hpc
