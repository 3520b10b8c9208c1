// One event a step holds all its curves.
#include "runtime/train/observers/TensorBoard.h"

namespace hpc {

Status TensorBoard::started(const RunState &state) {
  Expected<EventFile> opened = EventFile::open(folder, time(), state.steps + 1);
  if (opened.ok())
    file.emplace(std::move(*opened));
  return opened.status();
}

Status TensorBoard::stepped(const StepReport &report, const RunState &state) {
  meter.add(report);
  Scalars scalars;
  if (facts.hasLine(report)) {
    scalars = {{"train/loss", report.loss},
               {"train/learning_rate", report.learningRate},
               {"train/grad_norm", report.gradientNorm},
               {"train/" + facts.item + "_per_second", meter.itemsPerSecond(facts)}};
    if (std::optional<double> utilisation = meter.utilisation(facts))
      scalars.emplace_back("train/mfu", *utilisation);
    if (report.lossScale)
      scalars.emplace_back("train/loss_scale", *report.lossScale);
    meter = {};
  }
  if (report.ended)
    scalars.emplace_back("train/epoch_loss", report.ended->loss);
  return scalars.empty() ? Status::success() : file->add(time(), report.step + 1, scalars);
}

Status TensorBoard::evaluated(const EvaluationReport &report, int64_t step) {
  Scalars scalars = {{"eval/loss", report.loss}};
  if (report.validTokens)
    scalars.emplace_back("eval/perplexity", *report.perplexity());
  return file->add(time(), step + 1, scalars);
}

} // namespace hpc
