// Protobuf's wire format by hand: the examples of its documentation, and messages that end too early.
#include "runtime/base/WireFormat.h"

#include <gtest/gtest.h>

using namespace hpc;

namespace {

const std::byte *bytesOf(const std::string &text) { return reinterpret_cast<const std::byte *>(text.data()); }

TEST(WireFormat, VarintsAndZigzag) {
  EXPECT_EQ(wire::varint(1), "\x01");
  EXPECT_EQ(wire::varint(150), "\x96\x01");
  EXPECT_EQ(wire::varint(uint64_t(-2)), std::string("\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  const std::pair<int64_t, uint64_t> pairs[] = {{0, 0},         {-1, 1},          {1, 2},           {-2, 3},
                                                {2147483647, 4294967294}, {-2147483648LL, 4294967295},
                                                {INT64_MAX, UINT64_MAX - 1}, {INT64_MIN, UINT64_MAX}};
  for (auto [number, stored] : pairs) {
    EXPECT_EQ(wire::zigzag(number), stored);
    EXPECT_EQ(wire::fromZigzag(stored), number);
  }
}

// A key or a length that is the last byte, and no content, would else be the end of a whole message.
TEST(WireFormat, NoPrefixOfAFieldIsAMessage) {
  for (const std::string &field : {std::string("\x08\x96\x01"), std::string("\x12\x02tp"), std::string("\x1d\x01\x02\x03\x04"),
                                   std::string("\x21\x01\x02\x03\x04\x05\x06\x07\x08"), std::string("\x82\x01\x01x")})
    for (size_t size = 0; size <= field.size(); ++size) {
      wire::Fields fields(bytesOf(field), 0, int64_t(size));
      wire::Field found;
      EXPECT_EQ(fields.next(found), size == field.size());
      EXPECT_FALSE(fields.next(found));
      EXPECT_EQ(fields.atEnd(), size == 0 || size == field.size()) << size;
    }
  for (const char *run : {"\x96", "\x01\xff", "\xff\xff\xff"}) {
    const std::string text = run;
    wire::Varints numbers(bytesOf(text), 0, int64_t(text.size()));
    for (uint64_t value; numbers.next(value);)
      EXPECT_EQ(value, 1u);
    EXPECT_FALSE(numbers.atEnd()) << text;
  }
}

} // namespace
