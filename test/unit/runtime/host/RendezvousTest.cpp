// Barriers and mailboxes among threads: what is written before is seen after, order holds, and an error wakes
// everybody.
#include "runtime/backend/host/Rendezvous.h"

#include <functional>
#include <gtest/gtest.h>
#include <thread>

using namespace hpc;
using namespace hpc::host;

namespace {

void onThreads(int count, const std::function<void(int)> &work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back(work, i);
  for (std::thread &thread : threads)
    thread.join();
}

Status sampleError() { return Status::error(ErrorKind::Io, "the disk is gone"); }

} // namespace

TEST(Rendezvous, BarrierShowsWhatWasWritten) {
  for (bool spin : {false, true})
    for (int size : {1, 2, 3, 8}) {
      Rendezvous rendezvous(spin);
      Barrier barrier(rendezvous, size);
      std::vector<int> values(size_t(size), 0);
      onThreads(size, [&](int me) {
        for (int round = 1; round <= 200; ++round) {
          values[size_t(me)] = round;
          ASSERT_TRUE(barrier.arrive().ok());
          for (int value : values)
            ASSERT_EQ(value, round);
          ASSERT_TRUE(barrier.arrive().ok());
        }
      });
    }
}

TEST(Rendezvous, MessagesArriveInOrder) {
  constexpr int count = 300;
  Rendezvous rendezvous(false);
  Mailbox mailbox;
  Request sends[3] = {Request(rendezvous), Request(rendezvous), Request(rendezvous)};
  Request receives[2] = {Request(rendezvous), Request(rendezvous)};
  std::vector<int> received(count, -1), sent(count);
  onThreads(2, [&](int me) {
    auto address = [](int &value) { return reinterpret_cast<std::byte *>(&value); };
    // Up to three sends and two receives are posted at once.
    for (int i = 0; i < count; ++i) {
      if (me == 0) {
        sent[size_t(i)] = i * i;
        ASSERT_TRUE(sends[i % 3].wait().ok());
        ASSERT_TRUE(mailbox.send(address(sent[size_t(i)]), sizeof(int), sends[i % 3]).ok());
      } else {
        ASSERT_TRUE(receives[i % 2].wait().ok());
        ASSERT_TRUE(mailbox.receive(address(received[size_t(i)]), sizeof(int), receives[i % 2]).ok());
      }
    }
    for (Request &request : sends)
      if (me == 0)
        ASSERT_TRUE(request.wait().ok());
    for (Request &request : receives)
      if (me == 1)
        ASSERT_TRUE(request.wait().ok());
  });
  EXPECT_EQ(received, sent);
}

TEST(Rendezvous, WaitWithoutAPostReturns) {
  Rendezvous rendezvous(false);
  Request request(rendezvous);
  EXPECT_TRUE(request.wait().ok());
}

TEST(Rendezvous, MisusedMessagesAreErrors) {
  Rendezvous rendezvous(false);
  Mailbox mailbox;
  Request a(rendezvous), b(rendezvous);
  std::byte bytes[8];
  ASSERT_TRUE(mailbox.send(bytes, 8, a).ok());
  EXPECT_NE(mailbox.send(bytes, 8, a).message().find("posted again"), std::string::npos);
  EXPECT_NE(mailbox.receive(bytes, 4, b).message().find("differ in size: 4 bytes here, 8 there"), std::string::npos);
}

TEST(Rendezvous, AnErrorWakesAllWhoWait) {
  for (bool spin : {false, true}) {
    Rendezvous rendezvous(spin);
    Barrier barrier(rendezvous, 4);
    Mailbox mailbox;
    Request request(rendezvous);
    std::vector<std::string> texts(4);
    auto round = [&] {
      onThreads(4, [&](int me) {
        std::byte byte{};
        Status status = me == 0 ? barrier.arrive() : me == 1 ? mailbox.receive(&byte, 1, request) : Status::success();
        if (me == 1)
          status = request.wait();
        if (me == 2) {
          rendezvous.fail(sampleError());
          rendezvous.fail(Status::error(ErrorKind::Plan, "later"));
          status = rendezvous.status();
        }
        if (me == 3)
          status = barrier.arrive();
        texts[size_t(me)] = status.text();
      });
    };
    for (int again = 0; again < 50; ++again) {
      round();
      for (const std::string &text : texts)
        EXPECT_EQ(text, sampleError().text());
      rendezvous.reset();
      barrier.reset();
      mailbox.reset();
      request.reset();
      EXPECT_TRUE(rendezvous.status().ok());
    }
    // After a reset it works as before.
    onThreads(4, [&](int) { EXPECT_TRUE(barrier.arrive().ok()); });
  }
}
