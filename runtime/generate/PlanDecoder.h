// The decoder that a plan of hpc-opt --generate is, by its entries prefill, decode and reorder. Where several processes run its ranks,
// process 0 has the loop, and each of its steps goes to the others first: they follow.
#pragma once

#include "runtime/core/Session.h"
#include "runtime/generate/Decoder.h"

#include <functional>

namespace hpc::generate {

class PlanDecoder : public Decoder {
public:
  /// Errors (Usage): a plan of another kind.
  static Expected<DecoderShape> shapeOf(const plan::Plan &plan);

  /// `plan`, with a shape, is that of `session`; both outlive the decoder. `isStopped`: whether a signal came to this process.
  static Expected<PlanDecoder> create(const plan::Plan &plan, Session &session, std::function<bool()> isStopped);

  DecoderShape shape() const override { return dims; }
  Status prefill(const std::vector<int64_t> &ids, int64_t position, int64_t row, std::vector<float> &logits) override;
  Status decode(const std::vector<int64_t> &ids, int64_t position, std::vector<float> &logits) override;
  Status reorder(const std::vector<int64_t> &rows) override;

  /// Whether isStopped was true in any process before the last step.
  bool isInterrupted() const { return interrupted || isStopped(); }
  /// In process 0, after its last step: the others are done. After a step that failed they are, too.
  Status finish();
  /// In the others: takes part in all steps, until finish().
  Status follow();

private:
  enum class Step : int64_t { Prefill, Decode, Reorder, Finish };
  /// An entry of the plan, and the numbers of its ports.
  struct Entry {
    size_t number = 0;
    std::optional<size_t> ids, position, row, logits; ///< those of a reordering are the rows' numbers, in their order
    std::vector<Array> inputs, outputs;
  };

  PlanDecoder(Session &session, DecoderShape dims, std::function<bool()> isStopped) : session(session), dims(dims), isStopped(std::move(isStopped)) {}
  Status announce(const std::vector<int64_t> &message);
  Status run(Step step, const std::vector<int64_t> &numbers, int64_t position, int64_t row);
  Status run(Step step, const int64_t *numbers, int64_t position, int64_t row);
  void readLogits(Step step, std::vector<float> &logits) const;

  Session &session;
  DecoderShape dims;
  std::function<bool()> isStopped;
  Entry entries[3]; ///< by Step
  bool interrupted = false, failed = false;
};

} // namespace hpc::generate
