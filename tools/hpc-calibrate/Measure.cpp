// The best of some rounds counts: other work can only make one slower. Operands of products lie in the caches: what memory adds is measured
// apart.
#include "tools/hpc-calibrate/Measure.h"

#include "runtime/backend/host/HostBackend.h"
#include "runtime/backend/host/MachineSpeed.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanCheck.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <map>
#include <thread>
#include <unistd.h>
#include <utility>

namespace hpc {

namespace {

using plan::Collective;

constexpr DType types[] = {DType::F32, DType::BF16, DType::F16};
/// What is measured. A brief measurement of a card is rough: small products do not fill it.
struct Sizes {
  int64_t wide, deep;               ///< the two other extents of products that have one small extent; the shorter one grows with it
  std::vector<int64_t> leastExtents;
  int64_t region;                   ///< bytes, more than caches hold, and than any operand has
};
Sizes sizesOf(const MeasureOptions &options) {
  if (options.isBrief)
    return {768, 256, {1, 64}, int64_t(options.isHost ? 64 : 8) << 20};
  if (options.isHost)
    return {768, 256, {1, 4, 8, 16, 32, 64, 128, 256, 512}, int64_t(64) << 20};
  return {8192, 4096, {1, 8, 32, 128, 256, 512, 1024, 2048, 4096}, int64_t(256) << 20};
}
/// Collectives of f32, by the bytes of the whole: latency, and bytes a second.
struct Message {
  plan::CollectiveKind kind;
  int64_t bytes;
};
constexpr Message messages[] = {{plan::CollectiveKind::AllReduce, 4}, {plan::CollectiveKind::AllReduce, int64_t(4) << 20}, {plan::CollectiveKind::AllGather, int64_t(4) << 20}};
constexpr double leastShare = 1e-3, leastLatency = 2e-7, mostLatency = 2e-3; ///< as machine files have them

double wallSeconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double processorSeconds() {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// Bytes of the second cache of a core, which it shares with no other; 0: unknown.
int64_t ownCache() { return std::max<int64_t>(0, ::sysconf(_SC_LEVEL2_CACHE_SIZE)); }

/// A plan whose first program holds the collectives that are measured, and the second a product, so that the backend opens the library of products; nothing of it runs.
plan::Plan planOf(const MeasuredRanks &ranks) {
  plan::Plan plan;
  plan.axes = {{"process", ranks.processes}, {"rank", ranks.ranksOfEach}};
  plan::Stage &stage = plan.stages.emplace_back();
  stage.programs.resize(2);
  stage.programs[1].instructions.push_back({plan::Gemm(), "calibration"});
  plan::Program &program = stage.programs[0];
  for (const plan::Axis &axis : plan.axes)
    for (const Message &message : messages) {
      if (axis.size == 1)
        break;
      Collective collective;
      collective.kind = message.kind;
      collective.axes = {axis.name};
      collective.count = message.bytes / 4 / (message.kind == plan::CollectiveKind::AllGather ? axis.size : 1);
      collective.src = {0, 0};
      collective.dst = {1, 0};
      program.instructions.push_back({collective, "calibration"});
    }
  return plan;
}

/// The measurements of one rank.
struct RankSpeed {
  std::map<std::pair<int, int64_t>, double> flops; ///< by number of the type and least extent, a second
  double bytesPerSecond = 0, cacheBytesPerSecond = 0, elementsPerSecond = 0, launch = 0;
  std::vector<double> collectives; ///< seconds, by instruction
  double wall = 0, processor = 0;  ///< while it computed
};

class RankMeasurement {
public:
  RankMeasurement(Backend &backend, const plan::Plan &plan, const MeasureOptions &options, RankPlace place)
      : backend(backend), plan(plan), options(options), place(place) {}

  Status run(RankSpeed &speed) {
    Expected<std::unique_ptr<Device>> made = backend.createDevice(place, alone);
    HPC_RETURN_IF_ERROR(made.status());
    device = std::move(*made);
    Expected<std::unique_ptr<Communicator>> talks = backend.createCommunicator(place, 0);
    HPC_RETURN_IF_ERROR(talks.status());
    communicator = std::move(*talks);
    for (const plan::Instruction &instruction : plan.stages[0].programs[0].instructions) {
      Expected<int64_t> group = communicator->prepare(std::get<Collective>(instruction.action));
      HPC_RETURN_IF_ERROR(group.status());
      groups.push_back(*group);
    }
    HPC_RETURN_IF_ERROR(allocate());
    HPC_RETURN_IF_ERROR(meet());
    const double wall = wallSeconds(), processor = processorSeconds();
    HPC_RETURN_IF_ERROR(measureProducts(speed));
    HPC_RETURN_IF_ERROR(measureMemory(speed));
    if (options.isHost)
      speed.elementsPerSecond = host::measureElements();
    speed.wall = wallSeconds() - wall;
    speed.processor = processorSeconds() - processor;
    HPC_RETURN_IF_ERROR(meet());
    return measureCollectives(speed);
  }

private:
  /// Numbers between -1 and 1, of every type that is measured.
  Status allocate() {
    // A card copies from memory that the device has allocated.
    Expected<std::byte *> numbers = device->allocate(plan::Space::Host, sizes.region, std::byte(0));
    HPC_RETURN_IF_ERROR(numbers.status());
    for (size_t kind = 0; kind < std::size(types); ++kind) {
      const DType type = types[kind];
      uint32_t state = 1;
      for (int64_t at = 0; at < sizes.region; at += byteSize(type)) {
        state = state * 1664525 + 1013904223;
        const float value = float(int32_t(state)) / 2147483648.0f;
        uint32_t bits;
        std::memcpy(&bits, &value, 4);
        if (type == DType::BF16)
          bits >>= 16;
        else if (type == DType::F16) // exponents near 0, any mantissa
          bits = 0x3000 | (state >> 20 & 0x8bff);
        std::memcpy(*numbers + at, &bits, size_t(byteSize(type)));
      }
      for (std::byte **operand : {&left[kind], &right[kind]}) {
        const int64_t bytes = operand == &left[kind] ? sizes.wide * std::max(sizes.deep, sizes.leastExtents.back()) * byteSize(type) : sizes.region;
        HPC_RETURN_IF_ERROR(reserve(*operand, bytes));
        HPC_RETURN_IF_ERROR(device->copy(*operand, *numbers, bytes));
        HPC_RETURN_IF_ERROR(device->finish());
      }
    }
    return reserve(result, sizes.region);
  }

  Status reserve(std::byte *&memory, int64_t bytes) {
    Expected<std::byte *> made = device->allocate(plan::Space::Device, bytes, std::byte(0));
    if (made.ok())
      memory = *made;
    return made.status();
  }

  /// The least seconds of a call; each gets its number. `rounds` of `calls`.
  template <typename Work> Status best(int rounds, int calls, double &seconds, Work work) {
    seconds = INFINITY;
    for (int round = 0, number = 0; round < rounds; ++round) {
      const double start = options.isHost ? processorSeconds() : wallSeconds();
      for (int call = 0; call < calls; ++call)
        HPC_RETURN_IF_ERROR(work(number++));
      HPC_RETURN_IF_ERROR(device->finish());
      seconds = std::min(seconds, ((options.isHost ? processorSeconds() : wallSeconds()) - start) / calls);
    }
    return Status::success();
  }

  Status measureProduct(int kind, int64_t m, int64_t n, int64_t k, double &flops) {
    const DType type = types[kind];
    plan::Gemm gemm;
    gemm.a.dtype = gemm.b.dtype = type;
    gemm.a.ld = k;
    gemm.b.ld = gemm.c.ld = n;
    gemm.m = m;
    gemm.n = n;
    gemm.k = k;
    gemm.addToC = 0;
    GemmCall call{gemm, m, n, k, false, left[kind], right[kind], result};
    Expected<GemmHandle> handle = device->prepare(call);
    HPC_RETURN_IF_ERROR(handle.status());
    double seconds = 0;
    const double once = 2.0 * double(m) * double(n) * double(k);
    const int rounds = options.isBrief ? 2 : options.isHost ? 100 : 5, calls = options.isHost ? 1 + int(2e6 / once) : options.isBrief ? 1 : 20;
    HPC_RETURN_IF_ERROR(best(rounds, calls, seconds, [&](int) { return device->gemm(*handle, call); }));
    flops = once / seconds;
    return Status::success();
  }

  /// With the small extent as rows (a forward pass of few tokens) and as the contracted one (their gradient).
  Status measureProducts(RankSpeed &speed) {
    for (int kind = 0; kind < int(std::size(types)); ++kind)
      for (int64_t least : sizes.leastExtents) {
        double rows = 0, contracted = 0;
        const int64_t other = std::max(sizes.deep, least);
        HPC_RETURN_IF_ERROR(measureProduct(kind, least, sizes.wide, other, rows));
        HPC_RETURN_IF_ERROR(measureProduct(kind, other, sizes.wide, least, contracted));
        speed.flops[{kind, least}] = least < 16 ? rows : std::sqrt(rows * contracted); // gradients of so few tokens are rare
      }
    return Status::success();
  }

  Status measureMemory(RankSpeed &speed) {
    double seconds = 0;
    const int calls = options.isHost || options.isBrief ? 1 : 20;
    HPC_RETURN_IF_ERROR(best(options.isBrief ? 2 : 8, calls, seconds, [&](int) { return device->accumulate(result, right[0], DType::F32, sizes.region / 4); }));
    speed.bytesPerSecond = 3 * double(sizes.region) / seconds;
    if (const int64_t bytes = ownCache(); options.isHost && bytes > 0) {
      const int64_t piece = bytes / 4 / 64 * 64; // both arrays are half of it
      HPC_RETURN_IF_ERROR(best(options.isBrief ? 4 : 40, 4, seconds, [&](int) { return device->accumulate(result, right[0], DType::F32, piece / 4); }));
      speed.cacheBytesPerSecond = 3 * double(piece) / seconds;
    }
    constexpr int starts = 200;
    if (!options.isHost) {
      HPC_RETURN_IF_ERROR(best(8, starts, seconds, [&](int) { return device->copy(result, right[0], 64); }));
      speed.launch = seconds;
    }
    return Status::success();
  }

  Status exchange(size_t instruction, int64_t place = 0) {
    return communicator->collective(std::get<Collective>(plan.stages[0].programs[0].instructions[instruction].action), groups[instruction], right[0] + place, result + place, 0);
  }

  /// All ranks are here.
  Status meet() {
    for (size_t i = 0; i < groups.size(); i += std::size(messages))
      HPC_RETURN_IF_ERROR(exchange(i));
    return device->finish();
  }

  Status measureCollectives(RankSpeed &speed) {
    for (size_t i = 0; i < groups.size(); ++i) {
      const int64_t bytes = messages[i % std::size(messages)].bytes;
      const int calls = bytes < 1024 ? 50 : 1, rounds = options.isBrief ? 3 : bytes < 1024 ? 200 : 100;
      double least = INFINITY;
      for (int round = 0; round < rounds; ++round) {
        // The data that is sent was just written; the result lies where nothing was for long.
        const int64_t place = round * bytes % (sizes.region - bytes);
        HPC_RETURN_IF_ERROR(device->copy(right[0] + place, right[1], bytes));
        HPC_RETURN_IF_ERROR(meet());
        const double start = wallSeconds();
        for (int call = 0; call < calls; ++call)
          HPC_RETURN_IF_ERROR(exchange(i, place));
        HPC_RETURN_IF_ERROR(device->finish());
        least = std::min(least, (wallSeconds() - start) / calls);
      }
      speed.collectives.push_back(least);
    }
    return Status::success();
  }

  Backend &backend;
  const plan::Plan &plan;
  const MeasureOptions &options;
  const Sizes sizes = sizesOf(options);
  const RankPlace place;
  ThreadPool alone;
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;
  std::vector<int64_t> groups;
  std::byte *left[std::size(types)] = {}, *right[std::size(types)] = {}, *result = nullptr;
};

/// The measurements of the ranks of this process, each on a thread of its own; the first error ends the waits of all.
Status measureRanks(Backend &backend, const plan::Plan &plan, const MeasuredRanks &ranks, const MeasureOptions &options, std::vector<RankSpeed> &speeds) {
  speeds.resize(size_t(ranks.ranksOfEach));
  std::vector<Status> statuses(speeds.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < speeds.size(); ++i)
    threads.emplace_back([&, i] {
      const int64_t rank = ranks.own().first + int64_t(i);
      try {
        statuses[i] = RankMeasurement(backend, plan, options, {rank, 0, rank}).run(speeds[i]);
      } catch (const std::bad_alloc &) {
        statuses[i] = Status::error(ErrorKind::Capacity, "out of memory: a rank that measures takes about 600 MiB");
      }
      if (!statuses[i].ok())
        backend.fail(statuses[i]);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Status &status : statuses)
    HPC_RETURN_IF_ERROR(status);
  return Status::success();
}

/// Means over the ranks of a process, in the order of a line: what the processes exchange.
std::vector<double> meansOf(const std::vector<RankSpeed> &speeds) {
  std::vector<double> means;
  for (const RankSpeed &speed : speeds) {
    std::vector<double> values = {speed.bytesPerSecond, speed.elementsPerSecond, speed.launch, speed.wall, speed.processor, speed.cacheBytesPerSecond};
    values.insert(values.end(), speed.collectives.begin(), speed.collectives.end());
    for (const auto &[key, flops] : speed.flops)
      values.push_back(flops);
    means.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i)
      means[i] += values[i] / double(speeds.size());
  }
  return means;
}

/// Three digits: more would not be the same in the next measurement.
double rounded(double value) {
  if (value <= 0)
    return 0;
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  return std::stod(std::to_string(std::llround(value / unit)) + "e" + std::to_string(std::lround(std::log10(unit))));
}

/// All-reduces of `ranks` ranks as a ring: 2 (n - 1) steps, in which 2 (n - 1) / n of the bytes go out.
cost::Link linkOf(int64_t joined, int64_t ranks, const double *seconds) {
  const double steps = 2 * double(ranks - 1);
  cost::Link link;
  link.ranks = joined;
  link.latency = std::clamp(rounded(seconds[0] / steps), leastLatency, mostLatency);
  link.bytesPerSecond = rounded(steps / double(ranks) * double(messages[1].bytes) / std::max(1e-9, seconds[1] - seconds[0]));
  return link;
}

/// If ranks copy in memory that they share, all bytes of the whole count (CollectiveTime.h); the mean of an all-reduce and an all-gather.
cost::Link linkInMemory(int64_t joined, int64_t ranks, const double *seconds) {
  cost::Link link = linkOf(joined, ranks, seconds);
  link.bytesPerSecond = rounded(double(messages[1].bytes + messages[2].bytes) / std::max(1e-9, seconds[1] + seconds[2] - 2 * seconds[0]));
  return link;
}

Measurement measurementOf(const std::vector<double> &means, const MeasuredRanks &ranks, const MeasureOptions &options) {
  Measurement measurement;
  cost::Machine &machine = measurement.machine;
  machine.bytesPerSecond = rounded(means[0]);
  machine.elementsPerSecond = rounded(means[1]);
  machine.launch = rounded(means[2]);
  measurement.taken = options.isHost ? std::max(0.0, 1 - means[4] / means[3]) : 0;
  if (means[5] > 0) {
    machine.cacheBytes = ownCache();
    machine.cacheBytesPerSecond = std::max(machine.bytesPerSecond, rounded(means[5]));
  }
  constexpr size_t perLink = std::size(messages);
  const double *collectives = means.data() + 6;
  machine.links.clear();
  // The instructions between processes come first.
  if (ranks.processes > 1)
    machine.links.push_back(linkOf(0, ranks.processes, std::exchange(collectives, collectives + perLink)));
  if (ranks.ranksOfEach > 1)
    machine.links.insert(machine.links.begin(), (options.isHost ? linkInMemory : linkOf)(ranks.processes > 1 ? ranks.ranksOfEach : 0, ranks.ranksOfEach,
                                                                                                              std::exchange(collectives, collectives + perLink)));
  if (ranks.count() == 1)
    machine.links.push_back({0, std::max(leastLatency, machine.launch), machine.bytesPerSecond});
  const double *flops = collectives;
  const std::vector<int64_t> extents = sizesOf(options).leastExtents;
  machine.products.clear();
  for (size_t kind = 0; kind < std::size(types); ++kind) {
    const double *ofType = flops + kind * extents.size();
    const double peak = *std::max_element(ofType, ofType + extents.size());
    cost::ProductSpeed product{types[kind], rounded(peak), {}};
    for (size_t i = 0; i < extents.size(); ++i)
      product.efficiency.push_back({extents[i], std::clamp(rounded(ofType[i] / peak), leastShare, 1.0)});
    machine.products.push_back(std::move(product));
  }
  return measurement;
}

std::string lineOf(const std::vector<double> &values) {
  std::string line(values.size() * sizeof(double), '\0');
  std::memcpy(line.data(), values.data(), line.size());
  return line;
}

} // namespace

Expected<Measurement> measure(Backend &backend, const MeasuredRanks &ranks, const MeasureOptions &options) {
  const plan::Plan plan = planOf(ranks);
  std::vector<RankSpeed> speeds;
  Status status = backend.load(plan, ranks.own(), 1);
  if (status.ok())
    status = measureRanks(backend, plan, ranks, options, speeds);
  HPC_RETURN_IF_ERROR(backend.agree(status));
  std::vector<double> means = meansOf(speeds), all(means.size());
  Expected<std::vector<std::string>> lines = backend.exchange(lineOf(means));
  HPC_RETURN_IF_ERROR(lines.status());
  for (const std::string &line : *lines) {
    if (line.size() != all.size() * sizeof(double))
      return Status::error(ErrorKind::Usage, "the processes measure different things; start all of them with the same flags");
    std::memcpy(means.data(), line.data(), line.size());
    for (size_t i = 0; i < all.size(); ++i)
      all[i] += means[i] / double(lines->size());
  }
  return measurementOf(all, ranks, options);
}

/// The waking of one set of threads, which the system places on processors as it likes.
static Expected<double> measureSleepers(int64_t cores) {
  const MeasuredRanks ranks{1, 2 * cores, 0};
  plan::Plan plan;
  plan.axes = {{"rank", ranks.count()}};
  plan::Program &program = plan.stages.emplace_back().programs.emplace_back();
  Collective collective;
  collective.axes = {"rank"};
  collective.count = 1;
  program.instructions.push_back({collective, "calibration"});
  std::unique_ptr<Backend> backend = host::createHostBackend();
  HPC_RETURN_IF_ERROR(backend->load(plan, ranks.own(), 1));
  std::vector<double> seconds; // of the first rank, by round
  std::vector<std::thread> threads;
  std::vector<Status> statuses(size_t(ranks.count()));
  for (size_t rank = 0; rank < statuses.size(); ++rank)
    threads.emplace_back([&, rank] {
      statuses[rank] = [&]() -> Status {
        Expected<std::unique_ptr<Communicator>> communicator = backend->createCommunicator({int64_t(rank), 0, int64_t(rank)}, 0);
        HPC_RETURN_IF_ERROR(communicator.status());
        const auto &one = std::get<Collective>(plan.stages[0].programs[0].instructions[0].action);
        Expected<int64_t> group = (*communicator)->prepare(one);
        HPC_RETURN_IF_ERROR(group.status());
        float source = 1, target = 0;
        constexpr int calls = 20;
        for (int round = 0; round < 25; ++round) {
          const double start = wallSeconds();
          for (int call = 0; call < calls; ++call)
            HPC_RETURN_IF_ERROR((*communicator)->collective(one, *group, reinterpret_cast<std::byte *>(&source), reinterpret_cast<std::byte *>(&target), 0));
          if (rank == 0)
            seconds.push_back((wallSeconds() - start) / calls);
        }
        return Status::success();
      }();
      if (!statuses[rank].ok())
        backend->fail(statuses[rank]);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Status &status : statuses)
    HPC_RETURN_IF_ERROR(status);
  // Not the least, which is that of ranks that happen to come one after the other. Two ranks share each processor, and each carries the collective.
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2] / 2;
}

Expected<double> measureWake(int64_t cores) {
  constexpr int sets = 12;
  double sum = 0;
  for (int set = 0; set < sets; ++set) {
    Expected<double> seconds = measureSleepers(cores);
    HPC_RETURN_IF_ERROR(seconds.status());
    sum += *seconds;
  }
  return rounded(sum / sets);
}

Expected<double> measureLaunch() {
  constexpr int64_t copies = 2000;
  plan::Plan plan;
  plan.model = "calibration";
  plan.axes = {{"rank", 1}};
  plan::Stage &stage = plan.stages.emplace_back();
  for (int64_t i = 0; i < 2; ++i) {
    stage.buffers.push_back({"", DType::F32, {16}, plan::Lifetime::Session, plan::Space::Device, 64, 64 * i});
    stage.bindings.push_back({int32_t(i), {{16}, {0}, {16}, {16}}, plan::Number{0}, "", {}});
  }
  stage.sessionBytes = 128;
  plan::Program &program = stage.programs.emplace_back();
  for (int64_t i = 0; i < copies; ++i)
    program.instructions.push_back({plan::Copy{{0, 0}, {1, 0}, 64}, "calibration"});
  stage.schedule = {{0, 0}};
  HPC_RETURN_IF_ERROR(plan::checkPlan(plan));
  Expected<std::unique_ptr<Session>> session = Session::create(plan, host::createHostBackend(), {});
  HPC_RETURN_IF_ERROR(session.status());
  std::vector<Array> outputs;
  double least = INFINITY;
  for (int round = 0; round < 100; ++round) {
    const double start = wallSeconds();
    HPC_RETURN_IF_ERROR((*session)->run({}, outputs));
    least = std::min(least, wallSeconds() - start);
  }
  return rounded(least / copies);
}

} // namespace hpc
