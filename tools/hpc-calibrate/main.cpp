// hpc-calibrate: measures the machine that it runs on and writes it as a machine file, alone or as one of several processes.
#include "runtime/base/AvailableMemory.h"
#include "runtime/base/Cores.h"
#include "runtime/base/File.h"
#include "runtime/cost/MachineFile.h"
#include "tools/ExitCode.h"
#include "tools/OutputFiles.h"
#include "tools/ShortenedFiles.h"
#include "tools/flags/Arguments.h"
#include "tools/hpc-calibrate/Measure.h"
#include "tools/running/OpenSession.h"
#include "tools/running/RunTogether.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <new>

using namespace hpc;

namespace {

struct Flags : RunFlags {
  std::string output;
  int64_t ranks = 0; ///< of each process; 0: by the cores
  bool isBrief = false;
  bool isHost() const { return backend == "host"; }
};

Flags readFlags(const Arguments &arguments) {
  Flags flags;
  flags.backend = arguments.text("target");
  flags.processes.launch = arguments.text("launch");
  flags.processes.rendezvous = arguments.text("rendezvous");
  flags.processes.peerTimeout = arguments.real("peer-timeout").value_or(0);
  flags.processes.stallTimeout = 0; // a measurement is no step
  flags.output = arguments.text("output");
  flags.ranks = arguments.whole("ranks").value_or(0);
  flags.isBrief = arguments.has("quick");
  return flags;
}

/// "Intel(R) Xeon(R) Processor", as Linux has it.
std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, 10, "model name") == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "processor";
}

/// A tenth of what is free is left to others.
int64_t memoryOf(int64_t ranks) {
  constexpr int64_t unit = int64_t(64) << 20;
  const int64_t free = availableMemory();
  return free == INT64_MAX ? 0 : std::max(unit, free / 10 * 9 / ranks / unit * unit);
}

std::string percent(double share) { return std::to_string(int64_t(std::lround(100 * share))) + "%"; }

Status calibrate(const Flags &flags, processes::Processes *processes) {
  MeasuredRanks ranks{processes ? processes->count : 1, flags.ranks, processes ? processes->process : 0};
  const int64_t cores = processes ? std::max<int64_t>(1, processes->coresOfEach()) : availableCores();
  if (ranks.ranksOfEach == 0)
    ranks.ranksOfEach = !flags.isHost() ? 1 : processes ? cores : std::max<int64_t>(2, cores);
  Expected<std::unique_ptr<Backend>> backend = openBackend(flags, processes);
  HPC_RETURN_IF_ERROR(backend.status());
  Expected<Measurement> measured = measure(**backend, ranks, {flags.isHost(), flags.isBrief});
  HPC_RETURN_IF_ERROR(measured.status());
  if (ranks.process != 0)
    return Status::success();
  cost::Machine &machine = measured->machine;
  machine.name = (flags.isHost() ? processorName() : "GPUs of this machine") + ", measured with " + std::to_string(ranks.count()) + " ranks";
  if (flags.isHost()) {
    machine.cores = ranks.ranksOfEach > cores ? cores : ranks.count();
    machine.memory = memoryOf(ranks.count());
    Expected<double> launch = measureLaunch();
    HPC_RETURN_IF_ERROR(launch.status());
    machine.launch = std::max(1e-8, *launch);
    Expected<double> wake = measureWake(cores);
    HPC_RETURN_IF_ERROR(wake.status());
    machine.wakeSeconds = std::clamp(*wake, 1e-8, 0.01);
  }
  if (ranks.count() == 1)
    printNote("one rank sends to no other, so the link has the speed of its memory; measure with --ranks=2 or more, or edit links");
  if (measured->taken > 0.05)
    printNote("other work took " + percent(measured->taken) + " of the processors' time; the numbers are the best of some rounds and may be too low: measure again when the machine is quiet");
  HPC_RETURN_IF_ERROR(cost::checkMachine(machine).at("what was measured"));
  const std::string text = cost::machineFileText(machine);
  if (flags.output.empty()) {
    std::fputs(text.c_str(), stdout);
    return Status::success();
  }
  Expected<AtomicFile> file = AtomicFile::create(flags.output);
  HPC_RETURN_IF_ERROR(file.status());
  HPC_RETURN_IF_ERROR(file->write(text));
  return file->commit();
}

Status checkOutput(const Arguments &arguments, const Flags &flags) {
  const NamedFile output{"--output=" + flags.output, flags.output};
  if (arguments.has("output"))
    HPC_RETURN_IF_ERROR(checkOutputName(output, "a machine"));
  return checkDestination(output);
}

Status run(const Arguments &arguments, const Flags &flags, Status failed) {
  const launch::Launch launch = launch::detectLaunch(flags.processes.launch, flags.processes.rendezvous, ::getenv);
  if (launch.kind == launch::LaunchKind::None) {
    HPC_RETURN_IF_ERROR(failed);
    HPC_RETURN_IF_ERROR(launch.status);
    HPC_RETURN_IF_ERROR(checkOutput(arguments, flags));
    return calibrate(flags, nullptr);
  }
  return runTogether(
      launch, flags, failed,
      [&](int64_t process, Prepared &prepared) -> Status {
        prepared.worldSize = launch.processes; // ranks follow when all are here
        return process == 0 ? checkOutput(arguments, flags) : Status::success();
      },
      [](processes::Processes &, Prepared &) { return Status::success(); },
      [&](processes::Processes &processes) { return calibrate(flags, &processes); });
}

} // namespace

int main(int argc, char **argv) {
  toolName() = "hpc-calibrate";
  reportShortenedFiles("hpc-calibrate");
  Arguments arguments(HpcCalibrate);
  Status status = arguments.parse(argc, argv);
  if (!arguments.page.empty()) {
    std::fputs(arguments.page.c_str(), stdout);
    return finish("hpc-calibrate");
  }
  if (!arguments.note.empty())
    printNote(arguments.note);
  try {
    status = run(arguments, readFlags(arguments), status);
  } catch (const std::bad_alloc &) {
    status = outOfMemory();
  }
  return status.ok() ? finish("hpc-calibrate") : reportError("hpc-calibrate", status);
}
