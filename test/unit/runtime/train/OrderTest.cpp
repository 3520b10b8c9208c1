// Orders of rows: every permutation has each element once, and mixtures are those of Megatron-LM's rule.
#include "runtime/train/Blend.h"
#include "runtime/train/Permutation.h"
#include "runtime/train/RowRange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

using namespace hpc;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::vector<int64_t> orderOf(int64_t size, uint64_t seed, uint32_t stream, int64_t epoch) {
  Permutation permutation(size, seed, stream, epoch);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < size; ++i)
    order.push_back(permutation(i));
  return order;
}

// A row that an epoch leaves out, or has twice, would make the loss of an epoch another one.
TEST(PermutationTest, EachElementOnce) {
  for (int64_t size : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 4097})
    for (int64_t epoch = 0; epoch < 20; ++epoch) {
      std::vector<int64_t> order = orderOf(size, 5, 0, epoch);
      std::sort(order.begin(), order.end());
      for (int64_t i = 0; i < size; ++i)
        ASSERT_EQ(order[size_t(i)], i) << size << ", epoch " << epoch;
    }
}

// Sizes that no memory holds.
TEST(PermutationTest, LargeSizes) {
  for (int64_t size : {int64_t(1) << 33, (int64_t(1) << 40) + 1, (int64_t(1) << 61) + 12345}) {
    Permutation permutation(size, 1, 0, 0);
    std::set<int64_t> seen;
    for (int64_t i = 0; i < 1000; ++i) {
      const int64_t value = permutation(size - 1 - i);
      EXPECT_TRUE(value >= 0 && value < size);
      seen.insert(value);
    }
    EXPECT_EQ(seen.size(), 1000u);
    EXPECT_GT(*seen.rbegin() - *seen.begin(), size / 2);
  }
}

// Seeds, streams and epochs give other orders, and the same ones the same.
TEST(PermutationTest, KeysMatter) {
  const std::vector<int64_t> order = orderOf(100, 1, 0, 0);
  EXPECT_EQ(order, orderOf(100, 1, 0, 0));
  for (const std::vector<int64_t> &other : {orderOf(100, 2, 0, 0), orderOf(100, uint64_t(1) << 40 | 1, 0, 0), orderOf(100, 1, 1, 0), orderOf(100, 1, 0, 1)})
    EXPECT_NE(order, other);
}

// Over many epochs each element comes to each place equally often: chi squared of 11 x 11 counts, 110 degrees of freedom without the
// sums, stays below 193, which one table in a million exceeds.
TEST(PermutationTest, PlacesAreEven) {
  constexpr int64_t size = 11, epochs = 22000;
  std::vector<double> counts(size * size, 0);
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<int64_t> order = orderOf(size, 3, 0, epoch);
    for (int64_t place = 0; place < size; ++place)
      ++counts[size_t(place * size + order[size_t(place)])];
  }
  double chi = 0;
  for (double count : counts)
    chi += (count - double(epochs) / size) * (count - double(epochs) / size) / (double(epochs) / size);
  EXPECT_LT(chi, 193);
  EXPECT_GT(chi, 30); // no more even than chance either
}

std::vector<size_t> sourcesOf(const std::vector<std::string> &weights, int64_t samples) {
  Blend blend = std::move(*Blend::create(weights));
  std::vector<size_t> sources;
  std::vector<int64_t> taken(weights.size(), 0);
  for (int64_t i = 0; i < samples; ++i) {
    const Blend::Sample sample = blend.at(i);
    EXPECT_EQ(sample.index, taken[sample.source]++) << i;
    sources.push_back(sample.source);
  }
  return sources;
}

// By hand: at sample k the largest w * max(k, 1) - samples so far.
TEST(BlendTest, ByHand) {
  EXPECT_THAT(sourcesOf({"0.75", "0.25"}, 9), ElementsAre(0, 1, 0, 0, 0, 1, 0, 0, 0));
  EXPECT_THAT(sourcesOf({"0.25", "0.75"}, 9), ElementsAre(1, 0, 1, 1, 0, 1, 1, 1, 0));
  EXPECT_THAT(sourcesOf({"1", "1"}, 5), ElementsAre(0, 1, 0, 1, 0));
}

// The rule itself, sample by sample and in whole numbers, with weights that are not in order.
TEST(BlendTest, TheRule) {
  const std::vector<int64_t> shares = {3, 7, 1, 20};
  const std::vector<size_t> sources = sourcesOf({"0.3", "0.70", "0.1", "2"}, 200);
  std::vector<int64_t> taken(4, 0);
  for (int64_t k = 0; k < 200; ++k) {
    size_t best = 0;
    for (size_t i = 1; i < 4; ++i)
      if (shares[i] * std::max<int64_t>(k, 1) - 31 * taken[i] > shares[best] * std::max<int64_t>(k, 1) - 31 * taken[best])
        best = i;
    ASSERT_EQ(sources[size_t(k)], best) << k;
    ++taken[best];
  }
}

// A far sample is known at once: after many turns each source has had its share.
TEST(BlendTest, FarSamples) {
  Blend blend = std::move(*Blend::create({"0.7", "0.3"}));
  const int64_t far = int64_t(10) * 1000000000000;
  EXPECT_EQ(blend.at(far).source, 0u);
  EXPECT_EQ(blend.at(far).index, int64_t(7) * 1000000000000);
}

TEST(BlendTest, Errors) {
  for (const char *wrong : {"0", "x", "1e3", "-1", "0.0000000001", ".", "1.2.3"})
    EXPECT_THAT(Blend::create({"1", wrong}).status().message(), HasSubstr(std::string("a weight is '") + wrong + "'")) << wrong;
  EXPECT_THAT(Blend::create({"0.33333333", "0.66666667"}).status().message(), HasSubstr("so many digits"));
}

// Parts that follow each other share no row and leave none out.
TEST(RowRangeTest, Parts) {
  for (int64_t rows : {0, 1, 3, 10, 999, 1000}) {
    const RowRange train{0, 0.969}, valid{0.969, 0.999}, test{0.999, 1};
    EXPECT_EQ(train.first(rows), 0);
    EXPECT_EQ(valid.first(rows), train.count(rows));
    EXPECT_EQ(test.first(rows), train.count(rows) + valid.count(rows));
    EXPECT_EQ(test.first(rows) + test.count(rows), rows);
  }
  EXPECT_EQ((RowRange{0, 0.969}.count(1000)), 969);
}

} // namespace
