// Every number is a text of its own in the metadata; edited metadata are checked like any other file.
#include "runtime/train/RunState.h"

#include "runtime/base/NumberText.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace hpc {

static constexpr const char *stepsKey = "steps", *updatesKey = "updates", *seedKey = "seed", *scaleKey = "loss_scale",
                            *goodStepsKey = "loss_scale.good_steps", *patienceKey = "loss_scale.patience_left", *epochStepsKey = "epoch.steps", *epochSkippedKey = "epoch.skipped",
                            *epochLossKey = "epoch.loss", *epochNormKey = "epoch.gradient_norm", *epochTokensKey = "epoch.valid_tokens";

std::map<std::string, std::string> RunState::toMetadata() const {
  std::map<std::string, std::string> metadata = {{stepsKey, std::to_string(steps)},
                                                 {updatesKey, std::to_string(updates)},
                                                 {seedKey, std::to_string(seed)},
                                                 {scaleKey, numberText(lossScale.scale)},
                                                 {goodStepsKey, std::to_string(lossScale.goodSteps)},
                                                 {patienceKey, std::to_string(lossScale.patienceLeft)}};
  if (epoch.steps + epoch.skipped > 0)
    metadata.insert({{epochStepsKey, std::to_string(epoch.steps)},
                     {epochSkippedKey, std::to_string(epoch.skipped)},
                     {epochLossKey, numberText(epoch.loss)},
                     {epochNormKey, numberText(epoch.gradientNorm)},
                     {epochTokensKey, numberText(epoch.validTokens)}});
  return metadata;
}

namespace {
struct Reader {
  const std::map<std::string, std::string> &metadata;
  const std::string &path;

  /// The number under `key`, between two; `value` stays where there is none.
  template <typename Number> Status read(const char *key, Number least, Number most, Number &value) const {
    auto found = metadata.find(key);
    if (found == metadata.end())
      return Status::success();
    const std::string &text = found->second;
    Number number{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || !(number >= least && number <= most))
      return Status::error(ErrorKind::Io, "'" + path + "': its metadata says '" + key + "' = '" + text +
                                              "', which cannot be; give a file as hpc-run --save wrote it");
    value = number;
    return Status::success();
  }
};
} // namespace

Expected<RunState> RunState::fromMetadata(const std::map<std::string, std::string> &metadata, const std::string &path) {
  if (!metadata.count(stepsKey))
    return Status::error(ErrorKind::Io, "'" + path + "': is no checkpoint of hpc-run --save: its metadata has no '" +
                                            std::string(stepsKey) + "'; give such a file");
  RunState state;
  Reader reader{metadata, path};
  HPC_RETURN_IF_ERROR(reader.read<int64_t>(stepsKey, 0, INT64_MAX, state.steps));
  state.updates = state.steps;
  HPC_RETURN_IF_ERROR(reader.read<int64_t>(updatesKey, 0, state.steps, state.updates));
  HPC_RETURN_IF_ERROR(reader.read<int64_t>(seedKey, 0, largestSeed, state.seed));
  LossScale &scale = state.lossScale;
  HPC_RETURN_IF_ERROR(reader.read<double>(scaleKey, LossScale::least, LossScale::most, scale.scale));
  if (int exponent; std::frexp(scale.scale, &exponent) != 0.5)
    return Status::error(ErrorKind::Io, "'" + path + "': its metadata says '" + scaleKey + "' = '" +
                                            numberText(scale.scale) +
                                            "', which is no power of two; give a file as hpc-run --save wrote it");
  HPC_RETURN_IF_ERROR(reader.read<int64_t>(goodStepsKey, 0, LossScale::growthInterval - 1, scale.goodSteps));
  HPC_RETURN_IF_ERROR(reader.read<int64_t>(patienceKey, 0, LossScale::patience, scale.patienceLeft));
  constexpr double most = std::numeric_limits<double>::max();
  HPC_RETURN_IF_ERROR(reader.read<int64_t>(epochStepsKey, 0, state.steps, state.epoch.steps));
  HPC_RETURN_IF_ERROR(reader.read<int64_t>(epochSkippedKey, 0, state.steps, state.epoch.skipped));
  HPC_RETURN_IF_ERROR(reader.read<double>(epochLossKey, -most, std::numeric_limits<double>::infinity(), state.epoch.loss));
  HPC_RETURN_IF_ERROR(reader.read<double>(epochNormKey, 0, most, state.epoch.gradientNorm));
  HPC_RETURN_IF_ERROR(reader.read<double>(epochTokensKey, 0, most, state.epoch.validTokens));
  return state;
}

} // namespace hpc
