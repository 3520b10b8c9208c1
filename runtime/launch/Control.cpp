// One thread that polls the connections. Frames of one peer come in order, so Failed of a step is always before Done.
#include "runtime/launch/Control.h"

#include <algorithm>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace hpc::launch {

using namespace std::chrono_literals;

constexpr auto heartbeat = 400ms;
/// Limit for a process that has proved itself: room for the texts of exchange().
constexpr size_t frameLimit = 64 << 20;
/// How long a process may go on after another has vanished, or has failed and waits for it.
constexpr auto graceOfLost = 700ms, graceOfFailed = 3000ms;

Control::Control(int64_t process, Joined given, ControlOptions options)
    : process(process), joined(std::move(given)), options(std::move(options)), done(joined.introductions.size()), given(joined.introductions.size()),
      stall(this->options.stallTimeout) {
  for (size_t i = 0; i < joined.connections.size(); ++i)
    if (joined.connections[i].isOpen())
      peers.push_back({i, std::move(joined.connections[i]), std::move(joined.received[i]), {}, Clock::now()});
  wakeUp = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  thread = std::thread([this] { work(); });
}

Control::~Control() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    send(FrameType::Goodbye, Status::success());
    leaving = true;
  }
  wake();
  thread.join();
  ::close(wakeUp);
}

void Control::wake() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(wakeUp, &one, sizeof(one)); // full: it is awake
}

void Control::send(FrameType type, const std::string &payload, const Peer *except) {
  for (Peer &peer : peers)
    if (&peer != except && peer.socket.isOpen())
      peer.pending += frame(type, payload);
  wake();
}

void Control::send(FrameType type, const Status &status, const Peer *except) {
  WireWriter writer;
  if (type != FrameType::Ask && type != FrameType::Goodbye)
    writer.status(status);
  send(type, writer.content, except);
}

void Control::send(FrameType type, const Status &status, bool answer) {
  WireWriter writer;
  writer.status(status);
  writer.number(answer, 1);
  send(type, writer.content);
}

void Control::note(const Status &error, bool isLost) {
  if (isLost && gone.ok())
    gone = failed.ok() ? error : failed;
  if (failed.ok()) {
    failed = error;
    failedAt = Clock::now();
    unheard = error;
  }
  changed.notify_all();
}

void Control::drop(Peer &peer, const std::string &why) {
  peer.socket.close();
  // A process that has said goodbye is only missed if the others still have to agree on something.
  orderly |= peer.saidGoodbye;
  Status error = Status::error(
      ErrorKind::Io, joined.introductions[peer.process].text() +
                         (peer.saidGoodbye ? " has ended; the others cannot go on alone" : " is gone: " + why));
  note(error, true);
  if (isHub() && !peer.saidGoodbye)
    send(FrameType::Lost, gone);
}

void Control::receive(Peer &peer, const Frame &frame) {
  WireReader reader(frame.payload);
  switch (frame.type) {
  case FrameType::Heartbeat: {
    const bool isInStep = reader.number(1) != 0;
    peer.onDevice = reader.number(1) != 0;
    const uint64_t progress = reader.number();
    peer.progress = isInStep ? std::optional<uint64_t>(progress) : std::nullopt;
    return;
  }
  case FrameType::Goodbye:
    peer.saidGoodbye = true;
    return;
  case FrameType::Failed:
  case FrameType::Lost: {
    Status status = reader.status();
    if (status.ok())
      return;
    bool isNews = failed.ok();
    note(status, frame.type == FrameType::Lost);
    if (isHub() && isNews)
      send(FrameType::Failed, status, &peer);
    return;
  }
  case FrameType::Done:
    if (isHub()) {
      done[peer.process] = reader.status();
      anyYes |= reader.number(1) != 0;
      conclude();
    }
    return;
  case FrameType::Verdict:
    if (!isHub()) {
      verdict = reader.status();
      verdictYes = reader.number(1) != 0;
      failed = Status::success();
      unheard.reset();
      told.reset();
      changed.notify_all();
    }
    return;
  case FrameType::Text:
    if (isHub()) {
      given[peer.process] = reader.text();
      tellTexts();
    }
    return;
  case FrameType::Texts:
    if (!isHub()) {
      told.emplace();
      while (reader.ok() && told->size() < joined.introductions.size())
        told->push_back(reader.text());
      changed.notify_all();
    }
    return;
  case FrameType::Ask:
    sendPositions();
    return;
  case FrameType::Positions:
    if (census) {
      std::vector<RankPosition> &list = census->answers[peer.process].emplace();
      for (uint64_t left = reader.number(); left > 0 && reader.ok(); --left) {
        RankPosition &position = list.emplace_back();
        position.rank = int64_t(reader.number());
        position.waits = reader.number(1) != 0;
        position.text = reader.text();
      }
    }
    return;
  case FrameType::Proof:
  case FrameType::Refused:
  case FrameType::Welcome:
    break;
  }
  drop(peer, "it sends what no process of this version sends");
}

void Control::conclude() {
  for (const std::optional<Status> &status : done)
    if (!status)
      return;
  Status result = failed;
  for (std::optional<Status> &status : done) {
    if (result.ok())
      result = *status;
    status.reset();
  }
  for (std::optional<std::string> &text : given)
    text.reset();
  told.reset();
  failed = Status::success();
  unheard.reset();
  verdict = result;
  verdictYes = std::exchange(anyYes, false);
  send(FrameType::Verdict, result, verdictYes);
  changed.notify_all();
}

void Control::exchange(Peer &peer) {
  size_t before = peer.received.size();
  bool open = peer.socket.read(peer.received, frameLimit + frameHead);
  if (peer.received.size() > before)
    peer.heard = Clock::now();
  Frame frame;
  while (peer.socket.isOpen()) {
    FrameState state = takeFrame(peer.received, frameLimit, frame);
    if (state == FrameState::Incomplete)
      break;
    if (state == FrameState::TooLong)
      return drop(peer, "it sends what no process of this version sends");
    receive(peer, frame);
  }
  if (peer.socket.isOpen() && (!open || !peer.socket.write(peer.pending)))
    drop(peer, "its connection was closed");
}

void Control::checkSilence(Peer &peer, Clock::time_point now) {
  if (peer.socket.isOpen() && options.peerTimeout.count() > 0 && now - peer.heard > options.peerTimeout)
    drop(peer,
         "nothing was heard of it for " +
             std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(now - peer.heard).count() / 1000) +
             " s (it was stopped, or the network is cut; --peer-timeout says how long to wait)");
}

void Control::work() {
  Clock::time_point beat = Clock::now(), last = beat, leaveBy = Clock::time_point::max();
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    std::vector<pollfd> entries{{wakeUp, POLLIN, 0}};
    bool hasPending = false;
    for (const Peer &peer : peers)
      if (peer.socket.isOpen()) {
        entries.push_back({peer.socket.get(), short(POLLIN | (peer.pending.empty() ? 0 : POLLOUT)), 0});
        hasPending |= !peer.pending.empty();
      }
    if (leaving && leaveBy == Clock::time_point::max())
      leaveBy = Clock::now() + 500ms;
    if (leaving && (!hasPending || Clock::now() > leaveBy))
      return;
    lock.unlock();
    ::poll(entries.data(), nfds_t(entries.size()), 100);
    uint64_t ignored;
    [[maybe_unused]] ssize_t cleared = ::read(wakeUp, &ignored, sizeof(ignored));
    lock.lock();
    const Clock::time_point now = Clock::now();
    // This process itself was stopped: data of the others is still to be read before any of them counts as silent.
    if (now - last > 1s) {
      for (Peer &peer : peers)
        peer.heard += now - last;
      stall.skip(now - last);
    }
    last = now;
    if (now - beat >= heartbeat) {
      beat = now;
      sendHeartbeat();
    }
    for (Peer &peer : peers) {
      if (peer.socket.isOpen())
        exchange(peer);
      checkSilence(peer, now);
    }
    if (isHub())
      checkStall(now);
    if (unheard && failureCalled) {
      Status error = *unheard;
      unheard.reset();
      failureCalled(error); // wakes ranks, waits for none
    }
    if (!failed.ok() && !inAgree && !leaving && !orderly && options.abandon &&
        now - failedAt > (gone.ok() ? graceOfFailed : graceOfLost)) {
      Status error = failed;
      lock.unlock();
      options.abandon(error);
      lock.lock();
    }
  }
}

void Control::onFailure(std::function<void(const Status &)> called) {
  std::lock_guard<std::mutex> lock(mutex);
  failureCalled = std::move(called);
}

void Control::fail(const Status &error) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failed.ok() || !gone.ok())
    return;
  note(error, false);
  send(FrameType::Failed, error);
}

Status Control::failure() const {
  std::lock_guard<std::mutex> lock(mutex);
  return gone.ok() ? failed : gone;
}

Status Control::lost() const {
  std::lock_guard<std::mutex> lock(mutex);
  return gone;
}

/// The hub has a text of everybody: all get them.
void Control::tellTexts() {
  WireWriter writer;
  for (const std::optional<std::string> &text : given) {
    if (!text)
      return;
    writer.text(*text);
  }
  told.emplace();
  for (std::optional<std::string> &text : given) {
    told->push_back(std::move(*text));
    text.reset();
  }
  send(FrameType::Texts, writer.content);
  changed.notify_all();
}

Expected<std::vector<std::string>> Control::exchange(const std::string &mine) {
  std::unique_lock<std::mutex> lock(mutex);
  if (isHub()) {
    given[0] = mine;
    tellTexts();
  } else {
    WireWriter writer;
    writer.text(mine);
    send(FrameType::Text, writer.content);
  }
  changed.wait(lock, [&] { return told || !failed.ok() || !gone.ok(); });
  if (!told)
    return gone.ok() ? failed : gone;
  std::vector<std::string> texts = std::move(*told);
  told.reset();
  return texts;
}

Status Control::introduce(const Introduction &mine) {
  WireWriter writer;
  mine.write(writer);
  Expected<std::vector<std::string>> texts = exchange(writer.content);
  if (!texts.ok())
    return texts.status();
  std::vector<Introduction> all;
  for (const std::string &text : *texts) {
    WireReader reader(text);
    all.push_back(Introduction::read(reader));
    if (!reader.atEnd() || all.back().process != int64_t(all.size()) - 1)
      return Status::error(ErrorKind::Usage, "a process does not understand the introduction of process " +
                                                 std::to_string(all.size() - 1) +
                                                 "; install the same version on all hosts");
  }
  Status same = compare(all);
  std::lock_guard<std::mutex> lock(mutex);
  joined.introductions = std::move(all);
  return same;
}

Status Control::agree(const Status &mine, const std::function<void()> &idle, bool *answer) {
  std::unique_lock<std::mutex> lock(mutex);
  inAgree = true;
  if (gone.ok()) {
    if (isHub()) {
      done[0] = mine;
      anyYes |= answer && *answer;
      conclude();
    } else {
      send(FrameType::Done, mine, answer && *answer);
    }
  }
  for (auto pause = 100us; gone.ok() && !verdict; pause = std::min<std::chrono::microseconds>(pause * 2, 5ms)) {
    changed.wait_for(lock, pause);
    lock.unlock();
    idle();
    lock.lock();
  }
  inAgree = false;
  Status result = verdict ? *verdict : gone;
  verdict.reset();
  if (answer)
    *answer = verdictYes;
  return result;
}

} // namespace hpc::launch
