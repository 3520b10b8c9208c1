// .npy and .npz: round trips of every type, what NumPy writes, and files that are broken in every place.
#include "runtime/base/Npz.h"
#include "runtime/base/Zip.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

using namespace hpc;
using testing::HasSubstr;

namespace {

Array counting(DType dtype, std::vector<int64_t> shape) {
  Array array = Array::zeros(dtype, std::move(shape));
  for (size_t i = 0; i < array.data.size(); ++i)
    array.data[i] = std::byte(i * 37 + 11);
  return array;
}

void expectEqual(const Array &actual, const Array &expected) {
  EXPECT_EQ(actual.dtype, expected.dtype);
  EXPECT_EQ(actual.shape, expected.shape);
  EXPECT_EQ(actual.data, expected.data);
}

std::string npy(const std::string &dict, const std::string &data, int version = 1) {
  std::string file("\x93NUMPY", 6);
  file += char(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    file += char(dict.size() >> (8 * i) & 255);
  return file + dict + data;
}

/// An archive of one member whose content is `content`, deflated.
std::string deflatedZip(const std::string &name, const std::string &content, uint32_t statedBytes) {
  std::string packed(content.size() + 100, '\0');
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(content.data()));
  stream.avail_in = uInt(content.size());
  stream.next_out = reinterpret_cast<Bytef *>(packed.data());
  stream.avail_out = uInt(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  auto number = [](uint64_t value, int width) {
    std::string bytes;
    for (int i = 0; i < width; ++i)
      bytes += char(value >> (8 * i) & 255);
    return bytes;
  };
  uint32_t sum = uint32_t(crc32_z(0, reinterpret_cast<const Bytef *>(content.data()), content.size()));
  std::string common = number(20, 2) + number(0, 2) + number(8, 2) + number(0, 4) + number(sum, 4) +
                       number(packed.size(), 4) + number(statedBytes, 4) + number(name.size(), 2) + number(0, 2);
  std::string local = number(0x04034b50, 4) + common + name + packed;
  std::string entry = number(0x02014b50, 4) + number(20, 2) + common + number(0, 2 + 2 + 2 + 4 + 4) + name;
  return local + entry + number(0x06054b50, 4) + number(0, 4) + number(1, 2) + number(1, 2) + number(entry.size(), 4) +
         number(local.size(), 4) + number(0, 2);
}

} // namespace

TEST(Npz, EveryTypeAndShapeComesBack) {
  TemporaryFolder folder;
  NamedArrays arrays;
  for (int t = 0; t < numDTypes; ++t)
    for (const std::vector<int64_t> &shape :
         std::vector<std::vector<int64_t>>{{}, {0}, {1}, {7}, {2, 3}, {2, 0, 3}, {2, 3, 4, 5}})
      arrays.emplace_back(std::string(name(DType(t))) + "/" + shapeText(shape), counting(DType(t), shape));
  std::string path = folder / "a.npz";
  ASSERT_TRUE(writeNpz(path, arrays).ok());
  Expected<NamedArrays> read = readNpz(path);
  ASSERT_TRUE(read.ok()) << read.status().text();
  ASSERT_EQ(read->size(), arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ((*read)[i].first, arrays[i].first);
    expectEqual((*read)[i].second, arrays[i].second);
  }
  std::string first = TemporaryFolder::read(path);
  ASSERT_TRUE(writeNpz(path, arrays).ok());
  EXPECT_EQ(TemporaryFolder::read(path), first);
}

TEST(Npz, NoArraysAtAll) {
  TemporaryFolder folder;
  ASSERT_TRUE(writeNpz(folder / "a.npz", {}).ok());
  Expected<NamedArrays> read = readNpz(folder / "a.npz");
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_TRUE(read->empty());
}

TEST(Npy, RoundTrip) {
  TemporaryFolder folder;
  Array array = counting(DType::I64, {3, 5});
  ASSERT_TRUE(writeNpy(folder / "a.npy", array).ok());
  Expected<Array> read = readNpy(folder / "a.npy");
  ASSERT_TRUE(read.ok()) << read.status().text();
  expectEqual(*read, array);
}

TEST(Npy, HeaderIsAsNumpyWritesIt) {
  // np.save(f, np.zeros((2, 3), np.float32)) of NumPy 1.24.
  EXPECT_EQ(npyHeader(Array::zeros(DType::F32, {2, 3})),
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" + std::string(58, ' ') + "\n", ""));
  EXPECT_THAT(npyHeader(Array::zeros(DType::Bool, {2})), HasSubstr("'|b1', 'fortran_order': False, 'shape': (2,), }"));
  EXPECT_THAT(npyHeader(Array::zeros(DType::F64, {})), HasSubstr("'shape': (), }"));
}

TEST(Npy, VersionsAndSpellings) {
  for (int version : {1, 2, 3}) {
    Expected<Array> read = parseNpy(npy("{\"shape\":(2,),'fortran_order':False,'descr':'|u1'}\n", "ab", version), "x");
    ASSERT_TRUE(read.ok()) << read.status().text();
    EXPECT_EQ(read->shape, (std::vector<int64_t>{2}));
  }
}

TEST(Npy, FortranOrderIsConverted) {
  // Elements 0..5 of a 2x3 array, column by column.
  Expected<Array> read =
      parseNpy(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", std::string("\0\3\1\4\2\5", 6)), "x");
  ASSERT_TRUE(read.ok()) << read.status().text();
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(read->data[size_t(i)], std::byte(i));
  Expected<Array> empty = parseNpy(npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 0), }", ""), "x");
  EXPECT_TRUE(empty.ok());
}

TEST(Npy, RefusesWithTheReason) {
  auto message = [](const std::string &file) { return parseNpy(file, "'in.npz': 'x'").status().message(); };
  auto dict = [](const std::string &descr, const std::string &shape) {
    return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
  };
  EXPECT_THAT(message("hello"), HasSubstr("'in.npz': 'x': is not a .npy array"));
  EXPECT_THAT(message(npy(dict("'>f4'", "(1,)"), "abcd")), HasSubstr("big-endian"));
  EXPECT_THAT(message(npy(dict("'<c8'", "(1,)"), "abcdefgh")), HasSubstr("element type '<c8'"));
  EXPECT_THAT(message(npy(dict("[('a', '<f4')]", "(1,)"), "abcd")), HasSubstr("structured"));
  EXPECT_THAT(message(npy(dict("'|O'", "(1,)"), "abcd")), HasSubstr("not supported"));
  EXPECT_THAT(message(npy(dict("'<f4'", "(2,)"), "abcd")), HasSubstr("has 4 bytes of data"));
  EXPECT_THAT(message(npy(dict("'<f4'", "(4611686018427387904, 4)"), "")), HasSubstr("shape"));
  EXPECT_THAT(message(npy(dict("'<f4'", "(99999999999999999999,)"), "")), HasSubstr("'shape'"));
  EXPECT_THAT(message(npy(dict("'<f4'", "(-1,)"), "")), HasSubstr("'shape'"));
  EXPECT_THAT(message(npy("{}", "")), HasSubstr("lacks descr"));
  EXPECT_THAT(message(npy("{'descr': '<f4', 'descr': '<f4'}", "")), HasSubstr("repeated"));
  EXPECT_THAT(message(npy(dict("'<f4'", "(1,)"), "abcd", 9)), HasSubstr("version 9"));
}

TEST(Npz, ReadsDeflatedMembers) {
  std::string content = npyHeader(Array::zeros(DType::F32, {1000})) + std::string(4000, '\0');
  Expected<NamedArrays> read = parseNpz(deflatedZip("x.npy", content, uint32_t(content.size())), "a.npz");
  ASSERT_TRUE(read.ok()) << read.status().text();
  expectEqual((*read)[0].second, Array::zeros(DType::F32, {1000}));
}

TEST(Npz, BelievesNoSize) {
  std::string content = npyHeader(Array::zeros(DType::F32, {1000})) + std::string(4000, '\0');
  // A bomb that states 4 GiB must be refused before memory is taken.
  for (uint32_t stated : {0u, 1u, uint32_t(content.size()) - 1, uint32_t(content.size()) + 1, 0xfffffffeu})
    EXPECT_THAT(parseNpz(deflatedZip("x.npy", content, stated), "a.npz").status().message(),
                HasSubstr("'a.npz': 'x.npy' cannot be inflated"))
        << stated;
}

TEST(Npz, SkipsOtherMembersAndRefusesDuplicates) {
  TemporaryFolder folder;
  std::string content = npyHeader(Array::zeros(DType::F32, {})) + std::string(4, '\0');
  auto write = [&](const std::vector<std::string> &names) {
    Expected<AtomicFile> file = AtomicFile::create(folder / "a.npz");
    ZipWriter zip(*file);
    for (const std::string &name : names)
      EXPECT_TRUE(zip.add(name, content, "").ok());
    EXPECT_TRUE(zip.finish().ok());
    EXPECT_TRUE(file->commit().ok());
    return readNpz(folder / "a.npz");
  };
  Expected<NamedArrays> read = write({"readme.txt", "x.npy", ".npy"});
  ASSERT_TRUE(read.ok()) << read.status().text();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ((*read)[0].first, "x");
  EXPECT_THAT(write({"x.npy", "x.npy"}).status().message(), HasSubstr("two arrays named 'x'"));
}

/// Members that share their bytes: a small file that would become arrays without end.
TEST(Npz, MembersThatOverlapAreRefused) {
  TemporaryFolder folder;
  ASSERT_TRUE(writeNpz(folder / "a.npz", {{"x", counting(DType::F32, {3})}, {"y", counting(DType::F32, {3})}}).ok());
  std::string file = TemporaryFolder::read(folder / "a.npz");
  size_t second = file.rfind("y.npy"); // its name in the directory; the four bytes before it say where it lies
  for (uint32_t offset : {0u, 1u, 30u, 60u}) {
    std::memcpy(file.data() + second - 4, &offset, 4);
    EXPECT_THAT(parseNpz(file, "a.npz").status().message(), HasSubstr("overlap in the file")) << offset;
  }
}

/// What nobody asked for costs nothing, however large it says it is or how damaged; what is larger than asked for is not unpacked.
TEST(Npz, OnlyWhatIsWantedIsUnpacked) {
  std::string content = npyHeader(Array::zeros(DType::F32, {1000})) + std::string(4000, '\0');
  std::string damaged = deflatedZip("x.npy", content, 0xfffffffe);
  Expected<NamedArrays> none = parseNpz(damaged, "a.npz", [](const std::string &) { return std::nullopt; });
  ASSERT_TRUE(none.ok()) << none.status().text();
  EXPECT_TRUE(none->empty());
  auto read = [&](int64_t most) {
    return parseNpz(deflatedZip("x.npy", content, uint32_t(content.size())), "a.npz",
                    [&](const std::string &name) { return name == "x" ? std::optional(most) : std::nullopt; });
  };
  EXPECT_TRUE(read(int64_t(content.size())).ok());
  EXPECT_EQ(read(int64_t(content.size()) - 1).status().message(),
            "'a.npz': array 'x' takes " + std::to_string(content.size()) + " bytes when it is unpacked, where at most " +
                std::to_string(content.size() - 1) + " are expected");
}

TEST(Npz, EveryTruncationIsAnError) {
  TemporaryFolder folder;
  ASSERT_TRUE(
      writeNpz(folder / "a.npz", {{"x", counting(DType::F32, {3})}, {"yy", counting(DType::I64, {2, 2})}}).ok());
  std::string file = TemporaryFolder::read(folder / "a.npz");
  for (size_t length = 0; length < file.size(); ++length) {
    Expected<NamedArrays> read = parseNpz(std::string_view(file).substr(0, length), "a.npz");
    ASSERT_FALSE(read.ok()) << length;
    EXPECT_THAT(read.status().message(), HasSubstr("'a.npz'"));
  }
}

TEST(Npz, NoFlippedByteCrashesOrChangesData) {
  TemporaryFolder folder;
  NamedArrays arrays = {{"x", counting(DType::F32, {3})}, {"yy", counting(DType::I64, {2, 2})}};
  ASSERT_TRUE(writeNpz(folder / "a.npz", arrays).ok());
  std::string stored = TemporaryFolder::read(folder / "a.npz");
  std::string content =
      npyHeader(arrays[0].second) + std::string(reinterpret_cast<const char *>(arrays[0].second.data.data()), 12);
  std::string deflated = deflatedZip("x.npy", content, uint32_t(content.size()));
  int64_t refused = 0, tried = 0;
  for (const std::string &good : {stored, deflated})
    for (size_t at = 0; at < good.size(); ++at)
      for (int mask : {0x01, 0x80, 0xff, 0x10}) {
        std::string bad = good;
        bad[at] = char(bad[at] ^ mask);
        Expected<NamedArrays> read = parseNpz(bad, "a.npz");
        ++tried;
        refused += !read.ok();
        // Names and dates carry no checksum; data does.
        for (size_t i = 0; read.ok() && i < read->size(); ++i)
          EXPECT_TRUE((*read)[i].second.data == arrays[0].second.data ||
                      (*read)[i].second.data == arrays[1].second.data)
              << at;
      }
  EXPECT_GT(refused, tried / 2);
}

TEST(Npz, OutputIsWhatNumpyReads) {
  if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0)
    GTEST_SKIP() << "no numpy for /usr/bin/python3";
  TemporaryFolder folder;
  Array array = Array::zeros(DType::F32, {2, 3});
  for (int i = 0; i < 6; ++i)
    array.as<float>()[i] = float(i) / 4;
  ASSERT_TRUE(writeNpz(folder / "a.npz", {{"a.b/c", array}}).ok());
  std::string script = "import numpy as np\na = np.load('" + folder / "a.npz" +
                       "')['a.b/c']\nassert a.dtype == np.float32 and (a == np.arange(6).reshape(2, 3) / 4).all()\n"
                       "np.savez_compressed('" +
                       folder / "b.npz" + "', big=np.asfortranarray(np.arange(6000).reshape(2, 3000)))\n";
  folder.write("check.py", script);
  ASSERT_EQ(std::system(("/usr/bin/python3 " + (folder / "check.py")).c_str()), 0);
  Expected<NamedArrays> back = readNpz(folder / "b.npz");
  ASSERT_TRUE(back.ok()) << back.status().text();
  ASSERT_EQ((*back)[0].second.shape, (std::vector<int64_t>{2, 3000}));
  for (int64_t i = 0; i < 6000; ++i)
    ASSERT_EQ((*back)[0].second.as<int64_t>()[i], i);
}
