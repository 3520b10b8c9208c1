// Token streams as the data of steps: rows of the plan's length, cut from joined documents or one for each document, in the order of the
// files or in a new one each epoch, of one source or of several with weights. A row is read when a step takes it.
#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/text/TokenArray.h"
#include "runtime/train/Blend.h"
#include "runtime/train/RowRange.h"
#include "runtime/train/StepData.h"

#include <optional>

namespace hpc {

struct RowOptions {
  /// A document is a row, cut off or padded; else documents are joined and cut into rows.
  bool pad = false;
  int64_t padToken = 0;
  bool trainPadding = false; ///< padding is a label
  /// The seed of the order; none: that of the files.
  std::optional<int64_t> shuffleSeed;
  /// Rows that fill no batch are left out at the end of each epoch; else the next epoch's first rows go with them.
  bool dropLast = false;
  /// Each row is read once, as for a loss: the last batch is filled up with rows that have no labels.
  bool once = false;
  RowRange range;
  /// The place where a run goes on: so many steps have taken so many rows, as another batch may have. None: those of its own batch.
  int64_t stepsBefore = 0;
  std::optional<int64_t> samplesBefore;
};

/// The ids that all of the plan's inputs take: [low, high).
struct IdRange {
  int64_t low = 0, high = INT64_MAX;
  std::string reader; ///< "'wte' takes 0 to 50256 from input 'ids'"; "" where nothing looks ids up
};
IdRange idRangeOf(const plan::Plan &plan);

/// Files whose tokens follow each other.
struct TokenSource {
  std::vector<text::TokenArray> files;
  std::string weight;       ///< a decimal; "" where no source has one
  uint64_t fingerprint = 0; ///< of all tokens
};

class TokenRows : public StepData {
public:
  /// Sources with weights are mixed (Blend); an epoch then has as many rows as all of them. `sources` without weights are one.
  /// The plan's input of ids is [rows of a batch, tokens of a row], of integers; beside it may be `labels`, `attention_mask` (1, 0 on padding)
  /// and `position_ids`. `notes`: receives facts that the user should know. Errors (Usage): other inputs; no whole row; documents that
  /// are not known; padding that a loss cannot leave out.
  static Expected<TokenRows> open(const plan::Plan &plan, std::vector<TokenSource> sources, const RowOptions &options, std::vector<std::string> &notes);

  int64_t count() const override;
  int64_t epochOf(int64_t step) const override;
  int64_t sampleOf(int64_t step) const override { return firstSample + step * batch; }
  Status fill(int64_t step, std::vector<Array> &inputs) const override;
  std::string findNumber(int64_t step, bool (*is)(double)) const override { return ""; } // no float but masks
  uint64_t fingerprint() const override;
  std::string summary() const override;
  int64_t rows() const; ///< of an epoch

private:
  enum class Role { StepScalar, Ids, Labels, Mask, Positions };
  /// A source's rows.
  struct Rows {
    TokenSource source;
    std::vector<int64_t> ends; ///< of each file, in joined tokens or in documents
    int64_t first = 0, count = 0;
  };
  Status takePorts();
  Status takeRows(TokenSource source, std::vector<std::string> &notes);
  /// Which row a sample is, of which source; the samples of all steps are one sequence.
  std::pair<size_t, int64_t> rowOf(int64_t sample) const;
  /// Reads a row; returns how many tokens it has without padding.
  int64_t read(const Rows &rows, int64_t row, int64_t *to) const;
  bool fillsUp() const;

  const plan::Plan *plan = nullptr;
  RowOptions options;
  std::vector<Role> roles; ///< by input of the plan
  int64_t batch = 0, length = 0; ///< rows of a step, tokens of a row
  int64_t firstSample = 0;       ///< that step 0 would have had, below 0 where steps before a checkpoint had fewer rows
  std::optional<int64_t> ignored; ///< the label that does not count
  std::vector<Rows> sources;
  std::optional<Blend> blend;
};

} // namespace hpc
