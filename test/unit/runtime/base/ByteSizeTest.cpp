// Sizes as people write them, and back.
#include "runtime/base/ByteSize.h"

#include <gtest/gtest.h>

using namespace hpc;

TEST(ByteSize, Reads) {
  for (auto [text, bytes] : {std::pair("1", int64_t(1)), {"500000000", 500'000'000}, {"24GiB", int64_t(24) << 30}, {"5GB", 5'000'000'000}, {"1.5 KiB", 1536}, {"2TB", 2'000'000'000'000}, {"7B", 7}}) {
    Expected<int64_t> read = parseByteSize(text);
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_EQ(*read, bytes) << text;
  }
  for (const char *text : {"", "GiB", "-1", "0", "0.1B", "1.2.3", "5G", "5gb", "1e3", " 5", "5 GB x", "99999999999TiB"})
    EXPECT_FALSE(parseByteSize(text).ok()) << text;
}

TEST(ByteSize, Prints) {
  EXPECT_EQ(byteSizeText(1), "1 byte");
  EXPECT_EQ(byteSizeText(1023), "1023 bytes");
  EXPECT_EQ(byteSizeText(1536), "1.50 KiB");
  EXPECT_EQ(byteSizeText(int64_t(23) << 30), "23.0 GiB");
}
