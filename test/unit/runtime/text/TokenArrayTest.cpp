// Files of tokens, byte by byte: which format a file is taken for, and what is wrong with one. Files that NumPy writes: test/models/token_rows.py.
#include "runtime/text/TokenArray.h"
#include "runtime/base/Npy.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::text;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

template <typename Number> std::string bytesOf(std::initializer_list<Number> numbers) {
  return {reinterpret_cast<const char *>(numbers.begin()), numbers.size() * sizeof(Number)};
}

struct TokenArrayTest : testing::Test {
  TemporaryFolder folder;
  std::vector<std::string> notes;

  std::string write(const std::string &name, const std::string &content) { return folder.write(name, content); }
  std::vector<int64_t> tokens(const std::string &path, const RawTokens &raw = {}) {
    notes.clear();
    Expected<TokenArray> array = TokenArray::open(path, raw, notes);
    EXPECT_TRUE(array.ok()) << array.status().text();
    std::vector<int64_t> all(size_t(array->size()));
    array->take(0, array->size(), all.data());
    return all;
  }
  std::string error(const std::string &path, const RawTokens &raw = {}) {
    Expected<TokenArray> array = TokenArray::open(path, raw, notes);
    return array.ok() ? "" : array.status().message();
  }
  /// An index of sequences of u16.
  std::string index(std::initializer_list<int32_t> lengths, std::initializer_list<int64_t> places, std::initializer_list<int64_t> bounds, uint8_t type = 8) {
    return std::string("MMIDIDX\0\0", 9) + bytesOf<int64_t>({1}) + char(type) + bytesOf<int64_t>({int64_t(lengths.size()), int64_t(bounds.size())}) +
           bytesOf(lengths) + bytesOf(places) + bytesOf(bounds);
  }
};

// A .bin without a header is never read with the wrong bits without a word.
TEST_F(TokenArrayTest, BitsOfRawTokens) {
  const std::string narrow = write("n.bin", bytesOf<uint16_t>({5, 0, 7, 9})), wide = write("w.bin", bytesOf<uint32_t>({5, 7, 65535}));
  EXPECT_THAT(tokens(narrow), ElementsAre(5, 0, 7, 9));
  EXPECT_TRUE(notes.empty());
  EXPECT_THAT(tokens(wide), ElementsAre(5, 7, 65535));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("w.bin' is read as ids of 32 bits, since of 16 bits every second one would be 0; --bin-bits=16 reads it so")));
  EXPECT_THAT(tokens(wide, {16}), ElementsAre(5, 0, 7, 0, 65535, 0));
  // A vocabulary beyond 16 bits.
  const std::string large = write("l.bin", bytesOf<uint32_t>({70000, 128255}));
  EXPECT_THAT(tokens(large, {0, 128256}), ElementsAre(70000, 128255));
  EXPECT_THAT(error(narrow, {0, 128256}), HasSubstr("n.bin' has no header, and the model takes ids to 128255, which need 32 bits, but as such its numbers are none of them"));
  EXPECT_THAT(error(large, {0, 100000}), HasSubstr("none of them"));
  EXPECT_THAT(error(write("odd.bin", "abc")), HasSubstr("odd.bin' has an odd number of bytes"));
  EXPECT_THAT(error(write("six.bin", "abcdef"), {32}), HasSubstr("has 6 bytes, which are no ids of 32 bits"));
  EXPECT_THAT(tokens(write("s.bin", bytesOf<uint16_t>({1, 2, 3, 4, 0x227B}))), ElementsAre(1, 2, 3, 4, 0x227B)); // as a safetensors file begins
  EXPECT_THAT(tokens(write("named.tokens", bytesOf<uint16_t>({1, 2})), {16}), ElementsAre(1, 2));
}

TEST_F(TokenArrayTest, OtherKinds) {
  EXPECT_THAT(error(write("a.bin", "\x7f" "ELF" + std::string(60, '\0'))), HasSubstr("it is an executable or a library"));
  EXPECT_THAT(error(write("a.bin", std::string("\x80\x02}q\x00.", 6))), HasSubstr("it is a Python pickle, as torch.save writes; a pickle can run any code"));
  EXPECT_THAT(error(write("a.tokens", bytesOf<uint16_t>({1, 2}))), HasSubstr("is neither text (.jsonl, .txt) nor"));
  EXPECT_THAT(error(write("a.bin", "")), HasSubstr("it is empty"));
  EXPECT_THAT(error(folder / "none.bin"), HasSubstr("none.bin"));
  Array two = Array::zeros(DType::I64, {2, 3});
  ASSERT_TRUE(writeNpy(folder / "two.npy", two).ok());
  EXPECT_THAT(error(folder / "two.npy"), HasSubstr("is 2x3 of i64; a stream of tokens is one dim of integers"));
}

TEST_F(TokenArrayTest, LlmC) {
  auto file = [&](std::initializer_list<int32_t> header, const std::string &content) {
    std::string bytes = bytesOf(header);
    bytes.resize(1024);
    return write("c.bin", bytes + content);
  };
  EXPECT_THAT(tokens(file({20240520, 1, 3}, bytesOf<uint16_t>({1, 2, 50256}))), ElementsAre(1, 2, 50256));
  EXPECT_THAT(tokens(file({20240520, 2, 2}, bytesOf<uint32_t>({1, 128255}))), ElementsAre(1, 128255));
  EXPECT_THAT(tokens(file({20240801, 7, 1}, bytesOf<uint32_t>({128000}))), ElementsAre(128000));
  EXPECT_THAT(error(file({20240520, 3, 1}, "ab")), HasSubstr("is a file of llm.c of version 3, which is not known; 1 and 2 are"));
  EXPECT_THAT(error(file({20240520, 1, 3}, "ab")), HasSubstr("has 1026 bytes, and its header says 3 tokens of 2 bytes after 1024"));
  EXPECT_THAT(error(file({20240520, 1, -1}, "ab")), HasSubstr("says -1 tokens"));
}

TEST_F(TokenArrayTest, Megatron) {
  write("m.bin", bytesOf<uint16_t>({1, 2, 3, 4, 5}));
  const std::string path = write("m.idx", index({2, 0, 3}, {0, 4, 4}, {0, 1, 3}));
  for (const std::string &name : {path, folder / "m.bin", folder / "m"})
    EXPECT_THAT(tokens(name), ElementsAre(1, 2, 3, 4, 5));
  Expected<TokenArray> array = TokenArray::open(path, {}, notes);
  ASSERT_TRUE(array.ok() && array->knowsDocuments());
  EXPECT_EQ(array->documents(), 3);
  EXPECT_EQ(array->document(0), std::pair(int64_t(0), int64_t(2)));
  EXPECT_EQ(array->document(2), std::pair(int64_t(2), int64_t(5)));
  EXPECT_THAT(error(write("m.idx", index({2, 4}, {0, 4}, {0, 2}))), HasSubstr("has sequence 1 at byte 4 with 4 tokens of 2 bytes, outside the 10 bytes of"));
  EXPECT_THAT(error(write("m.idx", index({2}, {-2}, {0, 1}))), HasSubstr("outside the 10 bytes"));
  EXPECT_THAT(error(write("m.idx", index({2}, {INT64_MAX}, {0, 1}))), HasSubstr("outside the 10 bytes"));
  EXPECT_THAT(error(write("m.idx", index({2, 2}, {4, 0}, {0, 2}))), HasSubstr("sequences that do not follow each other are not read"));
  EXPECT_THAT(error(write("m.idx", index({2}, {0}, {0, 2}))), HasSubstr("has a document that ends at sequence 2"));
  EXPECT_THAT(error(write("m.idx", index({2}, {0}, {0, 1}, 6))), HasSubstr("names type 6 for its tokens, which is none of integers"));
  EXPECT_THAT(error(write("m.idx", index({2}, {0}, {0, 1}).substr(0, 40))), HasSubstr("has 40 bytes, too few for its 1 sequences and 2 bounds"));
  EXPECT_THAT(error(write("m.idx", index({2}, {0}, {0, 1}).substr(0, 20))), HasSubstr("ends within its header"));
  std::string version = index({2}, {0}, {0, 1});
  version[9] = 2;
  EXPECT_THAT(error(write("m.idx", version)), HasSubstr("is an index of version 2, and 1 is known"));
  EXPECT_THAT(error(write("alone.idx", index({2}, {0}, {0, 1}))), HasSubstr("alone.bin', which cannot be read"));
}

TEST_F(TokenArrayTest, DocumentsBesideAnArray) {
  Array ids = Array::zeros(DType::I32, {4}), starts = Array::zeros(DType::I64, {2});
  ASSERT_TRUE(writeNpy(folder / "a.npy", ids).ok());
  starts.as<int64_t>()[1] = 3;
  ASSERT_TRUE(writeNpy(folder / "a.documents.npy", starts).ok());
  Expected<TokenArray> array = TokenArray::open(folder / "a.npy", {}, notes);
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(array->document(1), std::pair(int64_t(3), int64_t(4)));
  for (int64_t wrong : {int64_t(-1), int64_t(5)}) {
    starts.as<int64_t>()[1] = wrong;
    ASSERT_TRUE(writeNpy(folder / "a.documents.npy", starts).ok());
    EXPECT_THAT(error(folder / "a.npy"), HasSubstr("says that document 1 begins at " + std::to_string(wrong)));
  }
}

// Any damage is an error or harmless: all tokens and documents of a file that opens can be read.
TEST_F(TokenArrayTest, DamageIsFoundOrHarmless) {
  std::string header = bytesOf<int32_t>({20240520, 1, 3});
  header.resize(1024);
  Array ids = Array::zeros(DType::I32, {4});
  const std::string llmC = header + bytesOf<uint16_t>({1, 2, 3}), npy = npyHeader(ids) + bytesOf<int32_t>({1, 2, 3, 4}), idx = index({2, 0, 3}, {0, 4, 4}, {0, 1, 3});
  write("m.bin", bytesOf<uint16_t>({1, 2, 3, 4, 5}));
  int64_t opened = 0;
  auto readAll = [&](const std::string &path) {
    Expected<TokenArray> array = TokenArray::open(path, {}, notes);
    if (!array.ok()) {
      EXPECT_NE(array.status().kind(), ErrorKind::Internal) << array.status().message();
      return;
    }
    ++opened;
    std::vector<int64_t> all(size_t(array->size()));
    array->take(0, array->size(), all.data());
    for (int64_t i = 0, before = 0; i < array->documents(); ++i) {
      const auto [begin, end] = array->document(i);
      EXPECT_TRUE(before <= begin && begin <= end && end <= array->size());
      before = end;
    }
  };
  for (const auto &[name, content] : {std::pair<std::string, const std::string &>("c.bin", llmC), {"a.npy", npy}, {"m.idx", idx}})
    for (size_t at = 0; at < std::min<size_t>(content.size(), 140); ++at) {
      readAll(write(name, content.substr(0, at)));
      for (int flip : {1, 0x80, 0xFF}) {
        std::string damaged = content;
        damaged[at] = char(damaged[at] ^ flip);
        readAll(write(name, damaged));
      }
    }
  EXPECT_GT(opened, 10);
}

// Numbers outside the ids are found where they are; what a file holds tells it apart from another.
TEST_F(TokenArrayTest, FindsAndHashes) {
  std::vector<int32_t> numbers(600000, 5);
  auto open = [&] {
    Array array = Array::zeros(DType::I32, {int64_t(numbers.size())});
    std::copy(numbers.begin(), numbers.end(), array.as<int32_t>());
    EXPECT_TRUE(writeNpy(folder / "f.npy", array).ok());
    return std::move(*TokenArray::open(folder / "f.npy", {}, notes));
  };
  const uint64_t before = open().fingerprint();
  EXPECT_EQ(open().findOutside(0, 6), -1);
  numbers[555555] = -1;
  EXPECT_EQ(open().findOutside(0, 6), 555555);
  numbers[300000] = 6;
  EXPECT_EQ(open().findOutside(0, 6), 300000);
  EXPECT_NE(open().fingerprint(), before);
}

// A large file is read without ever lying in memory as a whole.
TEST_F(TokenArrayTest, StaysInTheFile) {
  auto resident = [] {
    std::string status = TemporaryFolder::read("/proc/self/status");
    return std::stol(status.substr(status.find("VmRSS:") + 6));
  };
  write("t.bin", std::string(size_t(160) << 20, '\1'));
  const long before = resident();
  Expected<TokenArray> array = TokenArray::open(folder / "t.bin", {0, 65536}, notes);
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(array->findOutside(0, 65536), -1);
  array->fingerprint();
  EXPECT_LT(resident() - before, 64 << 10); // KiB
  std::vector<int64_t> row(1024);
  long most = 0;
  for (int64_t i = 0; i < 40000; ++i) {
    array->take(i * 7919 % 80000 * 1000, 1024, row.data());
    if (i % 1000 == 0)
      most = std::max(most, resident() - before);
  }
  EXPECT_LT(most, 64 << 10);
}

} // namespace
