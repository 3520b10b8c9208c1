// The learning rates of every curve, against numbers worked out by hand.
#include "runtime/train/LearningRate.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace hpc;

namespace {

/// 2 steps of warm-up, 6 in all: t = 0, 1/4, 1/2, 3/4 behind it.
LearningRate rate(LearningRateCurve curve) { return {8, curve, 2, 6, 2}; }

} // namespace

// A warm-up that starts at 0 would waste a step, one that is over a step too late shifts every curve.
TEST(LearningRate, WarmUpEndsAtThePeak) {
  for (LearningRateCurve curve : {LearningRateCurve::Constant, LearningRateCurve::Linear, LearningRateCurve::Cosine,
                                  LearningRateCurve::Polynomial}) {
    EXPECT_EQ(rate(curve).at(0), 4);
    EXPECT_EQ(rate(curve).at(1), 8);
    EXPECT_EQ(rate(curve).at(2), 8);
  }
}

TEST(LearningRate, CurvesBehindTheWarmUp) {
  EXPECT_EQ(rate(LearningRateCurve::Constant).at(5), 8);
  EXPECT_EQ(rate(LearningRateCurve::Linear).at(3), 6);
  EXPECT_EQ(rate(LearningRateCurve::Linear).at(5), 2);
  EXPECT_DOUBLE_EQ(rate(LearningRateCurve::Cosine).at(3), 4 * (1 + std::sqrt(0.5)));
  EXPECT_DOUBLE_EQ(rate(LearningRateCurve::Cosine).at(4), 4);
  EXPECT_EQ(rate(LearningRateCurve::Polynomial).at(4), 2);
  EXPECT_EQ(rate(LearningRateCurve::Polynomial).at(5), 0.5);
}

// Steps behind the end of a curve, as --lr-steps allows, must not climb again as a cosine would.
TEST(LearningRate, StaysAtTheEnd) {
  for (int64_t step : {6, 7, 1000}) {
    EXPECT_EQ(rate(LearningRateCurve::Constant).at(step), 8);
    EXPECT_EQ(rate(LearningRateCurve::Linear).at(step), 0);
    EXPECT_NEAR(rate(LearningRateCurve::Cosine).at(step), 0, 1e-15);
    EXPECT_EQ(rate(LearningRateCurve::Polynomial).at(step), 0);
  }
}

// A curve that is all warm-up has no span to divide by.
TEST(LearningRate, NothingButWarmUp) {
  LearningRate all{8, LearningRateCurve::Cosine, 4, 4, 2};
  EXPECT_EQ(all.at(3), 8);
  EXPECT_EQ(all.at(4), 8);
  EXPECT_NEAR(all.at(5), 0, 1e-15);
}

// Every curve ends at the least rate, not below it, and its middle moves with it.
TEST(LearningRate, EndsAtTheLeast) {
  for (LearningRateCurve curve : {LearningRateCurve::Linear, LearningRateCurve::Cosine, LearningRateCurve::Polynomial}) {
    LearningRate least = rate(curve);
    least.least = 2;
    EXPECT_EQ(least.at(0), 4); // the warm-up begins where it did
    EXPECT_EQ(least.at(2), 8);
    EXPECT_NEAR(least.at(6), 2, 1e-15);
    EXPECT_NEAR(least.at(100), 2, 1e-15);
    EXPECT_DOUBLE_EQ(least.at(4), curve == LearningRateCurve::Polynomial ? 3.5 : 5);
  }
}
