// What --data may be, and what is refused: each message names the array, what is wrong with it and what would do.
#include "runtime/base/Npy.h"
#include "runtime/base/Npz.h"
#include "runtime/train/Batches.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using testing::HasSubstr;

namespace {

/// ids [2, 3] and labels of that shape, both i64, and a step scalar.
plan::Plan languageModel() {
  plan::Plan plan;
  plan.inputs = {{"ids", DType::I64, {2, 3}}, {"lr", DType::F64, {}, true}, {"labels", DType::I64, {2, 3}}};
  plan.inputs[2].defaultInput = "ids";
  return plan;
}

template <typename T> Array counting(DType dtype, std::vector<int64_t> shape) {
  Array array = Array::zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < array.elements(); ++i)
    array.as<T>()[i] = T(i);
  return array;
}

struct BatchesTest : testing::Test {
  TemporaryFolder folder;
  std::vector<std::string> notes;

  std::string write(const NamedArrays &arrays) {
    std::string path = folder.path + "/d.npz";
    EXPECT_TRUE(writeNpz(path, arrays).ok());
    return path;
  }
  std::string error(const plan::Plan &plan, const std::string &path) {
    Expected<Batches> data = Batches::open(plan, path, notes);
    return data.ok() ? "" : data.status().text();
  }
};

} // namespace

// Step s takes batch s modulo their number; labels that are not given are the ids; 32 bits widen.
TEST_F(BatchesTest, ArchiveCycles) {
  plan::Plan plan = languageModel();
  Expected<Batches> data = Batches::open(
      plan, write({{"ids", counting<int32_t>(DType::I32, {2, 2, 3})}, {"more", counting<float>(DType::F32, {1})}}), notes);
  ASSERT_TRUE(data.ok()) << data.status().text();
  EXPECT_EQ(data->count(), 2);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("'more'"));
  std::vector<Array> inputs(3);
  for (int64_t step : {0, 1, 5}) {
    ASSERT_TRUE(data->fill(step, inputs).ok());
    for (size_t input : {0, 2})
      for (int64_t i = 0; i < 6; ++i)
        EXPECT_EQ(inputs[input].as<int64_t>()[i], step % 2 * 6 + i);
  }
}

// One batch without a dim of batches, and labels of its own.
TEST_F(BatchesTest, OneBatchWithLabels) {
  plan::Plan plan = languageModel();
  Array labels = counting<int64_t>(DType::I64, {2, 3});
  labels.as<int64_t>()[0] = -100;
  Expected<Batches> data =
      Batches::open(plan, write({{"ids", counting<int64_t>(DType::I64, {2, 3})}, {"labels", labels}}), notes);
  ASSERT_TRUE(data.ok()) << data.status().text();
  std::vector<Array> inputs(3);
  ASSERT_TRUE(data->fill(7, inputs).ok());
  EXPECT_EQ(inputs[2].as<int64_t>()[0], -100);
  EXPECT_EQ(inputs[0].as<int64_t>()[0], 0);
}

// 20 tokens make three batches of 2 x 3; the last two tokens are in none.
TEST_F(BatchesTest, Streams) {
  plan::Plan plan = languageModel();
  Array tokens = counting<uint16_t>(DType::U16, {20});
  std::string npy = folder.path + "/t.npy", bin = folder.path + "/t.bin";
  ASSERT_TRUE(writeNpy(npy, tokens).ok());
  ASSERT_TRUE(writeFile(bin, {reinterpret_cast<const char *>(tokens.data.data()), tokens.data.size()}).ok());
  for (const std::string &path : {npy, bin}) {
    Expected<Batches> data = Batches::open(plan, path, notes);
    ASSERT_TRUE(data.ok()) << data.status().text();
    EXPECT_EQ(data->count(), 3);
    std::vector<Array> inputs(3);
    ASSERT_TRUE(data->fill(5, inputs).ok());
    EXPECT_EQ(inputs[0].as<int64_t>()[0], 12);
    EXPECT_EQ(inputs[2].as<int64_t>()[5], 17);
  }
}

TEST_F(BatchesTest, Errors) {
  plan::Plan plan = languageModel();
  EXPECT_THAT(error(plan, write({})), HasSubstr("has no array for input 'ids' (2x3 of i64); add it under that name"));
  EXPECT_THAT(error(plan, write({{"ids", counting<int64_t>(DType::I64, {4, 3})}})),
              HasSubstr("has shape 4x3; the plan was compiled for batches of 2x3"));
  EXPECT_THAT(error(plan, write({{"ids", counting<int64_t>(DType::I64, {0, 2, 3})}})), HasSubstr("has no batch"));
  EXPECT_THAT(error(plan, write({{"ids", counting<int64_t>(DType::I64, {3, 2, 3})},
                                 {"labels", counting<int64_t>(DType::I64, {2, 2, 3})}})),
              HasSubstr("has 2 batches, another array has 3"));
  EXPECT_THAT(error(plan, write({{"ids", counting<float>(DType::F32, {2, 3})}})),
              HasSubstr("is f32, the plan takes i64; convert it"));
  plan::Plan ownLoss = languageModel(); // a graph's own labels are not just any integers of their shape
  ownLoss.inputs[2].defaultInput = "";
  EXPECT_THAT(error(ownLoss, write({{"ids", counting<int64_t>(DType::I64, {2, 3})}})),
              HasSubstr("has no array for input 'labels' (2x3 of i64); add it under that name"));
  EXPECT_THAT(error(plan, folder.path + "/d.txt"), HasSubstr("is neither .npz"));
  EXPECT_THAT(error(plan, folder.path + "/none.npz"), HasSubstr("none.npz"));
  Array few = counting<uint16_t>(DType::U16, {5});
  ASSERT_TRUE(writeNpy(folder.path + "/few.npy", few).ok());
  EXPECT_THAT(error(plan, folder.path + "/few.npy"), HasSubstr("has 5 tokens, a step takes 6 (2x3)"));
  ASSERT_TRUE(writeFile(folder.path + "/odd.bin", "abc").ok());
  EXPECT_THAT(error(plan, folder.path + "/odd.bin"), HasSubstr("odd number of bytes"));
  ASSERT_TRUE(writeNpy(folder.path + "/two.npy", counting<int64_t>(DType::I64, {2, 3})).ok());
  EXPECT_THAT(error(plan, folder.path + "/two.npy"), HasSubstr("a stream of tokens is one dim of integers"));
  plan.inputs.push_back({"mask", DType::F32, {2, 3}});
  ASSERT_TRUE(writeNpy(folder.path + "/t.npy", counting<uint16_t>(DType::U16, {20})).ok());
  EXPECT_THAT(error(plan, folder.path + "/t.npy"), HasSubstr("input 'mask' (2x3 of f32) is another; give an .npz"));
  plan.inputs = {{"ids", DType::I32, {2}}};
  Array large = Array::zeros(DType::I64, {2});
  large.as<int64_t>()[1] = int64_t(1) << 40;
  EXPECT_THAT(error(plan, write({{"ids", large}})), HasSubstr("1099511627776 does not fit i32"));
  large.as<int64_t>()[1] = -1;
  plan.inputs = {{"ids", DType::I32, {2}}};
  EXPECT_EQ(error(plan, write({{"ids", large}})), "");
}
