// The rendezvous and who should not get through it: wrong secrets, strangers, garbage, slow senders, lengths that lie,
// numbers that are taken. Whatever they do, those who belong to the run come together.
#include "runtime/launch/Control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::launch;
using namespace std::chrono_literals;
using testing::HasSubstr;

namespace {

struct Party {
  JoinOptions options;
  std::vector<Socket> listeners;
  std::thread host;
  Expected<Joined> first = Status::error(ErrorKind::Internal, "not yet");

  explicit Party(const std::string &secret = "0123456789abcdef", std::chrono::milliseconds timeout = 10s) {
    Expected<Socket> listener = listenOn("127.0.0.1", 0);
    options.endpoints = {{"127.0.0.1", portOf(*listener)}};
    options.secret = secret;
    options.timeout = timeout;
    listeners.push_back(std::move(*listener));
  }
  ~Party() {
    if (host.joinable())
      host.join();
  }
  void open(Introduction mine) {
    host = std::thread([this, mine] { first = receiveAll(options, listeners, mine); });
  }
  Socket stranger() { return std::move(*connectTo("127.0.0.1", options.endpoints[0].port, Clock::now() + 5s)); }
};

Introduction introduce(int64_t process, int64_t processes, uint64_t planHash = 7) {
  Introduction one = introduceSelf(process, processes);
  one.firstRank = process * 2;
  one.ranks = 2;
  one.engine = "engine" + std::to_string(process);
  one.fingerprints = {{"bytes in its plan", planHash, "copy one file"}};
  return one;
}

} // namespace

TEST(Join, AllLearnOfAll) {
  for (const std::string &secret : {std::string(), std::string("0123456789abcdef")}) {
    Party party(secret);
    party.open(introduce(0, 4));
    std::vector<std::thread> others;
    for (int64_t p : {3, 1, 2})
      others.emplace_back([&, p] {
        Expected<Joined> joined = comeTo(party.options, introduce(p, 4));
        ASSERT_TRUE(joined.ok()) << joined.status().text();
        for (size_t i = 0; i < 4; ++i)
          EXPECT_EQ(joined->introductions[i].engine, "engine" + std::to_string(i));
        EXPECT_TRUE(joined->connections[0].isOpen());
      });
    for (std::thread &other : others)
      other.join();
    party.host.join();
    ASSERT_TRUE(party.first.ok()) << party.first.status().text();
  }
}

TEST(Join, AnotherPlanIsNamedToAll) {
  Party party;
  party.open(introduce(0, 2));
  Expected<Joined> other = comeTo(party.options, introduce(1, 2, 8));
  party.host.join();
  EXPECT_THAT(other.status().text(), HasSubstr("error[usage]: process 1 (ranks 2 to 3, host "));
  EXPECT_THAT(other.status().text(), HasSubstr("has other bytes in its plan than process 0"));
  EXPECT_THAT(other.status().text(), HasSubstr("(hash 0000000000000008, there 0000000000000007); copy one file"));
  EXPECT_EQ(party.first.status().text(), other.status().text());
}

TEST(Join, WhatFailedBeforeIsToldToAll) {
  Party party;
  Introduction mine = introduce(0, 2);
  party.open(mine);
  Introduction broken = introduce(1, 2);
  broken.ranks = 0;
  broken.status = Status::error(ErrorKind::Io, "'x.plan': there is no such file");
  Expected<Joined> other = comeTo(party.options, broken);
  party.host.join();
  EXPECT_THAT(party.first.status().text(), HasSubstr("error[io]: process 1 (host "));
  EXPECT_THAT(party.first.status().text(), HasSubstr("'x.plan': there is no such file"));
  EXPECT_EQ(party.first.status().text(), other.status().text());
}

// A wrong secret changes nothing for the others, and its owner is told that the secrets differ.
TEST(Join, WrongSecretsStayOutside) {
  Party party;
  party.open(introduce(0, 2));
  for (const std::string &secret :
       {std::string("0123456789abcdeg"), std::string(), std::string("fedcba9876543210ff")}) {
    JoinOptions wrong = party.options;
    wrong.secret = secret;
    EXPECT_THAT(comeTo(wrong, introduce(1, 2)).status().text(),
                HasSubstr("set HPC_SECRET to the same text everywhere"));
  }
  Expected<Joined> right = comeTo(party.options, introduce(1, 2));
  EXPECT_TRUE(right.ok()) << right.status().text();
  party.host.join();
  EXPECT_TRUE(party.first.ok());
}

// A rendezvous that does not know the secret is not believed either: it could make this process send its addresses.
TEST(Join, AFalseRendezvousIsNotBelieved) {
  Party party("another secret, but long");
  JoinOptions mine = party.options;
  mine.secret = "0123456789abcdef";
  party.open(introduce(0, 2));
  EXPECT_THAT(comeTo(mine, introduce(1, 2)).status().text(), HasSubstr("does not know the secret of this process"));
  Expected<Joined> right = comeTo(party.options, introduce(1, 2)); // lets it end
  EXPECT_TRUE(right.ok());
}

// What strangers send at once or byte by byte, with lengths that lie, does no harm: no crash, no wait beyond their
// time.
TEST(Join, StrangersDoNoHarm) {
  Party party;
  party.open(introduce(0, 2));
  std::vector<Socket> open;
  std::string greeting = "hpc-run\1";
  std::vector<std::string> texts = {"GET / HTTP/1.1\r\n\r\n",
                                    std::string(100000, 'x'),
                                    greeting,
                                    greeting + std::string(64, 'n') + "\xff\xff\xff\xff", // 4 GiB will follow
                                    greeting + std::string(64, 'n') + std::string("\0\0\1\0", 4) +
                                        std::string(70000, 'i'),
                                    greeting + std::string(64, 'n') + std::string(4, '\0'),
                                    std::string()};
  for (const std::string &text : texts)
    for (int times = 0; times < 20; ++times) {
      open.push_back(party.stranger());
      std::string pending = text;
      open.back().write(pending);
      if (times % 2)
        open.back().close();
    }
  // Introductions cut at every length, with a proof that is right for what comes: only whole ones count.
  WireWriter writer;
  introduce(1, 2).write(writer);
  for (size_t length = 0; length < writer.content.size(); ++length) {
    WireReader reader(std::string_view(writer.content).substr(0, length));
    Introduction::read(reader);
    EXPECT_FALSE(reader.atEnd()) << length;
  }
  std::thread slow([&] {
    Socket socket = party.stranger();
    for (int i = 0; i < 20; ++i) {
      std::string byte(1, greeting[size_t(i) % greeting.size()]);
      socket.write(byte);
      std::this_thread::sleep_for(10ms);
    }
  });
  auto start = Clock::now();
  Expected<Joined> right = comeTo(party.options, introduce(1, 2));
  EXPECT_TRUE(right.ok()) << right.status().text();
  EXPECT_LT(Clock::now() - start, 8s);
  slow.join();
  party.host.join();
  EXPECT_TRUE(party.first.ok());
}

TEST(Join, NumbersThatDoNotFitAreRefused) {
  Party party;
  party.open(introduce(0, 3));
  Expected<Joined> one = Status::error(ErrorKind::Internal, "not yet");
  std::thread first([&] { one = comeTo(party.options, introduce(1, 3)); });
  std::this_thread::sleep_for(200ms);
  EXPECT_THAT(comeTo(party.options, introduce(1, 3)).status().text(), HasSubstr("is there already"));
  EXPECT_THAT(comeTo(party.options, introduce(3, 3)).status().text(), HasSubstr("there is no process 3 of 3"));
  EXPECT_THAT(comeTo(party.options, introduce(-1, 3)).status().text(), HasSubstr("there is no process -1 of 3"));
  EXPECT_THAT(comeTo(party.options, introduce(1, 2)).status().text(),
              HasSubstr("it was started as one of 2 processes, process 0 as one of 3"));
  Expected<Joined> two = comeTo(party.options, introduce(2, 3));
  first.join();
  EXPECT_TRUE(one.ok() && two.ok());
}

TEST(Join, WhoDoesNotComeIsNamed) {
  Party party("0123456789abcdef", 300ms);
  party.open(introduce(0, 3));
  JoinOptions patient = party.options;
  patient.timeout = 5s;
  Expected<Joined> one = comeTo(patient, introduce(1, 3));
  party.host.join();
  EXPECT_THAT(party.first.status().text(), HasSubstr("error[io]: process 2 did not come to the rendezvous within 0 s"));
  EXPECT_EQ(one.status().text(), party.first.status().text());
}

TEST(Join, OpenDoorsNeedASecret) {
  JoinOptions options;
  options.endpoints = {{"192.0.2.1", 29500}};
  EXPECT_THAT(checkEndpoints(options).text(), HasSubstr("can be reached by strangers; set HPC_SECRET"));
  options.secret = "short";
  EXPECT_THAT(checkEndpoints(options).text(), HasSubstr("HPC_SECRET has 5 characters, which can be guessed"));
  options.secret = "0123456789abcdef";
  EXPECT_TRUE(checkEndpoints(options).ok());
  options = {};
  options.endpoints = {{"127.0.0.2", 29500}};
  EXPECT_TRUE(checkEndpoints(options).ok());
  options.endpoints = {{"no-such-host.invalid", 29500}};
  EXPECT_THAT(checkEndpoints(options).text(), HasSubstr("cannot find host 'no-such-host.invalid'"));
}

namespace {

/// Two processes that have joined: a Control, and the bare connection of the other.
struct Pair {
  Party party;
  std::unique_ptr<Control> control;
  Socket other;
  std::mutex mutex;
  std::string heard;

  explicit Pair(int64_t controlled, std::chrono::milliseconds timeout = 0ms) {
    party.open(introduce(0, 2));
    Joined second = std::move(*comeTo(party.options, introduce(1, 2)));
    party.host.join();
    Joined &first = *party.first;
    other = std::move(controlled == 0 ? second.connections[0] : first.connections[1]);
    control =
        std::make_unique<Control>(controlled, std::move(controlled == 0 ? first : second), ControlOptions{timeout, {}});
    control->onFailure([this](const Status &error) {
      std::lock_guard<std::mutex> lock(mutex);
      heard = error.text();
    });
  }
  /// What the ranks' waits end with.
  std::string waitForFailure() {
    for (int i = 0; i < 500; ++i) {
      std::this_thread::sleep_for(10ms);
      std::lock_guard<std::mutex> lock(mutex);
      if (!heard.empty())
        return heard;
    }
    return "nothing was heard within 5 s";
  }
};

} // namespace

// As when a process is killed: the system closes its connections.
TEST(Control, AClosedConnectionEndsTheStep) {
  for (int64_t controlled : {0, 1}) {
    Pair pair(controlled);
    pair.other.close();
    EXPECT_THAT(pair.waitForFailure(), HasSubstr("error[io]: process " + std::to_string(1 - controlled)));
    EXPECT_THAT(pair.control->agree(Status::success(), [] {}).text(), HasSubstr("is gone: its connection was closed"));
    EXPECT_FALSE(pair.control->lost().ok());
  }
}

// As when a process is stopped or the network is cut: the connection stands and nothing comes.
TEST(Control, SilenceEndsTheStep) {
  for (int64_t controlled : {0, 1}) {
    Pair pair(controlled, 600ms);
    EXPECT_THAT(pair.waitForFailure(), HasSubstr("is gone: nothing was heard of it for 0 s"));
  }
}

TEST(Control, GarbageEndsTheStep) {
  for (const std::string &text : {std::string("\xff\xff\xff\x7f\x03", 5), frame(FrameType::Proof, "?")}) {
    Pair pair(0);
    std::string pending = text;
    pair.other.write(pending);
    EXPECT_THAT(pair.waitForFailure(), HasSubstr("it sends what no process of this version sends"));
  }
}

// One of two leaves as it should while the other still wants to agree.
TEST(Control, WhoHasEndedIsNotWaitedFor) {
  Pair pair(0);
  std::string pending = frame(FrameType::Goodbye);
  pair.other.write(pending);
  pair.other.close();
  EXPECT_THAT(pair.control->agree(Status::success(), [] {}).text(),
              HasSubstr("has ended; the others cannot go on alone"));
}

// A process that neither waits nor agrees is told to give up soon after another has vanished.
TEST(Control, WhoComputesForLongIsAbandoned) {
  Party party;
  party.open(introduce(0, 2));
  Joined second = std::move(*comeTo(party.options, introduce(1, 2)));
  party.host.join();
  std::atomic<bool> abandoned{false};
  Control control(0, std::move(*party.first), {0ms, [&](const Status &) { abandoned = true; }});
  second.connections[0].close();
  for (int i = 0; i < 300 && !abandoned; ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(abandoned);
}
