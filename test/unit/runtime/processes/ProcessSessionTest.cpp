// Sessions of several processes: the results of one, an error of one rank in all with one message, and then the next
// step.
#include "runtime/backend/processes/ProcessBackend.h"
#include "runtime/core/Session.h"
#include "test/unit/runtime/core/TinyPlan.h"
#include "test/unit/runtime/processes/Cluster.h"

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using testing::HasSubstr;

namespace {

constexpr int64_t worldSize = 4;

Array input(int64_t seed) {
  Array x = Array::zeros(DType::F32, {4, 6});
  std::vector<float> list = TinyPlan::values(24, seed);
  std::copy(list.begin(), list.end(), x.as<float>());
  return x;
}

struct Joined : TinyPlan {
  int64_t count;
  Cluster cluster;
  std::vector<plan::Plan> plans;
  std::vector<SessionOptions> options;

  explicit Joined(int64_t count, bool posted = false, int timeoutMs = 0)
      : count(count), cluster(count, worldSize / count, unsigned(count), std::chrono::milliseconds(timeoutMs)) {
    if (posted)
      postTheAllReduce();
    plans.assign(size_t(count), plan);
    options.resize(size_t(count));
    for (int64_t p = 0; p < count; ++p) {
      options[size_t(p)].planFolder = folder.path;
      options[size_t(p)].ranks = {p * worldSize / count, worldSize / count};
    }
  }
  template <typename F> std::vector<Status> onProcesses(F work) {
    std::vector<Status> statuses(static_cast<size_t>(count));
    cluster.onAll([&](int64_t p) {
      Expected<std::unique_ptr<Session>> session = Session::create(
          plans[size_t(p)], processes::createProcessBackend(cluster.processes[size_t(p)], true), options[size_t(p)]);
      statuses[size_t(p)] = session.ok() ? work(p, **session) : session.status();
    });
    return statuses;
  }
  void expectRight(int64_t p, const std::vector<Array> &outputs, int64_t seed) const {
    ASSERT_EQ(outputs.size(), p == 0 ? 1u : 0u);
    std::vector<float> wanted = expected(values(24, seed));
    for (size_t i = 0; i < wanted.size() && p == 0; ++i)
      EXPECT_EQ(outputs[0].as<float>()[i], wanted[i]) << i;
  }
};

} // namespace

TEST(ProcessSession, EverySplitComputesTheSame) {
  for (int64_t count : {2, 4})
    for (int variant = 0; variant < 4; ++variant) {
      Joined joined(count, variant & 2);
      for (SessionOptions &options : joined.options)
        options.poison = variant & 1;
      for (const Status &status : joined.onProcesses([&](int64_t p, Session &session) {
             for (int64_t seed : {0, 3, 8}) {
               Expected<std::vector<Array>> outputs = session.run({input(seed)});
               HPC_RETURN_IF_ERROR(outputs.status());
               joined.expectRight(p, *outputs, seed);
             }
             return Status::success();
           }))
        EXPECT_TRUE(status.ok()) << status.text();
    }
}

// The failed step has left messages under way in both directions; if one matched in the next step, its result was
// wrong.
TEST(ProcessSession, AnErrorOfOneRankEndsAllWithOneMessage) {
  for (int64_t count : {2, 4})
    for (int64_t rank = 0; rank < worldSize; ++rank)
      for (int64_t instruction : {0, 2, 3}) {
        Joined joined(count);
        std::atomic<bool> broken{true};
        for (SessionOptions &options : joined.options)
          options.observer = [&, rank, instruction](const ObservedInstruction &at) {
            bool here = at.place.rank == rank && at.instruction == instruction && at.microBatch == 1;
            return here && broken ? Status::error(ErrorKind::Io, "the disk is gone") : Status::success();
          };
        std::atomic<int64_t> failed{0};
        std::vector<std::string> first(static_cast<size_t>(count));
        std::vector<Status> statuses = joined.onProcesses([&](int64_t p, Session &session) {
          first[size_t(p)] = session.run({input(0)}).status().text();
          if (++failed == count)
            broken = false;
          while (broken)
            std::this_thread::yield();
          Expected<std::vector<Array>> outputs = session.run({input(2)});
          HPC_RETURN_IF_ERROR(outputs.status());
          joined.expectRight(p, *outputs, 2);
          return Status::success();
        });
        EXPECT_THAT(first[0], HasSubstr("error[io]: rank " + std::to_string(rank) + " (stage "));
        EXPECT_THAT(first[0], HasSubstr("the disk is gone"));
        for (const std::string &text : first)
          EXPECT_EQ(text, first[0]);
        for (const Status &status : statuses)
          EXPECT_TRUE(status.ok()) << status.text();
      }
}

TEST(ProcessSession, WhatOneCannotPrepareEndsAll) {
  Joined joined(2);
  std::get<plan::Kernel>(joined.plans[1].stages[1].programs[1].instructions[2].action).symbol = "gone";
  for (const Status &status : joined.onProcesses([](int64_t, Session &) { return Status::success(); }))
    EXPECT_THAT(status.text(), HasSubstr("error[plan]: rank 2 (stage 1): kernel of node"));
}
