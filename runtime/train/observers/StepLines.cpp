// Losses have nine digits, which tell all floats apart.
#include "runtime/train/observers/StepLines.h"

#include "runtime/base/ByteSize.h"
#include "runtime/base/CountText.h"
#include "runtime/base/FormattedText.h"
#include "runtime/base/NumberText.h"

namespace hpc {

std::string evaluationText(const EvaluationReport &report, int64_t step) {
  std::string text = "evaluation" + (step < 0 ? "" : " after step " + std::to_string(step)) + formattedText(": loss %.9g", printed(report.loss));
  if (report.validTokens)
    text += formattedText(", perplexity %.6g, valid tokens %.0f", printed(*report.perplexity()), *report.validTokens);
  return text + ", " + countText(report.batches, "batch", "es") + formattedText(", %.1f ms", report.milliseconds);
}

std::string epochText(const EpochReport &report) {
  return formattedText("epoch %ld: loss %.9g, gradient norm %.6g, means of ", long(report.epoch), printed(report.loss), printed(report.gradientNorm)) +
         countText(report.steps, "step") + (report.skipped > 0 ? "; " + countText(report.skipped, "step") + " skipped" : "");
}

std::string savedText(const SaveReport &report) {
  return "checkpoint '" + report.path + "': " + byteSizeText(report.bytes) +
         formattedText(" in %.2f s, in which no step ran for %.3f s", report.seconds, report.stopped);
}

Status StepLines::stepped(const StepReport &report, const RunState &state) {
  if (facts.hasLine(report))
    print(formattedText("step %ld: loss %.9g, lr %.6g, gradient norm %.6g, %.1f ms\n", long(report.step), printed(report.loss), report.learningRate,
                        printed(report.gradientNorm), report.milliseconds));
  return Status::success();
}

Status StepLines::evaluated(const EvaluationReport &report, int64_t step) {
  print(evaluationText(report, step) + "\n");
  return Status::success();
}

Status StepLines::saved(const SaveReport &report) {
  print(savedText(report) + "\n");
  return Status::success();
}

} // namespace hpc
