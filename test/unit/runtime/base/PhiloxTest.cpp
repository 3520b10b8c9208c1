// Philox 4x32-10 against the vectors that its authors published, and dropout's use of it against what chance allows.
#include "runtime/base/Philox.h"

#include <gtest/gtest.h>
#include <set>

using namespace hpc::philox;

// Random123 1.14, tests/kat_vectors: another constant, order of words or number of rounds gives other words.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t all = 0xffffffff;
  EXPECT_EQ(philox4x32({all, all, all, all}, {all, all}), (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Where each number goes is a contract: a checkpoint goes on with the same masks in the next release.
TEST(Philox, CountersOfDropout) {
  DropoutStream stream{0x299f31d0a4093822, 0x13198a2e, 0x03707344};
  EXPECT_EQ(stream.word(0x85a308d3243f6a88), 0xd16cfe09u);
}

// Too many or too few dropped, in all or in a row of neighbours: beyond 5 standard deviations of independent draws.
TEST(Philox, RatesAreMet) {
  constexpr int count = 1 << 20;
  for (double rate : {0.001, 0.1, 0.5, 0.9}) {
    const uint32_t threshold = dropoutThreshold(rate);
    for (DropoutStream stream : {DropoutStream{0, 1, 0}, DropoutStream{1, 1, 0}, DropoutStream{0, 2, 0}, DropoutStream{0, 1, 1}}) {
      int dropped = 0, pairs = 0;
      bool last = false;
      for (int i = 0; i < count; ++i) {
        bool now = stream.word(uint64_t(i)) < threshold;
        dropped += now;
        pairs += now && last;
        last = now;
      }
      EXPECT_NEAR(dropped, count * rate, 5 * std::sqrt(count * rate * (1 - rate))) << rate;
      double both = rate * rate; // neighbouring pairs share elements: their variance has a covariance too
      double variance = count * both * (1 - both + 2 * rate * (1 - rate));
      EXPECT_NEAR(pairs, count * both, 5 * std::sqrt(variance) + 1) << rate;
    }
  }
}

// Two streams that agree would drop the same elements in two layers, steps or runs.
TEST(Philox, StreamsDiffer) {
  std::set<uint32_t> words;
  int drawn = 0;
  for (uint64_t seed : {uint64_t(0), uint64_t(1), uint64_t(1) << 32, uint64_t(1) << 52})
    for (uint64_t step : {1, 2, 1000})
      for (uint32_t site : {0u, 1u, 7u})
        for (uint64_t position : {uint64_t(0), uint64_t(1), uint64_t(1) << 32, uint64_t(1) << 40}) {
          words.insert(DropoutStream{seed, step, site}.word(position));
          ++drawn;
        }
  EXPECT_EQ(int(words.size()), drawn);
}

TEST(Philox, Thresholds) {
  EXPECT_EQ(dropoutThreshold(0), 0u);
  EXPECT_EQ(dropoutThreshold(0.5), 0x80000000u);
  EXPECT_EQ(dropoutThreshold(1 - 0x1p-40), 0xffffffffu);
}
