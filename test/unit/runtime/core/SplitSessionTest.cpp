// Sessions that hold a part of the ranks each, joined by one world: the same results as one session with all of them,
// outputs in the session of rank 0, and an error in one of them ends all with one message.
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanCheck.h"
#include "test/unit/runtime/core/TinyPlan.h"

#include <atomic>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <thread>

using namespace hpc;
using testing::HasSubstr;

namespace {

constexpr int64_t worldSize = 4;

Array inputOf(int64_t seed) {
  Array x = Array::zeros(DType::F32, {4, 6});
  std::vector<float> list = TinyPlan::values(24, seed);
  std::copy(list.begin(), list.end(), x.as<float>());
  return x;
}

/// Every way to give ranks 0 .. 3 to sessions: a cut after rank i where bit i is set.
std::vector<RankRange> split(unsigned cuts) {
  std::vector<RankRange> parts{{0, 1}};
  for (int64_t rank = 1; rank < worldSize; ++rank)
    if (cuts >> (rank - 1) & 1)
      parts.push_back({rank, 1});
    else
      ++parts.back().count;
  return parts;
}
constexpr unsigned numSplits = 1u << (worldSize - 1);

/// One thread per session, each with a plan of its own, as processes would have.
struct Joined : TinyPlan {
  std::vector<RankRange> parts;
  std::shared_ptr<host::World> world;
  std::vector<plan::Plan> plans;
  std::vector<SessionOptions> options;

  explicit Joined(unsigned cuts, bool posted = false) : parts(split(cuts)), options(parts.size()) {
    if (posted)
      postTheAllReduce();
    world = std::make_shared<host::World>(plan);
    plans.assign(parts.size(), plan);
    for (size_t i = 0; i < parts.size(); ++i) {
      options[i].planFolder = folder.path;
      options[i].ranks = parts[i];
    }
  }
  /// What each part's create() or `work` returned.
  std::vector<Status> onParts(const std::function<Status(size_t part, Session &)> &work) {
    std::vector<Status> statuses(parts.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < parts.size(); ++i)
      threads.emplace_back([&, i] {
        Expected<std::unique_ptr<Session>> session =
            Session::create(plans[i], host::createHostBackend(world), options[i]);
        statuses[i] = session.ok() ? work(i, **session) : session.status();
      });
    for (std::thread &thread : threads)
      thread.join();
    return statuses;
  }
  /// Rank 0's session has the right outputs, the others have none.
  void expectRight(size_t part, const std::vector<Array> &outputs, int64_t seed) const {
    ASSERT_EQ(outputs.size(), part == 0 ? 1u : 0u);
    std::vector<float> wanted = expected(values(24, seed));
    for (size_t i = 0; i < wanted.size() && part == 0; ++i)
      EXPECT_EQ(outputs[0].as<float>()[i], wanted[i]) << i;
  }
};

} // namespace

TEST(SplitSession, EverySplitComputesTheSame) {
  for (unsigned cuts = 0; cuts < numSplits; ++cuts)
    for (int variant = 0; variant < 4; ++variant) {
      bool poison = variant & 1, posted = variant & 2;
      Joined joined(cuts, posted);
      Status checked = plan::checkPlan(joined.plan);
      ASSERT_TRUE(checked.ok()) << checked.text();
      for (SessionOptions &options : joined.options)
        options.poison = poison;
      std::vector<Status> statuses = joined.onParts([&](size_t part, Session &session) {
        for (int64_t seed : {0, 3, 8}) {
          Expected<std::vector<Array>> outputs = session.run({inputOf(seed)});
          HPC_RETURN_IF_ERROR(outputs.status());
          joined.expectRight(part, *outputs, seed);
        }
        return Status::success();
      });
      for (const Status &status : statuses)
        EXPECT_TRUE(status.ok()) << status.text();
    }
}

/// Lets the plan, and those of its parts, save all stored weights.
static void saveWeights(Joined &joined) {
  auto save = [](plan::Plan &plan) {
    for (plan::Stage &stage : plan.stages)
      for (plan::Binding &binding : stage.bindings)
        if (const auto *stored = std::get_if<plan::StoredWeight>(&binding.start)) {
          binding.saved = plan.weights[size_t(stored->weight)].name;
          binding.shape = plan.weights[size_t(stored->weight)].shape;
        }
  };
  save(joined.plan);
  for (plan::Plan &plan : joined.plans)
    save(plan);
}

// A saved tensor comes whole to the process of rank 0, from whatever process holds a piece; the others get nothing. A slice
// that is taken from the wrong rank, or a box with its padding, would show.
TEST(SplitSession, SavedTensorsAreRead) {
  for (unsigned cuts = 0; cuts < numSplits; ++cuts) {
    Joined joined(cuts);
    saveWeights(joined);
    joined.world = std::make_shared<host::World>(joined.plan);
    for (const Status &status : joined.onParts([&](size_t part, Session &session) {
           for (int round = 0; round < 2; ++round)
             for (size_t i = 0; i < session.saved().size(); ++i) {
               Array whole;
               HPC_RETURN_IF_ERROR(session.read(i, whole));
               EXPECT_EQ(session.writes(), part == 0);
               const std::string &name = session.saved()[i].name;
               const std::vector<float> &wanted = name == "W1"   ? joined.w1
                                                  : name == "W2" ? joined.w2
                                                  : name == "W3" ? joined.w3
                                                                 : joined.bias;
               EXPECT_EQ(whole.data.size(), part == 0 ? wanted.size() * sizeof(float) : 0u);
               for (size_t j = 0; j < wanted.size() && part == 0; ++j)
                 EXPECT_EQ(whole.as<float>()[j], wanted[j]) << name << " " << j;
             }
           EXPECT_EQ(session.saved().size(), 4u);
           return Status::success();
         }))
      EXPECT_TRUE(status.ok()) << status.text();
  }
}

// All of them come to their owners in one read, wherever these are: to each process what its ranks own, in two rounds.
TEST(SplitSession, SavedTensorsComeToTheirOwners) {
  std::set<int64_t> owners;
  for (unsigned cuts = 0; cuts < numSplits; ++cuts) {
    Joined joined(cuts);
    saveWeights(joined);
    joined.world = std::make_shared<host::World>(joined.plan);
    for (const SavedTensor &tensor : savedTensors(joined.plan))
      owners.insert(tensor.owner);
    for (const Status &status : joined.onParts([&](size_t part, Session &session) {
           for (int round = 0; round < 2; ++round) {
             std::vector<Array> whole;
             for (const SavedTensor &tensor : session.saved())
               whole.push_back(Array::zeros(tensor.dtype, tensor.shape));
             std::vector<Session::Read> reads;
             for (size_t i = 0; i < whole.size(); ++i)
               reads.push_back({i, session.saved()[i].owner, whole[i].data.data()});
             HPC_RETURN_IF_ERROR(session.read(reads));
             for (size_t i = 0; i < whole.size(); ++i) {
               const std::string &name = session.saved()[i].name;
               const std::vector<float> &wanted = name == "W1" ? joined.w1 : name == "W2" ? joined.w2 : name == "W3" ? joined.w3 : joined.bias;
               const bool isOwn = session.ownRanks().holds(session.saved()[i].owner);
               for (size_t j = 0; j < wanted.size(); ++j)
                 EXPECT_EQ(whole[i].as<float>()[j], isOwn ? wanted[j] : 0) << name << " " << j << " in part " << part;
             }
           }
           return Status::success();
         }))
      EXPECT_TRUE(status.ok()) << status.text();
  }
  EXPECT_GE(owners.size(), 2u); // else one process would write everything
}

// An output on request holds nothing in a step that nobody asks in, and is right in the next one that does: boxes that are
// kept or sent though nobody stores them would be taken for those of another step.
TEST(SplitSession, OutputsOnRequest) {
  for (unsigned cuts = 0; cuts < numSplits; ++cuts) {
    Joined joined(cuts);
    auto request = [](plan::Plan &plan) {
      plan.outputs[0].onRequest = true;
      for (plan::Stage &stage : plan.stages)
        for (plan::Program &program : stage.programs)
          for (plan::Instruction &instruction : program.instructions)
            instruction.onRequest = std::holds_alternative<plan::StoreOutput>(instruction.action);
    };
    request(joined.plan);
    for (plan::Plan &plan : joined.plans)
      request(plan);
    Status checked = plan::checkPlan(joined.plan);
    ASSERT_TRUE(checked.ok()) << checked.text();
    for (const Status &status : joined.onParts([&](size_t part, Session &session) {
           std::vector<Array> outputs;
           for (int64_t seed : {0, 3, 8}) {
             HPC_RETURN_IF_ERROR(session.run({inputOf(seed + 1)}, outputs, Outputs::Ordinary));
             EXPECT_EQ(outputs.size(), part == 0 ? 1u : 0u);
             EXPECT_TRUE(outputs.empty() || outputs[0].data.empty());
             HPC_RETURN_IF_ERROR(session.run({inputOf(seed)}, outputs, Outputs::All));
             joined.expectRight(part, outputs, seed);
           }
           return Status::success();
         }))
      EXPECT_TRUE(status.ok()) << status.text();
  }
}

// A state of stage 0: it starts at 1/2, every micro-batch of every step adds x W1 to it, and the step's last one stores
// it. An arena that was made anew, a lost addition or a store of what the first micro-batch left would show.
TEST(SplitSession, StatesLiveAcrossSteps) {
  for (unsigned cuts = 0; cuts < numSplits; ++cuts)
    for (bool poison : {false, true}) {
      Joined joined(cuts);
      auto addState = [](plan::Plan &plan) {
        plan::Stage &stage = plan.stages[0];
        plan::ByCoord columns = TinyPlan::byRank(4, 3), last;
        last.values = {0, 0, 1, 1}; // [microBatch][coordinate]
        plan::Slice slice{{2, 7}, {0, TinyPlan::byRank(0, 4)}, {2, columns}, {2, 4}};
        int32_t state = TinyPlan::addBuffer(stage, "state", {2, 4}, plan::Lifetime::Session);
        stage.bindings.push_back({state, slice, plan::Number{0.5}, "momentum", {2, 7}});
        plan::Gemm add = std::get<plan::Gemm>(stage.programs[0].instructions[1].action);
        add.c.place = {state, 0};
        add.addToC = 1;
        stage.programs[0].instructions.push_back({add, "/state"});
        stage.programs[0].instructions.push_back({plan::StoreOutput{1, {state, 0}, slice, 1}, "state", last});
        plan.outputs.push_back({"state", DType::F32, {2, 7}, false});
      };
      addState(joined.plan);
      joined.world = std::make_shared<host::World>(joined.plan);
      Status checked = plan::checkPlan(joined.plan);
      ASSERT_TRUE(checked.ok()) << checked.text();
      for (size_t part = 0; part < joined.parts.size(); ++part) {
        addState(joined.plans[part]);
        joined.options[part].poison = poison;
      }
      for (const Status &status : joined.onParts([&](size_t part, Session &session) {
             std::vector<float> state(14, 0.5f);
             for (int64_t seed : {0, 3, 8}) {
               Expected<std::vector<Array>> outputs = session.run({inputOf(seed)});
               HPC_RETURN_IF_ERROR(outputs.status());
               std::vector<float> x = TinyPlan::values(24, seed);
               for (size_t i = 0; i < 4 * 7 * 6; ++i) // row, column, k
                 state[i / 42 % 2 * 7 + i / 6 % 7] += x[i / 42 * 6 + i % 6] * joined.w1[i % 6 * 7 + i / 6 % 7];
               for (size_t i = 0; i < state.size() && part == 0; ++i)
                 EXPECT_EQ((*outputs)[1].as<float>()[i], state[i]) << "seed " << seed << " at " << i;
             }
             return Status::success();
           }))
        EXPECT_TRUE(status.ok()) << status.text();
    }
}

// A rank that fails must not leave those of another session waiting, and all must be able to go on afterwards.
TEST(SplitSession, AnErrorOfOneRankEndsAllWithOneMessage) {
  for (unsigned cuts = 1; cuts < numSplits; ++cuts)
    for (int64_t rank = 0; rank < worldSize; ++rank)
      for (int64_t instruction : {0, 2, 3}) {
        Joined joined(cuts);
        std::atomic<bool> broken{true};
        for (SessionOptions &options : joined.options)
          options.observer = [&, rank, instruction](const ObservedInstruction &at) {
            bool here = at.place.rank == rank && at.instruction == instruction && at.microBatch == 1;
            return here && broken ? Status::error(ErrorKind::Io, "the disk is gone") : Status::success();
          };
        std::atomic<size_t> failed{0};
        std::vector<std::string> first(joined.parts.size());
        std::vector<Status> statuses = joined.onParts([&](size_t part, Session &session) {
          first[part] = session.run({inputOf(0)}).status().text();
          if (++failed == joined.parts.size())
            broken = false;
          while (broken)
            std::this_thread::yield();
          Expected<std::vector<Array>> outputs = session.run({inputOf(2)});
          HPC_RETURN_IF_ERROR(outputs.status());
          joined.expectRight(part, *outputs, 2);
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

// Bytes of W1 that the others read are damaged, or the plan of one session calls a function that is not there: no
// session may begin, and all name the lowest rank that cannot.
TEST(SplitSession, WhatOneCannotPrepareEndsAll) {
  for (unsigned cuts = 1; cuts < numSplits; ++cuts) {
    Joined joined(cuts);
    size_t last = joined.plans.size() - 1;
    std::get<plan::Kernel>(joined.plans[last].stages[1].programs[1].instructions[2].action).symbol = "gone";
    int64_t rank = std::max<int64_t>(2, joined.parts[last].first);
    for (const Status &status : joined.onParts([](size_t, Session &) { return Status::success(); }))
      EXPECT_THAT(status.text(), HasSubstr("error[plan]: rank " + std::to_string(rank) + " (stage 1): kernel of node"));
  }
}

// The inputs of one session are wrong, so its ranks never start; the others' would wait for them.
TEST(SplitSession, AStepThatOneDoesNotBeginEndsAll) {
  for (size_t wrong : {0, 1}) {
    Joined joined(0b010);
    for (const Status &status : joined.onParts([&](size_t part, Session &session) {
           return session.run({part == wrong ? Array::zeros(DType::I32, {4, 6}) : inputOf(0)}).status();
         }))
      EXPECT_THAT(status.text(), HasSubstr("error[usage]: input 'x' is 4x6 of i32"));
  }
}

TEST(SplitSession, ASessionThatEndsIsNotWaitedFor) {
  for (size_t quitter : {0, 1}) {
    Joined joined(0b010);
    std::vector<Status> statuses = joined.onParts(
        [&](size_t part, Session &session) { return part == quitter ? Status() : session.run({inputOf(0)}).status(); });
    EXPECT_TRUE(statuses[quitter].ok());
    EXPECT_THAT(statuses[1 - quitter].text(), HasSubstr("the session with ranks " + std::to_string(2 * quitter) +
                                                        " to " + std::to_string(2 * quitter + 1) + " has ended"));
  }
}

// Only the ranks of this process count: stage 1 of a plan whose stage 0 fits no machine.
TEST(SplitSession, MemoryIsCheckedForTheRanksOfThisProcess) {
  Joined joined(0b010);
  joined.plans[1].stages[0].workBytes = int64_t(1) << 60;
  for (const Status &status : joined.onParts([&](size_t part, Session &session) {
         Expected<std::vector<Array>> outputs = session.run({inputOf(3)});
         HPC_RETURN_IF_ERROR(outputs.status());
         joined.expectRight(part, *outputs, 3);
         return Status::success();
       }))
    EXPECT_TRUE(status.ok()) << status.text();
}

TEST(SplitSession, RanksBelongToOneSession) {
  TinyPlan tiny;
  SessionOptions options;
  options.planFolder = tiny.folder.path;
  auto world = std::make_shared<host::World>(tiny.plan);
  ASSERT_TRUE(world->join({2, 2}).ok());
  options.ranks = {1, 2};
  EXPECT_THAT(Session::create(tiny.plan, host::createHostBackend(world), options).status().text(),
              HasSubstr("error[usage]: two sessions hold the same ranks: ranks 1 to 2 and ranks 2 to 3"));
  options.ranks = {3, 2};
  EXPECT_THAT(Session::create(tiny.plan, host::createHostBackend(), options).status().text(),
              HasSubstr("error[usage]: a process with 2 ranks from rank 3 on: the plan has ranks 0 to 3"));
}
