// Numbers by which something is looked up: every bad one is found, and none that nobody reads is.
#include "runtime/core/InputCheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using testing::HasSubstr;

namespace {

/// An input of that type and shape that is looked up in the box by numbers from low to high - 1, or -100.
plan::Plan planOf(DType dtype, std::vector<int64_t> shape, std::vector<int64_t> begin, std::vector<int64_t> end,
                  int64_t low, int64_t high) {
  plan::Plan plan;
  plan::Port port;
  port.name = "ids";
  port.dtype = dtype;
  port.shape = std::move(shape);
  port.lookups = {{std::move(begin), std::move(end), low, high, -100, "wte"}};
  plan.inputs = {port};
  return plan;
}

template <typename T> void put(Array &array, int64_t i, int64_t number) { array.as<T>()[i] = T(number); }

// An element that is inside of the box is refused with its position, one outside of it is nobody's business: each of
// every box of a small array.
TEST(InputCheck, EveryElementOfEveryBox) {
  const std::vector<int64_t> shape = {2, 3, 4};
  for (int64_t begin0 : {0, 1})
    for (int64_t begin1 : {0, 2})
      for (int64_t begin2 : {0, 1, 4})
        for (int64_t bad = 0; bad < 24; ++bad) {
          plan::Plan plan = planOf(DType::I64, shape, {begin0, begin1, begin2}, {2, 3, 4}, -5, 5);
          Array array = Array::zeros(DType::I64, shape);
          put<int64_t>(array, bad, 5);
          int64_t i = bad / 12, j = bad / 4 % 3, k = bad % 4;
          Status status = checkInputs(plan, {array});
          EXPECT_EQ(status.ok(), i < begin0 || j < begin1 || k < begin2) << bad;
          if (!status.ok()) {
            EXPECT_EQ(status.kind(), ErrorKind::Usage);
            EXPECT_THAT(status.message(), HasSubstr("input 'ids' has 5 at [" + std::to_string(i) + ", " +
                                                    std::to_string(j) + ", " + std::to_string(k) +
                                                    "]; 'wte' takes -5 to 4, and -100 for none;"));
          }
        }
}

// Both ends of the range, and the number that stands for none.
TEST(InputCheck, Ends) {
  plan::Plan plan = planOf(DType::I32, {1}, {0}, {1}, 0, 7);
  for (auto [number, good] : std::initializer_list<std::pair<int64_t, bool>>{
           {-1, false}, {0, true}, {6, true}, {7, false}, {-100, true}, {-101, false}, {INT32_MAX, false}}) {
    Array array = Array::zeros(DType::I32, {1});
    put<int32_t>(array, 0, number);
    EXPECT_EQ(checkInputs(plan, {array}).ok(), good) << number;
  }
}

// Every type of integers is read as what it holds: 200 is no negative number in u8.
TEST(InputCheck, Types) {
  auto check = [](DType dtype, auto put, int64_t number) {
    Array array = Array::zeros(dtype, {2});
    put(array, 1, number);
    return checkInputs(planOf(dtype, {2}, {0}, {2}, 0, 100), {array}).ok();
  };
  EXPECT_TRUE(check(DType::I8, put<int8_t>, 99) && check(DType::U8, put<uint8_t>, 99));
  EXPECT_TRUE(check(DType::I16, put<int16_t>, 99) && check(DType::U16, put<uint16_t>, 99));
  EXPECT_TRUE(check(DType::U32, put<uint32_t>, 99) && check(DType::U64, put<uint64_t>, 99));
  EXPECT_FALSE(check(DType::I8, put<int8_t>, -1) || check(DType::U8, put<uint8_t>, 200));
  EXPECT_FALSE(check(DType::I16, put<int16_t>, -1) || check(DType::U16, put<uint16_t>, 100));
  EXPECT_FALSE(check(DType::U32, put<uint32_t>, -1) || check(DType::U64, put<uint64_t>, -1));
  EXPECT_FALSE(check(DType::U64, put<uint64_t>, -100)); // 2^64 - 100 is not -100
}

// What i64 cannot hold is told as it is: 9223372036854775807 is in no file of the user's.
TEST(InputCheck, TextOfLargeNumbers) {
  Array array = Array::zeros(DType::U64, {2});
  put<uint64_t>(array, 1, -1);
  EXPECT_THAT(checkInputs(planOf(DType::U64, {2}, {0}, {2}, 0, 100), {array}).message(), HasSubstr("has 18446744073709551615 at [1]"));
}

// A scalar has one element, an empty array none.
TEST(InputCheck, ScalarAndEmpty) {
  Array scalar = Array::zeros(DType::I64, {});
  EXPECT_TRUE(checkInputs(planOf(DType::I64, {}, {}, {}, 0, 3), {scalar}).ok());
  put<int64_t>(scalar, 0, 3);
  EXPECT_THAT(checkInputs(planOf(DType::I64, {}, {}, {}, 0, 3), {scalar}).message(), HasSubstr("has 3 at []"));
  EXPECT_TRUE(checkInputs(planOf(DType::I64, {3, 0}, {0, 0}, {3, 0}, 0, 3), {Array::zeros(DType::I64, {3, 0})}).ok());
}

} // namespace
