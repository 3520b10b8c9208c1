// Sessions over a hand-built plan: results, poison, observers, traces, and errors of one rank that must end all.
#include "runtime/core/Session.h"
#include "runtime/backend/host/HostBackend.h"
#include "test/unit/runtime/core/TinyPlan.h"

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace hpc;
using testing::HasSubstr;

namespace {

struct Prepared : TinyPlan {
  SessionOptions options;

  Prepared() { options.planFolder = folder.path; }
  Expected<std::unique_ptr<Session>> create() { return Session::create(plan, host::createHostBackend(), options); }
  std::string createError() {
    Expected<std::unique_ptr<Session>> session = create();
    return session.ok() ? "ok" : session.status().text();
  }
};

Array input(int64_t seed) {
  Array x = Array::zeros(DType::F32, {4, 6});
  std::vector<float> list = TinyPlan::values(24, seed);
  std::copy(list.begin(), list.end(), x.as<float>());
  return x;
}

void expectRight(Prepared &run, Session &session, int64_t seed) {
  Expected<std::vector<Array>> outputs = session.run({input(seed)});
  ASSERT_TRUE(outputs.ok()) << outputs.status().text();
  std::vector<float> expected = run.expected(TinyPlan::values(24, seed));
  ASSERT_EQ((*outputs)[0].shape, (std::vector<int64_t>{4, 7}));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ((*outputs)[0].as<float>()[i], expected[i]) << i;
}

} // namespace

// Also with helpers beside each rank, and more threads than the machine has cores.
TEST(Session, ComputesWhatTheSerialModelDoes) {
  for (auto [poison, threads] : {std::pair(false, 1), {true, 1}, {false, 3}, {true, 8}}) {
    Prepared run;
    run.options.poison = poison;
    run.options.threads = threads;
    Expected<std::unique_ptr<Session>> session = run.create();
    ASSERT_TRUE(session.ok()) << session.status().text();
    for (int64_t seed : {0, 3, 8})
      expectRight(run, **session, seed);
    int64_t arenas = run.plan.stages[0].sessionBytes + run.plan.stages[0].workBytes;
    EXPECT_GE((*session)->peakBytesPerRank(), arenas);
  }
}

// The padded column of h holds NaN on rank 1; a product that takes all four must show it.
TEST(Session, PoisonShowsAWrongExtent) {
  Prepared run;
  std::get<plan::Gemm>(run.plan.stages[0].programs[0].instructions[3].action).k = 4;
  run.options.poison = true;
  Expected<std::unique_ptr<Session>> session = run.create();
  ASSERT_TRUE(session.ok());
  Expected<std::vector<Array>> outputs = (*session)->run({input(0)});
  ASSERT_TRUE(outputs.ok());
  EXPECT_TRUE(std::isnan((*outputs)[0].as<float>()[0]));
}

TEST(Session, PoisonShowsAnOutputThatNobodyStores) {
  Prepared run;
  std::get<plan::StoreOutput>(run.plan.stages[1].programs[1].instructions[3].action).owner = TinyPlan::byRank(1, 0);
  run.options.poison = true;
  Expected<std::unique_ptr<Session>> session = run.create();
  ASSERT_TRUE(session.ok());
  Expected<std::vector<Array>> outputs = (*session)->run({input(0)});
  ASSERT_TRUE(outputs.ok());
  EXPECT_FALSE(std::isnan((*outputs)[0].as<float>()[3]));
  EXPECT_TRUE(std::isnan((*outputs)[0].as<float>()[4]));
}

// x is a temporary: what one program loads into it is poison in the next one.
TEST(Session, PoisonReachesTemporariesBetweenPrograms) {
  Prepared run;
  plan::Stage &stage = run.plan.stages[0];
  stage.programs.push_back({plan::ProgramKind::Receive, 0, {stage.programs[0].instructions.front()}});
  stage.programs[0].instructions.erase(stage.programs[0].instructions.begin());
  stage.schedule = {{2, 0}, {0, 0}, {2, 1}, {0, 1}, {1, 0}, {1, 1}};
  for (bool poison : {false, true}) {
    run.options.poison = poison;
    Expected<std::unique_ptr<Session>> session = run.create();
    ASSERT_TRUE(session.ok());
    Expected<std::vector<Array>> outputs = (*session)->run({input(0)});
    ASSERT_TRUE(outputs.ok());
    for (int i = 0; i < 28; ++i)
      EXPECT_EQ(std::isnan((*outputs)[0].as<float>()[i]), poison);
  }
}

TEST(Session, ObserverSeesEveryInstruction) {
  Prepared run;
  std::mutex mutex;
  int64_t seen = 0;
  bool relu = false;
  run.options.observer = [&](const ObservedInstruction &at) {
    std::lock_guard<std::mutex> lock(mutex);
    ++seen;
    if (at.place.rank == 1 && at.microBatch == 1 && at.program == 0 && at.instruction == 2) {
      relu = true;
      const float *h = reinterpret_cast<const float *>(at.buffer(3));
      EXPECT_GE(*h, 0);
    }
    return Status::success();
  };
  Expected<std::unique_ptr<Session>> session = run.create();
  ASSERT_TRUE(session.ok());
  expectRight(run, **session, 1);
  EXPECT_EQ(seen, 2 * 2 * (6 + 1) + 2 * 2 * (1 + 4));
  EXPECT_TRUE(relu);
}

TEST(Session, AnErrorOfOneRankEndsAll) {
  // At each place in turn: before a collective, between send and receive, in the last stage.
  for (int64_t rank : {0, 1, 2, 3})
    for (int64_t instruction : {0, 2, 3}) {
      Prepared run;
      std::atomic<bool> broken{true};
      run.options.observer = [&](const ObservedInstruction &at) {
        bool here = at.place.rank == rank && at.instruction == instruction && at.microBatch == 1;
        return here && broken ? Status::error(ErrorKind::Io, "the disk is gone") : Status::success();
      };
      Expected<std::unique_ptr<Session>> session = run.create();
      ASSERT_TRUE(session.ok());
      Expected<std::vector<Array>> outputs = (*session)->run({input(0)});
      ASSERT_FALSE(outputs.ok());
      EXPECT_THAT(outputs.status().text(), HasSubstr("error[io]: rank " + std::to_string(rank) + " (stage "));
      EXPECT_THAT(outputs.status().text(), HasSubstr("the disk is gone"));
      // One message: no rank's complaint is wrapped in another's.
      EXPECT_EQ(outputs.status().text().find("rank "), outputs.status().text().rfind("rank "));
      // And the session can go on.
      broken = false;
      expectRight(run, **session, 2);
    }
}

// The allocation that fails is a rank's, on its thread: it must not end the process.
TEST(Session, OutOfMemoryOnARanksThreadIsAnError) {
  Prepared run;
  std::atomic<bool> broken{true};
  run.options.observer = [&](const ObservedInstruction &at) {
    if (at.place.rank == 1 && broken)
      throw std::bad_alloc();
    return Status::success();
  };
  Expected<std::unique_ptr<Session>> session = run.create();
  ASSERT_TRUE(session.ok());
  EXPECT_THAT((*session)->run({input(0)}).status().text(),
              HasSubstr("error[capacity]: rank 1 (stage 0): this machine has no more memory"));
  broken = false;
  expectRight(run, **session, 2);
}

// A fresh Array has the shape of a scalar and no bytes: an output of rank 0 was stored through null.
TEST(Session, OutputsOfRankZero) {
  Prepared run;
  run.plan.outputs.push_back({"scalar", DType::F32, {}});
  plan::Stage &stage = run.plan.stages[0];
  plan::Slice slice; // of no dims
  stage.programs[0].instructions.push_back({plan::StoreOutput{1, {2, 0}, slice, TinyPlan::byRank(1, 0)}, "scalar"});
  run.options.poison = true;
  Expected<std::unique_ptr<Session>> session = run.create();
  ASSERT_TRUE(session.ok()) << session.status().text();
  Expected<std::vector<Array>> outputs = (*session)->run({input(0)});
  ASSERT_TRUE(outputs.ok()) << outputs.status().text();
  ASSERT_EQ((*outputs)[1].data.size(), 4u);
  EXPECT_EQ((*outputs)[1].as<float>()[0], input(0).as<float>()[12]); // x's first element of the second micro-batch
}

// Kernels lie in several modules where a plan was made of several. If it fails, the second one's are not found.
TEST(Session, TakesCodeOfSeveralModules) {
  Prepared run;
  run.plan.modules.push_back(run.plan.modules[0]);
  run.plan.modules[0].symbols = {"test_relu"};
  run.plan.modules[1].symbols = {"test_add_bias"};
  Expected<std::unique_ptr<Session>> session = run.create();
  ASSERT_TRUE(session.ok()) << session.status().text();
  expectRight(run, **session, 3);
}

TEST(Session, ErrorsBeforeTheRun) {
  {
    Prepared run;
    std::get<plan::Kernel>(run.plan.stages[1].programs[1].instructions[2].action).symbol = "gone";
    std::string text = run.createError();
    EXPECT_THAT(text, HasSubstr("error[plan]: rank 2 (stage 1): kernel of node '/fc3'"));
    EXPECT_THAT(text, HasSubstr("no function 'gone'"));
  }
  {
    Prepared run;
    run.plan.modules[0].features = {"sse2", "quantum"};
    EXPECT_THAT(run.createError(), HasSubstr("lacks: quantum"));
  }
  {
    Prepared run;
    run.plan.modules[0].bytes = "no ELF";
    EXPECT_THAT(run.createError(), HasSubstr("error[plan]"));
  }
  {
    Prepared run;
    run.plan.stages[0].workBytes = int64_t(1) << 60;
    EXPECT_THAT(run.createError(), HasSubstr("error[capacity]"));
  }
  {
    Prepared run;
    run.file[5] ^= 1; // in W1, which only stage 0 reads
    run.folder.write("weights.bin", run.file);
    EXPECT_THAT(run.createError(), HasSubstr("error[io]: rank 0 (stage 0): weight 'W1' of"));
  }
}

TEST(Session, WrongInputsAreErrors) {
  Prepared run;
  Expected<std::unique_ptr<Session>> session = run.create();
  ASSERT_TRUE(session.ok());
  auto error = [&](std::vector<Array> inputs) { return (*session)->run(inputs).status().text(); };
  EXPECT_THAT(error({}), HasSubstr("0 inputs given, the plan has 1"));
  EXPECT_THAT(error({Array::zeros(DType::I32, {4, 6})}), HasSubstr("input 'x' is 4x6 of i32"));
  EXPECT_THAT(error({Array::zeros(DType::F32, {4, 7})}), HasSubstr("error[usage]: input 'x' is 4x7 of f32"));
  expectRight(run, **session, 0);
}

TEST(Session, TraceHasEveryInstruction) {
  Prepared run;
  run.options.trace = true;
  Expected<std::unique_ptr<Session>> session = run.create();
  ASSERT_TRUE(session.ok());
  expectRight(run, **session, 0);
  expectRight(run, **session, 1); // only the last run counts
  nlohmann::json trace = nlohmann::json::parse((*session)->trace()->json());
  int64_t events = 0;
  bool send = false;
  for (const nlohmann::json &event : trace["traceEvents"]) {
    if (event["ph"] != "X")
      continue;
    ++events;
    if (event["name"] == "send /fc2") {
      send = true;
      EXPECT_EQ(event["args"]["bytes"], 40);
      EXPECT_EQ(event["args"]["node"], "/fc2");
      EXPECT_EQ(event["pid"], 0);
    }
    EXPECT_GE(event["dur"].get<double>(), 0);
  }
  EXPECT_EQ(events, 2 * 2 * (6 + 1) + 2 * 2 * (1 + 4));
  EXPECT_TRUE(send);
}
