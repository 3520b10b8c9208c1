// Ranges are wide enough for a machine of any decade and narrow enough that a number in the wrong unit (milli, kilo, bits) is seen, by itself
// or beside another.
#include "runtime/base/ByteSize.h"
#include "runtime/base/NumberText.h"
#include "runtime/cost/MachineFile.h"

#include <algorithm>

namespace hpc::cost {

namespace {

Status wrong(const std::string &field, const std::string &is, const std::string &must) {
  return Status::error(ErrorKind::Usage, field + " is " + is + "; it must be " + must);
}

/// Real numbers with their unit. A NaN is in no range.
Status within(const std::string &field, double value, double least, double most, const char *unit) {
  if (value >= least && value <= most)
    return Status::success();
  return wrong(field, numberText(value), "from " + numberText(least) + " to " + numberText(most) + (*unit ? std::string(" ") + unit : ""));
}

Status wholeWithin(const std::string &field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most)
    return Status::success();
  return wrong(field, std::to_string(value), "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

/// 0 stands for a field that is not there.
Status optionally(bool isThere, Status status) { return isThere ? status : Status::success(); }

/// Two numbers that fit no machine together; one of them is in another unit.
Status ratioWithin(const std::string &field, double value, const std::string &other, double beside, double least, double most) {
  if (value >= least * beside && value <= most * beside)
    return Status::success();
  return wrong(field, numberText(value), "from " + numberText(least) + " to " + numberText(most) + " times " + other + ", which is " +
                                             numberText(beside) + "; one of them has another unit");
}

constexpr double operationsASecond[] = {1e8, 1e18}, bytesASecond[] = {1e8, 1e14}, bytesSentASecond[] = {1e5, 1e14};
constexpr double longestStep = 2e-3; ///< seconds
constexpr int64_t mostRanks = int64_t(1) << 30, leastMemory = int64_t(1) << 20, mostMemory = int64_t(1) << 46;

Status checkMemory(const std::string &field, int64_t bytes) {
  if (bytes >= leastMemory && bytes <= mostMemory)
    return Status::success();
  return wrong(field, std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"), "from 1MiB to 64TiB, or \"unlimited\"");
}

Status checkDevice(const Machine &machine) {
  HPC_RETURN_IF_ERROR(within("device.bytes_per_s", machine.bytesPerSecond, bytesASecond[0], bytesASecond[1], "bytes a second"));
  HPC_RETURN_IF_ERROR(optionally(machine.launch != 0, within("device.launch_s", machine.launch, 1e-8, 1e-3, "seconds, or 0")));
  if (machine.elementsPerSecond != 0) {
    HPC_RETURN_IF_ERROR(within("device.elements_per_s", machine.elementsPerSecond, operationsASecond[0] / 100, operationsASecond[1], "operations a second"));
    HPC_RETURN_IF_ERROR(ratioWithin("device.elements_per_s", machine.elementsPerSecond, "device.bytes_per_s", machine.bytesPerSecond, 0.05, 500));
  }
  if (machine.cacheBytes != 0) {
    HPC_RETURN_IF_ERROR(wholeWithin("device.cache.bytes", machine.cacheBytes, int64_t(1) << 12, int64_t(1) << 32));
    HPC_RETURN_IF_ERROR(within("device.cache.bytes_per_s", machine.cacheBytesPerSecond, bytesASecond[0], bytesASecond[1], "bytes a second"));
    HPC_RETURN_IF_ERROR(ratioWithin("device.cache.bytes_per_s", machine.cacheBytesPerSecond, "device.bytes_per_s", machine.bytesPerSecond, 1, 100));
  }
  if (machine.products.empty() || machine.products.front().type != DType::F32)
    return Status::error(ErrorKind::Usage, "device.flops has no f32, which products of every type that is not there are taken for; add it");
  for (const ProductSpeed &speed : machine.products) {
    const std::string type = name(speed.type);
    HPC_RETURN_IF_ERROR(within("device.flops." + type, speed.flops, operationsASecond[0], operationsASecond[1], "operations a second"));
    HPC_RETURN_IF_ERROR(ratioWithin("device.flops." + type, speed.flops, "device.bytes_per_s", machine.bytesPerSecond, 0.1, 5000));
    const double least = speed.type == DType::F64 ? 1.0 / 256 : 1.0 / 32;
    HPC_RETURN_IF_ERROR(ratioWithin("device.flops." + type, speed.flops, "device.flops.f32", machine.flops(), least, 128));
    int64_t before = 0;
    for (const Efficiency &point : speed.efficiency) {
      const std::string field = "device.efficiency." + type + "." + std::to_string(point.least);
      if (point.least <= before || point.least > (int64_t(1) << 30))
        return Status::error(ErrorKind::Usage, field + " has a size outside of 1 to " + std::to_string(int64_t(1) << 30) + ", or one that is there twice");
      HPC_RETURN_IF_ERROR(within(field, point.share, 1e-3, 1, "of the peak"));
      before = point.least;
    }
  }
  return Status::success();
}

Status checkProtocol(const std::string &field, const Protocol &protocol, bool insideHost) {
  HPC_RETURN_IF_ERROR(within(field + ".latency_s", protocol.latency, insideHost ? 2e-8 : 2e-7, longestStep, "seconds"));
  HPC_RETURN_IF_ERROR(optionally(protocol.start != 0, within(field + ".start_s", protocol.start, 1e-7, longestStep, "seconds, or 0")));
  HPC_RETURN_IF_ERROR(optionally(protocol.treeLatency != 0, ratioWithin(field + ".tree_latency_s", protocol.treeLatency, field + ".latency_s", protocol.latency, 0.05, 20)));
  return within(field + ".bytes_per_s", protocol.bytesPerSecond, bytesSentASecond[0], bytesSentASecond[1], "bytes a second");
}

Status checkLinks(const Machine &machine) {
  constexpr size_t mostLinks = 8, mostProtocols = 8;
  if (machine.links.empty() || machine.links.size() > mostLinks)
    return wrong("links", "a list of " + std::to_string(machine.links.size()), "one of 1 to " + std::to_string(mostLinks));
  int64_t inner = 1;
  for (size_t index = 0; index < machine.links.size(); ++index) {
    const Link &link = machine.links[index];
    const std::string field = "links[" + std::to_string(index) + "]";
    const bool isLast = index + 1 == machine.links.size();
    if (isLast != (link.ranks == 0))
      return wrong(field + ".ranks", link.ranks ? std::to_string(link.ranks) : "\"all\"", isLast ? "\"all\": the last link joins all ranks" : "a number: the last link alone joins all");
    if (!isLast) {
      HPC_RETURN_IF_ERROR(wholeWithin(field + ".ranks", link.ranks, 2, mostRanks));
      if (link.ranks <= inner || link.ranks % inner != 0)
        return wrong(field + ".ranks", std::to_string(link.ranks), "a multiple of the " + std::to_string(inner) + " of the link before it: links go from the innermost to the outermost");
      if (machine.ranksPerHost && link.ranks % machine.ranksPerHost && machine.ranksPerHost % link.ranks)
        return wrong(field + ".ranks", std::to_string(link.ranks), "a multiple or a divisor of ranks_per_host, which is " + std::to_string(machine.ranksPerHost));
      inner = link.ranks;
    }
    if (link.others.size() > mostProtocols || link.others.size() != machine.links.front().others.size())
      return wrong(field + ".other_protocols", "a list of " + std::to_string(link.others.size()),
                   "as long as that of links[0], and no longer than " + std::to_string(mostProtocols) + ": those of one place are used together");
    const bool insideHost = machine.ranksPerHost != 1 && index == 0;
    HPC_RETURN_IF_ERROR(checkProtocol(field, link.protocol(0), insideHost));
    HPC_RETURN_IF_ERROR(ratioWithin(field + ".bytes_per_s", link.bytesPerSecond, "device.bytes_per_s", machine.bytesPerSecond, insideHost ? 1e-3 : 1e-6, 10));
    for (size_t other = 0; other < link.others.size(); ++other) {
      const std::string place = field + ".other_protocols[" + std::to_string(other) + "]";
      HPC_RETURN_IF_ERROR(checkProtocol(place, link.others[other], insideHost));
      HPC_RETURN_IF_ERROR(ratioWithin(place + ".bytes_per_s", link.others[other].bytesPerSecond, field + ".bytes_per_s", link.bytesPerSecond, 0.01, 1));
      if (link.others[other].latency >= link.latency)
        return wrong(place + ".latency_s", numberText(link.others[other].latency), "below " + field + ".latency_s, which is " + numberText(link.latency) +
                                                                                       ": the link's own numbers are those of its protocol with the most bytes a second");
    }
  }
  return Status::success();
}

Status checkDifferences(const Machine &machine) {
  int64_t end = 0;
  for (size_t index = 0; index < machine.differences.size(); ++index) {
    const HostDifference &each = machine.differences[index];
    const std::string field = "differences[" + std::to_string(index) + "]";
    HPC_RETURN_IF_ERROR(wholeWithin(field + ".first_rank", each.firstRank, end, mostRanks));
    if (machine.ranks() && each.firstRank >= machine.ranks())
      return wrong(field + ".first_rank", std::to_string(each.firstRank), "below hosts * ranks_per_host, which is " + std::to_string(machine.ranks()));
    HPC_RETURN_IF_ERROR(wholeWithin(field + ".ranks", each.ranks, 1, machine.ranks() ? machine.ranks() - each.firstRank : mostRanks));
    HPC_RETURN_IF_ERROR(within(field + ".speed", each.speed, 0.01, 100, "times that of the others"));
    HPC_RETURN_IF_ERROR(optionally(each.memory != 0, checkMemory(field + ".memory", each.memory)));
    if (each.speed == 1 && each.memory == 0)
      return Status::error(ErrorKind::Usage, field + " differs in nothing; give it a speed or a memory, or take it out");
    end = each.firstRank + each.ranks;
  }
  return Status::success();
}

} // namespace

Status checkMachine(const Machine &machine) {
  constexpr size_t longestName = 200;
  if (machine.name.empty() || machine.name.size() > longestName ||
      std::any_of(machine.name.begin(), machine.name.end(), [](char letter) { return uint8_t(letter) < 0x20 || letter == 0x7f; }))
    return wrong("name", machine.name.empty() ? "empty" : "no name", "1 to " + std::to_string(longestName) + " bytes of text in one line");
  HPC_RETURN_IF_ERROR(optionally(machine.ranksPerHost != 0, wholeWithin("ranks_per_host", machine.ranksPerHost, 1, 65536)));
  HPC_RETURN_IF_ERROR(optionally(machine.hosts != 0, wholeWithin("hosts", machine.hosts, 1, machine.ranksPerHost ? mostRanks / machine.ranksPerHost : 1)));
  HPC_RETURN_IF_ERROR(optionally(machine.cores != 0, wholeWithin("cores", machine.cores, 1, 65536)));
  HPC_RETURN_IF_ERROR(optionally(machine.wakeSeconds != 0, within("wake_s", machine.wakeSeconds, 1e-8, 0.01, "seconds")));
  if (machine.wakeSeconds != 0 && machine.cores == 0)
    return Status::error(ErrorKind::Usage, "wake_s is of ranks that share processors, and cores is missing; add it, or leave wake_s out");
  HPC_RETURN_IF_ERROR(optionally(machine.memory != 0, checkMemory("memory", machine.memory)));
  HPC_RETURN_IF_ERROR(checkDevice(machine));
  HPC_RETURN_IF_ERROR(checkLinks(machine));
  HPC_RETURN_IF_ERROR(within("overlap_slowdown", machine.overlapSlowdown, 1, 10, ""));
  return checkDifferences(machine);
}

} // namespace hpc::cost
