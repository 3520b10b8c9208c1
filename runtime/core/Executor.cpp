// One overload per action, twice: what is looked up before the run, and what is done in it.
#include "runtime/core/Executor.h"

#include "runtime/base/ArrayElements.h"
#include "runtime/plan/PlanNames.h"

#include <algorithm>
#include <pthread.h>
#include <tuple>

namespace hpc {

struct Executor::Prepare {
  Executor &executor;
  const Backend &backend;
  WeightPacking &packing;
  Prepared &entry;

  template <typename F> void eachMicroBatch(F f) const {
    for (int64_t microBatch = 0; microBatch < executor.plan.microBatches; ++microBatch)
      f(executor.at(microBatch));
  }
  void slices(const plan::Slice &slice, DType dtype) const {
    eachMicroBatch([&](Place place) { entry.slices.emplace_back(slice, byteSize(dtype), place); });
  }

  Status operator()(const plan::Gemm &gemm) const {
    Expected<std::vector<GemmHandle>> handles = executor.prepareProduct(gemm);
    if (!handles.ok())
      return handles.status();
    entry.gemms = std::move(*handles);
    packing.add(gemm, entry.gemms);
    return Status::success();
  }
  Status operator()(const plan::Kernel &kernel) const {
    Expected<KernelHandle> handle = backend.kernel(kernel.symbol);
    if (!handle.ok())
      return handle.status();
    entry.kernel = *handle;
    if (kernel.attention) {
      Expected<int64_t> library = executor.device.prepare(*kernel.attention);
      if (!library.ok())
        return library.status();
      entry.library = *library;
    }
    eachMicroBatch([&](Place place) {
      entry.launches.push_back(
          {place(kernel.launch.blocks), place(kernel.launch.threads), place(kernel.launch.sharedBytes)});
    });
    executor.setScalars(kernel, entry);
    if (std::any_of(kernel.scalars.begin(), kernel.scalars.end(), [](const plan::ByCoord &scalar) { return scalar.varies(); }))
      executor.varying.emplace_back(&kernel, &entry);
    executor.args.resize(std::max(executor.args.size(), kernel.args.size()));
    return Status::success();
  }
  Status operator()(const plan::Collective &collective) const {
    Expected<int64_t> group = executor.communicator.prepare(collective);
    if (!group.ok())
      return group.status();
    entry.group = *group;
    return Status::success();
  }
  Status operator()(const plan::LoadInput &load) const {
    slices(load.slice, executor.plan.inputs[size_t(load.input)].dtype);
    return Status::success();
  }
  Status operator()(const plan::StoreOutput &store) const {
    slices(store.slice, executor.plan.outputs[size_t(store.output)].dtype);
    return Status::success();
  }
  Status operator()(const plan::Copy &copy) const {
    executor.varies |= copy.srcOffset.varies() || copy.dstOffset.varies();
    return Status::success();
  }
  Status operator()(const plan::Accumulate &) const { return Status::success(); }
  Status operator()(const plan::Send &) const { return Status::success(); }
  Status operator()(const plan::Recv &) const { return Status::success(); }
  Status operator()(const plan::Wait &) const { return Status::success(); }
};

struct Executor::Execute {
  Executor &executor;
  const Prepared &entry;
  const std::vector<Array> &inputs;
  std::vector<Array> &outputs;
  Place place;

  std::byte *address(const plan::Ref &ref) const { return executor.arena.at(ref, place.microBatch); }
  int64_t request(int32_t id) const {
    return executor.firstRequest[size_t(id)] + place.microBatch % executor.stage.requests[size_t(id)];
  }

  Status operator()(const plan::Gemm &gemm) const {
    return executor.device.gemm(entry.gemms[size_t(place.microBatch)], executor.callOf(gemm, place));
  }
  Status operator()(const plan::Kernel &kernel) const {
    for (size_t i = 0; i < kernel.args.size(); ++i)
      executor.args[i] = address(kernel.args[i].place);
    const int64_t *scalars = entry.scalars.data() + place.microBatch * int64_t(kernel.scalars.size());
    const auto &[blocks, threads, sharedBytes] = entry.launches[size_t(place.microBatch)];
    return executor.device.kernel({entry.kernel, executor.args.data(), scalars, kernel, blocks, threads, sharedBytes,
                                   entry.library});
  }
  Status operator()(const plan::Copy &copy) const {
    return executor.device.copy(address(copy.dst) + place(copy.dstOffset), address(copy.src) + place(copy.srcOffset), copy.bytes);
  }
  Status operator()(const plan::Accumulate &sum) const {
    if (place(sum.add))
      return executor.device.accumulate(address(sum.dst), address(sum.src), sum.dtype, sum.count);
    return executor.device.copy(address(sum.dst), address(sum.src), sum.count * byteSize(sum.dtype));
  }
  Status operator()(const plan::Collective &collective) const {
    if (collective.request >= 0)
      return executor.communicator.post(collective, entry.group, address(collective.src), address(collective.dst),
                                        place(collective.source), request(collective.request));
    return executor.communicator.collective(collective, entry.group, address(collective.src), address(collective.dst),
                                            place(collective.source));
  }
  Status operator()(const plan::Send &send) const {
    int64_t peer = place(send.peer);
    return peer < 0
               ? Status::success()
               : executor.communicator.send(peer, send.channel, address(send.src), send.bytes, request(send.request));
  }
  Status operator()(const plan::Recv &recv) const {
    int64_t peer = place(recv.peer);
    return peer < 0 ? Status::success()
                    : executor.communicator.receive(peer, recv.channel, address(recv.dst), recv.bytes,
                                                    request(recv.request));
  }
  Status operator()(const plan::Wait &wait) const { return executor.communicator.wait(request(wait.request)); }
  Status operator()(const plan::LoadInput &load) const {
    return executor.device.gather(entry.slices[size_t(place.microBatch)], inputs[size_t(load.input)].data.data(),
                                  address(load.dst));
  }
  Status operator()(const plan::StoreOutput &store) const {
    if (!place(store.owner))
      return Status::success();
    if (!executor.outputTransfer.isHome())
      return executor.outputTransfer.keep(address(store.src));
    return executor.device.scatter(entry.slices[size_t(place.microBatch)], address(store.src),
                                   outputs[size_t(store.output)].data.data());
  }
};

Executor::Executor(const plan::Plan &plan, SpecialStage special, RankPlace place, Device &device, Communicator &communicator,
                   Arena &arena, const ExecutorOptions &options)
    : plan(plan), special(std::move(special)), stage(*this->special.stage), place(place), ranksPerStage(plan.ranksPerStage()),
      device(device), communicator(communicator), arena(arena), options(options) {
  int64_t next = 0;
  for (int32_t slots : stage.requests) {
    firstRequest.push_back(next);
    next += slots;
  }
  for (const plan::Port &port : plan.inputs)
    stepScalars.push_back(port.largest.value_or(0));
}

void Executor::setScalars(const plan::Kernel &kernel, Prepared &entry) const {
  entry.scalars.clear();
  for (int64_t microBatch = 0; microBatch < plan.microBatches; ++microBatch)
    for (const plan::ByCoord &scalar : kernel.scalars)
      entry.scalars.push_back(at(microBatch)(scalar));
}

void Executor::takeStepScalars(const std::vector<Array> &inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const std::optional<int64_t> &largest = plan.inputs[i].largest)
      stepScalars[i] = inputs[i].data.empty() ? *largest : integerAt(inputs[i], 0);
  for (const auto &[kernel, entry] : varying)
    setScalars(*kernel, *entry);
}

GemmCall Executor::callOf(const plan::Gemm &gemm, Place place) const {
  auto address = [&](const plan::Ref &ref) { return arena.at(ref, place.microBatch); };
  GemmCall call{gemm,
                place(gemm.m),
                place(gemm.n),
                place(gemm.k),
                place(gemm.addToC) != 0,
                address(gemm.a.place) + place(gemm.a.offset),
                address(gemm.b.place) + place(gemm.b.offset),
                address(gemm.c.place)};
  if (gemm.epilogue) {
    call.epilogue = gemm.epilogue->kind;
    call.bias = address(gemm.epilogue->bias);
  }
  return call;
}

/// Handles by micro-batch; addresses are known of Session buffers alone.
Expected<std::vector<GemmHandle>> Executor::prepareProduct(const plan::Gemm &gemm) const {
  std::vector<GemmHandle> handles;
  std::tuple<int64_t, int64_t, int64_t, bool, int64_t, int64_t, const std::byte *, const std::byte *, const std::byte *> before;
  auto isBound = [&](const plan::Operand &operand) {
    return stage.buffers[size_t(operand.place.buffer)].lifetime == plan::Lifetime::Session;
  };
  for (int64_t microBatch = 0; microBatch < plan.microBatches; ++microBatch) {
    GemmCall call = callOf(gemm, at(microBatch));
    call.a = isBound(gemm.a) ? call.a : nullptr;
    call.b = isBound(gemm.b) ? call.b : nullptr;
    call.c = isBound(gemm.c) ? call.c : nullptr;
    std::tuple now{call.m, call.n, call.k, call.addToC, at(microBatch)(gemm.a.offset), at(microBatch)(gemm.b.offset), call.a, call.b, call.c};
    if (!handles.empty() && now == before) {
      handles.push_back(handles.back());
      continue;
    }
    before = now;
    Expected<GemmHandle> handle = device.prepare(call);
    if (!handle.ok())
      return handle.status();
    handles.push_back(*handle);
  }
  return handles;
}

Status Executor::prepare(const Backend &backend, WeightPacking &packing) {
  for (const plan::Program &program : stage.programs) {
    std::vector<Prepared> &entries = prepared.emplace_back(program.instructions.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      const plan::Instruction &instruction = program.instructions[i];
      Status status = std::visit(Prepare{*this, backend, packing, entries[i]}, instruction.action);
      if (!status.ok())
        return status.at(std::string(plan::actionName(instruction.action)) + " of node '" + instruction.node + "'");
    }
  }
  // Ranks number their requests densely, the one of the outputs last.
  Expected<OutputTransfer> transfer =
      OutputTransfer::create(plan, place, options.ranks, device, communicator, requestCount(stage) - 1);
  if (!transfer.ok())
    return transfer.status();
  outputTransfer = std::move(*transfer);
  return Status::success();
}

int64_t Executor::requestCount(const plan::Stage &stage) {
  int64_t slots = 0;
  for (int32_t request : stage.requests)
    slots += request;
  return slots + 1;
}

/// What the host has its part in, also where the device replays a step.
static bool isForHost(const plan::Action &action, bool hasOutputs) {
  return std::holds_alternative<plan::LoadInput>(action) ||
         (std::holds_alternative<plan::StoreOutput>(action) && hasOutputs);
}

Status Executor::runProgram(int32_t stepIndex, const std::vector<Array> &inputs, std::vector<Array> &outputs,
                            Outputs wanted, bool replays) {
  const plan::ScheduleStep &step = stage.schedule[size_t(stepIndex)];
  const plan::Program &program = stage.programs[size_t(step.program)];
  if (options.poison && !replays)
    HPC_RETURN_IF_ERROR(arena.poisonTemporaries(device));
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const plan::Instruction &instruction = program.instructions[i];
    if (!at(step.microBatch)(instruction.when) || (instruction.onRequest && wanted == Outputs::Ordinary))
      continue;
    if (replays && !isForHost(instruction.action, outputTransfer.isHome()))
      continue;
    begin(stepIndex, uint32_t(i));
    Trace::Event event{stepIndex, int32_t(i), {}, {}};
    if (options.trace)
      event.start = Trace::Clock::now();
    Status status = std::visit(Execute{*this, prepared[size_t(step.program)][i], inputs, outputs, at(step.microBatch)},
                               instruction.action);
    communicator.progress();
    if (options.trace) {
      event.end = Trace::Clock::now();
      options.trace->add(place.rank, event);
    }
    if (status.ok() && options.observer)
      status = options.observer({place, step.microBatch, step.program, int64_t(i), arena});
    if (!status.ok())
      return status.at("rank " + std::to_string(place.rank) + " (stage " + std::to_string(place.stage) + "), '" +
                       programText(program) + "' of micro-batch " + std::to_string(step.microBatch) + ", instruction " +
                       std::to_string(i) + " (" + plan::actionName(instruction.action) + " of node '" +
                       instruction.node + "')");
  }
  return Status::success();
}

Status Executor::run(const std::vector<Array> &inputs, std::vector<Array> &outputs, Outputs wanted) {
  runs.fetch_add(1, std::memory_order_relaxed);
  if (clockid_t clock = -1; cpuClock < 0 && ::pthread_getcpuclockid(::pthread_self(), &clock) == 0)
    cpuClock = clock;
  Status status = runStep(inputs, outputs, wanted);
  if (!status.ok())
    device.abandon();
  here = nowhere;
  return status;
}

Status Executor::runStep(const std::vector<Array> &inputs, std::vector<Array> &outputs, Outputs wanted) {
  takeStepScalars(inputs);
  HPC_RETURN_IF_ERROR(device.begin());
  bool replays = false;
  // Of the two kinds of step a device need know one, the one that comes again and again.
  const bool isOrdinary =
      wanted == Outputs::Ordinary ||
      std::none_of(plan.outputs.begin(), plan.outputs.end(), [](const plan::Port &port) { return port.onRequest; });
  if (options.mayReplay && !varies && varying.empty() && isOrdinary && !options.observer && !options.trace) {
    Expected<bool> asked = device.replays();
    if (!asked.ok())
      return asked.status();
    replays = *asked;
  }
  if (options.poison && !replays)
    HPC_RETURN_IF_ERROR(arena.poisonWork(device));
  outputTransfer.begin(wanted == Outputs::All);
  for (const DirectPort &port : special.directPorts) // nothing writes an input
    arena.place(port.buffer, port.isOutput ? outputs[size_t(port.port)].data.data()
                                           : const_cast<std::byte *>(inputs[size_t(port.port)].data.data()));
  for (int32_t step = 0; step < int32_t(stage.schedule.size()); ++step)
    HPC_RETURN_IF_ERROR(runProgram(step, inputs, outputs, wanted, replays));
  HPC_RETURN_IF_ERROR(device.launch());
  begin(0, BringingOutputs);
  Status status = outputTransfer.finish(outputs);
  if (!status.ok())
    return status.at("rank " + std::to_string(place.rank) + ", bringing outputs to rank 0");
  begin(0, AwaitingDevice);
  return device.finish();
}

} // namespace hpc
