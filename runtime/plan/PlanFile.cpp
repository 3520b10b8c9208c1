// The envelope of a plan file: format tag, version, hash, then the plan itself. The version is judged before the body
// is parsed, so that a newer plan is refused for being newer and not for what an old reader makes of it.
#include "runtime/plan/PlanFile.h"

#include "runtime/base/File.h"
#include "runtime/base/FileKind.h"
#include "runtime/base/Footprint.h"
#include "runtime/base/Hash.h"
#include "runtime/base/WireFormat.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanBody.h"
#include "runtime/plan/PlanStructure.h"

#include <cstring>

namespace hpc::plan {

namespace {

constexpr std::string_view formatTag = "hpc-plan";
/// Protocol Buffers count bytes of a message in an int.
constexpr size_t maxFileBytes = (size_t(1) << 31) - (1 << 16);

template <typename... Parts> Status fault(const std::string &name, const Parts &...parts) {
  std::string message = name + ": ";
  ((message += parts), ...);
  return Status::error(ErrorKind::Plan, message);
}

std::string versionText(int64_t major, int64_t minor) { return std::to_string(major) + "." + std::to_string(minor); }

/// A PlanFile whose texts are where they were.
struct Envelope {
  std::string_view format, plan;
  uint32_t major = 0, minor = 0;
  uint64_t hash = 0;
};

/// As protobuf would read it, without the copy of a plan that may fill the memory. False where it is malformed.
bool readEnvelope(std::string_view bytes, Envelope &envelope) {
  wire::Fields fields(reinterpret_cast<const std::byte *>(bytes.data()), 0, int64_t(bytes.size()));
  for (wire::Field field; fields.next(field);) {
    std::string_view content = field.type == 0 ? "" : bytes.substr(size_t(field.begin), size_t(field.end - field.begin));
    if (field.number == 0)
      return false;
    if (field.number == 1 && field.type == 2)
      envelope.format = content;
    else if (field.number == 2 && field.type == 0)
      envelope.major = uint32_t(field.value);
    else if (field.number == 3 && field.type == 0)
      envelope.minor = uint32_t(field.value);
    else if (field.number == 4 && field.type == 1)
      std::memcpy(&envelope.hash, content.data(), sizeof(envelope.hash));
    else if (field.number == 5 && field.type == 2)
      envelope.plan = content;
  }
  return fields.atEnd();
}

/// The plan's own message, within `bytes`.
Expected<std::string_view> bodyOf(std::string_view bytes, const std::string &name) {
  std::string head = std::string("\x0a\x08") + std::string(formatTag);
  if (bytes.substr(0, head.size()) != head)
    return fault(name, bytes.empty() ? std::string("is empty, not a plan")
                                     : "is not a plan: it does not begin with the tag 'hpc-plan'" +
                                           whatItIs(fileKindOf(bytes)) + "; hpc-opt makes plans");
  if (bytes.size() > maxFileBytes)
    return fault(name, "has ", std::to_string(bytes.size()), " bytes, a plan has at most ",
                 std::to_string(maxFileBytes));
  Envelope file;
  if (!readEnvelope(bytes, file))
    return fault(name, "is truncated or corrupt: its envelope cannot be parsed; write the plan again");
  if (file.format != formatTag)
    return fault(name, "is corrupt: it has two format tags");
  if (file.major == 0)
    return fault(name, "is truncated or corrupt: it says no version; write the plan again");
  const std::string read = ", this program reads versions " + versionText(leastVersion.major, leastVersion.minor) + " to " +
                           std::to_string(newestVersion.major) + ".x; compile the model again";
  if (file.major > uint32_t(newestVersion.major))
    return fault(name, "is a plan of version ", versionText(file.major, file.minor), read, " with the hpc-opt that belongs to it");
  if (std::pair(file.major, file.minor) < std::pair(uint32_t(leastVersion.major), uint32_t(leastVersion.minor)))
    return fault(name, "is a plan of version ", versionText(file.major, file.minor), read);
  if (file.hash != hashBytes(file.plan.data(), int64_t(file.plan.size())))
    return fault(name, "is truncated or corrupt: the hash of its ", std::to_string(file.plan.size()),
                 " bytes of plan differs from the recorded one; write the plan again");
  return file.plan;
}

} // namespace

Expected<std::string> openEnvelope(std::string_view bytes, const std::string &name) {
  Expected<std::string_view> body = bodyOf(bytes, name);
  return body.ok() ? Expected<std::string>(std::string(*body)) : body.status();
}

std::string sealEnvelope(const std::string &body, Version version) {
  auto field = [](uint64_t number, uint64_t type) { return wire::varint(number << 3 | type); };
  const uint64_t hash = hashBytes(body.data(), int64_t(body.size()));
  return field(1, wire::bytesType) + wire::varint(formatTag.size()) + std::string(formatTag) + //
         field(2, wire::varintType) + wire::varint(uint64_t(version.major)) +                        //
         field(3, wire::varintType) + wire::varint(uint64_t(version.minor)) +                        //
         field(4, wire::fixedType) + std::string(reinterpret_cast<const char *>(&hash), sizeof(hash)) +
         field(5, wire::bytesType) + wire::varint(body.size()) + body;
}

Expected<Plan> parsePlan(std::string_view bytes, const std::string &name) {
  Expected<std::string_view> body = bodyOf(bytes, name);
  if (!body.ok())
    return body.status();
  Expected<Plan> plan = decodePlan(*body, allowedFootprint(int64_t(body->size())));
  if (!plan.ok())
    return plan.status().at(name);
  HPC_RETURN_IF_ERROR(checkStructure(*plan).at(name));
  HPC_RETURN_IF_ERROR(checkVersion(*plan).at(name));
  HPC_RETURN_IF_ERROR(checkRanges(*plan).at(name));
  return plan;
}

Expected<Plan> readPlan(const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  return parsePlan(file->text(), path);
}

std::string serializePlan(const Plan &plan) { return sealEnvelope(encodePlan(plan), versionOf(plan)); }

Status writePlan(const Plan &plan, const std::string &path) {
  const std::string body = encodePlan(plan);
  if (body.size() > maxFileBytes - 1024)
    return Status::error(ErrorKind::Capacity, path + ": the plan has " + std::to_string(body.size()) +
                                                  " bytes, a plan file holds at most " + std::to_string(maxFileBytes) +
                                                  "; keep large constants in a weight file");
  return writeFile(path, sealEnvelope(body, versionOf(plan)));
}

} // namespace hpc::plan
