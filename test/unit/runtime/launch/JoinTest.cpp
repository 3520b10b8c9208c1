// The rendezvous and who should not get through it: wrong secrets, strangers, garbage, slow senders, lengths that lie.
// Whatever they do, those who belong to the run come together; where one of these fails, all hear of it at once.
#include "runtime/launch/Control.h"

#include <atomic>
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
    options.place.endpoints = {{"127.0.0.1", portOf(*listener)}};
    options.secret = secret;
    options.timeout = timeout;
    options.late = options.greeting = 600ms;
    listeners.push_back(std::move(*listener));
  }
  ~Party() {
    if (host.joinable())
      host.join();
  }
  void open(Introduction mine) {
    host = std::thread([this, mine] { first = receiveAll(options, listeners, mine); });
  }
  Socket stranger() { return std::move(*connectTo("127.0.0.1", options.place.endpoints[0].port, Clock::now() + 5s)); }
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

namespace {

Introduction broken(int64_t process, int64_t processes) {
  Introduction one = introduce(process, processes);
  one.ranks = 0;
  one.status = Status::error(ErrorKind::Io, "'x.plan': there is no such file");
  return one;
}

} // namespace

// Who has failed before it comes says so: at once to those who are there, and to those who come soon.
TEST(Join, WhatFailedBeforeIsToldToAll) {
  for (const Introduction &failing : {broken(1, 4), broken(1, 7), broken(-1, 0), broken(0, 4)}) {
    Party party;
    const auto start = Clock::now();
    party.open(failing.process == 0 ? failing : introduce(0, 4));
    std::string waiting, own;
    std::thread there([&] { waiting = comeTo(party.options, introduce(2, 4)).status().text(); });
    std::this_thread::sleep_for(100ms);
    if (failing.process != 0)
      own = comeTo(party.options, failing).status().text();
    there.join();
    EXPECT_LT(Clock::now() - start, 500ms);
    std::string late = comeTo(party.options, introduce(3, 4)).status().text();
    party.host.join(); // process 1 did not come as such where its number was wrong
    EXPECT_LT(Clock::now() - start, 2s);
    EXPECT_THAT(waiting, HasSubstr("error[io]: " + failing.text() + ": 'x.plan': there is no such file"));
    for (const std::string &other : {late, party.first.status().text(), failing.process == 0 ? waiting : own})
      EXPECT_EQ(other, waiting);
  }
}

// It ends as soon as the last has been told.
TEST(Join, NobodyIsLateWhereAllHaveCome) {
  Party party;
  party.open(broken(0, 3));
  const auto start = Clock::now();
  EXPECT_FALSE(comeTo(party.options, introduce(1, 3)).ok());
  EXPECT_FALSE(comeTo(party.options, introduce(2, 3)).ok());
  party.host.join();
  EXPECT_LT(Clock::now() - start, 1s);
}

// As when it is killed: another is still on its way, and would be waited for.
TEST(Join, WhoVanishesBeforeAllHaveComeEndsTheRun) {
  Party party;
  party.open(introduce(0, 3));
  Party gate; // what process 1 comes to, and is cut off by
  gate.host = std::thread([&] {
    waitFor(gate.listeners[0], false, Clock::now() + 5s);
    Socket near = acceptFrom(gate.listeners[0]), far = party.stranger();
    std::string there, back;
    for (auto end = Clock::now() + 500ms; Clock::now() < end; std::this_thread::sleep_for(5ms)) {
      near.read(there, 1 << 20);
      far.write(there);
      far.read(back, 1 << 20);
      near.write(back);
    }
  });
  std::string one = comeTo(gate.options, introduce(1, 3)).status().text();
  party.host.join();
  EXPECT_THAT(one, HasSubstr("process 0 is gone"));
  EXPECT_THAT(party.first.status().text(), HasSubstr("process 1 (ranks 2 to 3, host "));
  EXPECT_THAT(party.first.status().text(), HasSubstr("ended before all had come"));
}

// The third is not there yet, and need not be.
TEST(Join, AnotherPlanIsNamedBeforeAllHaveCome) {
  Party party;
  party.open(introduce(0, 3));
  const auto start = Clock::now();
  EXPECT_THAT(comeTo(party.options, introduce(1, 3, 8)).status().text(), HasSubstr("has other bytes in its plan"));
  EXPECT_LT(Clock::now() - start, 1s);
}

// A port of something else is named at once: process 0 cannot have it. Whether it speaks or is silent.
TEST(Join, SomethingElseAtThePort) {
  for (const char *says : {"", "SSH-2.0-x\r\n", "hpc-run\1and then the rest of an older greeting"}) {
    Party other;
    other.host = std::thread([&] {
      waitFor(other.listeners[0], false, Clock::now() + 5s);
      Socket guest = acceptFrom(other.listeners[0]);
      std::string text = says;
      guest.write(text);
      std::this_thread::sleep_for(*says ? 100ms : 900ms);
    });
    const auto start = Clock::now();
    EXPECT_THAT(comeTo(other.options, introduce(1, 2)).status().text(), HasSubstr("something else listens there (127.0.0.1:"));
    EXPECT_LT(Clock::now() - start, 3s);
  }
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

// A number that is wrong in one is missing elsewhere: all hear which.
TEST(Join, NumbersThatDoNotFitEndTheRun) {
  for (auto [wrong, why] : {std::pair(introduce(1, 3), "is there already"),
                            {introduce(3, 3), "there is no process 3 of 3"},
                            {introduce(0, 3), "there is no process 0 of 3"},
                            {introduce(-1, 3), "there is no process -1 of 3"},
                            {introduce(1, 2), "was started as one of 2 processes, process 0 as one of 3"}}) {
    Party party;
    party.open(introduce(0, 3));
    std::string one;
    std::thread first([&] { one = comeTo(party.options, introduce(1, 3)).status().text(); });
    std::this_thread::sleep_for(100ms);
    const auto start = Clock::now();
    std::string other = comeTo(party.options, wrong).status().text();
    first.join();
    EXPECT_LT(Clock::now() - start, 1s);
    EXPECT_THAT(other, HasSubstr("error[usage]: "));
    EXPECT_THAT(other, HasSubstr(why));
    EXPECT_EQ(one, other);
    EXPECT_EQ(comeTo(party.options, introduce(2, 3)).status().text(), other);
    party.host.join();
    EXPECT_EQ(party.first.status().text(), other);
  }
}

namespace {

/// Stands between one process and the rendezvous: hands bytes on, keeps them, and changes one on request.
struct Eavesdropper {
  Party gate; ///< what the process comes to
  std::mutex mutex;
  std::string there, back; ///< to the rendezvous, and from it
  std::thread work;

  Eavesdropper(Party &party, size_t flipThere = SIZE_MAX, size_t flipBack = SIZE_MAX) {
    gate.options.secret = party.options.secret;
    gate.options.place.meeting = party.options.place.meeting;
    work = std::thread([this, &party, flipThere, flipBack] {
      waitFor(gate.listeners[0], false, Clock::now() + 5s);
      Socket near = acceptFrom(gate.listeners[0]), far = party.stranger();
      bool open = true;
      for (const auto end = Clock::now() + 5s; open && Clock::now() < end; std::this_thread::sleep_for(1ms))
        open = pass(near, far, there, flipThere) && pass(far, near, back, flipBack);
    });
  }
  ~Eavesdropper() { work.join(); }
  std::string saidThere() {
    std::lock_guard<std::mutex> lock(mutex);
    return there;
  }
  bool pass(Socket &from, Socket &to, std::string &kept, size_t flip) {
    std::string fresh;
    const bool open = from.read(fresh, 1 << 20);
    std::lock_guard<std::mutex> lock(mutex);
    if (flip >= kept.size() && flip < kept.size() + fresh.size())
      fresh[flip - kept.size()] ^= 1;
    kept += fresh;
    to.write(fresh);
    return open;
  }
};

constexpr size_t greetingBytes = 8; ///< of what each side says first

} // namespace

// The words of a process are worth nothing the second time: in the same run, in the next at the same place, and in
// one with another meeting. Who it stands for still comes.
TEST(Join, ARecordedIntroductionIsNotTakenAgain) {
  Party party;
  party.open(introduce(0, 3));
  Eavesdropper ear(party);
  std::thread one([&] { (void)comeTo(ear.gate.options, introduce(1, 3)); });
  std::this_thread::sleep_for(300ms);
  const std::string recorded = ear.saidThere(); // greeting, nonce, proof, introduction
  ASSERT_GT(recorded.size(), greetingBytes + 64);
  auto replay = [&](Party &at) {
    Socket socket = at.stranger();
    std::string received, pending = recorded;
    while (received.size() < greetingBytes + meetingBytes + 32 && waitFor(socket, false, Clock::now() + 2s))
      if (!socket.read(received, greetingBytes + meetingBytes + 32))
        break;
    received.clear();
    socket.write(pending);
    while (waitFor(socket, false, Clock::now() + 2s) && socket.read(received, 1 << 16))
      ;
    return received;
  };
  const std::string refused = frame(FrameType::Refused);
  EXPECT_EQ(replay(party), refused);
  EXPECT_TRUE(comeTo(party.options, introduce(2, 3)).ok());
  one.join();
  party.host.join();
  EXPECT_TRUE(party.first.ok()) << party.first.status().text();
  for (const std::string &meeting : {std::string(), std::string("another meeting.")}) {
    Party next;
    next.options.place.meeting = meeting;
    next.open(introduce(0, 3));
    EXPECT_EQ(replay(next), refused);
    std::thread two([&] { EXPECT_TRUE(comeTo(next.options, introduce(2, 3)).ok()); });
    EXPECT_TRUE(comeTo(next.options, introduce(1, 3)).ok());
    two.join();
    next.host.join();
    EXPECT_TRUE(next.first.ok()) << next.first.status().text();
  }
}

// The other direction: what a rendezvous once said does not make another of whoever repeats it.
TEST(Join, ARecordedRendezvousIsNotBelieved) {
  Party party;
  party.open(introduce(0, 2));
  std::string recorded;
  {
    Eavesdropper ear(party);
    EXPECT_TRUE(comeTo(ear.gate.options, introduce(1, 2)).ok());
    ear.work.join();
    ear.work = std::thread([] {});
    recorded = ear.back; // greeting, meeting, nonce, Proof, Welcome
  }
  Party liar;
  liar.host = std::thread([&] {
    waitFor(liar.listeners[0], false, Clock::now() + 5s);
    Socket guest = acceptFrom(liar.listeners[0]);
    std::string pending = recorded;
    guest.write(pending);
    std::this_thread::sleep_for(300ms);
  });
  EXPECT_THAT(comeTo(liar.options, introduce(1, 2)).status().text(), HasSubstr("does not know the secret of this process"));
}

// The proofs cover both nonces and every byte of the introduction: its number, the count, the hash of the plan.
TEST(Join, NoByteMayBeChangedOnTheWay) {
  Party party;
  party.open(introduce(0, 2));
  WireWriter writer;
  introduce(1, 2).write(writer);
  const size_t begin = greetingBytes + 64 + 4, end = begin + writer.content.size();
  std::vector<size_t> places; // the count of bytes has to be right for anything to be judged
  for (size_t i = greetingBytes; i < greetingBytes + 64; i += 9)
    places.push_back(i);
  for (size_t i = begin; i < end; i += 5)
    places.push_back(i);
  const std::string why = "does not know the secret of this process";
  for (size_t place : places) {
    Eavesdropper ear(party, place);
    EXPECT_THAT(comeTo(ear.gate.options, introduce(1, 2)).status().text(), HasSubstr(why)) << "byte " << place;
  }
  for (size_t place : {greetingBytes + meetingBytes, greetingBytes + meetingBytes + 31}) { // of the nonce that comes back
    Eavesdropper ear(party, SIZE_MAX, place);
    EXPECT_THAT(comeTo(ear.gate.options, introduce(1, 2)).status().text(), HasSubstr(why)) << "byte " << place;
  }
  { // of the meeting, for a process that looks for the one that it becomes
    Eavesdropper ear(party, SIZE_MAX, greetingBytes);
    ear.gate.options.place.meeting = std::string(1, 1);
    EXPECT_THAT(comeTo(ear.gate.options, introduce(1, 2)).status().text(), HasSubstr(why));
  }
  EXPECT_TRUE(comeTo(party.options, introduce(1, 2)).ok());
}

// A place that was written down for another meeting leads nowhere, and the right one is asked for again.
TEST(Join, AnotherMeetingIsNotJoined) {
  Party old, now;
  old.options.place.meeting = "the old meeting.";
  now.options.place.meeting = "the new meeting.";
  old.open(introduce(0, 2));
  now.open(introduce(0, 2));
  JoinOptions options = now.options;
  int asked = 0;
  options.find = [&](Clock::time_point) -> Expected<Place> {
    Place place = now.options.place;
    if (++asked < 3)
      place.endpoints = old.options.place.endpoints;
    return place;
  };
  EXPECT_TRUE(comeTo(options, introduce(1, 2)).ok());
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(comeTo(old.options, introduce(1, 2)).ok()); // lets it end
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
  options.place.endpoints = {{"192.0.2.1", 29500}};
  EXPECT_THAT(checkEndpoints(options).text(), HasSubstr("can be reached by strangers; set HPC_SECRET"));
  options.secret = "short";
  EXPECT_THAT(checkEndpoints(options).text(), HasSubstr("HPC_SECRET has 5 characters, which can be guessed"));
  options.secret = "0123456789abcdef";
  EXPECT_TRUE(checkEndpoints(options).ok());
  options = {};
  options.place.endpoints = {{"127.0.0.2", 29500}};
  EXPECT_TRUE(checkEndpoints(options).ok());
  options.place.endpoints = {{"no-such-host.invalid", 29500}};
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

// Fuller introductions after the meeting: all get the others', or the error of the one that has failed, though nobody else
// has.
TEST(Control, IntroductionsAfterTheMeeting) {
  for (const char *outcome : {"good", "failed", "other data"}) {
    Party party;
    party.open(introduce(0, 2));
    Joined second = std::move(*comeTo(party.options, introduce(1, 2)));
    party.host.join();
    Control one(0, std::move(*party.first), {}), other(1, std::move(second), {});
    auto introduceTo = [&](Control &control, uint64_t data) {
      Introduction mine = control.mine();
      mine.engine = "engine of " + std::to_string(mine.process);
      mine.fingerprints.push_back({"inputs", data, "give all the same"});
      return control.introduce(mine);
    };
    Status first, mine;
    std::thread host([&] { first = introduceTo(one, 1); });
    if (outcome == std::string("failed"))
      other.fail(mine = Status::error(ErrorKind::Io, "'x.npz': there is no such file"));
    else
      mine = introduceTo(other, outcome == std::string("good") ? 1 : 2);
    host.join();
    EXPECT_EQ(first.text(), mine.text());
    if (outcome == std::string("good"))
      EXPECT_EQ(one.introductions()[1].engine + other.introductions()[0].engine, "engine of 1engine of 0");
    else
      EXPECT_THAT(mine.text(), HasSubstr(outcome == std::string("failed") ? "there is no such file" : "process 1 (ranks 2 to 3"));
  }
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
