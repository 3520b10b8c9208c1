// Threads that wait for a task and do it for their rank; and the two tasks there are: prepare and run.
#include "runtime/core/Session.h"

#include "runtime/base/CountText.h"
#include "runtime/core/BindingLoader.h"
#include "runtime/core/FirstNotFinite.h"
#include "runtime/core/InputCheck.h"
#include "runtime/plan/Entries.h"

#include <algorithm>
#include <system_error>

namespace hpc {

/// Where errors of a rank come from.
static std::string rankText(const RankPlace &place) {
  return "rank " + std::to_string(place.rank) + " (stage " + std::to_string(place.stage) + ")";
}

Session::Session(const plan::Plan &plan, std::unique_ptr<Backend> backend, SessionOptions given)
    : plan(plan), options(std::move(given)), backend(std::move(backend)), savedList(savedTensors(plan)) {
  for (size_t number = 0; number < plan.entries.size(); ++number)
    entryPlans.push_back(plan::planOf(plan, number));
  for (size_t number = 0; number < entryCount(); ++number) {
    if (options.trace)
      recorders.emplace_back(entry(number));
    executorOptions.push_back(
        {options.ranks, options.poison, options.observer, options.trace ? &recorders.back() : nullptr, number == 0});
  }
  for (int64_t rank = options.ranks.first; rank < options.ranks.first + options.ranks.count; ++rank)
    ranks.emplace_back().place = {rank, rank / plan.ranksPerStage(), rank % plan.ranksPerStage()};
}

Session::~Session() {
  backend->watch(nullptr);
  task = nullptr;
  generation.add(1);
  release(ranks.front());
  for (std::thread &thread : threads)
    thread.join();
}

void Session::work(Rank &rank) {
  uint32_t seen = 0;
  while (true) {
    seen = generation.waitWhile(seen, spins);
    if (!task)
      break;
    doTask(rank);
    busy.add(uint32_t(-1));
  }
  release(rank);
}

void Session::doTask(Rank &rank) noexcept {
  try {
    rank.status = task(rank);
  } catch (const std::bad_alloc &) {
    rank.status = Status::error(ErrorKind::Capacity, rankText(rank.place) + ": this machine has no more memory; " +
                                                         "compile for a smaller batch or for more ranks");
  }
  if (!rank.status.ok() && isRunning)
    backend->fail(rank.status);
}

/// In the reverse order of their making, on the thread that made them.
void Session::release(Rank &rank) {
  rank.executors.clear();
  rank.arenas.clear();
  rank.communicator.reset();
  rank.device.reset();
  rank.threads.reset();
}

void Session::onAllRanks(std::function<Status(Rank &)> newTask) {
  task = std::move(newTask);
  busy.set(uint32_t(threads.size()));
  generation.add(1);
  doTask(ranks.front());
  while (uint32_t left = busy.value())
    busy.waitWhile(left, spins);
}

Status Session::prepare(Rank &rank) {
  const plan::Stage &stage = plan.stages[size_t(rank.place.stage)];
  Expected<std::unique_ptr<ThreadPool>> threads = ThreadPool::create(options.threads, backend->hasCoreForEach());
  if (!threads.ok())
    return threads.status();
  rank.threads = std::move(*threads);
  Expected<std::unique_ptr<Device>> device = backend->createDevice(rank.place, *rank.threads);
  if (!device.ok())
    return device.status();
  rank.device = std::move(*device);
  Expected<std::unique_ptr<Communicator>> communicator =
      backend->createCommunicator(rank.place, Executor::requestCount(stage));
  if (!communicator.ok())
    return communicator.status();
  rank.communicator = std::move(*communicator);
  Expected<Arena> arena = Arena::create(stage, *rank.device, options.poison);
  if (!arena.ok())
    return arena.status();
  Place place{rank.place.coordinate, 0, plan.ranksPerStage()};
  HPC_RETURN_IF_ERROR(loadBindings(*weights, stage, place, *rank.device, *arena, *rank.threads,
                                   double(rank.place.coordinate) / double(plan.ranksPerStage())));
  // An observer sees what each instruction has done, so it has the plan as it is.
  DeviceTraits traits;
  if (!options.observer)
    traits = {rank.device->worksInHostMemory(), [&](const GemmCall &call) { return rank.device->fuses(call); }};
  // Products may be prepared with the weights that are there now.
  WeightPacking packing;
  for (size_t number = 0; number < entryCount(); ++number) {
    Expected<SpecialStage> special = specialise(entry(number), rank.place, traits, options.ranks.holds(0));
    if (!special.ok())
      return special.status();
    rank.executors.push_back(std::make_unique<Executor>(entry(number), std::move(*special), rank.place, *rank.device, *rank.communicator,
                                                        rank.arenas.emplace_back(*arena), executorOptions[number]));
    HPC_RETURN_IF_ERROR(rank.executors.back()->prepare(*backend, packing));
  }
  return packing.pack(stage, *arena, *rank.device);
}

Status Session::start() {
  HPC_RETURN_IF_ERROR(backend->load(plan, options.ranks, options.threads));
  Expected<Weights> opened = Weights::open(
      plan, {options.planFolder, options.weightsReplacement, options.checkpoint, options.followLinks});
  if (!opened.ok())
    return opened.status();
  weights.emplace(std::move(*opened));
  spins = backend->hasCoreForEach() ? WaitWord::spinsOfOwnCore : 0;
  try {
    for (size_t i = 1; i < ranks.size(); ++i)
      threads.emplace_back([this, &rank = ranks[i]] { work(rank); });
  } catch (const std::system_error &error) {
    return Status::error(ErrorKind::Capacity, "cannot start " + std::to_string(ranks.size()) +
                                                  " threads, one per rank: " + error.what());
  }
  onAllRanks([this](Rank &rank) { return prepare(rank); });
  // Ranks do not meet in this task, so all errors are there: the lowest rank's is told, the same each time.
  for (const Rank &rank : ranks)
    if (!rank.status.ok())
      return rank.status.at(rankText(rank.place));
  return Status::success();
}

Expected<std::unique_ptr<Session>> Session::create(const plan::Plan &plan, std::unique_ptr<Backend> backend,
                                                   SessionOptions options) {
  const int64_t worldSize = plan.worldSize();
  RankRange &own = options.ranks;
  if (own.count == 0)
    own = {0, worldSize};
  if (own.first < 0 || own.count < 0 || own.first + own.count > worldSize)
    return Status::error(ErrorKind::Usage, "a process with " + countText(own.count, "rank") + " from rank " +
                                               std::to_string(own.first) + " on: the plan has ranks 0 to " +
                                               std::to_string(worldSize - 1));
  std::unique_ptr<Session> session(new Session(plan, std::move(backend), std::move(options)));
  HPC_RETURN_IF_ERROR(session->backend->agree(session->start()));
  session->backend->watch(session.get());
  return session;
}

void Session::shapeOutputs(const plan::Plan &entry, std::vector<Array> &outputs, Outputs wanted) const {
  outputs.resize(options.ranks.holds(0) ? entry.outputs.size() : 0);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const plan::Port &port = entry.outputs[i];
    if (port.onRequest && wanted == Outputs::Ordinary) {
      outputs[i] = Array();
      continue;
    }
    if (!fits(outputs[i], port))
      outputs[i] = Array::zeros(port.dtype, port.shape);
    if (options.poison)
      std::fill(outputs[i].data.begin(), outputs[i].data.end(), poisonByte);
  }
}

Status Session::run(size_t number, const std::vector<Array> &inputs, std::vector<Array> &outputs, Outputs wanted) {
  Status status = checkInputs(entry(number), inputs);
  if (status.ok()) {
    shapeOutputs(entry(number), outputs, wanted);
    lastRun = number;
    if (!recorders.empty())
      recorders[number].begin();
    stepEntry = number;
    stepState = StepState::Running;
    isRunning = true;
    onAllRanks([&](Rank &rank) { return rank.executors[number]->run(inputs, outputs, wanted); });
    isRunning = false;
    stepState = StepState::Done;
  } else {
    backend->fail(status); // the other processes' ranks may be waiting for ours
  }
  status = backend->agree(status);
  stepState = StepState::None;
  return status;
}

Status Session::findNotFinite(const std::vector<Array> &inputs) {
  if (!ranks.front().device->worksInHostMemory())
    return Status::success();
  onAllRanks([](Rank &rank) { return rank.arenas.front().clearWork(*rank.device); });
  executorOptions[0].observer = firstNotFinite(entry(0));
  std::vector<Array> outputs;
  Status status = run(0, inputs, outputs, Outputs::Ordinary);
  executorOptions[0].observer = options.observer;
  return status;
}

Expected<bool> Session::any(bool mine) {
  bool answer = mine;
  Status verdict = backend->agree(Status::success(), &answer);
  return verdict.ok() ? Expected<bool>(answer) : Expected<bool>(verdict);
}

Expected<std::vector<Array>> Session::run(const std::vector<Array> &inputs, Outputs wanted) {
  std::vector<Array> outputs;
  HPC_RETURN_IF_ERROR(run(inputs, outputs, wanted));
  return outputs;
}

std::optional<uint64_t> Session::progress() const {
  if (stepState != StepState::Running)
    return std::nullopt;
  uint64_t all = 0;
  for (const Rank &rank : ranks)
    all = all * 31 + rank.executors[stepEntry]->progress();
  return all;
}

bool Session::waitsForDevice() const {
  return stepState == StepState::Running && std::any_of(ranks.begin(), ranks.end(), [&](const Rank &rank) { return rank.executors[stepEntry]->waitsForDevice(); });
}

std::vector<RankPosition> Session::positions() const {
  std::vector<RankPosition> list;
  const int64_t step = stepNumber;
  const StepState state = stepState;
  const std::string what = stepEntry > 0 ? "entry '" + plan.entries[stepEntry].name + "', " : step >= 0 ? "step " + std::to_string(step) + ", " : "";
  for (const Rank &rank : ranks) {
    list.push_back(state == StepState::Running ? rank.executors[stepEntry]->position()
                   : state == StepState::Done  ? RankPosition{rank.place.rank, true, "its part is done"}
                                               : RankPosition{rank.place.rank, false, "not begun"});
    list.back().text = what + list.back().text;
  }
  return list;
}

int64_t Session::peakBytesPerRank() const {
  int64_t peak = 0;
  for (const Rank &rank : ranks)
    peak = std::max(peak, rank.arenas.front().bytes() + rank.device->scratchBytes() + rank.communicator->scratchBytes());
  return peak;
}

} // namespace hpc
