// Rounding and conversions of elements: all 16-bit floats, all dtypes through bytes and attributes, and the corner
// cases of casts, against numbers known from IEEE 754 and numpy.
#include "compiler/ElementType.h"
#include "test/unit/compiler/InterpreterFixture.h"

#include <cmath>

using namespace hpc;

namespace {

Tensor ofBits(DType dtype, uint16_t bits) {
  return tensorFromBytes(dtype, {1}, reinterpret_cast<const std::byte *>(&bits));
}
uint16_t bitsOf(const Tensor &tensor) {
  uint16_t bits;
  std::memcpy(&bits, tensorToBytes(tensor).data(), 2);
  return bits;
}

TEST(InterpreterTensor, everySixteenBitFloatSurvivesDecodingAndEncoding) {
  for (DType dtype : {DType::F16, DType::BF16})
    for (unsigned bits = 0; bits < 65536; ++bits) {
      Tensor tensor = ofBits(dtype, uint16_t(bits));
      if (std::isnan(tensor.floats[0])) {
        EXPECT_TRUE(std::isnan(ofBits(dtype, bitsOf(tensor)).floats[0]));
        continue;
      }
      ASSERT_EQ(bitsOf(tensor), bits) << name(dtype);
      ASSERT_EQ(roundTo(dtype, tensor.floats[0]), tensor.floats[0]) << name(dtype) << " " << bits;
    }
}

TEST(InterpreterTensor, halfwayBetweenSixteenBitFloatsGoesToTheEvenOne) {
  for (DType dtype : {DType::F16, DType::BF16})
    for (uint16_t bits = 0; bits < (dtype == DType::F16 ? 0x7bff : 0x7f7f); ++bits) {
      double low = ofBits(dtype, bits).floats[0], high = ofBits(dtype, bits + 1).floats[0];
      double middle = low + (high - low) / 2;
      ASSERT_EQ(roundTo(dtype, middle), bits & 1 ? high : low) << name(dtype) << " " << bits;
      ASSERT_EQ(roundTo(dtype, std::nextafter(middle, INFINITY)), high);
      ASSERT_EQ(roundTo(dtype, std::nextafter(middle, 0)), low);
    }
  EXPECT_EQ(roundTo(DType::F16, 65519.0), 65504.0);
  EXPECT_EQ(roundTo(DType::F16, 65520.0), INFINITY);
  EXPECT_EQ(roundTo(DType::BF16, -1e39), -INFINITY);
  EXPECT_EQ(roundTo(DType::F32, 1e39), INFINITY);
  EXPECT_EQ(roundTo(DType::F32, 0.1), double(0.1f));
}

TEST(InterpreterTensor, floatsBecomeIntegersBySaturation) {
  EXPECT_EQ(convertToInteger(DType::I64, 1e30), INT64_MAX);
  EXPECT_EQ(convertToInteger(DType::I64, -INFINITY), INT64_MIN);
  EXPECT_EQ(convertToInteger(DType::I64, NAN), 0);
  EXPECT_EQ(convertToInteger(DType::I64, 0x1p62), int64_t(1) << 62);
  EXPECT_EQ(convertToInteger(DType::I32, -2147483649.0), INT32_MIN);
  EXPECT_EQ(convertToInteger(DType::I32, 2147483647.9), INT32_MAX);
  EXPECT_EQ(convertToInteger(DType::I8, -1.9), -1);
  EXPECT_EQ(convertToInteger(DType::U8, -1.9), 0);
  EXPECT_EQ(convertToInteger(DType::U8, 300.0), 255);
  EXPECT_EQ(convertToInteger(DType::U64, 0x1p63), INT64_MIN);
  EXPECT_EQ(convertToInteger(DType::U64, 1e30), -1);
  EXPECT_EQ(convertToInteger(DType::Bool, NAN), 1);
  EXPECT_EQ(convertToInteger(DType::Bool, 0.25), 1);
  EXPECT_EQ(convertToInteger(DType::Bool, -0.0), 0);
}

TEST(InterpreterTensor, integersBecomeFloatsWithOneRounding) {
  // 2^53 + 2^29 + 1 lies just above a halfway point of f32: rounding to double first would lose the 1 and go to even.
  int64_t value = (int64_t(1) << 53) + (int64_t(1) << 29) + 1;
  EXPECT_EQ(roundTo(DType::F32, convertToFloat(DType::I64, value, DType::F32)), 0x1p53 + 0x1p30);
  EXPECT_EQ(roundTo(DType::F32, convertToFloat(DType::I64, -value, DType::F32)), -0x1p53 - 0x1p30);
  EXPECT_EQ(convertToFloat(DType::U64, -1, DType::F64), 0x1p64);
  EXPECT_EQ(roundTo(DType::F32, convertToFloat(DType::I64, INT64_MIN, DType::F32)), -0x1p63);
}

TEST(InterpreterTensor, integersWrap) {
  EXPECT_EQ(wrapTo(DType::I8, 200), -56);
  EXPECT_EQ(wrapTo(DType::U8, -1), 255);
  EXPECT_EQ(wrapTo(DType::I32, int64_t(1) << 31), INT32_MIN);
  EXPECT_EQ(wrapTo(DType::U32, -1), 4294967295);
  EXPECT_EQ(wrapTo(DType::Bool, 256), 1);
}

TEST(InterpreterTensor, everyTypeSurvivesBytesAttributesAndArrays) {
  MLIRContext context;
  for (int i = 0; i < numDTypes; ++i) {
    DType dtype = DType(i);
    EXPECT_EQ(dtypeOf(typeOf(dtype, &context)), dtype);
    for (std::vector<double> values :
         {std::vector<double>{0, 1, 1, 0, 1, 1}, {1, 1, 1, 1, 1, 1}, {3, 100, 7, 2, 0, 64}}) {
      if (dtype == DType::Bool && values[0] == 3)
        continue;
      Tensor tensor(dtype, {2, 3});
      for (int j = 0; j < 6; ++j)
        tensor.setNumber(j, values[j]);
      EXPECT_EQ(numbers(tensorFromBytes(dtype, {2, 3}, tensorToBytes(tensor).data())), values) << name(dtype);
      EXPECT_EQ(numbers(tensorFromArray(tensorToArray(tensor))), values) << name(dtype);
      DenseElementsAttr attr = tensorToAttr(tensor, &context);
      EXPECT_EQ(attr.isSplat(), values[0] == 1) << name(dtype);
      Expected<Tensor> back = tensorFromAttr(attr);
      ASSERT_TRUE(back.ok());
      EXPECT_EQ(back->dtype, dtype);
      EXPECT_EQ(back->shape, tensor.shape);
      EXPECT_EQ(numbers(*back), values) << name(dtype);
    }
    Expected<Tensor> empty = tensorFromAttr(tensorToAttr(Tensor(dtype, {0, 3}), &context));
    ASSERT_TRUE(empty.ok());
    EXPECT_EQ(empty->size(), 0);
  }
}

} // namespace
