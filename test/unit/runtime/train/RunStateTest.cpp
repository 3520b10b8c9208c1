// The loss scale's rule, and that a run which goes on is the run that never stopped.
#include "runtime/train/RunState.h"

#include <gmock/gmock.h>

using namespace hpc;
using testing::HasSubstr;

// Halved too early, a scale never recovers from one odd batch; too late, step after step is lost.
TEST(LossScale, HalvesFromTheSecondOverflowOn) {
  LossScale scale;
  scale.update(true);
  EXPECT_EQ(scale.scale, 65536);
  scale.update(false);
  scale.update(true);
  EXPECT_EQ(scale.scale, 32768);
  scale.update(true);
  EXPECT_EQ(scale.scale, 16384);
}

// Small gradients are lost where it never grows; an overflow begins the count anew.
TEST(LossScale, DoublesAfterGoodSteps) {
  LossScale scale;
  for (int step = 0; step < 999; ++step)
    scale.update(false);
  EXPECT_EQ(scale.scale, 65536);
  scale.update(true);
  for (int step = 0; step < 999; ++step)
    scale.update(false);
  EXPECT_EQ(scale.scale, 65536);
  scale.update(false);
  EXPECT_EQ(scale.scale, 131072);
  scale.update(true); // growing has given it patience again
  EXPECT_EQ(scale.scale, 131072);
}

TEST(LossScale, HasEnds) {
  LossScale scale;
  for (int step = 0; step < 100; ++step)
    scale.update(true);
  EXPECT_EQ(scale.scale, 1);
  scale.scale = LossScale::most;
  for (int step = 0; step < 1000; ++step)
    scale.update(false);
  EXPECT_EQ(scale.scale, LossScale::most);
}

// A number that does not come back changes the masks or the scale of a run that goes on.
TEST(RunState, ComesBackFromMetadata) {
  RunState state;
  state.steps = 1234567890123;
  state.updates = 1234567890100;
  state.seed = RunState::largestSeed;
  state.lossScale = {0x1p90, 999, 1};
  Expected<RunState> back = RunState::fromMetadata(state.toMetadata(), "f");
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_EQ(back->steps, state.steps);
  EXPECT_EQ(back->updates, state.updates);
  EXPECT_EQ(back->seed, state.seed);
  EXPECT_EQ(back->lossScale.scale, 0x1p90);
  EXPECT_EQ(back->lossScale.goodSteps, 999);
  EXPECT_EQ(back->lossScale.patienceLeft, 1);
}

// A checkpoint of an older release, which knew steps alone, goes on: each of its steps counts as an update, as it did there.
TEST(RunState, OldCheckpoints) {
  Expected<RunState> state = RunState::fromMetadata({{"steps", "7"}}, "f");
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->steps, 7);
  EXPECT_EQ(state->updates, 7);
  EXPECT_EQ(state->seed, 0);
  EXPECT_EQ(state->lossScale.scale, 65536);
}

TEST(RunState, ErrorsNameFileAndNumber) {
  auto text = [](std::map<std::string, std::string> metadata) {
    return RunState::fromMetadata(metadata, "c.safetensors").status().text();
  };
  EXPECT_THAT(text({}), HasSubstr("error[io]: 'c.safetensors': is no checkpoint of hpc-run --save: its metadata has no 'steps'"));
  for (const char *bad : {"-1", "x", "", "1.5", "99999999999999999999"})
    EXPECT_THAT(text({{"steps", bad}}), HasSubstr("its metadata says 'steps' = '" + std::string(bad) + "', which cannot be"));
  EXPECT_THAT(text({{"steps", "3"}, {"updates", "4"}}), HasSubstr("its metadata says 'updates' = '4', which cannot be"));
  EXPECT_THAT(text({{"steps", "1"}, {"seed", "9007199254740992"}}), HasSubstr("'seed'"));
  EXPECT_THAT(text({{"steps", "1"}, {"loss_scale", "nan"}}), HasSubstr("'loss_scale'"));
  EXPECT_THAT(text({{"steps", "1"}, {"loss_scale", "0"}}), HasSubstr("'loss_scale'"));
  EXPECT_THAT(text({{"steps", "1"}, {"loss_scale", "3.7"}}), HasSubstr("'loss_scale' = '3.7', which is no power of two"));
}

// A run that goes on within an epoch would report means of the rest of it.
TEST(RunState, KeepsTheSumsOfItsEpoch) {
  RunState state;
  state.steps = 7;
  state.epoch = {5, 2, 1.1 + 2.2, 1e-300, 12345};
  Expected<RunState> back = RunState::fromMetadata(state.toMetadata(), "f");
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_EQ(back->epoch.steps, 5);
  EXPECT_EQ(back->epoch.skipped, 2);
  EXPECT_EQ(back->epoch.loss, state.epoch.loss);
  EXPECT_EQ(back->epoch.gradientNorm, 1e-300);
  EXPECT_EQ(back->epoch.validTokens, 12345);
  EXPECT_EQ(RunState().toMetadata().count("epoch.steps"), 0u);
}
