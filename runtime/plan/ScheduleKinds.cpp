// The builders. All orders are those of the papers. Where micro-batches come in groups of p and p does not divide m,
// the list is that of the next multiple with the micro-batches left out that are not there: leaving some out breaks
// nothing.
#include "runtime/plan/ScheduleKinds.h"

#include <algorithm>

namespace hpc::plan {

namespace {

constexpr std::pair<ScheduleKind, const char *> kindNames[] = {
    {ScheduleKind::Inference, "inference"},        {ScheduleKind::GPipe, "gpipe"},
    {ScheduleKind::OneForwardOneBackward, "1f1b"}, {ScheduleKind::Interleaved, "interleaved"},
    {ScheduleKind::ZeroBubbleH1, "zb-h1"},
};

/// F0 F1 F0.1 F1.1 F2 F3 F2.1 F3.1 for p = 2, v = 2: a chunk takes p micro-batches, then the next chunk takes the same.
/// Backward goes through the chunks the other way. With one chunk there are no groups.
StageSchedule inGroups(ProgramKind kind, int64_t stages, int64_t chunks, int64_t microBatches) {
  StageSchedule order;
  int64_t group = chunks > 1 ? stages : microBatches;
  for (int64_t first = 0; first < microBatches; first += group)
    for (int64_t c = 0; c < chunks; ++c)
      for (int64_t i = first; i < first + group; ++i)
        order.push_back({kind, int32_t(i), int32_t(kind == ProgramKind::Backward ? chunks - 1 - c : c)});
  return order;
}

/// `warmUp` forwards, then one forward and one backward in turn, then the backwards that are left.
StageSchedule inTurns(const StageSchedule &forwards, const StageSchedule &backwards, int64_t warmUp) {
  int64_t count = int64_t(forwards.size());
  StageSchedule schedule(forwards.begin(), forwards.begin() + std::min(warmUp, count));
  for (int64_t k = 0; k < count; ++k) {
    if (warmUp + k < count)
      schedule.push_back(forwards[warmUp + k]);
    schedule.push_back(backwards[k]);
  }
  return schedule;
}

/// Puts W behind the backward that comes `delay` backwards after its own, the last ones at the end. With delay = s a
/// stage holds a micro-batch's activations for p - s from F to B and s more to W: p in all, 1f1b's most.
StageSchedule withWeightGradients(const StageSchedule &schedule, int64_t delay) {
  StageSchedule result;
  std::vector<int32_t> due;
  size_t next = 0;
  for (const ScheduleAction &action : schedule) {
    result.push_back(action);
    if (action.kind != ProgramKind::Backward)
      continue;
    due.push_back(action.microBatch);
    if (int64_t(due.size() - next) > delay)
      result.push_back({ProgramKind::WeightGradient, due[next++], 0});
  }
  while (next < due.size())
    result.push_back({ProgramKind::WeightGradient, due[next++], 0});
  return result;
}

} // namespace

std::string name(ScheduleKind kind) {
  for (const auto &[known, text] : kindNames)
    if (known == kind)
      return text;
  return "?";
}

Expected<ScheduleKind> parseScheduleKind(const std::string &name) {
  std::string all;
  for (const auto &[kind, text] : kindNames) {
    if (name == text)
      return kind;
    all += (all.empty() ? "" : ", ") + std::string(text);
  }
  return Status::error(ErrorKind::Usage, "schedule '" + name + "' is not known; there are " + all);
}

Pipeline pipelineOf(ScheduleKind kind, int64_t stages, int64_t chunks, int64_t microBatches) {
  return kind == ScheduleKind::Inference
             ? inferencePipeline(stages, chunks, microBatches)
             : trainingPipeline(stages, chunks, microBatches, kind == ScheduleKind::ZeroBubbleH1);
}

Expected<PipelineSchedule> makeSchedule(ScheduleKind kind, int64_t stages, int64_t chunks, int64_t microBatches) {
  bool takesOne = kind == ScheduleKind::OneForwardOneBackward || kind == ScheduleKind::ZeroBubbleH1;
  if (takesOne && chunks > 1)
    return Status::error(ErrorKind::Usage, "schedule " + name(kind) + " takes one chunk a stage, not " +
                                               std::to_string(chunks) + "; use interleaved");
  if (kind == ScheduleKind::Interleaved && chunks < 2)
    return Status::error(ErrorKind::Usage,
                         "schedule interleaved needs at least 2 chunks a stage; with 1 it would be 1f1b, use that");
  StageSchedule forwards = inGroups(ProgramKind::Forward, stages, chunks, microBatches);
  StageSchedule backwards = inGroups(ProgramKind::Backward, stages, chunks, microBatches);
  PipelineSchedule schedule;
  for (int64_t s = 0; s < stages; ++s) {
    StageSchedule stage;
    switch (kind) {
    case ScheduleKind::Inference:
      schedule.push_back(forwards);
      continue;
    case ScheduleKind::GPipe:
      stage = inTurns(forwards, backwards, int64_t(forwards.size()));
      break;
    case ScheduleKind::OneForwardOneBackward:
      stage = inTurns(forwards, backwards, stages - s - 1);
      break;
    case ScheduleKind::Interleaved:
      stage = inTurns(forwards, backwards, 2 * (stages - s - 1) + (chunks - 1) * stages);
      break;
    case ScheduleKind::ZeroBubbleH1:
      stage = withWeightGradients(inTurns(forwards, backwards, stages - s - 1), s);
      break;
    }
    stage.push_back({ProgramKind::Update, 0, 0});
    schedule.push_back(std::move(stage));
  }
  for (StageSchedule &stage : schedule)
    stage.erase(std::remove_if(stage.begin(), stage.end(),
                               [&](const ScheduleAction &action) { return action.microBatch >= microBatches; }),
                stage.end());
  return schedule;
}

} // namespace hpc::plan
