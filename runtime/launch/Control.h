// Messages between the processes of a run while it runs: signs of life, failures with their reasons, and the result of
// a step. A star around process 0. A silent process counts as lost, and then all end: no process waits for ever.
#pragma once

#include "runtime/base/RankWatch.h"
#include "runtime/launch/Join.h"
#include "runtime/launch/StallClock.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace hpc::launch {

struct ControlOptions {
  /// Silence after which a process counts as lost; 0: for ever (a debugger may stop it).
  std::chrono::milliseconds peerTimeout{3500};
  /// Called on a thread of Control's when another process has failed and this one does not come to agree(): its ranks
  /// compute something long. Should end the process. May be empty.
  std::function<void(const Status &)> abandon;
  /// See StallClock.
  std::chrono::milliseconds stallTimeout{30000};
  /// Called in process 0 with the table of all ranks before a stalled step fails. May be empty.
  std::function<void(const std::string &)> tell = nullptr;
};

class Control {
public:
  Control(int64_t process, Joined joined, ControlOptions options);
  /// Says goodbye.
  ~Control();

  const std::vector<Introduction> &introductions() const { return joined.introductions; }
  const Introduction &mine() const { return joined.introductions[size_t(process)]; }
  /// Replaces the introductions of the meeting by fuller ones: every process calls it once, with its own, and gets the status
  /// of compare(), or the error of one that has failed meanwhile.
  Status introduce(const Introduction &mine);
  /// `called` hears of the first failure of each step, on a thread of Control's. It replaces the one before.
  void onFailure(std::function<void(const Status &)> called);

  /// The ranks of this process, watched until the next call; null: they are gone. When no rank of any process goes on, process 0 collects where
  /// all are, and the step fails with the ranks that the others wait for.
  void watch(const RankWatch *ranks);

  /// A rank of this process has failed; the others hear of it, unless another error was first.
  void fail(const Status &error);
  /// Success, or the known failure of this step.
  Status failure() const;
  /// Success, or why there will be no other step: a process has vanished.
  Status lost() const;
  /// The texts of all processes, by process, when all have called it; or the error of one that has failed meanwhile.
  /// agree() ends an exchange that a failed step has left unfinished.
  Expected<std::vector<std::string>> exchange(const std::string &mine);
  /// Returns when all processes have called it, with one status for all: the first failure, or else the status of the
  /// first process that passed an error. Calls `idle` now and then while it waits. `answer`: all pass it or none does; in,
  /// this process's; out, on success, whether any process passed true.
  Status agree(const Status &mine, const std::function<void()> &idle, bool *answer = nullptr);

private:
  /// The other end of a connection.
  struct Peer {
    size_t process;
    Socket socket;
    std::string received, pending;
    Clock::time_point heard;
    bool saidGoodbye = false;
    std::optional<uint64_t> progress = std::nullopt; ///< RankWatch's
    bool onDevice = false;
  };
  /// Answers to Ask, in process 0.
  struct Census {
    Clock::time_point asked;
    std::vector<std::optional<std::vector<RankPosition>>> answers; ///< by process
  };
  bool isHub() const { return process == 0; }
  void work();
  void exchange(Peer &peer);
  void receive(Peer &peer, const Frame &frame);
  void checkSilence(Peer &peer, Clock::time_point now);
  void drop(Peer &peer, const std::string &why);
  void note(const Status &error, bool isLost);
  void conclude();
  void sendHeartbeat();
  void sendPositions();
  void checkStall(Clock::time_point now);
  void concludeCensus(Clock::time_point now);
  void tellTexts();
  void send(FrameType type, const Status &status, const Peer *except = nullptr);
  void send(FrameType type, const Status &status, bool answer);
  void send(FrameType type, const std::string &payload, const Peer *except = nullptr);
  void wake();

  const int64_t process;
  Joined joined; ///< its connections have moved to `peers`
  const ControlOptions options;

  mutable std::mutex mutex; ///< of all members below
  std::condition_variable changed;
  std::vector<Peer> peers;
  std::vector<std::optional<Status>> done; ///< by process, of this step; process 0 alone
  std::optional<Status> verdict;
  bool anyYes = false;     ///< of the answers that came with `done`; process 0 alone
  bool verdictYes = false; ///< that of all, with `verdict`
  std::vector<std::optional<std::string>> given; ///< arguments of exchange(), by process; process 0 alone
  std::optional<std::vector<std::string>> told;  ///< the result of exchange()
  Status failed, gone;
  std::optional<Status> unheard; ///< a failure that onFailure's callback has not received
  Clock::time_point failedAt;
  std::function<void(const Status &)> failureCalled;
  const RankWatch *watched = nullptr;
  StallClock stall;              ///< process 0 alone, as the next
  std::optional<Census> census;
  bool inAgree = false, leaving = false;
  bool orderly = false; ///< a process has left in order: no reason to abandon current work
  int wakeUp = -1;      ///< eventfd
  std::thread thread;
};

} // namespace hpc::launch
