// Times all-reduces of f32 between two ranks: alone, between two threads; under mpirun, between two processes, in turns
// with plain MPI_Allreduce; started by the environment, between two processes over UCX. One JSON line a size: bytes, who,
// microseconds of each round.
#include "runtime/backend/processes/ProcessCommunicator.h"
#include "tools/hpc-run/Processes.h"

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

void tell(int64_t bytes, const char *who, const std::vector<double> &values) {
  std::printf("{\"bytes\": %lld, \"who\": \"%s\", \"us\": [", (long long)bytes, who);
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
  Expected<std::unique_ptr<processes::Processes>> joined = joinProcesses(launch, {}, prepared, /*needsEngine=*/true);
  check(joined.status());
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
  check(leaveTogether(**joined, Status::success()));
}

} // namespace

int main() {
  Expected<launch::Launch> launch = launch::detectLaunch("auto", "", ::getenv);
  check(launch.status());
  if (launch->kind == launch::LaunchKind::None)
    byThreads();
  else
    byProcesses(*launch);
}
