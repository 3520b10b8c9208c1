// Held-out data through the entry "evaluate" of a training plan: the loss of the present weights. Nothing is dropped
// and nothing is written, so training continues as if it had not been interrupted.
#pragma once

#include "runtime/core/Session.h"
#include "runtime/train/StepData.h"

namespace hpc {

struct EvaluationReport {
  double loss = 0; ///< mean over all labels that count in the batches
  std::optional<double> validTokens;
  int64_t batches = 0;
  double milliseconds = 0;

  /// exp(loss) of a mean over tokens.
  std::optional<double> perplexity() const;
};

/// The number of the plan's entry. Errors: Usage where it has none.
Expected<size_t> evaluationEntry(const plan::Plan &plan);

class Evaluation {
public:
  /// `data` is of the plan of the entry (Session::entry); at most `most` of its batches are used, the first ones. Session and data outlive it.
  /// Errors: step scalars that are unknown here.
  static Expected<Evaluation> create(size_t entry, Session &session, const StepData &data, int64_t most);

  /// The same batches each time, once. All processes call it together; in those other than that of rank 0 the report has no loss.
  Expected<EvaluationReport> run();

private:
  Evaluation(size_t entry, Session &session, const StepData &data, int64_t most)
      : entry(entry), session(&session), data(&data), most(most) {}

  size_t entry;
  Session *session;
  const StepData *data;
  int64_t most;
  size_t loss = 0;                   ///< output of the entry
  std::optional<size_t> validTokens; ///< likewise
  std::vector<Array> inputs, outputs;
};

} // namespace hpc
