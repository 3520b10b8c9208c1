// The data of --data and --evaluate: the flags about them, and the files, opened as what they are: batches, tokens, or text that becomes tokens.
#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/text/DataFiles.h"
#include "runtime/text/TokenFile.h"
#include "runtime/train/Batches.h"
#include "runtime/train/TokenRows.h"
#include "tools/flags/Arguments.h"

namespace hpc {

struct TextFlags {
  std::string tokenizer, tokenCache;
  text::DocumentOptions documents;
  bool pad = false, trainPadding = false, shuffle = false, dropLast = false;
  std::optional<int64_t> padToken;
  int64_t binBits = 0;                 ///< 0: the content decides
  std::vector<double> shares;          ///< of --split: training, validation, test; they add up to 1. None: no split
  std::vector<std::string> given;      ///< those of the command line, but for the files, with dashes
};
TextFlags readTextFlags(const Arguments &arguments);
/// Errors for flags that exclude each other. `trains`: steps, not only a loss.
Status checkTextFlags(const Arguments &arguments, bool trains);

/// The place of a run in its data.
struct DataStart {
  int64_t seed = 0;               ///< of the order
  int64_t steps = 0;              ///< done
  std::optional<int64_t> samples; ///< rows that they have taken; none: as many as the plan's batch
};

enum class DataPart { Training, Validation, Test };

class TextData {
public:
  explicit TextData(const TextFlags &flags) : flags(flags) {}

  /// The files that `names` has (text::dataFilesOf), as data of `plan`, which outlives them; tokens of a text are made where they are not
  /// there yet. `start`: of training. Errors: files that are none of data; a text without --tokenizer; a vocabulary or an id that is
  /// larger than a table that `plan` looks ids up in.
  Expected<std::unique_ptr<StepData>> open(const std::string &names, const plan::Plan &plan, DataPart part, const DataStart &start, std::vector<std::string> &notes);
  /// After all files are opened: flags that are about none of them.
  Status checkUsed() const;

private:
  Expected<text::TokenArray> tokensOf(const std::string &path, const plan::Plan &plan, uint64_t &fingerprint, std::vector<std::string> &notes);
  Status openTokenizer(std::vector<std::string> &notes);
  RowRange rangeOf(DataPart part) const;

  const TextFlags &flags;
  std::unique_ptr<text::Tokenizer> tokenizer;
  bool hasText = false, hasRows = false;
};

} // namespace hpc
