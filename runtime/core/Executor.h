// The loop of one rank for one entry of the plan: walks its stage's schedule and does what each instruction says.
// All that can be looked up beforehand (kernels, groups, slices, scalars) is; the loop itself allocates nothing.
#pragma once

#include "runtime/base/Array.h"
#include "runtime/base/RankWatch.h"
#include "runtime/core/Arena.h"
#include "runtime/core/Backend.h"
#include "runtime/core/OutputTransfer.h"
#include "runtime/core/Specialise.h"
#include "runtime/core/Trace.h"
#include "runtime/core/WeightPacking.h"

#include <array>
#include <atomic>
#include <functional>
#include <memory>

namespace hpc {

/// An instruction that has just been done. Buffers may be read, but for those that a receive is still writing.
struct ObservedInstruction {
  RankPlace place;
  int64_t microBatch;
  int64_t program, instruction; ///< indices into the stage's programs and the program's instructions
  const Arena &arena;

  const std::byte *buffer(int64_t index) const { return arena.buffer(index, microBatch); }
};
/// Called on the ranks' threads, by several at once. An error ends the run.
using Observer = std::function<Status(const ObservedInstruction &)>;

/// Which outputs a step computes and stores.
enum class Outputs : uint8_t {
  Ordinary, ///< all but those on request (plan::Port::onRequest)
  All,
};

struct ExecutorOptions {
  RankRange ranks; ///< of this process
  bool poison = false;
  Observer observer;      ///< may be empty
  Trace *trace = nullptr; ///< may be null
  bool mayReplay = true;  ///< the device may record a step; it does so of one entry alone
};

class Executor {
public:
  /// `plan` has no entries (plan::planOf); `special` is what the device makes of the rank's stage.
  Executor(const plan::Plan &plan, SpecialStage special, RankPlace place, Device &device, Communicator &communicator, Arena &arena,
           const ExecutorOptions &options);

  /// How many requests the rank's communicator must have.
  static int64_t requestCount(const plan::Stage &stage);
  /// Looks up kernels and groups and tells device and communicator of what will come. Adds its products to `packing`.
  Status prepare(const Backend &backend, WeightPacking &packing);
  /// One step: every entry of the schedule. Arrays stand in the order of the plan's ports; outputs are there in the
  /// process of rank 0 alone. All ranks of the world are asked for the same.
  Status run(const std::vector<Array> &inputs, std::vector<Array> &outputs, Outputs wanted);

  // The position of the rank in its step; any thread may ask.

  /// Changes with each instruction, and while one computes.
  uint64_t progress() const;
  bool waitsForDevice() const;
  RankPosition position() const;

private:
  /// In the place of an instruction's number.
  enum Position : uint32_t { BringingOutputs = 0xfffffffd, AwaitingDevice = 0xfffffffe };
  static constexpr uint64_t nowhere = ~uint64_t(0);
  void begin(int32_t scheduleStep, uint32_t instruction) {
    here.store(uint64_t(uint32_t(scheduleStep)) << 32 | instruction, std::memory_order_relaxed);
  }
  /// Null where it is at none.
  const plan::Instruction *instructionAt(uint64_t place) const;
  std::string groupText(const plan::Collective &collective) const;
  std::string waitText(const plan::Action &action, int64_t microBatch) const;

  /// What is known of an instruction before the run.
  struct Prepared {
    KernelHandle kernel = nullptr;
    int64_t group = 0;
    int64_t library = -1; ///< kernel: see KernelCall
    std::vector<int64_t> scalars;  ///< kernel: [microBatch][scalar]
    std::vector<std::array<int64_t, 3>> launches; ///< kernel: [microBatch], blocks, threads, shared bytes
    std::vector<GemmHandle> gemms; ///< product: [microBatch]
    std::vector<SliceCopy> slices; ///< load and store: [microBatch]
  };
  struct Prepare;
  struct Execute;
  GemmCall callOf(const plan::Gemm &gemm, Place place) const;
  Expected<std::vector<GemmHandle>> prepareProduct(const plan::Gemm &gemm) const;

  Status runStep(const std::vector<Array> &inputs, std::vector<Array> &outputs, Outputs wanted);
  Status runProgram(int32_t stepIndex, const std::vector<Array> &inputs, std::vector<Array> &outputs, Outputs wanted,
                    bool replays);
  Place at(int64_t microBatch) const { return {place.coordinate, microBatch, ranksPerStage, stepScalars.data()}; }
  /// Takes the step scalars that numbers vary with; an array without data (the null backend's) stands for the largest.
  void takeStepScalars(const std::vector<Array> &inputs);
  void setScalars(const plan::Kernel &kernel, Prepared &entry) const;

  const plan::Plan &plan;
  const SpecialStage special;
  const plan::Stage &stage;
  const RankPlace place;
  const int64_t ranksPerStage;
  Device &device;
  Communicator &communicator;
  Arena &arena;
  const ExecutorOptions &options;
  std::vector<int64_t> firstRequest; ///< of the communicator's numbers, by request of the plan; its slots follow
  std::vector<std::vector<Prepared>> prepared; ///< by program and instruction
  std::vector<void *> args;                    ///< of the kernel that is being called
  std::vector<int64_t> stepScalars;            ///< by input; 0 of those that no number varies with
  std::vector<std::pair<const plan::Kernel *, Prepared *>> varying; ///< kernels with scalars that vary by step
  bool varies = false;                         ///< the place of some copy does
  OutputTransfer outputTransfer;
  std::atomic<uint64_t> here{nowhere}; ///< the schedule's step, and the instruction
  std::atomic<uint32_t> runs{0};
  std::atomic<int32_t> cpuClock{-1}; ///< of the rank's thread
};

} // namespace hpc
