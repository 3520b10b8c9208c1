// A round is one start of all processes, until all have ended. The first that ends badly ends the others: by themselves, as they hear of it
// (launch/Control), else by SIGKILL.
#include "tools/running/StartProcesses.h"

#include "runtime/base/CountText.h"
#include "runtime/launch/Launch.h"
#include "runtime/launch/Secret.h"
#include "runtime/launch/Socket.h"
#include "tools/ExitCode.h"
#include "tools/running/ChildOutput.h"
#include "tools/running/ChildProcess.h"
#include "tools/running/ParentProcess.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <random>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpc {

using namespace std::chrono_literals;
using launch::Clock;

/// How long the others may take to end by themselves.
constexpr auto graceOfOthers = 5s;
/// So many failures of one step are the step's own.
constexpr int64_t mostFailuresOfStep = 3;

static Status startUsage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

StartFlags readStartFlags(const Arguments &arguments) {
  StartFlags flags;
  flags.restarts = arguments.whole("max-restarts").value_or(0);
  flags.processes = arguments.whole("processes").value_or(arguments.has("max-restarts") ? 1 : 0);
  flags.nodes = *arguments.whole("nnodes");
  flags.node = *arguments.whole("node-rank");
  flags.logs = arguments.text("log-dir");
  flags.peerTimeout = *arguments.real("peer-timeout");
  flags.launch = arguments.text("launch");
  flags.rendezvous = arguments.text("rendezvous");
  return flags;
}

Status checkStartFlags(const Arguments &arguments, const StartFlags &flags) {
  for (const char *name : {"nnodes", "node-rank", "log-dir"})
    if (flags.processes == 0 && arguments.has(name))
      return startUsage(std::string("--") + name + " is about processes that this one starts: add --processes=N, or leave it out");
  if (flags.processes == 0)
    return Status::success();
  if (flags.launch == "none" || flags.launch == "mpi")
    return startUsage("--launch=" + flags.launch + " does not go with " + (arguments.has("processes") ? "--processes" : "--max-restarts") +
                      ", which starts processes by their environment; leave one of them out");
  if (flags.node >= flags.nodes)
    return startUsage("--node-rank=" + std::to_string(flags.node) + " must be below --nnodes=" + std::to_string(flags.nodes));
  return Status::success();
}

bool startsProcesses(const StartFlags &flags) { return flags.processes > 0 && !hasParent(); }

std::vector<std::string> withoutFlag(const std::vector<std::string> &words, const std::string &name) {
  std::vector<std::string> rest;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t start = words[i].find_first_not_of('-');
    const bool isFlag = start > 0 && start != std::string::npos && words[i].substr(start, words[i].find('=') - start) == name;
    if (!isFlag)
      rest.push_back(words[i]);
    else if (words[i].find('=') == std::string::npos)
      ++i;
  }
  return rest;
}

/// Below the ports that the system gives to outgoing connections, so that none of those takes it before process 0 listens there.
static Expected<uint16_t> freePort() {
  std::random_device chance;
  Status last;
  for (int attempt = 0; attempt < 100; ++attempt) {
    Expected<launch::Socket> listener = launch::listenOn("127.0.0.1", uint16_t(20000 + chance() % 12000));
    if (listener.ok())
      return launch::portOf(*listener);
    last = listener.status();
  }
  return last;
}

static Expected<std::string> freshSecret() {
  Expected<std::string> nonce = launch::makeNonce();
  if (!nonce.ok())
    return nonce;
  std::string text;
  for (unsigned char byte : *nonce)
    for (int digit : {byte >> 4, byte & 15})
      text += "0123456789abcdef"[digit];
  return text;
}

static std::string signalText(int signal) {
  const char *name = ::sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

/// "after 1.25 s"
static std::string secondsText(Clock::duration time) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f s", std::chrono::duration<double>(time).count());
  return text;
}

namespace {

struct Member {
  int64_t rank;
  ChildProcess child;
  ChildOutput output;
  std::optional<int> ended; ///< as waitpid has it
  bool isStopped = false; ///< also when it has ended since
  Clock::duration stoppedFor{0};

  bool endedBadly() const { return ended && *ended != 0; }
  std::string name() const { return "process " + std::to_string(rank) + " (pid " + std::to_string(child.pid) + ")"; }
};

/// The end of a round.
struct Outcome {
  int code = 0;
  std::string why;         ///< "" where all went well
  bool isWorthAgain = false; ///< it did not fail by its flags, model or data
  bool isKilled = false;     ///< by SIGKILL
};

class Supervisor {
public:
  explicit Supervisor(const Starting &starting) : flags(starting.flags), starting(starting) {}
  ~Supervisor() {
    for (Member &member : members)
      closeAll(member);
    if (signals >= 0)
      ::close(signals);
  }

  Status prepare() {
    HPC_RETURN_IF_ERROR(checkAlone());
    std::error_code error;
    if (!flags.logs.empty() && (std::filesystem::create_directories(flags.logs, error), error))
      return Status::error(ErrorKind::Io, "--log-dir=" + flags.logs + " cannot be made: " + error.message() + "; name another folder");
    sigset_t mask;
    ::sigemptyset(&mask);
    for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1}) {
      struct sigaction now{};
      ::sigaction(signal, nullptr, &now);
      if (now.sa_handler != SIG_IGN || signal == SIGCHLD)
        ::sigaddset(&mask, signal);
    }
    ::signal(SIGCHLD, SIG_DFL); // an ignored one would take the ends of processes away
    ::sigprocmask(SIG_BLOCK, &mask, nullptr);
    signals = ::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return signals >= 0 ? Status::success() : Status::error(ErrorKind::Io, std::string("signals cannot be awaited: ") + std::strerror(errno));
  }

  int run() {
    std::vector<std::string> arguments = starting.arguments;
    for (int64_t round = 0;; ++round) {
      if (Status status = start(arguments); !status.ok()) {
        killAll();
        return reportError(toolName(), status);
      }
      while (isRunning())
        turn();
      const Outcome outcome = conclude();
      if (outcome.why.empty())
        return outcome.code;
      // SIGKILL comes from outside, at any step.
      failuresOfStep = outcome.isKilled ? 0 : failedStep == lastStep ? failuresOfStep + 1 : 1;
      failedStep = lastStep;
      const bool isStepsOwn = failuresOfStep == mostFailuresOfStep;
      if (!outcome.isWorthAgain || isTerminated || round == flags.restarts || isStepsOwn) {
        const std::string again = !isStepsOwn || flags.restarts < 2 ? "" : "; it is not tried again, since " + countText(mostFailuresOfStep, "start") + " in a row have come to the same step";
        std::fflush(stdout);
        std::fprintf(stderr, "%s%s\n", outcome.why.c_str(), again.c_str());
        return outcome.code;
      }
      Continuation next = starting.again();
      printNote(outcome.why.substr(outcome.why.find("]: ") + 3) + "; all start again from " + (next.from.empty() ? "the beginning" : next.from) +
                ", restart " + std::to_string(round + 1) + " of " + std::to_string(flags.restarts));
      arguments = std::move(next.arguments);
      brokenAt = failedAt;
    }
  }

private:
  /// Or that this is one agent for each process of an outer launcher.
  Status checkAlone() const {
    const launch::Launch outer = launch::detectLaunch("auto", "", [](const char *name) -> const char * {
      const std::string place = name; // any: who has started this process is the question
      return place == "MASTER_ADDR" ? "127.0.0.1" : place == "MASTER_PORT" ? "1" : std::getenv(name);
    });
    const bool isAgent = outer.processes == flags.nodes && outer.process == flags.node;
    if (outer.status.ok() && (outer.kind == launch::LaunchKind::None || (isAgent && flags.nodes > 1)))
      return Status::success();
    if (!outer.status.ok())
      return outer.status.at("--processes=" + std::to_string(flags.processes));
    return startUsage("--processes=" + std::to_string(flags.processes) + " starts processes, and " + outer.claim + " (" + outer.by +
                      ") say that this process is one of several; leave --processes out, or unset those variables");
  }

  std::string logOf(int64_t rank) const { return flags.logs.empty() ? "" : flags.logs + "/workerlog." + std::to_string(rank); }

  Status start(const std::vector<std::string> &arguments) {
    members.clear();
    lastStep = -1;
    failedAt.reset();
    std::vector<std::pair<std::string, std::string>> all = {{"WORLD_SIZE", std::to_string(flags.nodes * flags.processes)},
                                                            {"LOCAL_WORLD_SIZE", std::to_string(flags.processes)}};
    if (flags.nodes == 1) {
      Expected<std::string> secret = freshSecret();
      HPC_RETURN_IF_ERROR(secret.status());
      all.emplace_back("HPC_SECRET", *secret);
      if (flags.rendezvous.empty()) {
        Expected<uint16_t> port = freePort();
        HPC_RETURN_IF_ERROR(port.status());
        all.emplace_back("MASTER_ADDR", "127.0.0.1");
        all.emplace_back("MASTER_PORT", std::to_string(*port));
      }
    }
    for (int64_t local = 0; local < flags.processes; ++local) {
      const int64_t rank = flags.node * flags.processes + local;
      Expected<ChildOutput> output = ChildOutput::open(logOf(rank), rank, local == 0);
      HPC_RETURN_IF_ERROR(output.status());
      ChildOptions options{arguments, all, local == 0 && flags.logs.empty()};
      options.variables.emplace_back("RANK", std::to_string(rank));
      options.variables.emplace_back("LOCAL_RANK", std::to_string(local));
      Expected<ChildProcess> child = startChild(options);
      HPC_RETURN_IF_ERROR(child.status());
      members.push_back({rank, *child, std::move(*output), std::nullopt});
    }
    return Status::success();
  }

  bool isRunning() const {
    return std::any_of(members.begin(), members.end(), [](const Member &member) { return !member.ended; });
  }

  void killAll() {
    for (Member &member : members)
      if (!member.ended) {
        ::kill(member.child.pid, SIGKILL);
        ::waitpid(member.child.pid, nullptr, 0);
        member.ended = 0;
      }
  }

  /// Waits for output, signals or the end of the grace.
  void turn() {
    std::vector<pollfd> entries{{signals, POLLIN, 0}};
    for (const Member &member : members)
      for (int descriptor : {member.child.output, member.child.errors, member.child.steps})
        if (descriptor >= 0)
          entries.push_back({descriptor, POLLIN, 0});
    const bool isWatching = failedAt || std::any_of(members.begin(), members.end(), [](const Member &member) { return member.isStopped; });
    const Clock::time_point before = Clock::now();
    ::poll(entries.data(), nfds_t(entries.size()), isWatching ? 100 : -1);
    takeSignals();
    for (Member &member : members) {
      readAll(member);
      if (member.isStopped && !member.ended) // time in which this process was stopped, too, does not count
        member.stoppedFor += std::min<Clock::duration>(Clock::now() - before, 200ms);
      endLate(member);
    }
  }

  /// Ends a process that the others do not wait for any more. A process that is alone, or all that are stopped, have no others that miss them.
  void endLate(const Member &member) {
    const bool isLost = member.isStopped && flags.peerTimeout > 0 && member.stoppedFor > std::chrono::duration<double>(flags.peerTimeout) + 1s;
    const bool isLate = failedAt && !isTerminated && (member.isStopped || Clock::now() >= *failedAt + graceOfOthers);
    if (!member.ended && (isLost || isLate))
      ::kill(member.child.pid, SIGKILL);
  }

  void takeSignals() {
    signalfd_siginfo info;
    while (::read(signals, &info, sizeof(info)) == ssize_t(sizeof(info))) {
      if (info.ssi_signo == SIGCHLD)
        continue;
      isTerminated |= info.ssi_signo != SIGUSR1;
      for (Member &member : members)
        if (!member.ended)
          ::kill(member.child.pid, int(info.ssi_signo));
    }
    for (Member &member : members)
      awaitEnd(member);
  }

  void awaitEnd(Member &member) {
    int state = 0;
    while (!member.ended && ::waitpid(member.child.pid, &state, WNOHANG | WUNTRACED | WCONTINUED) > 0) {
      if (WIFSTOPPED(state) || WIFCONTINUED(state)) {
        member.isStopped = WIFSTOPPED(state);
        member.stoppedFor = {};
        continue;
      }
      member.ended = state;
      if (state != 0 && !failedAt) {
        failedAt = Clock::now();
        first = size_t(&member - members.data());
      }
    }
  }

  /// All that there is in its pipes.
  void readAll(Member &member) {
    auto read = [&](int &descriptor, auto take) {
      char block[65536];
      ssize_t bytes = 0;
      while (descriptor >= 0 && (bytes = ::read(descriptor, block, sizeof(block))) > 0)
        take(std::string_view(block, size_t(bytes)));
      if (descriptor >= 0 && bytes == 0)
        ::close(std::exchange(descriptor, -1));
    };
    read(member.child.output, [&](std::string_view text) { member.output.addOutput(text); });
    read(member.child.errors, [&](std::string_view text) { member.output.addErrors(text); });
    read(member.child.steps, [&](std::string_view text) { takeSteps(text); });
  }

  /// Whole records, since a pipe does not cut writes of this size.
  void takeSteps(std::string_view text) {
    for (StepRecord record; text.size() >= sizeof(record); text.remove_prefix(sizeof(record))) {
      std::memcpy(&record, text.data(), sizeof(record));
      lastStep = record.step;
      if (brokenAt && record.isNew)
        printNote("step " + std::to_string(record.step) + " was done " + secondsText(Clock::now() - *brokenAt) + " after that");
      if (record.isNew)
        brokenAt.reset();
    }
  }

  static void closeAll(Member &member) {
    for (int *descriptor : {&member.child.output, &member.child.errors, &member.child.steps})
      if (*descriptor >= 0)
        ::close(std::exchange(*descriptor, -1));
  }

  /// All have ended: the reason, from the process that ended first and what the others say of it.
  Outcome conclude() {
    for (Member &member : members) {
      readAll(member);
      closeAll(member); // a program that it has started may still hold the other end
      member.output.end();
    }
    if (!failedAt)
      return {};
    const Member &failed = members[first];
    auto says = std::find_if(members.begin(), members.end(), [](const Member &member) { return !member.output.error().empty(); });
    std::string text = says == members.end() ? "" : says->output.error();
    while (!text.empty() && text.back() == '\n')
      text.pop_back();
    Outcome outcome;
    if (!WIFSIGNALED(*failed.ended) && says != members.end()) {
      outcome = {WEXITSTATUS(*says->ended), text, isTransient(text), false};
    } else {
      const bool isSignal = WIFSIGNALED(*failed.ended);
      std::string why = failed.name() + (failed.isStopped ? " was stopped, and then killed"
                                         : isSignal ? " was ended by " + signalText(WTERMSIG(*failed.ended)) : " has ended with exit code " + std::to_string(WEXITSTATUS(*failed.ended)) + " without a message");
      if (lastStep >= 0)
        why += " after step " + std::to_string(lastStep);
      if (says != members.end())
        why += "; process " + std::to_string(says->rank) + ": " + text.substr(text.find("]: ") + 3);
      outcome = {isSignal && isTerminated ? 128 + WTERMSIG(*failed.ended) : 1, toolName() + ": error[io]: " + why, true,
                 isSignal && WTERMSIG(*failed.ended) == SIGKILL};
    }
    if (!flags.logs.empty() && outcome.isWorthAgain)
      outcome.why += "; logs: " + flags.logs + "/workerlog.*";
    return outcome;
  }

  /// Files, links and other processes may be there again; a flag or a model stays as it is. An error before the first step is of the start, unless
  /// another process has vanished: one that was stopped, or one on another machine.
  bool isTransient(const std::string &text) const {
    const bool hasStopped = std::any_of(members.begin(), members.end(), [](const Member &member) { return member.isStopped; });
    return (lastStep >= 0 || hasStopped || flags.nodes > 1) && (text.find(": error[io]: ") == toolName().size() || text.find(": error[internal]: ") == toolName().size());
  }

  const StartFlags &flags;
  const Starting &starting;
  int signals = -1;
  std::vector<Member> members; ///< of this round
  size_t first = 0;            ///< the first of them that ended badly
  bool isTerminated = false;   ///< by a signal to this process: no restart, and no hurry
  std::optional<Clock::time_point> failedAt; ///< in this round
  std::optional<Clock::time_point> brokenAt; ///< in the round before, until a step is done again
  int64_t lastStep = -1, failedStep = -2, failuresOfStep = 0;
};

} // namespace

int startProcesses(const Starting &starting) {
  Supervisor supervisor(starting);
  if (Status status = supervisor.prepare(); !status.ok())
    return reportError(toolName(), status);
  return supervisor.run();
}

} // namespace hpc
