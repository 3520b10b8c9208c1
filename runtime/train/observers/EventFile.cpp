// Numbers of fields are those of tensorflow's event.proto and summary.proto.
#include "runtime/train/observers/EventFile.h"

#include "runtime/base/WireFormat.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <isa-l/crc.h>
#include <unistd.h>

namespace hpc {

static const std::string beginOfName = "events.out.tfevents.";

namespace {
enum Event : uint64_t { WallTime = 1, Step = 2, FileVersion = 3, Summary = 5, SessionLog = 7 };
enum SummaryField : uint64_t { Value = 1 };
enum ValueField : uint64_t { Tag = 1, SimpleValue = 2 };
enum SessionLogField : uint64_t { State = 1 };
constexpr uint64_t sessionStarts = 1;
constexpr uint64_t fourBytesType = 5;

/// A message of protobuf, field after field.
struct Message {
  std::string bytes;

  void key(uint64_t number, uint64_t type) { wire::appendVarint(number << 3 | type, bytes); }
  template <typename Number> void fixed(uint64_t number, uint64_t type, Number value) {
    key(number, type);
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  void whole(uint64_t number, uint64_t value) {
    key(number, wire::varintType);
    wire::appendVarint(value, bytes);
  }
  void text(uint64_t number, const std::string &value) {
    key(number, wire::bytesType);
    wire::appendVarint(value.size(), bytes);
    bytes += value;
  }
};
} // namespace

static Message eventAt(double time) {
  Message event;
  event.fixed(WallTime, wire::fixedType, time);
  return event;
}

uint32_t maskedChecksum(const std::string &bytes) {
  std::string copy = bytes; // the library takes no constant
  const uint32_t sum = ~crc32_iscsi(reinterpret_cast<unsigned char *>(copy.data()), int(copy.size()), ~0u);
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
}

template <typename Number> static std::string bytesOf(Number number) {
  return std::string(reinterpret_cast<const char *>(&number), sizeof number);
}

std::string recordOf(const std::string &bytes) {
  const std::string length = bytesOf(uint64_t(bytes.size()));
  return length + bytesOf(maskedChecksum(length)) + bytes + bytesOf(maskedChecksum(bytes));
}

/// The seconds in the name of a new file: now, or one more than the newest file of the folder has.
static int64_t secondsOfName(const std::string &folder, double time) {
  int64_t seconds = int64_t(time);
  std::error_code failed;
  for (const std::filesystem::directory_entry &entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    int64_t other = 0;
    if (name.compare(0, beginOfName.size(), beginOfName) == 0 &&
        std::from_chars(name.data() + beginOfName.size(), name.data() + name.size(), other).ec == std::errc())
      seconds = std::max(seconds, other + 1);
  }
  return seconds;
}

Expected<EventFile> EventFile::open(const std::string &folder, double time, int64_t first) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    return Status::error(ErrorKind::Io, "'" + folder + "': the folder cannot be made: " + failed.message());
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const std::string name = beginOfName + std::to_string(secondsOfName(folder, time)) + "." + host + "." + std::to_string(::getpid());
  Expected<LineFile> opened = LineFile::open(folder + "/" + name, /*append=*/false);
  HPC_RETURN_IF_ERROR(opened.status());
  EventFile file(std::move(*opened));
  Message version = eventAt(time), begin = eventAt(time), log;
  version.text(FileVersion, "brain.Event:2");
  begin.whole(Step, uint64_t(first));
  log.whole(State, sessionStarts);
  begin.text(SessionLog, log.bytes);
  HPC_RETURN_IF_ERROR(file.file.append(recordOf(version.bytes) + recordOf(begin.bytes)));
  return file;
}

Status EventFile::add(double time, int64_t step, const Scalars &scalars) {
  Message event = eventAt(time), summary;
  event.whole(Step, uint64_t(step));
  for (const auto &[name, value] : scalars) {
    Message one;
    one.text(Tag, name);
    one.fixed(SimpleValue, fourBytesType, float(value));
    summary.text(Value, one.bytes);
  }
  event.text(Summary, summary.bytes);
  return file.append(recordOf(event.bytes));
}

} // namespace hpc
