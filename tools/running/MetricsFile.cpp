// The file is read once, line by line, up to the first that has to go.
#include "tools/running/MetricsFile.h"

#include "tools/ExitCode.h"

#include "runtime/base/CountText.h"
#include "runtime/base/File.h"

#include <cstdio>
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

Expected<LineFile> continueMetrics(const std::string &path, int64_t steps) {
  std::error_code none;
  if (std::filesystem::is_regular_file(path, none) && std::filesystem::file_size(path, none) > 0) {
    Expected<MappedFile> file = MappedFile::open(path);
    if (!file.ok())
      return file.status();
    Expected<Kept> kept = keptOf(path, file->text(), steps);
    if (!kept.ok())
      return kept.status();
    for (const std::string &note : kept->notes)
      printNote("--metrics: '" + path + "' " + note);
    std::error_code failed;
    if (kept->bytes != file->size())
      std::filesystem::resize_file(path, uintmax_t(kept->bytes), failed);
    if (failed)
      return Status::error(ErrorKind::Io, "'" + path + "': cannot be shortened: " + failed.message());
  }
  return LineFile::open(path, /*append=*/true);
}

} // namespace hpc
