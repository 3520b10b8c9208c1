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
    notes.clear();
    Expected<Batches> data = Batches::open(plan, path, notes);
    ASSERT_TRUE(data.ok()) << data.status().text();
    EXPECT_THAT(notes, testing::ElementsAre("note: '" + path + "': the last 2 of 20 tokens fill no batch of 2x3 and are left out"));
    EXPECT_EQ(data->count(), 3);
    std::vector<Array> inputs(3);
    ASSERT_TRUE(data->fill(5, inputs).ok());
    EXPECT_EQ(inputs[0].as<int64_t>()[0], 12);
    EXPECT_EQ(inputs[2].as<int64_t>()[5], 17);
  }
}

// A .bin of 32 bits would be read as twice as many tokens, half of them 0, where the vocabulary needs more than 16.
TEST_F(BatchesTest, BinOfALargeVocabulary) {
  plan::Plan plan = languageModel();
  Array tokens = counting<uint16_t>(DType::U16, {12});
  std::string bin = folder.path + "/t.bin";
  ASSERT_TRUE(writeFile(bin, {reinterpret_cast<const char *>(tokens.data.data()), tokens.data.size()}).ok());
  plan.inputs[0].lookups = {{{0, 0}, {2, 3}, 0, 65536, std::nullopt, "wte"}};
  EXPECT_EQ(error(plan, bin), "");
  plan.inputs[0].lookups[0].high = 128256;
  EXPECT_THAT(error(plan, bin), HasSubstr("a .bin holds tokens of 16 bits, and wte takes numbers to 128255 from input 'ids', which need more; give a .npy of 32 bits"));
  plan.inputs[0].lookups.clear(); // the labels' classes alone
  plan.inputs[2].lookups = {{{0, 0}, {2, 3}, 0, 65537, -100, "loss"}};
  EXPECT_THAT(error(plan, bin), HasSubstr("loss takes numbers to 65536 from input 'labels'"));
  ASSERT_TRUE(writeNpy(folder.path + "/t.npy", counting<int32_t>(DType::I32, {12})).ok());
  EXPECT_EQ(error(plan, folder.path + "/t.npy"), "");
}

// What a skipped step is blamed on has to be in its own batch, at that place.
TEST_F(BatchesTest, FindsNumbers) {
  plan::Plan plan;
  plan.inputs = {{"lr", DType::F64, {}, true}, {"x", DType::F32, {2, 3}}, {"y", DType::F16, {2}}};
  Array x = counting<float>(DType::F32, {2, 2, 3}), y = Array::zeros(DType::F16, {2, 2});
  x.as<float>()[6 + 4] = -INFINITY;
  y.as<uint16_t>()[2 + 1] = 0x7e00;
  Expected<Batches> data = Batches::open(plan, write({{"x", x}, {"y", y}}), notes);
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
  Expected<Batches> first = Batches::open(plan, write({{"x", x}}), notes);
  x.as<float>()[11] = 0;
  Expected<Batches> other = Batches::open(plan, write({{"x", x}}), notes);
  ASSERT_TRUE(first.ok() && other.ok());
  EXPECT_NE(first->fingerprint(), other->fingerprint());
  EXPECT_THAT(first->summary(), testing::MatchesRegex("4 batches of x 3 \\([0-9a-f]+\\)"));
}

// Files are what they hold: an archive and an array under other names, a compressed archive, an array in column order.
TEST_F(BatchesTest, TheContentSaysWhatAFileIs) {
  plan::Plan plan = languageModel();
  const NamedArrays arrays = {{"ids", counting<int32_t>(DType::I32, {2, 2, 3})}};
  ASSERT_TRUE(writeNpz(folder.path + "/archive.bin", arrays).ok());
  ASSERT_TRUE(writeNpy(folder.path + "/array.npz", counting<uint16_t>(DType::U16, {12})).ok());
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
  for (const char *name : {"/archive.bin", "/array.npz", "/fortran"}) {
    Expected<Batches> data = Batches::open(plan, folder.path + name, notes);
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
  // A file of another kind is no tokens, whatever it is called.
  auto refused = [&](const std::string &content) {
    EXPECT_TRUE(writeFile(folder.path + "/m.bin", content).ok());
    return error(plan, folder.path + "/m.bin");
  };
  EXPECT_THAT(refused("\x7f" "ELF" + std::string(60, '\0')), HasSubstr("nor .npy or .bin (tokens): it is an executable or a library"));
  EXPECT_THAT(refused(std::string("\x80\x02}q\x00.", 6)), HasSubstr("it is a Python pickle, as torch.save writes; a pickle can run any code"));
}

// A batch is converted when it is taken, so a large file costs no memory of its own: its pages are the file's.
TEST_F(BatchesTest, AStreamStaysInTheFile) {
  auto anonymous = [] {
    std::string status = TemporaryFolder::read("/proc/self/status");
    return std::stol(status.substr(status.find("RssAnon:") + 8));
  };
  plan::Plan plan = languageModel();
  plan.inputs[0].lookups = {{{0, 0}, {2, 3}, 0, 65536, {}, "wte"}}; // all numbers are looked at
  const std::string path = folder.path + "/t.bin";
  {
    std::string tokens(size_t(48) << 20, '\1');
    ASSERT_TRUE(writeFile(path, tokens).ok());
  }
  const long before = anonymous();
  Expected<Batches> data = Batches::open(plan, path, notes);
  ASSERT_TRUE(data.ok()) << data.status().text();
  EXPECT_EQ(data->count(), (int64_t(24) << 20) / 6);
  EXPECT_LT(anonymous() - before, 8 << 10); // KiB; all of it as i64, and labels beside it, were 384 MiB
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
  ASSERT_TRUE(writeFile(folder.path + "/d.txt", "tokens").ok());
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
