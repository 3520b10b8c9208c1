// Fibers by hand: a switch saves the registers that a callee must, and changes stacks. ucontext would make a system call
// at each of the millions of switches that a test does.
#include "test/gpu/BlockRunner.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

// hpc_fiber_switch(void **save, void *to): leaves the current stack at *save and goes on where `to` was left.
asm(R"(
.text
.p2align 4
.type hpc_fiber_switch, @function
hpc_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size hpc_fiber_switch, .-hpc_fiber_switch
)");
extern "C" void hpc_fiber_switch(void **save, void *to);

struct HpcBlockModule {
  void *handle;
  int file; ///< open as long as the code is loaded: dlopen takes an equal path for the same library
};

namespace {
constexpr size_t stackBytes = 64 << 10;
constexpr uint32_t warp = 32;

size_t pageBytes() { return size_t(sysconf(_SC_PAGESIZE)); }

/// Memory between two unmapped pages.
class Guarded {
public:
  explicit Guarded(size_t wanted) {
    size_t page = pageBytes();
    bytes = (wanted + page - 1) / page * page;
    mapped = mmap(nullptr, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED || mprotect(begin(), bytes, PROT_READ | PROT_WRITE) != 0) {
      std::perror("hpcBlocksRun: no memory for a block");
      std::abort();
    }
  }
  Guarded(Guarded &&other) : mapped(other.mapped), bytes(other.bytes) { other.mapped = nullptr; }
  Guarded(const Guarded &) = delete;
  ~Guarded() {
    if (mapped)
      munmap(mapped, bytes + 2 * pageBytes());
  }
  char *begin() const { return static_cast<char *>(mapped) + pageBytes(); }
  char *end() const { return begin() + bytes; }

private:
  void *mapped;
  size_t bytes;
};

struct Random {
  uint64_t state;
  uint64_t next() { // xorshift64*
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return state * 0x2545F4914F6CDD1Dull;
  }
};

class Launch;
thread_local Launch *current = nullptr;

class Launch {
public:
  Launch(HpcBlockKernel kernel, const HpcBlockLaunch &shape, void *const *params)
      : kernel(kernel), params(params), shape(shape), random{shape.seed * 2 + 1},
        // As much as asked for, rounded to the alignment that the code relies on, ends at the unmapped page.
        sharedSize((size_t(shape.sharedBytes) + 15) / 16 * 16), sharedMemory(std::max<size_t>(sharedSize, 16)) {
    threads.reserve(size_t(shape.threads));
    for (int64_t i = 0; i < shape.threads; ++i)
      threads.emplace_back();
  }

  bool run() {
    for (int64_t i : order(shape.blocks))
      if (!runBlock(uint32_t(i)))
        return false;
    return true;
  }

  // What code calls, on a thread's stack.
  uint32_t thread() const { return running; }
  uint32_t block() const { return blockNumber; }
  char *shared() const { return sharedMemory.end() - sharedSize; }
  void wait(int reason, uint32_t value, uint32_t distance) {
    Thread &me = threads[running];
    me.state = State(reason), me.value = value, me.distance = distance;
    hpc_fiber_switch(&me.stack, scheduler);
  }
  uint32_t exchanged() const { return threads[running].value; }
  void runThread() { kernel(params); }

  enum class State { Ready, AtBarrier, AtShuffle, Ended };
  std::string error;

private:
  struct Thread {
    Thread() : memory(stackBytes) {}
    Guarded memory;
    void *stack = nullptr;
    State state = State::Ready;
    uint32_t value = 0, distance = 0;
  };

  std::vector<int64_t> order(int64_t count) {
    std::vector<int64_t> numbers(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      numbers[size_t(i)] = shape.order == HPC_BLOCKS_REVERSE ? count - 1 - i : i;
    if (shape.order == HPC_BLOCKS_RANDOM)
      for (size_t i = numbers.size(); i > 1; --i)
        std::swap(numbers[i - 1], numbers[random.next() % i]);
    return numbers;
  }

  static void fiberMain() {
    current->runThread();
    current->wait(int(State::Ended), 0, 0);
    __builtin_unreachable();
  }

  void prepare(Thread &thread) {
    // As hpc_fiber_switch left it: six registers, then where it returns to. A function begins 8 bytes beside a multiple
    // of 16.
    void **top = reinterpret_cast<void **>(thread.memory.end()) - 1;
    *top = nullptr;
    *--top = reinterpret_cast<void *>(&fiberMain);
    for (int i = 0; i < 6; ++i)
      *--top = nullptr;
    thread.stack = top;
    thread.state = State::Ready;
  }

  bool runBlock(uint32_t number) {
    blockNumber = number;
    std::memset(shared(), 0xFF, sharedSize);
    for (Thread &thread : threads)
      prepare(thread);
    while (true) {
      bool moved = false;
      for (int64_t i : order(shape.threads)) {
        if (threads[size_t(i)].state != State::Ready)
          continue;
        moved = true;
        running = uint32_t(i);
        hpc_fiber_switch(&scheduler, threads[size_t(i)].stack);
        if (threads[size_t(i)].state == State::AtShuffle)
          exchange(uint32_t(i) / warp);
      }
      if (count(State::Ended) == shape.threads)
        return true;
      if (count(State::AtBarrier) == shape.threads) {
        for (Thread &thread : threads)
          thread.state = State::Ready;
        continue;
      }
      if (!moved)
        return stuck();
    }
  }

  int64_t count(State state) const {
    return std::count_if(threads.begin(), threads.end(), [&](const Thread &one) { return one.state == state; });
  }

  /// Lets a warp go on when all its lanes are here.
  void exchange(uint32_t number) {
    size_t begin = size_t(number) * warp;
    if (begin + warp > threads.size())
      return;
    uint32_t distance = threads[begin].distance, values[warp];
    for (size_t lane = 0; lane < warp; ++lane) {
      const Thread &thread = threads[begin + lane];
      if (thread.state != State::AtShuffle || thread.distance != distance)
        return;
      values[lane] = thread.value;
    }
    for (size_t lane = 0; lane < warp; ++lane) {
      threads[begin + lane].value = values[(lane ^ distance) % warp];
      threads[begin + lane].state = State::Ready;
    }
  }

  bool stuck() {
    error = "block " + std::to_string(blockNumber) + " of " + std::to_string(shape.blocks) + " is stuck: of " +
            std::to_string(shape.threads) + " threads " + std::to_string(count(State::AtBarrier)) +
            " stand at a barrier, " + std::to_string(count(State::AtShuffle)) + " at a shuffle, " +
            std::to_string(count(State::Ended)) + " have ended";
    return false;
  }

  HpcBlockKernel kernel;
  void *const *params;
  HpcBlockLaunch shape;
  Random random;
  size_t sharedSize;
  Guarded sharedMemory;
  std::vector<Thread> threads;
  void *scheduler = nullptr;
  uint32_t running = 0, blockNumber = 0;
};

uint32_t threadOf() { return current->thread(); }
uint32_t blockOf() { return current->block(); }
void waitAtBarrier() { current->wait(int(Launch::State::AtBarrier), 0, 0); }
uint32_t shuffleXor(uint32_t value, uint32_t distance) {
  current->wait(int(Launch::State::AtShuffle), value, distance);
  return current->exchanged();
}
void *sharedOf() { return current->shared(); }
const HpcBlockTable table = {threadOf, blockOf, waitAtBarrier, shuffleXor, sharedOf};

void report(char *error, size_t bytes, const std::string &text) {
  if (error && bytes)
    std::snprintf(error, bytes, "%s", text.c_str());
}
} // namespace

const HpcBlockTable *hpcBlocksTable(void) { return &table; }

HpcBlockModule *hpcBlocksLoad(const void *object, size_t bytes, char *error, size_t errorBytes) {
  // A number that no other loader of memory files gets, for the same reason.
  int low = memfd_create("device-kernels", MFD_CLOEXEC), file = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, 512);
  if (low >= 0)
    close(low);
  size_t done = 0;
  while (file >= 0 && done < bytes) {
    ssize_t written = write(file, static_cast<const char *>(object) + done, bytes - done);
    if (written <= 0)
      break;
    done += size_t(written);
  }
  void *handle = nullptr;
  if (file >= 0 && done == bytes)
    handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  void *place = handle ? dlsym(handle, "hpc_block_runner") : nullptr;
  if (!place) {
    const char *cause = dlerror();
    report(error, errorBytes, std::string("no device code for the CPU: ") + (cause ? cause : "no memory"));
    if (handle)
      dlclose(handle);
    if (file >= 0)
      close(file);
    return nullptr;
  }
  *static_cast<const HpcBlockTable **>(place) = &table;
  return new HpcBlockModule{handle, file};
}

HpcBlockKernel hpcBlocksFind(HpcBlockModule *module, const char *symbol) {
  return reinterpret_cast<HpcBlockKernel>(dlsym(module->handle, symbol));
}

void hpcBlocksUnload(HpcBlockModule *module) {
  dlclose(module->handle);
  close(module->file);
  delete module;
}

int hpcBlocksRun(HpcBlockKernel kernel, const HpcBlockLaunch *shape, void *const *params, char *error,
                 size_t errorBytes) {
  if (shape->threads < 1 || shape->threads > 1024 || shape->blocks < 0 || shape->blocks > INT32_MAX ||
      shape->sharedBytes < 0 || shape->sharedBytes > 227 << 10) {
    report(error, errorBytes, "a launch of " + std::to_string(shape->blocks) + " blocks x " +
                                  std::to_string(shape->threads) + " threads with " +
                                  std::to_string(shape->sharedBytes) + " bytes shared is none that a card takes");
    return 1;
  }
  Launch launch(kernel, *shape, params);
  Launch *outer = current;
  current = &launch;
  bool done = launch.run();
  current = outer;
  if (!done)
    report(error, errorBytes, launch.error);
  return done ? 0 : 1;
}
