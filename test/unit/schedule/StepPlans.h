// Plans of one stage made by hand, and what they compute: for what moves instructions of a plan.
#pragma once

#include "passes/NotedValue.h"

#include <map>
#include <string>
#include <vector>

namespace hpc::test {

/// A plan with one stage over dp=2, tp=2, built instruction by instruction. Kernels are told apart by their symbols;
/// all elements are f32.
struct StepPlan {
  plan::Plan plan;
  std::vector<NotedValue> values;
  int kernels = 0;
  int32_t ids = 0;

  StepPlan(int64_t microBatches, std::vector<plan::ProgramKind> kinds);
  plan::Stage &stage() { return plan.stages[0]; }
  std::vector<plan::Instruction> &of(size_t program) { return stage().programs[program].instructions; }

  int32_t buffer(plan::Lifetime lifetime, int64_t elements);
  plan::Instruction &kernel(size_t program, std::vector<int32_t> reads, std::vector<int32_t> writes, plan::Part part);
  /// What the first micro-batch writes and the others add to.
  void accumulate(size_t program, int32_t sum, int32_t term);
  void copy(size_t program, int32_t target, int32_t source);
  /// Into a new buffer of the program.
  int32_t collective(size_t program, plan::CollectiveKind kind, int32_t source, std::vector<std::string> axes = {"dp"});
  int32_t allReduce(size_t program, int32_t source, std::vector<std::string> axes = {"dp"},
                    ReduceKind kind = ReduceKind::Sum);
  void store(size_t program, int32_t source);
  /// Notes what lies in a buffer after the last instruction so far, as lower does.
  void note(size_t program, int32_t source);
  /// The index of the instruction that completes a value; -1: none does.
  int64_t indexOf(const NotedValue &value) const;
};

/// Runs a plan on values that are hashes of what made them. A posted collective acts when it is waited for; until then
/// nothing may write what it reads, or touch what it writes.
class StepEvaluation {
public:
  explicit StepEvaluation(const StepPlan &step);
  std::map<std::string, std::vector<size_t>> history; ///< by kernel and micro-batch, or output: what it read
  std::map<int64_t, size_t> values; ///< by index: what lay at each of the step's values when it was known, at last

private:
  using Place = std::pair<int32_t, int64_t>;

  bool isFlying(const plan::Ref &ref, bool write) const;
  size_t read(const plan::Ref &ref);
  void write(const plan::Ref &ref, size_t value);
  void exchange(const plan::Collective &collective);
  void run(const plan::Kernel &kernel);
  void run(const plan::Accumulate &sum);
  void run(const plan::Copy &copy);
  void run(const plan::Collective &collective);
  void run(const plan::Wait &wait);
  void run(const plan::StoreOutput &store);
  template <typename Other> void run(const Other &other);

  const plan::Plan &plan;
  int64_t microBatch = 0;
  std::map<Place, size_t> memory;
  std::map<int32_t, const plan::Collective *> flights;
};

} // namespace hpc::test
