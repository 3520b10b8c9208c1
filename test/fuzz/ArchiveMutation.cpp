// Members of a zip archive: their contents and names changed, doubled, exchanged; stored or deflated, with true sizes and checksums.
#include "test/fuzz/Mutation.h"

#include "runtime/base/Zip.h"

#include <algorithm>
#include <vector>
#include <zlib.h>

namespace hpc::fuzz {
namespace {

struct Member {
  std::string name, content;
  bool deflated = false;
};

bool readMembers(const std::string &bytes, std::vector<Member> &members) {
  Expected<ZipReader> zip = ZipReader::open(bytes, "");
  if (!zip.ok())
    return false;
  for (const ZipMember &each : zip->members()) {
    std::string storage;
    Expected<std::string_view> content = zip->read(each, storage);
    if (content.ok() && content->size() < 1 << 16)
      members.push_back({each.name, std::string(*content), each.deflated});
  }
  return !members.empty();
}

std::string number(uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i)
    bytes += i < 8 ? char(value >> (8 * i)) : '\0';
  return bytes;
}

std::string deflated(const std::string &content) {
  z_stream stream = {};
  if (deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return "";
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(content.data()));
  stream.avail_in = uInt(content.size());
  stream.next_out = reinterpret_cast<Bytef *>(packed.data());
  stream.avail_out = uInt(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

std::string archiveOf(const std::vector<Member> &members) {
  std::string bytes, directory;
  for (const Member &member : members) {
    std::string packed = member.deflated ? deflated(member.content) : member.content;
    uint64_t sum = crc32_z(0, reinterpret_cast<const Bytef *>(member.content.data()), member.content.size());
    // Version, flags, method, time, date, checksum, sizes, lengths of name and extra field: in both headers.
    std::string common = number(20, 2) + number(0, 2) + number(member.deflated ? 8 : 0, 2) + number(0, 4) + number(sum, 4) +
                         number(packed.size(), 4) + number(member.content.size(), 4) + number(member.name.size(), 2) + number(0, 2);
    directory += number(0x02014b50, 4) + number(20, 2) + common + number(0, 10) + number(bytes.size(), 4) + member.name;
    bytes += number(0x04034b50, 4) + common + member.name + packed;
  }
  return bytes + directory + number(0x06054b50, 4) + number(0, 4) + number(members.size(), 2) + number(members.size(), 2) +
         number(directory.size(), 4) + number(bytes.size(), 4) + number(0, 2);
}

/// A version 1 .npy file: six bytes, two of version, two of the header's length, the header. Its tokens are near enough to those of JSON.
void mutateNpyHeader(std::string &content, Mutation &mutation) {
  if (content.size() < 10)
    return;
  size_t length = uint8_t(content[8]) | size_t(uint8_t(content[9])) << 8;
  std::string header = content.substr(10, length);
  if (mutateJson(header, mutation))
    content = content.substr(0, 8) + number(header.size(), 2) + header + content.substr(std::min(10 + length, content.size()));
}

void change(std::vector<Member> &members, const std::vector<Member> &others, Mutation &mutation) {
  size_t at = mutation.random.below(members.size());
  Member &member = members[at];
  const std::vector<Member> &source = others.empty() ? members : others;
  switch (mutation.random.below(8)) {
  case 0:
    mutation.changeBytes(member.name);
    break;
  case 1:
    member.deflated = !member.deflated;
    break;
  case 2:
    members.push_back(source[mutation.random.below(source.size())]);
    break;
  case 3:
    member.content = std::string(source[mutation.random.below(source.size())].content);
    break;
  case 4:
    mutateNpyHeader(member.content, mutation);
    break;
  default:
    mutation.changeBytes(member.content);
  }
}

} // namespace

bool mutateArchive(std::string &bytes, Mutation &mutation) {
  std::vector<Member> members, others;
  if (!readMembers(bytes, members))
    return false;
  readMembers(mutation.other, others);
  for (uint64_t count = 1 + mutation.random.below(3); count > 0; --count)
    change(members, others, mutation);
  bytes = archiveOf(members);
  return true;
}

} // namespace hpc::fuzz
