// --auto: the best plan for some devices, found among all outer choices. Candidates are bounded, estimated and then compiled without code;
// the winner is the compiled one whose simulated step is the shortest.
#pragma once

#include "passes/Driver/Compilation.h"
#include "passes/Search/Bounds.h"
#include "passes/Search/Candidates.h"

namespace hpc::search {

struct Question {
  CompileRequest request; ///< `devices` is there; its degrees and options hold where `given` names their flags; the sidecar decides, too
  size_t effort = 1;      ///< so many times as many profiles and compilations
  size_t listed = 11;            ///< plans in the answer, the winner among them
  bool explains = false;         ///< the answer says why the winner's weights are cut as they are
};

/// A candidate in the answer.
struct Ranked {
  Candidate candidate;
  size_t number = 0;         ///< among all candidates; of equally fast ones the first wins
  double seconds = 0;        ///< of a step, simulated
  int64_t memory = 0;        ///< bytes of the fullest rank
  int64_t fullestStage = 0;
  int64_t received = 0;      ///< bytes that a rank receives in a step, the mean
  double exposed = 0, bubble = 0; ///< shares of all ranks' time: standing at transfers, and idle
  bool isEstimate = false;        ///< by profiles of blocks: not compiled, so `received`, `exposed` and `fullestStage` are not known
  /// "computation", "communication" or "pipeline": the largest share of the step; "-" of an estimate that does not show it.
  std::string binds() const;
};

/// The limit of memory binds: with more of it another plan would be faster.
struct MemoryBinds {
  Ranked faster;
  int64_t more = 0; ///< bytes a rank
};

struct Answer {
  std::vector<Ranked> best;   ///< the winner first; by seconds, what was compiled before what was estimated
  double leastSeconds = 0;    ///< no candidate that may fit is faster, by the profiles of blocks
  double atPeak = 0;          ///< the same by the peak of the machine alone, whatever it is made of
  int64_t memory = 0;         ///< the limit of a rank, 0 = none
  bool memoryIsGiven = false; ///< by a flag, not by the machine
  int64_t devices = 1;
  std::string machine;
  size_t candidates = 0, tooLarge = 0, estimated = 0, compiled = 0, refused = 0; ///< all; beyond the memory; by profiles; tried; not of this model
  std::optional<MemoryBinds> memoryBinds;
  std::vector<std::string> weights; ///< why the winner's are cut as they are, where the question asks for it

  const Ranked &winner() const { return best.front(); }
  /// Makes the question's request that of the winner, as its flags would.
  void applyTo(CompileRequest &request) const;
};

/// The flags that lead to a plan of the answer: those of its candidate, and the memory that decides its recomputation where it is the machine's.
std::string flagsOf(const Answer &answer, const Ranked &ranked);

/// Errors: those of loading the model and of the phases up to precision; usage (devices that the machine does not have, degrees that do
/// not fit the devices, a program past phase annotate); capacity, where nothing fits: its message names the smallest memory and the
/// smallest number of devices that would do, and the nearest plans. The answer does not depend on the number of threads.
Expected<Answer> findPlan(const Question &question, MLIRContext &context, DiagnosticPrinter &diagnostics);

} // namespace hpc::search
