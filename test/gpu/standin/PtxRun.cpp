// A block: its threads run one after the other until they reach a barrier, a shuffle or the end, in forward, reverse or
// random order, so that a missing barrier shows. Registers and shared memory begin as junk.
#include "test/gpu/standin/Ptx.h"

#include <algorithm>
#include <cstring>

namespace standin::ptx {

namespace {

/// Neighbouring accesses become one.
struct Ranges {
  std::vector<Range> list;
  size_t compactAt = 4096;

  void add(uint64_t begin, uint64_t bytes) {
    for (size_t i = list.size(), back = 0; i-- > 0 && back < 4; ++back)
      if (list[i].begin <= begin && begin <= list[i].begin + list[i].bytes) {
        list[i].bytes = std::max(list[i].bytes, begin + bytes - list[i].begin);
        return;
      }
    list.push_back({begin, bytes});
    if (list.size() >= compactAt) {
      compact();
      compactAt = std::max<size_t>(4096, 2 * list.size());
    }
  }
  void compact() {
    std::sort(list.begin(), list.end(), [](const Range &a, const Range &b) { return a.begin < b.begin; });
    std::vector<Range> merged;
    for (const Range &range : list)
      if (!merged.empty() && range.begin <= merged.back().begin + merged.back().bytes)
        merged.back().bytes = std::max(merged.back().bytes, range.begin + range.bytes - merged.back().begin);
      else
        merged.push_back(range);
    list = std::move(merged);
  }
};

} // namespace

struct Block {
  const Running *running;
  std::vector<std::byte> shared;
  Ranges reads, writes;
  // The allocation that was used last.
  uint64_t begin = 1, end = 0;
  std::byte *data = nullptr;
};

std::byte *address(Frame &frame, const Instruction &instruction, uint64_t at, uint64_t bytes, bool isWrite) {
  Block &block = *frame.block;
  auto fault = [&](hpc::cuda::DriverResult result) -> std::byte * {
    block.running->fault(result);
    frame.failed = true;
    return nullptr;
  };
  Space space = instruction.space;
  if (space == Space::Generic)
    space = at >= localWindow ? Space::Local : at >= sharedWindow ? Space::Shared : Space::Global;
  if (at % bytes != 0)
    return fault(716); // CUDA_ERROR_MISALIGNED_ADDRESS
  if (space == Space::Param)
    return frame.params + at;
  if (space == Space::Local)
    return frame.local + (at >= localWindow ? at - localWindow : at);
  if (space == Space::Shared) {
    const uint64_t offset = at >= sharedWindow ? at - sharedWindow : at;
    return offset + bytes <= block.shared.size() ? block.shared.data() + offset
                                                 : fault(hpc::cuda::driverIllegalAddress);
  }
  if (at < block.begin || at + bytes > block.end) {
    std::byte *found = block.running->access(at, bytes);
    int device = 0;
    if (!found || !Memory::instance().find(at, bytes, device, &block.begin, &block.end)) {
      block.begin = 1, block.end = 0;
      frame.failed = true;
      return nullptr;
    }
    block.data = found - (at - block.begin);
  }
  (isWrite ? block.writes : block.reads).add(at, bytes);
  return block.data + (at - block.begin);
}

namespace {

struct Thread {
  std::vector<uint64_t> registers;
  std::vector<std::byte> local;
  int pc = 0;
  enum State { Runs, AtBarrier, AtShuffle, Done } state = Runs;
};

/// Runs until something stops the thread.
void advance(const Kernel &kernel, Thread &thread, Frame &frame) {
  while (!frame.failed) {
    const Instruction &instruction = kernel.code[size_t(thread.pc)];
    if (instruction.guard >= 0 && (frame.registers[instruction.guard] & 1) == uint64_t(instruction.guardIsNegated)) {
      ++thread.pc;
      continue;
    }
    switch (instruction.flow) {
    case Flow::Plain:
      instruction.handler(frame, instruction);
      break;
    case Flow::Branch:
      thread.pc = instruction.target;
      continue;
    case Flow::Return:
      thread.state = Thread::Done;
      return;
    case Flow::Trap:
      frame.block->running->fault(hpc::cuda::driverLaunchFailed);
      frame.failed = true;
      return;
    case Flow::Barrier:
      thread.state = Thread::AtBarrier;
      return;
    case Flow::Shuffle:
      thread.state = Thread::AtShuffle;
      return;
    }
    ++thread.pc;
  }
}

/// args: result, whether the source was in range, value, lane or distance, clamp and segment, mask.
void shuffle(const Kernel &kernel, std::vector<Thread> &threads, size_t first, size_t count) {
  std::vector<uint64_t> values(count, 0);
  for (size_t lane = 0; lane < count; ++lane)
    if (Thread &thread = threads[first + lane]; thread.state == Thread::AtShuffle)
      values[lane] = thread.registers[size_t(kernel.code[size_t(thread.pc)].args[2])];
  for (size_t lane = 0; lane < count; ++lane) {
    Thread &thread = threads[first + lane];
    if (thread.state != Thread::AtShuffle)
      continue;
    const Instruction &instruction = kernel.code[size_t(thread.pc)];
    const int64_t by = int64_t(thread.registers[size_t(instruction.args[3])] & 31);
    const int64_t control = int64_t(thread.registers[size_t(instruction.args[4])]);
    const int64_t clamp = control & 31, segment = control >> 8 & 31, me = int64_t(lane);
    const int64_t most = (me & segment) | (clamp & ~segment), least = me & segment;
    int64_t source = instruction.mode == 'b'   ? me ^ by
                     : instruction.mode == 'u' ? me - by
                     : instruction.mode == 'd' ? me + by
                                               : least | (by & ~segment);
    bool inRange = instruction.mode == 'u' ? source >= most : source <= most;
    if (!inRange)
      source = me;
    const bool isThere = source < int64_t(count) && threads[first + size_t(source)].state == Thread::AtShuffle;
    thread.registers[size_t(instruction.args[0])] =
        isThere ? uint32_t(values[size_t(source)]) : 0xa5a5a5a5u; // undefined: junk
    thread.registers[size_t(instruction.args[1])] = inRange;
    ++thread.pc;
  }
  for (size_t lane = 0; lane < count; ++lane)
    if (threads[first + lane].state == Thread::AtShuffle)
      threads[first + lane].state = Thread::Runs;
}

void runBlock(const Kernel &kernel, const Launch &launch, Block &block, unsigned index, std::vector<Thread> &threads,
              std::mt19937_64 &random, std::vector<std::byte> &params) {
  const unsigned order = unsigned(random() % 3);
  std::vector<unsigned> turn(launch.threads);
  for (unsigned t = 0; t < launch.threads; ++t)
    turn[t] = order == 1 ? launch.threads - 1 - t : t;
  for (unsigned t = 0; t < launch.threads; ++t) {
    Thread &thread = threads[t];
    thread.pc = 0;
    thread.state = Thread::Runs;
    std::fill(thread.registers.begin(), thread.registers.end(), 0xa5a5a5a5a5a5a5a4u);
    for (auto [number, value] : kernel.constants)
      thread.registers[size_t(number)] = value;
    const uint64_t specials[] = {
        t, launch.threads, index, launch.blocks, t % 32, uint64_t(kernel.sharedBytes + 15) / 16 * 16};
    for (size_t i = 0; i < 6; ++i)
      if (kernel.specials[i] >= 0)
        thread.registers[size_t(kernel.specials[i])] = specials[i];
  }
  block.shared.assign((size_t(kernel.sharedBytes) + 15) / 16 * 16 + launch.sharedBytes, std::byte{0xff});
  while (true) {
    if (order == 2)
      std::shuffle(turn.begin(), turn.end(), random);
    for (unsigned t : turn) {
      if (threads[t].state != Thread::Runs)
        continue;
      Frame frame{threads[t].registers.data(), params.data(), threads[t].local.data(), &block};
      advance(kernel, threads[t], frame);
      if (frame.failed)
        return;
    }
    bool shuffled = false, waiting = false;
    for (size_t first = 0; first < launch.threads; first += 32) {
      const size_t count = std::min<size_t>(32, launch.threads - first);
      size_t here = 0, others = 0;
      for (size_t lane = 0; lane < count; ++lane) {
        here += threads[first + lane].state == Thread::AtShuffle;
        others += threads[first + lane].state == Thread::AtBarrier;
        waiting |= threads[first + lane].state == Thread::AtBarrier;
      }
      if (here > 0 && others > 0) { // half of a warp waits for the other half, which waits for the block
        block.running->fault(hpc::cuda::driverLaunchFailed);
        return;
      }
      if (here > 0) {
        shuffle(kernel, threads, first, count);
        shuffled = true;
      }
    }
    if (shuffled)
      continue;
    if (!waiting)
      return;
    for (Thread &thread : threads)
      if (thread.state == Thread::AtBarrier) {
        thread.state = Thread::Runs;
        ++thread.pc;
      }
  }
}

} // namespace

void run(const Kernel &kernel, const Launch &launch, const Running &running) {
  std::mt19937_64 random(launch.seed);
  Block block;
  block.running = &running;
  std::vector<std::byte> params = launch.params;
  std::vector<Thread> threads(launch.threads);
  for (Thread &thread : threads) {
    thread.registers.resize(size_t(kernel.numRegisters));
    thread.local.resize(size_t(kernel.localBytes) + 16);
  }
  for (unsigned index = 0; index < launch.blocks && running.context.error == 0; ++index)
    runBlock(kernel, launch, block, index, threads, random, params);
  block.reads.compact();
  block.writes.compact();
  running.note(block.reads.list, false);
  running.note(block.writes.list, true);
}

} // namespace standin::ptx
