// What a backend has to provide: a device for each rank that computes, a communicator for each rank that talks, and one
// word on how a step ended. The executor and the session know these interfaces alone. Pointers are in the device's
// memory unless said otherwise, and an instruction may have been no more than enqueued when its call returns: what it
// does wrong later is found by finish().
#pragma once

#include "runtime/base/RankWatch.h"
#include "runtime/base/Status.h"
#include "runtime/core/Slice.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/plan/Plan.h"

#include <memory>
#include <optional>

namespace hpc {

/// One rank: rank = stage * ranksPerStage + coordinate.
struct RankPlace {
  int64_t rank = 0, stage = 0, coordinate = 0;
};

/// The ranks of one process: first .. first+count-1.
struct RankRange {
  int64_t first = 0, count = 0;

  bool holds(int64_t rank) const { return rank >= first && rank < first + count; }
};

/// A generated function, as the backend's device calls it.
using KernelHandle = const void *;

/// What a device keeps of a product that it has prepared, by a number of its own.
using GemmHandle = int64_t;

/// A plan::Gemm at one rank and micro-batch; types, strides and layouts stand in `plan`.
struct GemmCall {
  const plan::Gemm &plan;
  int64_t m, n, k;
  bool addToC;
  const std::byte *a, *b;
  std::byte *c;
  /// What is done to each element before it is stored, which then is once rounded; Device::fuses has taken it.
  std::optional<plan::EpilogueKind> epilogue = std::nullopt;
  const std::byte *bias = nullptr; ///< a vector of n elements of C's type, with an epilogue
};

/// A plan::Kernel at one rank and micro-batch.
struct KernelCall {
  KernelHandle kernel;
  void *const *args;      ///< one for each of the plan's
  const int64_t *scalars; ///< likewise
  const plan::Kernel &plan;
  int64_t blocks, threads, sharedBytes; ///< 0 where the plan has no launch
  int64_t library = -1;                 ///< what Device::prepare returned for the kernel's attention
};

/// Computes for one rank. Used by that rank's thread alone, which also makes and destroys it; what it gives to the
/// rank's helpers is done when a call returns.
class Device {
public:
  virtual ~Device() = default;

  /// Memory that lives as long as the device, a multiple of 64 in address, every byte `fill`. 0 bytes are legal.
  virtual Expected<std::byte *> allocate(plan::Space space, int64_t bytes, std::byte fill) = 0;
  /// Before each step: forgets what one that failed has left.
  virtual Status begin() { return Status::success(); }
  /// Called after begin(), unless an observer watches instructions. True: the device replays the recorded programs of an
  /// earlier step (a CUDA graph). The executor then issues only loads and stores, in the order of the schedule, since their
  /// part on the host must run in each step.
  virtual Expected<bool> replays() { return false; }
  /// After the last program: what was only recorded until now, or is replayed, is enqueued.
  virtual Status launch() { return Status::success(); }
  /// The step has ended with an error, on this rank.
  virtual void abandon() {}
  virtual Status fill(std::byte *target, std::byte value, int64_t bytes) = 0;
  /// Within a space or between the two.
  virtual Status copy(std::byte *target, const std::byte *source, int64_t bytes) = 0;
  /// target[i] += source[i].
  virtual Status accumulate(std::byte *target, const std::byte *source, DType dtype, int64_t count) = 0;
  /// Whether its memory is the host's, so that a buffer may as well be an array of the caller's.
  virtual bool worksInHostMemory() const { return false; }
  /// Between a global tensor in the host's memory and a box on the device. gather() has read the tensor when it
  /// returns; scatter() may write until finish() does, and needs its slice until then.
  virtual Status gather(const SliceCopy &slice, const std::byte *host, std::byte *target) = 0;
  virtual Status scatter(const SliceCopy &slice, const std::byte *source, std::byte *host) = 0;

  /// Told of every product before the first run, when weights are bound: the place to choose an algorithm, to reserve
  /// scratch and to refuse. Addresses are those of the run where the operand lies in a
  /// Session buffer, else null. gemm() gets what this returned.
  virtual Expected<GemmHandle> prepare(const GemmCall &call) = 0;
  virtual Status gemm(GemmHandle handle, const GemmCall &call) = 0;
  /// Asked before that whether a product may take over the kernel after it, as its epilogue. Addresses are null.
  virtual Expected<bool> fuses(const GemmCall &) { return false; }
  /// Then told of every weight that products have as packed B [k, n] (plan::Operand::packed), stored at `b` as `gemm`
  /// says, with the handles of all of them: it may rearrange those bytes for them. Of products of windows it is A, n rows.
  virtual Status pack(const plan::Gemm &, std::byte *, int64_t, int64_t, const std::vector<GemmHandle> &) {
    return Status::success();
  }
  /// Told of every kernel that is an attention, at the same time: a number of the device's own where a library of it
  /// takes the kernel's place, else -1.
  virtual Expected<int64_t> prepare(const plan::Attention &) { return int64_t(-1); }
  virtual Status kernel(const KernelCall &call) = 0;

  /// Returns when all that was asked of this device is done; what scatter wrote may then be read.
  virtual Status finish() = 0;

  /// Bytes that libraries take beside the arenas at their peak.
  virtual int64_t scratchBytes() const = 0;
};

/// Talks for one rank. Used by that rank's thread alone. Every wait ends when a rank of the world has failed, with that
/// rank's error. Requests are numbered from 0 to what Backend::createCommunicator was told.
class Communicator {
public:
  virtual ~Communicator() = default;

  /// Told of every collective before the first run, in the same order on all ranks of a stage; returns what
  /// collective() wants as `group`.
  virtual Expected<int64_t> prepare(const plan::Collective &collective) = 0;
  /// Done when it returns.
  virtual Status collective(const plan::Collective &collective, int64_t group, const std::byte *source,
                            std::byte *target, int64_t sourcePosition) = 0;
  /// Posts a collective, send or receive, which wait() completes. Returns without waiting for another rank; until the
  /// wait the source may not be written and the target not be touched.
  virtual Status post(const plan::Collective &collective, int64_t group, const std::byte *source, std::byte *target,
                      int64_t sourcePosition, int64_t request) = 0;
  virtual Status send(int64_t peer, int32_t channel, const std::byte *source, int64_t bytes, int64_t request) = 0;
  virtual Status receive(int64_t peer, int32_t channel, std::byte *target, int64_t bytes, int64_t request) = 0;
  /// Returns at once where nothing is posted.
  virtual Status wait(int64_t request) = 0;
  /// Between instructions: goes on with what is posted, where that is the host's work. Never waits; what goes wrong is
  /// said by the next wait.
  virtual void progress() {}

  virtual int64_t scratchBytes() const = 0;
};

/// Makes devices and communicators for the ranks of one process, and speaks for it to the others. The plan has passed
/// its check and outlives the backend.
class Backend {
public:
  virtual ~Backend() = default;

  /// Checks that the plan fits this machine and loads its code. Each of the ranks will have `threads`. Called once,
  /// before all else; also after an error fail() and agree() may be called.
  virtual Status load(const plan::Plan &plan, RankRange ranks, int64_t threads) = 0;
  /// Whether every thread has a core of its own, as far as the backend knows: those that wait for each other may then
  /// look at memory before they sleep.
  virtual bool hasCoreForEach() const { return false; }
  virtual Expected<KernelHandle> kernel(const std::string &symbol) const = 0;

  /// Called on the rank's own thread. The device may use the rank's threads, which outlive it.
  virtual Expected<std::unique_ptr<Device>> createDevice(const RankPlace &place, ThreadPool &threads) = 0;
  virtual Expected<std::unique_ptr<Communicator>> createCommunicator(const RankPlace &place, int64_t requests) = 0;

  /// Ends all waits of all ranks of the world with `error`, unless another error was first. Called by any thread.
  virtual void fail(const Status &error) = 0;
  /// The ranks of this process, for reports of a step that does not go on; null: they are gone. Nothing where the process is alone.
  virtual void watch(const RankWatch *) {}
  /// Called by every process when its ranks are done, with or without errors; returns when all processes have called
  /// it. Success where all gave success and nobody failed; else one error, the same for all: the first that was given
  /// to fail(), or else that of the process with the lowest ranks. Afterwards the ranks can run again.
  Status agree(const Status &mine) { return agree(mine, nullptr); }
  /// The same with a question, `answer` given by all processes or by none: in, this process's; out, on success, whether any
  /// process has said yes.
  virtual Status agree(const Status &mine, bool *answer) = 0;
  /// The texts of all processes, in their order, when all have called it between two steps.
  virtual Expected<std::vector<std::string>> exchange(const std::string &mine) { return std::vector<std::string>{mine}; }
  /// Whether ranks of other processes send saved tensors to their owners (SavedTensor::owner), too, and not to rank 0 alone.
  virtual bool reachesOwners() const { return true; }
};

} // namespace hpc
