// Times all-reduces of f32 between two ranks: alone, between two threads; under mpirun, between two processes, in turns
// with plain MPI_Allreduce; started by the environment, between two processes over UCX. Then 20 of 8 MiB in place, one after
// the other and all posted before the first wait. One JSON line each: bytes, who, how, microseconds of each round.
#include "runtime/backend/processes/ProcessCommunicator.h"
#include "tools/running/Processes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <thread>

using namespace hpc;

namespace {

plan::Plan planOf(int64_t bytes) {
  plan::Plan plan;
  plan.axes = {{"tp", 2}};
  plan.stages.resize(1);
  plan::Collective collective;
  collective.axes = {"tp"};
  collective.count = bytes / 4;
  collective.src = {0, 0};
  collective.dst = {1, 0};
  plan.stages[0].programs = {{plan::ProgramKind::Forward, 0, {{collective, "node"}}}};
  return plan;
}

struct Buffers {
  std::vector<float> source, target;
  explicit Buffers(int64_t bytes) : source(size_t(bytes / 4), 1), target(size_t(bytes / 4)) {}
};

/// Microseconds of one of `times` calls.
template <typename F> double timed(int times, F call) {
  auto start = launch::Clock::now();
  for (int i = 0; i < times; ++i)
    call();
  return std::chrono::duration<double, std::micro>(launch::Clock::now() - start).count() / times;
}

void tell(int64_t bytes, const char *who, const std::vector<double> &values, const char *how = "one") {
  std::printf("{\"bytes\": %lld, \"who\": \"%s\", \"how\": \"%s\", \"us\": [", (long long)bytes, who, how);
  for (size_t i = 0; i < values.size(); ++i)
    std::printf("%s%.1f", i ? ", " : "", values[i]);
  std::printf("]}\n");
  std::fflush(stdout);
}

void check(const Status &status) {
  if (status.ok())
    return;
  std::fprintf(stderr, "%s\n", status.text().c_str());
  std::_Exit(1);
}

constexpr int rounds = 9;
int callsOf(int64_t bytes) { return int(std::clamp<int64_t>((int64_t(8) << 20) / bytes, 1, 50)); }
const int64_t sizes[] = {int64_t(64) << 10, int64_t(1) << 20, int64_t(64) << 20};

/// Calls one rank's all-reduce; the executor would have prepared it.
template <typename C> auto reducer(const plan::Plan &plan, C &communicator, Buffers &buffers) {
  const auto &collective = std::get<plan::Collective>(plan.stages[0].programs[0].instructions[0].action);
  int64_t group = *communicator.prepare(collective);
  return [&, group] {
    check(communicator.collective(collective, group, reinterpret_cast<std::byte *>(buffers.source.data()),
                                  reinterpret_cast<std::byte *>(buffers.target.data()), 0));
  };
}

constexpr int64_t buckets = 20, bucketBytes = int64_t(8) << 20;

/// One rank's buckets: a collective each, with a request of its own, or done at once.
plan::Plan planOfBuckets() {
  plan::Plan plan = planOf(bucketBytes);
  plan::Instruction one = plan.stages[0].programs[0].instructions[0];
  plan.stages[0].programs[0].instructions.clear();
  for (int64_t i = 0; i < 2 * buckets; ++i) {
    auto &collective = std::get<plan::Collective>(one.action);
    collective.dst = collective.src;
    collective.request = i < buckets ? int32_t(i) : -1;
    plan.stages[0].programs[0].instructions.push_back(one);
  }
  plan.stages[0].requests.assign(size_t(buckets), 1);
  return plan;
}

/// Times all buckets posted and then waited for, and all one after the other, in turns.
template <typename C> void timeBuckets(const plan::Plan &plan, C &communicator, const char *who) {
  std::vector<std::vector<float>> memory(size_t(buckets), std::vector<float>(size_t(bucketBytes / 4)));
  std::vector<int64_t> numbers;
  auto at = [&](int64_t i) -> const plan::Collective & {
    return std::get<plan::Collective>(plan.stages[0].programs[0].instructions[size_t(i)].action);
  };
  for (int64_t i = 0; i < 2 * buckets; ++i)
    numbers.push_back(*communicator.prepare(at(i)));
  auto place = [&](int64_t i) { return reinterpret_cast<std::byte *>(memory[size_t(i)].data()); };
  auto posted = [&] {
    for (int64_t i = 0; i < buckets; ++i)
      check(communicator.post(at(i), numbers[size_t(i)], place(i), place(i), 0, i));
    for (int64_t i = 0; i < buckets; ++i)
      check(communicator.wait(i));
  };
  auto plain = [&] {
    for (int64_t i = 0; i < buckets; ++i)
      check(communicator.collective(at(buckets + i), numbers[size_t(buckets + i)], place(i), place(i), 0));
  };
  std::vector<double> postedTimes, plainTimes;
  for (int round = -1; round < rounds; ++round) {
    double first = timed(1, plain), second = timed(1, posted);
    if (round >= 0) {
      plainTimes.push_back(first);
      postedTimes.push_back(second);
    }
  }
  if (who) {
    tell(buckets * bucketBytes, who, plainTimes, "plain");
    tell(buckets * bucketBytes, who, postedTimes, "posted");
  }
}

void bucketsByThreads() {
  plan::Plan plan = planOfBuckets();
  host::World world(plan);
  auto rank = [&](int64_t r) {
    host::HostCommunicator communicator(world, {r, 0, r}, buckets);
    timeBuckets(plan, communicator, r == 0 ? "threads" : nullptr);
  };
  std::thread other([&] { rank(1); });
  rank(0);
  other.join();
}

void byThreads() {
  for (int64_t bytes : sizes) {
    plan::Plan plan = planOf(bytes);
    host::World world(plan);
    std::vector<double> values;
    auto rank = [&](int64_t r) {
      Buffers buffers(bytes);
      host::HostCommunicator communicator(world, {r, 0, r}, 1);
      auto call = reducer(plan, communicator, buffers);
      for (int round = -2; round < rounds; ++round)
        if (double value = timed(callsOf(bytes), call); r == 0 && round >= 0)
          values.push_back(value);
    };
    std::thread other([&] { rank(1); });
    rank(0);
    other.join();
    tell(bytes, "threads", values);
  }
}

void byProcesses(const launch::Launch &launch) {
  Prepared prepared;
  prepared.worldSize = 2;
  Expected<std::unique_ptr<processes::Processes>> joined = meet(launch, {}, prepared);
  check(joined.status());
  check(introduce(**joined, prepared, /*needsEngine=*/true));
  const int64_t mine = (*joined)->process;
  const bool isMpi = launch.kind == launch::LaunchKind::Mpi;
  for (int64_t bytes : sizes) {
    plan::Plan plan = planOf(bytes);
    processes::ProcessWorld world(plan, **joined, 1, 1, false);
    processes::ProcessCommunicator communicator(world, {mine, 0, mine}, 1);
    Buffers buffers(bytes);
    auto ours = reducer(plan, communicator, buffers);
    auto theirs = [&] {
      MPI_Allreduce(buffers.source.data(), buffers.target.data(), int(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
    std::vector<double> ourTimes, theirTimes;
    for (int round = -2; round < rounds; ++round) {
      double our = timed(callsOf(bytes), ours), their = isMpi ? timed(callsOf(bytes), theirs) : 0;
      if (round >= 0) {
        ourTimes.push_back(our);
        theirTimes.push_back(their);
      }
    }
    if (mine == 0) {
      tell(bytes, isMpi ? "processes by MPI" : "processes by UCX", ourTimes);
      if (isMpi)
        tell(bytes, "plain MPI_Allreduce", theirTimes);
    }
  }
  {
    plan::Plan plan = planOfBuckets();
    processes::ProcessWorld world(plan, **joined, 1, 1, false);
    processes::ProcessCommunicator communicator(world, {mine, 0, mine}, buckets);
    timeBuckets(plan, communicator, mine > 0 ? nullptr : isMpi ? "processes by MPI" : "processes by UCX");
  }
  check(leaveTogether(**joined, Status::success()));
}

} // namespace

int main() {
  launch::Launch launch = launch::detectLaunch("auto", "", ::getenv);
  check(launch.status);
  if (launch.kind == launch::LaunchKind::None)
    byThreads(), bucketsByThreads();
  else
    byProcesses(launch);
}
