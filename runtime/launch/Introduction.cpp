// All processes are compared with process 0, in their order, so that all report the same error.
#include "runtime/launch/Introduction.h"

#include "runtime/base/Cores.h"
#include "runtime/launch/Socket.h"

#include <cinttypes>
#include <cstdio>
#include <unistd.h>

namespace hpc::launch {

std::string Introduction::text() const {
  std::string content = process < 0 ? "a process without a number (" : "process " + std::to_string(process) + " (";
  if (ranks == 1)
    content += "rank " + std::to_string(firstRank) + ", ";
  else if (ranks > 1)
    content += "ranks " + std::to_string(firstRank) + " to " + std::to_string(firstRank + ranks - 1) + ", ";
  return content + "host " + host + ", pid " + std::to_string(pid) + ")";
}

void Introduction::write(WireWriter &writer) const {
  for (int64_t value : {process, processes, firstRank, ranks, pid})
    writer.number(uint64_t(value));
  for (const std::string *value : {&host, &machine, &cores, &engine})
    writer.text(*value);
  writer.number(fingerprints.size(), 1);
  for (const Fingerprint &one : fingerprints) {
    writer.text(one.what);
    writer.number(one.hash);
    writer.text(one.remedy);
  }
  writer.status(status);
}

Introduction Introduction::read(WireReader &reader) {
  Introduction one;
  for (int64_t *value : {&one.process, &one.processes, &one.firstRank, &one.ranks, &one.pid})
    *value = int64_t(reader.number());
  for (std::string *value : {&one.host, &one.machine, &one.cores, &one.engine})
    *value = reader.text();
  for (uint64_t left = reader.number(1); left > 0 && reader.ok(); --left) {
    Fingerprint &entry = one.fingerprints.emplace_back();
    entry.what = reader.text();
    entry.hash = reader.number();
    entry.remedy = reader.text();
  }
  one.status = reader.status();
  return one;
}

/// The kernel's random number of this boot: host names may repeat.
static std::string bootId() {
  std::string id;
  if (std::FILE *file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    char text[64];
    if (std::fgets(text, sizeof(text), file))
      id = text;
    std::fclose(file);
  }
  return id;
}

std::string networkName() {
  char space[64] = "";
  [[maybe_unused]] ssize_t size = ::readlink("/proc/self/ns/net", space, sizeof(space) - 1);
  return bootId() + space;
}

Introduction introduceSelf(int64_t process, int64_t processes) {
  Introduction self;
  self.process = process;
  self.processes = processes;
  self.pid = ::getpid();
  self.host = hostName();
  self.machine = self.host + "/" + bootId();
  self.cores = coreSet();
  return self;
}

Status compare(const std::vector<Introduction> &all) {
  for (const Introduction &one : all)
    if (!one.status.ok())
      return one.status.at(one.text());
  auto hex = [](uint64_t hash) {
    char text[20];
    std::snprintf(text, sizeof(text), "%016" PRIx64, hash);
    return std::string(text);
  };
  const Introduction &first = all[0];
  for (const Introduction &one : all)
    for (size_t i = 0; i < first.fingerprints.size(); ++i) {
      const Fingerprint &wanted = first.fingerprints[i];
      if (i >= one.fingerprints.size() || one.fingerprints[i].what != wanted.what)
        return Status::error(ErrorKind::Usage, one.text() + " runs another version of this program than " +
                                                   first.text() + "; install the same on all hosts");
      if (one.fingerprints[i].hash != wanted.hash)
        return Status::error(ErrorKind::Usage, one.text() + " has other " + wanted.what + " than " + first.text() +
                                                   " (hash " + hex(one.fingerprints[i].hash) + ", there " +
                                                   hex(wanted.hash) + "); " + wanted.remedy);
    }
  return Status::success();
}

} // namespace hpc::launch
