// A step in which no rank goes on: process 0 finds out by heartbeats, asks all processes where their ranks are, and ends the step.
#include "runtime/launch/Control.h"

#include <algorithm>

namespace hpc::launch {

using namespace std::chrono_literals;

/// How long process 0 waits for the positions of all ranks.
constexpr auto graceOfAnswers = 1000ms;
/// So many ranks that others wait for are named in an error; a table names all.
constexpr size_t mostCauses = 4;

void Control::sendHeartbeat() {
  const std::optional<uint64_t> progress = watched ? watched->progress() : std::nullopt;
  WireWriter writer;
  writer.number(progress.has_value(), 1);
  writer.number(watched && watched->waitsForDevice(), 1);
  writer.number(progress.value_or(0));
  send(FrameType::Heartbeat, writer.content);
}

void Control::sendPositions() {
  const std::vector<RankPosition> positions = watched ? watched->positions() : std::vector<RankPosition>();
  WireWriter writer;
  writer.number(positions.size());
  for (const RankPosition &position : positions) {
    writer.number(uint64_t(position.rank));
    writer.number(position.waits, 1);
    writer.text(position.text);
  }
  send(FrameType::Positions, writer.content);
}

void Control::checkStall(Clock::time_point now) {
  if (census)
    return concludeCensus(now);
  std::optional<uint64_t> all = watched ? watched->progress() : std::nullopt;
  bool onDevice = watched && watched->waitsForDevice();
  for (const Peer &peer : peers) {
    if (peer.progress)
      all = all.value_or(0) * 31 + *peer.progress;
    onDevice |= peer.onDevice;
  }
  if (!failed.ok() || !gone.ok() || !stall.isStalled(now, all, onDevice))
    return;
  census = Census{now, std::vector<std::optional<std::vector<RankPosition>>>(joined.introductions.size())};
  census->answers[0] = watched ? watched->positions() : std::vector<RankPosition>();
  send(FrameType::Ask, Status::success());
}

void Control::concludeCensus(Clock::time_point now) {
  const bool isWhole = std::all_of(census->answers.begin(), census->answers.end(), [](const auto &answer) { return answer.has_value(); });
  if (!isWhole && now - census->asked < graceOfAnswers)
    return;
  const std::string seconds = std::to_string(std::chrono::duration_cast<std::chrono::seconds>(stall.pause(now)).count()) + " s";
  std::string table = "no rank has gone on for " + seconds + "; where they are:\n  rank  process  host             state     at", causes;
  size_t count = 0;
  for (size_t process = 0; process < census->answers.size(); ++process) {
    const Introduction &one = joined.introductions[process];
    std::vector<RankPosition> list;
    if (census->answers[process])
      list = *census->answers[process];
    for (int64_t rank = one.firstRank; list.empty() && rank < one.firstRank + one.ranks; ++rank)
      list.push_back({rank, false, census->answers[process] ? "no step" : "no answer"});
    for (const RankPosition &position : list) {
      char start[160];
      std::snprintf(start, sizeof(start), "  %-4ld  %-7zu  %-15.60s  %-8s  ", long(position.rank), process, one.host.c_str(),
                    position.waits ? "waits" : "is at");
      table += "\n" + (start + position.text);
      if (!position.waits && ++count <= mostCauses)
        causes += (causes.empty() ? "" : "; ") + ("rank " + std::to_string(position.rank)) + " of " + one.text() + " is at " + position.text;
    }
  }
  if (options.tell)
    options.tell(table);
  const std::string remedy = " (--stall-timeout=SECONDS says how long a step may stand still)";
  const Status error = Status::error(ErrorKind::Io, count == 0 ? "all ranks have waited for each other for " + seconds + remedy
                                                               : "the others have waited for " + seconds + " for " +
                                                                     (count > mostCauses ? std::to_string(count) + " ranks, such as " : "") + causes + remedy);
  census.reset();
  note(error, false);
  send(FrameType::Failed, error);
}

void Control::watch(const RankWatch *ranks) {
  std::lock_guard<std::mutex> lock(mutex);
  watched = ranks;
}

} // namespace hpc::launch
