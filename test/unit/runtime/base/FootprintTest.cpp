// What a file's structs will weigh, before anybody makes them.
#include "runtime/base/Footprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using testing::HasSubstr;

namespace {

extern const FootprintMessage tree;
const FootprintField treeFields[] = {{1, 1000, &tree}, {2, 16, nullptr, 8}, {4, 64, nullptr, 0, true}};
const FootprintMessage tree(treeFields);

std::string bytes(int field, const std::string &content) {
  return std::string{char(field << 3 | 2), char(content.size())} + content;
}

} // namespace

/// Every field has its price, at every depth; what the table does not know has a price too, and is not looked into.
TEST(Footprint, CountsFieldsAtEveryDepth) {
  EXPECT_EQ(footprintOf("", tree), 0);
  EXPECT_EQ(footprintOf(bytes(1, ""), tree), 1000);
  EXPECT_EQ(footprintOf(bytes(1, bytes(1, "") + bytes(1, "")), tree), 3000);
  EXPECT_EQ(footprintOf(bytes(2, "abc"), tree), 16 + 3 * 8);
  EXPECT_EQ(footprintOf(bytes(3, bytes(1, "")), tree), FootprintMessage::otherField);
  EXPECT_EQ(footprintOf(std::string("\x08\x05", 2) + bytes(1, ""), tree), 2000);
}

/// Bytes that are no message end the count; they end nothing else.
TEST(Footprint, MalformedBytes) {
  for (const std::string &broken : {std::string("\x0a"), std::string("\x0a\x7f"), std::string("\xff\xff\xff"), std::string("\x0b"),
                                    std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), std::string("\x09\x01")})
    EXPECT_EQ(footprintOf(bytes(1, "") + broken, tree) / 1000, 1) << broken.size();
  std::string deep;
  for (int level = 0; level < 60; ++level) // lengths of one byte
    deep = bytes(1, deep);
  EXPECT_EQ(footprintOf(deep, tree), 60 * 1000);
}

/// Small files always pass; of large ones those whose structs would be a multiple of them do not.
TEST(Footprint, RefusesWhatWouldFillTheMemory) {
  std::string pieces;
  for (int64_t i = 0; i < 200'000; ++i)
    pieces += bytes(1, "");
  EXPECT_TRUE(checkFootprint(pieces, tree, ErrorKind::Plan).ok());
  pieces += pieces;
  Status status = checkFootprint(pieces, tree, ErrorKind::Plan);
  EXPECT_EQ(status.kind(), ErrorKind::Plan);
  EXPECT_THAT(status.message(), HasSubstr("its 800000 bytes would become structs of about 381 MiB, over the 268 MiB that a file of "
                                          "this size may take"));
  std::string long3 = std::string("\x1a\x80\x87\xa7\x0e") + std::string(30'000'000, '\1'); // field 3: as many bytes, no fields
  EXPECT_TRUE(checkFootprint(bytes(1, "") + long3, tree, ErrorKind::Plan).ok());
}

/// A name is copied wherever it is used, so one as long as the file would take many times the file.
TEST(Footprint, NamesHaveAnEnd) {
  auto named = [](int64_t size) { return std::string("\x22\x80\x80") + char(size >> 14) + std::string(size_t(size), 'x'); };
  EXPECT_TRUE(checkFootprint(named(longestName), tree, ErrorKind::Model).ok());
  Status status = checkFootprint(named(longestName + 16384), tree, ErrorKind::Model);
  EXPECT_EQ(status.kind(), ErrorKind::Model);
  EXPECT_THAT(status.message(), HasSubstr("a name of 81920 bytes; names of nodes, tensors and ops have at most 65536"));
}
