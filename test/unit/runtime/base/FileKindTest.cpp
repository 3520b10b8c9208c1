// The kind of a file by its content: each kind by a real beginning, and bytes that only look like one.
#include "runtime/base/FileKind.h"
#include "runtime/base/Npz.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace hpc;

namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (int value : values)
    text += char(value);
  return text;
}

std::string safeTensors(const std::string &header, int64_t length) {
  std::string text;
  for (int i = 0; i < 8; ++i)
    text += char(uint64_t(length) >> (8 * i) & 255);
  return text + header;
}

/// ir_version 8, a graph with the name "g", opset 18.
const std::string model = bytes({8, 8, 0x3a, 3, 0x12, 1, 'g', 0x42, 2, 0x10, 18});

} // namespace

TEST(FileKind, EachByItsContent) {
  TemporaryFolder folder;
  ASSERT_TRUE(writeNpz(folder / "a.npz", {{"x", Array::zeros(DType::F32, {2})}}).ok());
  const std::string npz = TemporaryFolder::read(folder / "a.npz");
  std::string archive = npz; // the same archive with another member, as torch.save writes one
  for (size_t at; (at = archive.find("x.npy")) != archive.npos;)
    archive.replace(at, 5, "/data");
  EXPECT_EQ(fileKindOf(archive), FileKind::Zip);
  const std::pair<FileKind, std::string> cases[] = {
      {FileKind::Empty, ""},
      {FileKind::Npz, npz},
      {FileKind::Zip, npz.substr(0, npz.size() - 5)},
      {FileKind::Npy, "\x93NUMPY\x01"},
      {FileKind::Onnx, model},
      {FileKind::Plan, "\x0a\x08hpc-plan\x10\x02"},
      {FileKind::SafeTensors, safeTensors("{\"a\":1}", 7)},
      {FileKind::SafeTensors, safeTensors("{\"a\":1}", int64_t(1) << 62)}, // its reader says what is wrong
      {FileKind::SafeTensorsIndex, "{\"metadata\": {}, \"weight_map\": {}}"},
      {FileKind::Json, "{\"architectures\": []}"},
      {FileKind::Text, "func.func @main() { return }\n"},
      {FileKind::LfsPointer, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"},
      {FileKind::Executable, "\x7f" "ELF\x02\x01\x01"},
      {FileKind::Pickle, bytes({0x80, 2, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e, 0})},
      {FileKind::Pickle, bytes({0x80, 4, 0x95, 5, 0, 0, '}', '.'})},
      {FileKind::Hdf5, "\x89HDF\r\n\x1a\n" + std::string(8, '\0')},
      {FileKind::Gguf, "GGUF" + bytes({3, 0, 0, 0})}};
  for (const auto &[kind, content] : cases)
    EXPECT_EQ(describe(fileKindOf(content)), describe(kind)) << content.substr(0, 12);
}

// Raw numbers and tokens are of no kind, and so are files that are cut off.
TEST(FileKind, RawBytesAreUnknown) {
  std::string tokens, floats;
  for (int i = 0; i < 4000; ++i) {
    const uint16_t token = uint16_t(i * 40503u % 50257u);
    const float number = float(i % 17) - 8.5f;
    tokens.append(reinterpret_cast<const char *>(&token), 2);
    floats.append(reinterpret_cast<const char *>(&number), 4);
  }
  EXPECT_EQ(fileKindOf(tokens), FileKind::Unknown);
  EXPECT_EQ(fileKindOf(floats), FileKind::Unknown);
  EXPECT_EQ(fileKindOf(model.substr(0, model.size() - 1)), FileKind::Unknown);
  EXPECT_EQ(fileKindOf(model + "\x07\x01"), FileKind::Unknown);
  EXPECT_EQ(fileKindOf(std::string(64, '\0')), FileKind::Unknown);
  EXPECT_EQ(fileKindOf(bytes({0x80, 2, 'K', 1, 0, 7})), FileKind::Unknown); // ends in no stop
}
