// Threads that wait for a task, do it for their rank and report; and the two tasks there are: prepare and run.
#include "runtime/core/Session.h"

#include <algorithm>
#include <system_error>

namespace hpc {

Session::Session(const plan::Plan &plan, std::unique_ptr<Backend> backend, SessionOptions given)
    : plan(plan), options(std::move(given)),
      rendezvous(plan.worldSize() <= int64_t(std::thread::hardware_concurrency())), backend(std::move(backend)) {
  if (options.trace)
    recorder.emplace(plan);
  executorOptions = {options.poison, options.observer, recorder ? &*recorder : nullptr};
  ranks.resize(size_t(plan.worldSize()));
  for (int64_t rank = 0; rank < plan.worldSize(); ++rank)
    ranks[size_t(rank)].place = {rank, rank / plan.ranksPerStage(), rank % plan.ranksPerStage()};
}

Session::~Session() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    task = nullptr;
    ++generation;
  }
  begin.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

void Session::work(Rank &rank) {
  uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      begin.wait(lock, [&] { return generation != seen; });
      seen = generation;
      if (!task)
        break;
    }
    rank.status = task(rank);
    if (!rank.status.ok())
      rendezvous.fail(rank.status);
    std::lock_guard<std::mutex> lock(mutex);
    if (--busy == 0)
      end.notify_all();
  }
  // In the reverse order of their making, on the thread that made them.
  rank.executor.reset();
  rank.arena.reset();
  rank.communicator.reset();
  rank.device.reset();
}

void Session::onAllRanks(std::function<Status(Rank &)> newTask) {
  std::unique_lock<std::mutex> lock(mutex);
  task = std::move(newTask);
  busy = ranks.size();
  ++generation;
  begin.notify_all();
  end.wait(lock, [&] { return busy == 0; });
}

Status Session::prepare(Rank &rank) {
  const plan::Stage &stage = plan.stages[size_t(rank.place.stage)];
  Expected<std::unique_ptr<Device>> device = backend->createDevice(rank.place);
  if (!device.ok())
    return device.status();
  rank.device = std::move(*device);
  Expected<std::unique_ptr<Communicator>> communicator = backend->createCommunicator(rank.place);
  if (!communicator.ok())
    return communicator.status();
  rank.communicator = std::move(*communicator);
  Expected<Arena> arena = Arena::create(stage, *rank.device, options.poison);
  if (!arena.ok())
    return arena.status();
  rank.arena = std::move(*arena);
  rank.executor =
      std::make_unique<Executor>(plan, rank.place, *rank.device, *rank.communicator, *rank.arena, executorOptions);
  HPC_RETURN_IF_ERROR(rank.executor->prepare(*backend));
  Place place{rank.place.coordinate, 0, plan.ranksPerStage()};
  for (const plan::WeightBinding &binding : stage.weights)
    HPC_RETURN_IF_ERROR(weights->load(binding, place, *rank.device, rank.arena->buffer(binding.buffer, 0)));
  return Status::success();
}

Expected<std::unique_ptr<Session>> Session::create(const plan::Plan &plan, std::unique_ptr<Backend> backend,
                                                   SessionOptions options) {
  std::unique_ptr<Session> session(new Session(plan, std::move(backend), std::move(options)));
  HPC_RETURN_IF_ERROR(session->backend->load(plan, session->rendezvous));
  Expected<Weights> weights = Weights::open(plan, session->options.planFolder, session->options.weightsReplacement);
  if (!weights.ok())
    return weights.status();
  session->weights.emplace(std::move(*weights));
  try {
    for (Rank &rank : session->ranks)
      session->threads.emplace_back([owner = session.get(), &rank] { owner->work(rank); });
  } catch (const std::system_error &error) {
    return Status::error(ErrorKind::Capacity, "cannot start " + std::to_string(session->ranks.size()) +
                                                  " threads, one per rank: " + error.what());
  }
  session->onAllRanks([owner = session.get()](Rank &rank) { return owner->prepare(rank); });
  // Ranks do not meet in this task, so all errors are there: the lowest rank's is told, the same each time.
  for (const Rank &rank : session->ranks)
    if (!rank.status.ok())
      return rank.status.at("rank " + std::to_string(rank.place.rank) + " (stage " + std::to_string(rank.place.stage) +
                            ")");
  return session;
}

Status Session::run(const std::vector<Array> &inputs, std::vector<Array> &outputs) {
  auto misfit = [](const plan::Port &port, const Array &array) {
    return array.dtype != port.dtype || array.shape != port.shape;
  };
  if (inputs.size() != plan.inputs.size())
    return Status::error(ErrorKind::Usage, std::to_string(inputs.size()) + " inputs are given, the plan has " +
                                               std::to_string(plan.inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const plan::Port &port = plan.inputs[i]; misfit(port, inputs[i]))
      return Status::error(ErrorKind::Usage, "input '" + port.name + "' is " + shapeText(inputs[i].shape) + " of " +
                                                 name(inputs[i].dtype) + ", the plan was compiled for " +
                                                 shapeText(port.shape) + " of " + name(port.dtype) +
                                                 "; convert the array, or compile again with --dim for other shapes");
  outputs.resize(plan.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const plan::Port &port = plan.outputs[i]; misfit(port, outputs[i]))
      outputs[i] = Array::zeros(port.dtype, port.shape);
  if (options.poison)
    for (Array &output : outputs)
      std::fill(output.data.begin(), output.data.end(), poisonByte);

  if (rendezvous.failed()) {
    rendezvous.reset();
    backend->reset();
  }
  if (recorder)
    recorder->begin();
  onAllRanks([&](Rank &rank) { return rank.executor->run(inputs, outputs); });
  return rendezvous.status();
}

Expected<std::vector<Array>> Session::run(const std::vector<Array> &inputs) {
  std::vector<Array> outputs;
  HPC_RETURN_IF_ERROR(run(inputs, outputs));
  return outputs;
}

int64_t Session::peakBytesPerRank() const {
  int64_t peak = 0;
  for (const Rank &rank : ranks)
    peak = std::max(peak, rank.arena->bytes() + rank.device->scratchBytes() + rank.communicator->scratchBytes());
  return peak;
}

} // namespace hpc
