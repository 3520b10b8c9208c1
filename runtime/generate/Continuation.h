// What follows one prompt, as the loop sees it: a strategy (greedy, sampling, beam search) makes one for each answer or each set of beams.
// It knows the prompt, the number of new ids, the ids that end an answer and the processors of logits; the loop knows rows and positions.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <vector>

namespace hpc::generate {

enum class FinishReason {
  Length,      ///< as many new ids as were asked for
  EndToken,    ///< the answer's last id is a token that ends it
  StopText,    ///< a text of --stop appeared
  Interrupted, ///< by a signal
};

struct Answer {
  std::vector<int64_t> ids; ///< new ones, the end token included
  double score = 0;         ///< of beam search
  FinishReason reason = FinishReason::Length;
};

/// The next id of a row.
struct Choice {
  int64_t from = 0; ///< the row, from 0 of this continuation, whose sequence it continues
  int64_t id = 0;
};

class Continuation {
public:
  virtual ~Continuation() = default;

  /// The same for as long as it lives: 1, or the number of beams. All begin with the prompt.
  virtual int64_t rows() const = 0;
  /// `logits` [rows, V], which it may change, of the last id of each row. Fills `next`, one for each row; a continuation that is
  /// done afterwards may leave it as it is. Errors: logits that are not finite.
  virtual Status choose(float *logits, int64_t vocabulary, std::vector<Choice> &next) = 0;
  virtual bool isDone() const = 0;
  /// Ends it with what there is.
  virtual void end(FinishReason reason) = 0;
  /// Once it is done, the best first; one or several of a beam search.
  virtual std::vector<Answer> answers() const = 0;
};

} // namespace hpc::generate
