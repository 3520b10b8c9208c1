// The file is read once, line by line, up to the first that has to go.
#include "runtime/train/observers/MetricsFile.h"

#include "runtime/base/CountText.h"
#include "runtime/base/File.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace hpc {

namespace {
/// The part of a file that stays.
struct Kept {
  int64_t bytes = 0;
  int64_t next = 0; ///< the step after the last line that stays
  std::vector<std::string> notes;
};
} // namespace

/// The step of a line; -1: it is none.
static int64_t stepOf(std::string_view line) {
  nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  auto step = json.is_object() ? json.find("step") : json.end();
  return step != json.end() && step->is_number_integer() && step->get<int64_t>() >= 0 ? step->get<int64_t>() : -1;
}

static Expected<Kept> keptOf(const std::string &path, std::string_view text, int64_t steps) {
  Kept kept;
  int64_t number = 0, again = 0;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) {
      kept.notes.push_back("has half a line at its end, which is taken away");
      break;
    }
    const int64_t step = stepOf(text.substr(begin, end - begin));
    if (step < 0)
      return Status::error(ErrorKind::Usage, "--metrics: line " + std::to_string(number + 1) + " of '" + path +
                                                 "' is none that hpc-run writes, so nothing is added to it; name another file, or take that line away");
    begin = end + 1;
    if (again > 0 || step >= steps) {
      ++again;
      continue;
    }
    kept.bytes = int64_t(begin);
    kept.next = step + 1;
  }
  if (again > 0)
    kept.notes.push_back("has " + countText(again, "line") + " from step " + std::to_string(steps) + " on, where the checkpoint ends; they are taken away, as these steps are done again");
  if (kept.next < steps)
    kept.notes.push_back("has no line of step" + (kept.next + 1 == steps ? " " + std::to_string(kept.next) : "s " + std::to_string(kept.next) + " to " + std::to_string(steps - 1)));
  return kept;
}

Status MetricsFile::removeFrom(int64_t step) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none) || std::filesystem::file_size(path, none) == 0)
    return Status::success();
  Expected<MappedFile> mapped = MappedFile::open(path);
  HPC_RETURN_IF_ERROR(mapped.status());
  Expected<Kept> kept = keptOf(path, mapped->text(), step);
  HPC_RETURN_IF_ERROR(kept.status());
  for (const std::string &text : kept->notes)
    note("--metrics: '" + path + "' " + text);
  std::error_code failed;
  if (kept->bytes != mapped->size())
    std::filesystem::resize_file(path, uintmax_t(kept->bytes), failed);
  return failed ? Status::error(ErrorKind::Io, "'" + path + "': cannot be shortened: " + failed.message()) : Status::success();
}

Status MetricsFile::started(const RunState &state) {
  if (goesOn)
    HPC_RETURN_IF_ERROR(removeFrom(state.steps));
  Expected<LineFile> opened = LineFile::open(path, /*append=*/goesOn);
  if (opened.ok())
    file.emplace(std::move(*opened));
  return opened.status();
}

static double thousandths(double value) { return std::round(value * 1000) / 1000; }

Status MetricsFile::stepped(const StepReport &report, const RunState &state) {
  nlohmann::ordered_json line = {
      {"step", report.step}, {"loss", report.loss}, {"lr", report.learningRate}, {"grad_norm", report.gradientNorm}};
  if (report.validTokens)
    line["valid_tokens"] = int64_t(*report.validTokens);
  if (report.seed)
    line["seed"] = *report.seed;
  if (report.lossScale)
    line["loss_scale"] = *report.lossScale;
  line["epoch"] = report.epoch;
  StepMeter meter;
  meter.add(report);
  line["ms"] = thousandths(report.milliseconds);
  line["reader_ms"] = thousandths(1000 * report.readerSeconds);
  line[facts.item + "_per_s"] = thousandths(meter.itemsPerSecond(facts));
  if (std::optional<double> utilisation = meter.utilisation(facts))
    line["mfu"] = *utilisation;
  if (report.ended) {
    nlohmann::ordered_json &mean = line["epoch_mean"] = {{"loss", report.ended->loss},
                                                         {"grad_norm", report.ended->gradientNorm},
                                                         {"steps", report.ended->steps},
                                                         {"skipped", report.ended->skipped}};
    if (report.validTokens)
      mean["valid_tokens"] = int64_t(report.ended->validTokens);
  }
  line["skipped"] = report.wasSkipped();
  return file->add(line.dump());
}

Status MetricsFile::evaluated(const EvaluationReport &report, int64_t step) {
  nlohmann::ordered_json told = {{"loss", report.loss}};
  if (report.validTokens) {
    told["perplexity"] = *report.perplexity();
    told["valid_tokens"] = int64_t(*report.validTokens);
  }
  told["batches"] = report.batches;
  told["ms"] = thousandths(report.milliseconds);
  return file->add(nlohmann::ordered_json({{"step", step}, {"evaluation", std::move(told)}}).dump());
}

} // namespace hpc
