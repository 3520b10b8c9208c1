// The time is written as Python's logging does.
#include "runtime/train/observers/LogLines.h"

#include "runtime/base/CountText.h"
#include "runtime/base/FormattedText.h"
#include "runtime/base/NumberText.h"
#include "runtime/train/observers/StepLines.h"

#include <ctime>

namespace hpc {

void LogLines::line(const std::string &text) const {
  const std::chrono::system_clock::time_point time = now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count() % 1000;
  std::tm local;
  char day[32];
  std::strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", ::localtime_r(&seconds, &local));
  print("[" + std::string(day) + formattedText(",%03d] [    INFO] - ", int(milliseconds)) + text + "\n");
}

Status LogLines::stepped(const StepReport &report, const RunState &state) {
  meter.add(report);
  if (facts.hasLine(report)) {
    const double speed = meter.itemsPerSecond(facts);
    line(formattedText("global step %ld, epoch: %ld, batch: %ld, loss: %.9f, avg_reader_cost: %.5f sec, avg_batch_cost: %.5f sec, speed: %.2f step/s",
                       long(report.step + 1), long(report.epoch), long(report.batch), printed(report.loss), meter.secondsOfReader(),
                       meter.secondsOfStep(), meter.stepsPerSecond()) +
         formattedText(", ips_total: %.0f ", speed) + facts.item + formattedText("/s, ips: %.0f ", speed / double(facts.ranks)) + facts.item +
         formattedText("/s, learning rate: %.5e", report.learningRate));
    meter = {};
  }
  if (report.ended)
    line(epochText(*report.ended));
  return Status::success();
}

Status LogLines::evaluated(const EvaluationReport &report, int64_t step) {
  std::string text = formattedText("valid step %ld, batch: %ld, loss: %.9f", long(step + 1), long(report.batches), printed(report.loss));
  if (report.validTokens)
    text += formattedText(", perplexity: %.6g", printed(*report.perplexity()));
  line(text + formattedText(", speed: %.2f step/s", double(report.batches) / (report.milliseconds / 1000)));
  return Status::success();
}

Status LogLines::saved(const SaveReport &report) {
  line(savedText(report));
  return Status::success();
}

} // namespace hpc
