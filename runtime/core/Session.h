// A plan that is being run by this process: owns its ranks, all of the world's or some, and is the only creator of threads: one for each rank but
// the first, which the caller's thread does, and their helpers (ThreadPool). A session is made, used and destroyed by one thread; a run that failed
// leaves it ready for the next, but for what it had written to states by then.
#pragma once

#include "runtime/base/Futex.h"
#include "runtime/core/Executor.h"
#include "runtime/core/SavedTensors.h"
#include "runtime/core/Weights.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <thread>

namespace hpc {

struct SessionOptions {
  RankRange ranks;                ///< of this process; none: all of the world
  int64_t threads = 1;            ///< of each rank, its own included; results have the same bits for any number
  std::string planFolder = ".";   ///< what the plan's weight files are relative to
  std::string weightsReplacement; ///< see WeightFiles
  std::string checkpoint;         ///< likewise
  bool followLinks = false;       ///< likewise
  bool poison = false;            ///< NaN in all memory that nothing has written
  bool trace = false;
  Observer observer;
};

class Session : private RankWatch {
public:
  /// Loads code, makes the ranks' threads and binds their weights. The plan must have passed plan::checkPlan and
  /// outlive the session. Like run(), it waits for the processes of the other ranks, and what fails in one of them
  /// fails in all, with one error.
  static Expected<std::unique_ptr<Session>> create(const plan::Plan &plan, std::unique_ptr<Backend> backend,
                                                   SessionOptions options);
  ~Session();

  /// Runs one step. Inputs stand in the order of the plan's inputs, outputs in the order of its outputs. The process of
  /// rank 0 gets the outputs, whoever computes them; in the others there are none. An output on request that is not
  /// asked for holds nothing; all processes ask for the same.
  Expected<std::vector<Array>> run(const std::vector<Array> &inputs, Outputs wanted = Outputs::All);
  /// The same into arrays that the caller keeps; they are made right if they are not.
  Status run(const std::vector<Array> &inputs, std::vector<Array> &outputs, Outputs wanted = Outputs::All) {
    return run(0, inputs, outputs, wanted);
  }
  /// The same of an entry of the plan, by its number; the others run the first. Inputs and outputs stand in the entry's order.
  Status run(size_t entry, const std::vector<Array> &inputs, std::vector<Array> &outputs, Outputs wanted = Outputs::All);
  /// The number of the run after this, where it is a training step; -1: it is none. For reports of ranks that do not go on.
  void nameStep(int64_t step) { stepNumber = step; }
  /// A step of the first entry that ends with an error at the first result that is not finite (FirstNotFinite.h). Success: there is none, or the
  /// device's memory cannot be read. For the end of a session: states may be written.
  Status findNotFinite(const std::vector<Array> &inputs);
  /// The plan that an entry is (plan::planOf); of a plan without entries, the plan.
  const plan::Plan &entry(size_t number) const { return entryPlans.empty() ? plan : entryPlans[number]; }

  /// What lives across steps, by name.
  const std::vector<SavedTensor> &saved() const { return savedList; }
  /// The rank whose process writes one of them.
  int64_t ownerOf(size_t tensor) const;
  /// One of them, to be read by a process: that of its owner, or of rank 0.
  struct Read {
    size_t tensor = 0;
    int64_t rank = 0;           ///< of the process
    std::byte *whole = nullptr; ///< in that process: memory for all of the tensor
  };
  /// Brings tensors, as they are now, to the processes that read them. All processes call it together with the same list, between two steps.
  Status read(const std::vector<Read> &list);
  /// Brings one of them to the process of rank 0; in the others `whole` holds nothing.
  Status read(size_t tensor, Array &whole);
  /// The ranks of this process.
  RankRange ownRanks() const { return options.ranks; }
  /// Whether this process has the outputs and what read() brings.
  bool writes() const { return options.ranks.holds(0); }
  /// What the step only reads: files, which are there in every process.
  const Weights &stored() const { return *weights; }
  /// Backend::agree, for what is done beside the steps.
  Status agree(const Status &mine);
  /// Whether a process says so, which all then know; all call it together, between two steps.
  Expected<bool> any(bool mine);
  /// Backend::exchange.
  Expected<std::vector<std::string>> exchange(const std::string &mine) { return backend->exchange(mine); }

  /// Arenas and scratch of this process's rank that takes most; mapped files do not count.
  int64_t peakBytesPerRank() const;
  /// The last run's, if options.trace was set.
  const Trace *trace() const { return recorders.empty() ? nullptr : &recorders[lastRun]; }

private:
  std::optional<uint64_t> progress() const override;
  bool waitsForDevice() const override;
  std::vector<RankPosition> positions() const override;

  /// What a rank's thread owns, made and destroyed on that thread.
  struct Rank {
    RankPlace place;
    std::unique_ptr<ThreadPool> threads;
    std::unique_ptr<Device> device;
    std::unique_ptr<Communicator> communicator;
    std::deque<Arena> arenas; ///< by entry, all of the same memory: where its ports lie is the entry's own
    std::vector<std::unique_ptr<Executor>> executors; ///< by entry
    std::byte *incoming = nullptr; ///< of rank 0: boxes of saved tensors from other processes; made when first needed
    Status status;                 ///< of the last task
  };

  Session(const plan::Plan &plan, std::unique_ptr<Backend> backend, SessionOptions options);
  Status start();
  Status prepare(Rank &rank);
  void shapeOutputs(const plan::Plan &entry, std::vector<Array> &outputs, Outputs wanted) const;
  void work(Rank &rank);
  void doTask(Rank &rank) noexcept;
  static void release(Rank &rank);
  Status readPieces(Rank &rank, const Read &read);
  Status receivePiece(Rank &rank, const SavedTensor::Piece &piece, int64_t source, std::byte *whole);
  /// Runs `task` on the threads of this process's ranks, the first one's here, and waits for all of them.
  void onAllRanks(std::function<Status(Rank &)> task);

  size_t entryCount() const { return std::max<size_t>(1, entryPlans.size()); }

  const plan::Plan &plan;
  std::vector<plan::Plan> entryPlans; ///< none where the plan has no entries
  const SessionOptions options;
  std::unique_ptr<Backend> backend;
  const std::vector<SavedTensor> savedList;
  std::optional<Weights> weights;
  std::deque<Trace> recorders; ///< by entry, where runs are traced
  size_t lastRun = 0;          ///< entry
  std::vector<ExecutorOptions> executorOptions; ///< by entry

  std::vector<Rank> ranks;
  std::vector<std::thread> threads;   ///< of all ranks but the first
  std::function<Status(Rank &)> task; ///< empty: the threads leave; written while none of them works
  WaitWord generation;                ///< each task is one more
  WaitWord busy;                      ///< threads that are at the task
  int spins = 0;                      ///< as for WaitWord::waitWhile
  std::atomic<size_t> stepEntry{0};
  std::atomic<int64_t> stepNumber{-1};
  /// Done: other processes may still be in it.
  enum class StepState : uint8_t { None, Running, Done };
  std::atomic<StepState> stepState{StepState::None};
  bool isRunning = false; ///< the task is a step, in which ranks wait for each other
};

} // namespace hpc
