// Zip members in, arrays out, and back.
#include "runtime/base/Npz.h"

#include "runtime/base/File.h"
#include "runtime/base/Zip.h"

#include <set>

namespace hpc {

Status visitNpz(std::string_view bytes, const std::string &name, const WantedArrays &wanted, const VisitArray &visit) {
  Expected<ZipReader> zip = ZipReader::open(bytes, name);
  if (!zip.ok())
    return zip.status();
  std::set<std::string> seen;
  for (const ZipMember &member : zip->members()) {
    constexpr std::string_view ending = ".npy";
    if (member.name.size() <= ending.size() ||
        member.name.compare(member.name.size() - ending.size(), ending.size(), ending) != 0)
      continue;
    std::string arrayName = member.name.substr(0, member.name.size() - ending.size());
    if (!seen.insert(arrayName).second)
      return Status::error(ErrorKind::Io, "'" + name + "': has two arrays named '" + arrayName + "'");
    std::optional<int64_t> most = wanted ? wanted(arrayName) : INT64_MAX;
    if (!most)
      continue;
    if (member.bytes > uint64_t(*most))
      return Status::error(ErrorKind::Io, "'" + name + "': array '" + arrayName + "' takes " + std::to_string(member.bytes) +
                                              " bytes when it is unpacked, where at most " + std::to_string(*most) + " are expected");
    std::string storage;
    Expected<std::string_view> content = zip->read(member, storage);
    if (!content.ok())
      return content.status();
    Expected<NpyView> array = viewNpy(*content, "'" + name + "': '" + arrayName + "'");
    HPC_RETURN_IF_ERROR(array.status());
    HPC_RETURN_IF_ERROR(visit(arrayName, *array, storage));
  }
  return Status::success();
}

Expected<NamedArrays> parseNpz(std::string_view bytes, const std::string &name, const WantedArrays &wanted) {
  NamedArrays arrays;
  HPC_RETURN_IF_ERROR(visitNpz(bytes, name, wanted, [&](const std::string &key, const NpyView &view, std::string &) {
    arrays.emplace_back(key, toArray(view));
    return Status::success();
  }));
  return arrays;
}

Expected<NamedArrays> readNpz(const std::string &path, const WantedArrays &wanted) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  return parseNpz(file->text(), path, wanted);
}

Status writeNpz(const std::string &path, const NamedArrays &arrays) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file.ok())
    return file.status();
  ZipWriter zip(*file);
  for (const auto &[name, array] : arrays)
    HPC_RETURN_IF_ERROR(zip.add(name + ".npy", npyHeader(array),
                                {reinterpret_cast<const char *>(array.data.data()), array.data.size()}));
  HPC_RETURN_IF_ERROR(zip.finish());
  return file->commit();
}

} // namespace hpc
