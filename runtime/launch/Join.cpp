// The handshake. R is the rendezvous (process 0), P any other process, m the meeting:
//   R -> P  greeting, m, nonce r
//   P -> R  greeting, nonce p, proof("process", m r p introduction), introduction
//   R -> P  Proof("rendezvous", m p r), or Refused
//   R -> P  Welcome once all are there or one has failed
// R keeps nothing of a peer before its proof but at most 64 KiB for at most 3 seconds.
#include "runtime/launch/Join.h"

#include "runtime/launch/Secret.h"

#include <algorithm>
#include <list>
#include <poll.h>
#include <set>
#include <thread>

namespace hpc::launch {

namespace {

using namespace std::chrono_literals;

const std::string greeting = "hpc-run\2";
constexpr size_t introductionLimit = 64 << 10, welcomeLimit = 64 << 20;
constexpr auto strangerTimeout = 3000ms, answerTimeout = 5000ms, elsewhereInterval = 200ms;
constexpr size_t mostStrangers = 256;

/// The form that is sent, of fixed length.
std::string padded(std::string meeting) {
  meeting.resize(meetingBytes);
  return meeting;
}

/// A connection that has not proved anything yet.
struct Stranger {
  Socket socket;
  std::string nonce, received;
  Clock::time_point until;
};

std::string text(const Endpoint &endpoint) { return endpoint.host + ":" + std::to_string(endpoint.port); }

/// Process 0's side: owns the connections so far.
class Reception {
public:
  Reception(const JoinOptions &options, const Introduction &mine)
      : options(options), mine(mine), meeting(padded(options.place.meeting)) {}

  Expected<Joined> run(const std::vector<Socket> &listeners) {
    const Clock::time_point end = Clock::now() + options.timeout;
    if (mine.status.ok()) { // else the count is as doubtful as the rest
      const size_t count = size_t(mine.processes);
      joined.introductions.resize(count);
      joined.connections.resize(count);
      joined.received.resize(count);
      joined.introductions[0] = mine;
    } else {
      fail(compare({mine}), options.late);
    }
    while (failure.ok() ? missing() > 0 : told.size() + 1 < size_t(mine.processes) && Clock::now() < lateUntil) {
      std::vector<pollfd> entries;
      for (const Socket &listener : listeners)
        entries.push_back({listener.get(), POLLIN, 0});
      for (const Stranger &stranger : strangers)
        entries.push_back({stranger.socket.get(), POLLIN, 0});
      for (const Socket &connection : joined.connections)
        if (connection.isOpen() && failure.ok())
          entries.push_back({connection.get(), POLLIN, 0});
      ::poll(entries.data(), nfds_t(entries.size()), 100);
      for (const Socket &listener : listeners)
        acceptAll(listener);
      for (auto stranger = strangers.begin(); stranger != strangers.end();)
        stranger = listen(*stranger) ? std::next(stranger) : strangers.erase(stranger);
      noticeLeavers();
      askElsewhere();
      if (failure.ok() && missing() > 0 && Clock::now() >= end)
        fail(whoIsMissing()); // they have had their time
    }
    if (failure.ok())
      fail(compare(joined.introductions));
    if (!failure.ok())
      return failure;
    for (Socket &connection : joined.connections)
      welcome(connection, failure);
    return std::move(joined);
  }

private:
  int64_t missing() const {
    int64_t open = 0;
    for (const Socket &connection : joined.connections)
      open += connection.isOpen();
    return int64_t(joined.connections.size()) - 1 - open;
  }

  /// The first error is the run's: the processes that are there receive it now, and later ones for some time.
  void fail(const Status &status, std::chrono::milliseconds late = 0ms) {
    if (status.ok() || !failure.ok())
      return;
    failure = status;
    lateUntil = Clock::now() + late;
    for (size_t i = 1; i < joined.connections.size(); ++i)
      if (joined.connections[i].isOpen()) {
        welcome(joined.connections[i], failure);
        told.insert(int64_t(i));
      }
    if (options.onFailure)
      options.onFailure(failure);
  }

  void acceptAll(const Socket &listener) {
    for (Socket socket = acceptFrom(listener); socket.isOpen(); socket = acceptFrom(listener)) {
      Expected<std::string> nonce = makeNonce();
      if ((options.secret.empty() && !socket.peerIsLoopback()) || !nonce.ok()) {
        ++refused;
        continue;
      }
      std::string hello = greeting + meeting + *nonce;
      if (socket.write(hello) && hello.empty())
        strangers.push_back({std::move(socket), std::move(*nonce), {}, Clock::now() + strangerTimeout});
      if (strangers.size() > mostStrangers) // the oldest has had its time
        strangers.pop_front();
    }
  }

  /// False: done with this one, for better or worse.
  bool listen(Stranger &stranger) {
    constexpr size_t head = 8 + nonceBytes + proofBytes + 4;
    const size_t limit = head + introductionLimit;
    bool open = stranger.socket.read(stranger.received, limit);
    const std::string &got = stranger.received;
    const size_t greeted = std::min(got.size(), greeting.size());
    bool plausible = got.compare(0, greeted, greeting, 0, greeted) == 0;
    uint64_t size = 0;
    if (plausible && got.size() >= head) {
      WireReader reader(std::string_view(got).substr(head - 4));
      size = reader.number(4);
      plausible = size <= introductionLimit;
      if (plausible && got.size() >= head + size)
        return judge(stranger, head, size), false;
    }
    if (plausible && open && Clock::now() < stranger.until)
      return true;
    ++refused;
    return false;
  }

  void judge(Stranger &stranger, size_t head, size_t size) {
    const std::string &got = stranger.received;
    std::string nonce = got.substr(greeting.size(), nonceBytes),
                proof = got.substr(greeting.size() + nonceBytes, proofBytes);
    std::string payload = got.substr(head, size), answer;
    if (!sameProof(proof, prove(options.secret, "process", meeting + stranger.nonce + nonce + payload))) {
      ++refused;
      answer = frame(FrameType::Refused);
      stranger.socket.write(answer);
      return;
    }
    answer = frame(FrameType::Proof, prove(options.secret, "rendezvous", meeting + nonce + stranger.nonce));
    stranger.socket.write(answer);
    WireReader reader(payload);
    Introduction one = Introduction::read(reader);
    fail(whyNot(one, reader.atEnd()), options.late);
    if (failure.ok()) {
      const size_t index = size_t(one.process);
      joined.connections[index] = std::move(stranger.socket);
      joined.received[index] = got.substr(head + size);
      joined.introductions[index] = std::move(one);
    } else {
      welcome(stranger.socket, failure);
      hasHeard(one.process);
    }
  }

  /// This process need not be waited for any longer; -1: none.
  void hasHeard(int64_t process) {
    if (process > 0 && process < mine.processes)
      told.insert(process);
  }

  /// A process that does not belong here is missing elsewhere, so no process waits any longer.
  Status whyNot(const Introduction &one, bool readable) const {
    auto refuse = [&](const std::string &why) { return Status::error(ErrorKind::Usage, why); };
    if (!readable)
      return refuse("process 0 does not understand the introduction of another; install the same version on all hosts");
    if (!one.status.ok())
      return compare({one});
    if (one.processes != mine.processes)
      return refuse(one.text() + " was started as one of " + std::to_string(one.processes) +
                    " processes, process 0 as one of " + std::to_string(mine.processes) +
                    "; start all with the same count");
    if (one.process < 1 || one.process >= mine.processes)
      return refuse("there is no process " + std::to_string(one.process) + " of " + std::to_string(mine.processes) +
                    ": " + one.text());
    if (failure.ok() && joined.connections[size_t(one.process)].isOpen())
      return refuse(joined.introductions[size_t(one.process)].text() + " is there already, and " + one.text() +
                    " comes as the same; give every process its own number");
    return compare({mine, one});
  }

  void noticeLeavers() {
    for (size_t i = 1; i < joined.connections.size() && failure.ok(); ++i)
      if (joined.connections[i].isOpen() && !joined.connections[i].read(joined.received[i], introductionLimit)) {
        hasHeard(int64_t(i));
        joined.connections[i].close();
        fail(Status::error(ErrorKind::Io, joined.introductions[i].text() + " ended before all had come"),
             options.late);
      }
  }

  void askElsewhere() {
    if (!failure.ok() || !options.listenElsewhere || Clock::now() < askAgain)
      return;
    askAgain = Clock::now() + elsewhereInterval;
    int64_t process = -1;
    fail(options.listenElsewhere(process), options.late);
    hasHeard(process);
  }

  Status whoIsMissing() const {
    std::string who;
    for (size_t i = 1; i < joined.connections.size(); ++i)
      if (!joined.connections[i].isOpen())
        who += (who.empty() ? "" : ", ") + std::to_string(i);
    who = (missing() == 1 ? "process " : "processes ") + who;
    return Status::error(ErrorKind::Io,
                         who + " did not come to the rendezvous within " +
                             std::to_string(options.timeout.count() / 1000) +
                             " s; start all processes, with the same " + "rendezvous and HPC_SECRET" +
                             (refused ? " (connections refused so far: " + std::to_string(refused) + ")" : ""));
  }

  void welcome(Socket &connection, const Status &status) {
    if (!connection.isOpen())
      return;
    WireWriter writer;
    writer.status(status);
    writer.number(status.ok() ? joined.introductions.size() : 0);
    if (status.ok())
      for (const Introduction &one : joined.introductions)
        one.write(writer);
    const Clock::time_point end = Clock::now() + 5s;
    std::string answer = frame(FrameType::Welcome, writer.content);
    while (connection.write(answer) && !answer.empty() && waitFor(connection, true, end))
      ;
  }

  const JoinOptions &options;
  const Introduction &mine;
  const std::string meeting;
  Joined joined;
  std::list<Stranger> strangers;
  Status failure;
  std::set<int64_t> told; ///< the numbers of processes that have received it, or have gone
  Clock::time_point lateUntil, askAgain;
  int64_t refused = 0;
};

/// Reads until there is a frame.
Expected<Frame> nextFrame(Socket &socket, std::string &received, size_t limit, Clock::time_point end) {
  Frame taken;
  for (bool open = true;; open = waitFor(socket, false, end) ? socket.read(received, limit + frameHead) : open) {
    switch (takeFrame(received, limit, taken)) {
    case FrameState::Complete:
      return taken;
    case FrameState::TooLong:
      return Status::error(ErrorKind::Io, "it sends what no rendezvous sends");
    case FrameState::Incomplete:
      break;
    }
    if (!open)
      return Status::error(ErrorKind::Io, "it closed the connection");
    if (Clock::now() >= end)
      return Status::error(ErrorKind::Io, "no answer in time");
  }
}

/// One attempt. `final`: trying again would not help.
Expected<Joined> knock(const JoinOptions &options, const Place &place, const Endpoint &endpoint,
                       const Introduction &mine, Clock::time_point end, bool &final) {
  const Clock::time_point soon = std::min(end, Clock::now() + options.greeting);
  Expected<Socket> connected = connectTo(endpoint.host, endpoint.port, soon);
  if (!connected.ok()) {
    final = connected.status().kind() == ErrorKind::Usage;
    return connected.status();
  }
  Socket socket = std::move(*connected);
  auto refuse = [&](const std::string &why) {
    return Status::error(ErrorKind::Io, "the rendezvous at " + text(endpoint) + ": " + why);
  };
  const std::string meeting = padded(place.meeting);
  const size_t hello = greeting.size() + meetingBytes + nonceBytes;
  // Process 0 greets every connection. A silent or different listener occupies the port that process 0 needs.
  const std::string foreign = "something else listens there (" + socket.peerName() + "); choose another port";
  std::string received;
  while (received.size() < hello) {
    if (!waitFor(socket, false, soon)) {
      final = options.find == nullptr && soon < end;
      return refuse("no greeting in time: " + foreign);
    }
    if (!socket.read(received, hello) && received.size() < hello)
      return refuse("it closed the connection");
    if (received.compare(0, std::min(received.size(), greeting.size()), greeting, 0,
                         std::min(received.size(), greeting.size())) != 0) {
      final = options.find == nullptr;
      return refuse(foreign);
    }
  }
  if (received.compare(greeting.size(), meetingBytes, meeting) != 0)
    return refuse("another run meets there");
  const std::string theirs = received.substr(greeting.size() + meetingBytes);
  received.clear();
  Expected<std::string> nonce = makeNonce();
  if (!nonce.ok())
    return nonce.status();
  WireWriter payload, head;
  mine.write(payload);
  head.number(payload.content.size(), 4);
  std::string message = greeting + *nonce +
                        prove(options.secret, "process", meeting + theirs + *nonce + payload.content) + head.content +
                        payload.content;
  while (socket.write(message) && !message.empty())
    if (!waitFor(socket, true, soon))
      break;
  Expected<Frame> proof = nextFrame(socket, received, welcomeLimit, Clock::now() + answerTimeout);
  if (!proof.ok())
    return refuse(proof.status().message());
  final = true;
  if (proof->type != FrameType::Proof ||
      !sameProof(proof->payload, prove(options.secret, "rendezvous", meeting + *nonce + theirs)))
    return refuse("it does not know the secret of this process; set HPC_SECRET to the same text everywhere");
  // Others may still be on their way; process 0 gives up before this process does.
  Expected<Frame> answer = nextFrame(socket, received, welcomeLimit, Clock::now() + options.timeout + 10s);
  if (!answer.ok())
    return refuse("process 0 is gone: " + answer.status().message());
  WireReader reader(answer->payload);
  Joined joined;
  Status status = reader.status();
  if (answer->type == FrameType::Welcome && !status.ok())
    return status;
  uint64_t count = reader.number();
  for (uint64_t i = 0; i < count && reader.ok(); ++i)
    joined.introductions.push_back(Introduction::read(reader));
  if (answer->type != FrameType::Welcome || !reader.atEnd() || count != uint64_t(mine.processes))
    return refuse("it sends what no rendezvous of this version sends; install the same version on all hosts");
  joined.connections.resize(size_t(mine.processes));
  joined.received.resize(size_t(mine.processes));
  joined.connections[0] = std::move(socket);
  joined.received[0] = std::move(received);
  return joined;
}

} // namespace

Status checkEndpoints(const JoinOptions &options) {
  HPC_RETURN_IF_ERROR(checkSecret(options.secret));
  for (const Endpoint &endpoint : options.place.endpoints) {
    Expected<bool> loopback = isLoopback(endpoint.host);
    if (!loopback.ok())
      return loopback.status();
    if (!*loopback && options.secret.empty())
      return Status::error(ErrorKind::Usage, "the rendezvous " + text(endpoint) +
                                                 " can be reached by strangers; set HPC_SECRET to the same secret in "
                                                 "all processes, for example of `openssl rand -hex 32`");
  }
  return Status::success();
}

Expected<Joined> receiveAll(const JoinOptions &options, const std::vector<Socket> &listeners,
                            const Introduction &mine) {
  return Reception(options, mine).run(listeners);
}

Expected<Joined> comeTo(const JoinOptions &options, const Introduction &mine) {
  const Clock::time_point end = Clock::now() + options.timeout;
  Status last = Status::error(ErrorKind::Io, "process 0 has not said where it is");
  do {
    Expected<Place> place = options.find ? options.find(end) : Expected<Place>(options.place);
    if (!place.ok())
      return place.status();
    for (const Endpoint &endpoint : place->endpoints) {
      bool final = false;
      Expected<Joined> joined = knock(options, *place, endpoint, mine, end, final);
      if (joined.ok() || final)
        return joined;
      last = joined.status();
    }
    std::this_thread::sleep_for(options.find ? 100ms : 50ms);
  } while (Clock::now() < end);
  return Status::error(last.kind(), last.message() + "; tried for " + std::to_string(options.timeout.count() / 1000) +
                                        " s: is process 0 running, and is this its address?");
}

} // namespace hpc::launch
