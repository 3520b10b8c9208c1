// What --data may be, and what is refused: each message names the array, what is wrong with it and what would do.
#include "runtime/base/Npy.h"
#include "runtime/base/Npz.h"
#include "runtime/base/Zip.h"
#include "runtime/train/Batches.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <cmath>
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
    Expected<Batches> data = Batches::open(plan, path, {}, notes);
    return data.ok() ? "" : data.status().text();
  }
};

} // namespace

// Step s takes batch s modulo their number; labels that are not given are the ids; 32 bits widen.
TEST_F(BatchesTest, ArchiveCycles) {
  plan::Plan plan = languageModel();
  Expected<Batches> data = Batches::open(
      plan, write({{"ids", counting<int32_t>(DType::I32, {2, 2, 3})}, {"more", counting<float>(DType::F32, {1})}}), {}, notes);
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
      Batches::open(plan, write({{"ids", counting<int64_t>(DType::I64, {2, 3})}, {"labels", labels}}), {}, notes);
  ASSERT_TRUE(data.ok()) << data.status().text();
  std::vector<Array> inputs(3);
  ASSERT_TRUE(data->fill(7, inputs).ok());
  EXPECT_EQ(inputs[2].as<int64_t>()[0], -100);
  EXPECT_EQ(inputs[0].as<int64_t>()[0], 0);
}

// An epoch in another order has every batch once, and the next one is another; the part of a split comes before the order.
TEST_F(BatchesTest, OrderAndRange) {
  plan::Plan plan = languageModel();
  const std::string path = write({{"ids", counting<int32_t>(DType::I32, {10, 2, 3})}});
  Expected<Batches> data = Batches::open(plan, path, {7, {0.5, 1}}, notes);
  ASSERT_TRUE(data.ok()) << data.status().text();
  EXPECT_EQ(data->count(), 5);
  std::vector<Array> inputs(3);
  std::vector<int64_t> order[2];
  for (int64_t step = 0; step < 10; ++step) {
    ASSERT_TRUE(data->fill(step, inputs).ok());
    order[step / 5].push_back(inputs[0].as<int64_t>()[0] / 6);
  }
  EXPECT_THAT(order[0], testing::UnorderedElementsAre(5, 6, 7, 8, 9));
  EXPECT_THAT(order[1], testing::UnorderedElementsAre(5, 6, 7, 8, 9));
  EXPECT_NE(order[0], order[1]);
  EXPECT_THAT(data->summary(), HasSubstr("shuffled by seed 7"));
  EXPECT_NE(data->fingerprint(), Batches::open(plan, path, {8, {0.5, 1}}, notes)->fingerprint());
  EXPECT_THAT(Batches::open(plan, path, {{}, {0.99, 1}}, notes).status().message(), HasSubstr("of 10 batches, --split leaves none for this part"));
}

// What a skipped step is blamed on has to be in its own batch, at that place.
TEST_F(BatchesTest, FindsNumbers) {
  plan::Plan plan;
  plan.inputs = {{"lr", DType::F64, {}, true}, {"x", DType::F32, {2, 3}}, {"y", DType::F16, {2}}};
  Array x = counting<float>(DType::F32, {2, 2, 3}), y = Array::zeros(DType::F16, {2, 2});
  x.as<float>()[6 + 4] = -INFINITY;
  y.as<uint16_t>()[2 + 1] = 0x7e00;
  Expected<Batches> data = Batches::open(plan, write({{"x", x}, {"y", y}}), {}, notes);
  ASSERT_TRUE(data.ok()) << data.status().text();
  auto isNan = [](double number) { return number != number; };
  auto isInfinite = [](double number) { return number == INFINITY || number == -INFINITY; };
  EXPECT_EQ(data->findNumber(0, isNan), "");
  EXPECT_EQ(data->findNumber(0, isInfinite), "");
  EXPECT_EQ(data->findNumber(3, isNan), "input 'y' of its batch holds nan at [1]");
  EXPECT_EQ(data->findNumber(1, isInfinite), "input 'x' of its batch holds -inf at [1, 1]");
}

// Data that differ in their last batch alone are other data.
TEST_F(BatchesTest, FingerprintOfAll) {
  plan::Plan plan;
  plan.inputs = {{"x", DType::F32, {3}}};
  Array x = counting<float>(DType::F32, {4, 3});
  Expected<Batches> first = Batches::open(plan, write({{"x", x}}), {}, notes);
  x.as<float>()[11] = 0;
  Expected<Batches> other = Batches::open(plan, write({{"x", x}}), {}, notes);
  ASSERT_TRUE(first.ok() && other.ok());
  EXPECT_NE(first->fingerprint(), other->fingerprint());
  EXPECT_THAT(first->summary(), testing::MatchesRegex("4 batches of x 3 \\([0-9a-f]+\\)"));
}

// Files are what they hold: an archive and an array under other names, a compressed archive, an array in column order.
TEST_F(BatchesTest, TheContentSaysWhatAFileIs) {
  plan::Plan plan = languageModel();
  const NamedArrays arrays = {{"ids", counting<int32_t>(DType::I32, {2, 2, 3})}};
  ASSERT_TRUE(writeNpz(folder.path + "/archive.bin", arrays).ok());
  Array columns = counting<int32_t>(DType::I32, {2, 2, 3});
  for (int64_t i = 0; i < 12; ++i) // element [b, r, c] at b + 2 r + 4 c
    columns.as<int32_t>()[i % 6 / 3 * 2 + i / 6 + i % 3 * 4] = int32_t(i);
  std::string npy = npyHeader(columns) + std::string(reinterpret_cast<const char *>(columns.data.data()), columns.data.size());
  npy.replace(npy.find("'fortran_order': False"), 22, "'fortran_order': True ");
  {
    Expected<AtomicFile> file = AtomicFile::create(folder.path + "/fortran");
    ZipWriter zip(*file);
    ASSERT_TRUE(zip.add("ids.npy", npy, "").ok() && zip.finish().ok() && file->commit().ok());
  }
  for (const char *name : {"/archive.bin", "/fortran"}) {
    Expected<Batches> data = Batches::open(plan, folder.path + name, {}, notes);
    ASSERT_TRUE(data.ok()) << data.status().text();
    EXPECT_EQ(data->count(), 2) << name;
    std::vector<Array> inputs(3);
    for (int64_t step : {1, 0}) {
      ASSERT_TRUE(data->fill(step, inputs).ok());
      for (size_t input : {0, 2})
        for (int64_t i = 0; i < 6; ++i)
          EXPECT_EQ(inputs[input].as<int64_t>()[i], step * 6 + i) << name;
    }
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
  EXPECT_THAT(error(plan, folder.path + "/none.npz"), HasSubstr("none.npz"));
  plan.inputs = {{"ids", DType::I32, {2}}};
  Array large = Array::zeros(DType::I64, {2});
  large.as<int64_t>()[1] = int64_t(1) << 40;
  EXPECT_THAT(error(plan, write({{"ids", large}})), HasSubstr("1099511627776 does not fit i32"));
  large.as<int64_t>()[1] = -1;
  plan.inputs = {{"ids", DType::I32, {2}}};
  EXPECT_EQ(error(plan, write({{"ids", large}})), "");
}
