// Rows of token files that are written here, byte by byte: which tokens a step takes, with which labels and which mask.
#include "runtime/train/TokenRows.h"
#include "runtime/base/Npy.h"
#include "runtime/train/ReadAhead.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// Batches of 2 rows of 3 tokens, labels with -100 for none, and a mask.
plan::Plan rowsModel() {
  plan::Plan plan;
  plan.inputs = {{"ids", DType::I64, {2, 3}}, {"lr", DType::F64, {}, true}, {"labels", DType::I64, {2, 3}}, {"attention_mask", DType::F32, {2, 3}}};
  plan.inputs[0].lookups = {{{0, 0}, {2, 3}, 0, 100, std::nullopt, "wte"}};
  plan.inputs[2].defaultInput = "ids";
  plan.inputs[2].lookups = {{{0, 0}, {2, 3}, 0, 100, -100, "loss"}};
  return plan;
}

struct TokenRowsTest : testing::Test {
  TemporaryFolder folder;
  std::vector<std::string> notes;
  plan::Plan plan = rowsModel();

  /// Tokens first, first + 1, ... and, unless `starts` is empty, where documents begin.
  text::TokenArray file(const std::string &name, int64_t first, int64_t count, const std::vector<int64_t> &starts = {}) {
    Array tokens = Array::zeros(DType::U16, {count});
    for (int64_t i = 0; i < count; ++i)
      tokens.as<uint16_t>()[i] = uint16_t(first + i);
    EXPECT_TRUE(writeNpy(folder / (name + ".npy"), tokens).ok());
    if (!starts.empty()) {
      Array places = Array::zeros(DType::I64, {int64_t(starts.size())});
      std::copy(starts.begin(), starts.end(), places.as<int64_t>());
      EXPECT_TRUE(writeNpy(folder / (name + ".documents.npy"), places).ok());
    }
    Expected<text::TokenArray> array = text::TokenArray::open(folder / (name + ".npy"), {}, notes);
    EXPECT_TRUE(array.ok()) << array.status().text();
    return std::move(*array);
  }
  template <typename... Arrays> std::vector<TokenSource> source(Arrays... arrays) {
    std::vector<TokenSource> sources(1);
    (sources[0].files.push_back(std::move(arrays)), ...);
    sources[0].fingerprint = 1;
    return sources;
  }
  template <typename Number> static std::vector<int64_t> numbers(const Array &array) {
    return {array.as<Number>(), array.as<Number>() + array.elements()};
  }
  /// The first token of each row of a step.
  static std::vector<int64_t> firsts(const TokenRows &data, int64_t step) {
    std::vector<Array> inputs(4);
    EXPECT_TRUE(data.fill(step, inputs).ok());
    const std::vector<int64_t> ids = numbers<int64_t>(inputs[0]);
    return {ids[0], ids[3]};
  }
};

// Documents are joined over the ends of files; what fills no row is left out, and the last batch goes on with the next epoch.
TEST_F(TokenRowsTest, Packed) {
  Expected<TokenRows> data = TokenRows::open(plan, source(file("a", 0, 7), file("b", 50, 10)), {}, notes);
  ASSERT_TRUE(data.ok()) << data.status().text();
  EXPECT_THAT(notes, ElementsAre(HasSubstr("a.npy' and 1 more file: the last 2 of 17 tokens fill no row of 3 and are left out")));
  EXPECT_EQ(data->rows(), 5);
  EXPECT_EQ(data->count(), 3);
  std::vector<Array> inputs(4);
  ASSERT_TRUE(data->fill(1, inputs).ok());
  EXPECT_THAT(numbers<int64_t>(inputs[0]), ElementsAre(6, 50, 51, 52, 53, 54));
  EXPECT_EQ(numbers<int64_t>(inputs[0]), numbers<int64_t>(inputs[2]));
  EXPECT_THAT(numbers<float>(inputs[3]), ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_THAT(firsts(*data, 2), ElementsAre(55, 0));
  EXPECT_THAT(firsts(*data, 3), ElementsAre(3, 6));
  EXPECT_EQ(data->epochOf(2), 0);
  EXPECT_EQ(data->epochOf(3), 1);
}

TEST_F(TokenRowsTest, DropsTheLastRows) {
  RowOptions options;
  options.dropLast = true;
  Expected<TokenRows> data = TokenRows::open(plan, source(file("a", 0, 15)), options, notes);
  ASSERT_TRUE(data.ok()) << data.status().text();
  EXPECT_THAT(notes, ElementsAre(HasSubstr("the last 1 row of 5 fill no batch of 2 and are left out")));
  EXPECT_EQ(data->count(), 2);
  EXPECT_THAT(firsts(*data, 1), ElementsAre(6, 9));
  EXPECT_THAT(firsts(*data, 2), ElementsAre(0, 3));
  EXPECT_EQ(data->epochOf(2), 1);
}

// A document a row: cut off, or filled up with a token that is masked and no label.
TEST_F(TokenRowsTest, Padded) {
  RowOptions options;
  options.pad = true;
  options.padToken = 99;
  Expected<TokenRows> data = TokenRows::open(plan, source(file("a", 10, 9, {0, 5, 7}), file("b", 50, 1, {0})), options, notes);
  ASSERT_TRUE(data.ok()) << data.status().text();
  EXPECT_EQ(data->rows(), 4);
  std::vector<Array> inputs(4);
  ASSERT_TRUE(data->fill(0, inputs).ok());
  EXPECT_THAT(numbers<int64_t>(inputs[0]), ElementsAre(10, 11, 12, 15, 16, 99));
  EXPECT_THAT(numbers<int64_t>(inputs[2]), ElementsAre(10, 11, 12, 15, 16, -100));
  EXPECT_THAT(numbers<float>(inputs[3]), ElementsAre(1, 1, 1, 1, 1, 0));
  ASSERT_TRUE(data->fill(1, inputs).ok());
  EXPECT_THAT(numbers<int64_t>(inputs[0]), ElementsAre(17, 18, 99, 50, 99, 99));
  options.trainPadding = true;
  data = TokenRows::open(plan, source(file("a", 10, 9, {0, 5, 7})), options, notes);
  ASSERT_TRUE(data.ok()) << data.status().text();
  ASSERT_TRUE(data->fill(0, inputs).ok());
  EXPECT_THAT(numbers<int64_t>(inputs[2]), ElementsAre(10, 11, 12, 15, 16, 99));
  EXPECT_THAT(numbers<float>(inputs[3]), ElementsAre(1, 1, 1, 1, 1, 0));
}

// A loss over held-out rows has each of them once: rows that fill up the last batch have no label.
TEST_F(TokenRowsTest, Once) {
  RowOptions options;
  options.once = true;
  Expected<TokenRows> data = TokenRows::open(plan, source(file("a", 0, 9)), options, notes);
  ASSERT_TRUE(data.ok()) << data.status().text();
  EXPECT_EQ(data->count(), 2);
  std::vector<Array> inputs(4);
  ASSERT_TRUE(data->fill(1, inputs).ok());
  EXPECT_THAT(numbers<int64_t>(inputs[2]), ElementsAre(6, 7, 8, -100, -100, -100));
  EXPECT_THAT(numbers<float>(inputs[3]), ElementsAre(1, 1, 1, 1, 1, 1));
  plan.inputs[2].lookups[0].ignored.reset(); // no label stands for none
  data = TokenRows::open(plan, source(file("a", 0, 9)), options, notes);
  ASSERT_TRUE(data.ok()) << data.status().text();
  EXPECT_EQ(data->count(), 1);
  EXPECT_THAT(notes.back(), HasSubstr("the last 1 row of 3 fill no batch of 2"));
}

// Each epoch has each row of its part once, in another order; the order is the seed's.
TEST_F(TokenRowsTest, Shuffled) {
  RowOptions options;
  options.shuffleSeed = 4;
  options.range = {0.25, 0.75};
  auto open = [&] { return std::move(*TokenRows::open(plan, source(file("a", 0, 60)), options, notes)); };
  const TokenRows data = open();
  std::vector<int64_t> epochs[2];
  for (int64_t step = 0; step < 10; ++step)
    for (int64_t first : firsts(data, step))
      epochs[step / 5].push_back(first);
  EXPECT_THAT(epochs[0], testing::UnorderedElementsAre(15, 18, 21, 24, 27, 30, 33, 36, 39, 42));
  EXPECT_THAT(epochs[1], testing::UnorderedElementsAreArray(epochs[0]));
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_EQ(firsts(open(), 7), firsts(data, 7));
  options.shuffleSeed = 5;
  EXPECT_NE(open().fingerprint(), data.fingerprint());
}

// Sources by weight, each in its own order; a source that ends begins anew while the others go on.
TEST_F(TokenRowsTest, Weighted) {
  std::vector<TokenSource> sources = source(file("a", 0, 12));
  sources[0].weight = "0.75";
  sources.push_back({});
  sources[1].files.push_back(file("b", 60, 6));
  sources[1].weight = "0.25";
  Expected<TokenRows> data = TokenRows::open(plan, std::move(sources), {}, notes);
  ASSERT_TRUE(data.ok()) << data.status().text();
  EXPECT_EQ(data->count(), 3); // 6 rows
  std::vector<int64_t> rows;
  for (int64_t step = 0; step < 6; ++step)
    for (int64_t first : firsts(*data, step))
      rows.push_back(first);
  EXPECT_THAT(rows, ElementsAre(0, 60, 3, 6, 9, 63, 0, 3, 6, 60, 9, 0));
}

// What is read ahead is what a step takes, also where a step is not the next one.
TEST_F(TokenRowsTest, ReadAhead) {
  const TokenRows data = std::move(*TokenRows::open(plan, source(file("a", 0, 60)), {}, notes));
  ReadAhead ahead(data);
  std::vector<Array> inputs(4);
  inputs[1] = Array::zeros(DType::F64, {});
  for (int64_t step : {0, 1, 2, 7, 3}) {
    ASSERT_TRUE(ahead.take(step, inputs).ok());
    EXPECT_EQ(inputs[0].as<int64_t>()[0], step * 6);
    EXPECT_EQ(inputs[1].elements(), 1);
  }
}

TEST_F(TokenRowsTest, Errors) {
  auto error = [&](std::vector<TokenSource> sources, const RowOptions &options) {
    Expected<TokenRows> data = TokenRows::open(plan, std::move(sources), options, notes);
    return data.ok() ? "" : data.status().message();
  };
  RowOptions pad;
  pad.pad = true;
  EXPECT_THAT(error(source(file("a", 0, 2)), {}), HasSubstr("a.npy' has 2 tokens, a row takes 3; give more, compile for less, or give --pad"));
  EXPECT_THAT(error(source(file("a", 0, 9)), pad), HasSubstr("a.npy' does not hold where documents begin, which --pad needs"));
  RowOptions part;
  part.range = {0.9, 1};
  EXPECT_THAT(error(source(file("a", 0, 9)), part), HasSubstr("of 3 rows, --split leaves none for this part"));
  RowOptions drop;
  drop.dropLast = true;
  EXPECT_THAT(error(source(file("a", 0, 3)), drop), HasSubstr("1 row of 3 tokens fill no batch of 2; give more, or leave out --drop-last"));
  plan.inputs[2].lookups[0].ignored.reset();
  EXPECT_THAT(error(source(file("d", 0, 9, {0, 5})), pad), HasSubstr("--pad: the model's loss has no label that does not count"));
  plan.inputs[3].shape = {2, 4};
  EXPECT_THAT(error(source(file("a", 0, 9)), {}), HasSubstr("input 'attention_mask' (2x4 of f32) has another"));
  plan.inputs[3] = {"x", DType::F32, {2, 3}};
  EXPECT_THAT(error(source(file("a", 0, 9)), {}), HasSubstr("input 'x' (2x3 of f32) is another; give an .npz"));
}

} // namespace
