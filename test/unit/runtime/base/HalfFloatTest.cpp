// All 65,536 values of both 16-bit floats, and what lies between them.
#include "runtime/base/HalfFloat.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

using namespace hpc;

namespace {

struct Format {
  const char *name;
  std::function<float(uint16_t)> widen;
  std::function<uint16_t(float)> narrow;
  int exponentBits, fractionBits;
};

const Format formats[] = {{"f16", halfToFloat, floatToHalf, 5, 10}, {"bf16", bfloatToFloat, floatToBfloat, 8, 7}};

/// The definition, by arithmetic.
double meaning(const Format &format, uint16_t bits) {
  int fraction = bits & ((1 << format.fractionBits) - 1);
  int exponent = bits >> format.fractionBits & ((1 << format.exponentBits) - 1);
  int bias = (1 << (format.exponentBits - 1)) - 1;
  double magnitude = exponent == (1 << format.exponentBits) - 1
                         ? (fraction ? NAN : INFINITY)
                         : std::ldexp(exponent ? fraction + (1 << format.fractionBits) : fraction,
                                      std::max(exponent, 1) - bias - format.fractionBits);
  return bits >> 15 ? -magnitude : magnitude;
}

} // namespace

TEST(HalfFloat, WideningIsExactAndNarrowingGivesItBack) {
  for (const Format &format : formats)
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      double wanted = meaning(format, uint16_t(bits));
      float wide = format.widen(uint16_t(bits));
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(wide)) << format.name << " " << bits;
        ASSERT_TRUE(std::isnan(format.widen(format.narrow(wide)))) << format.name << " " << bits;
      } else {
        ASSERT_EQ(double(wide), wanted) << format.name << " " << bits;
        ASSERT_EQ(format.narrow(wide), bits) << format.name;
      }
    }
}

TEST(HalfFloat, NarrowingTakesTheNearestAndTiesToEven) {
  for (const Format &format : formats) {
    const uint32_t infinity = ((1u << format.exponentBits) - 1) << format.fractionBits;
    for (uint32_t bits = 0; bits < infinity; ++bits) {
      double low = meaning(format, uint16_t(bits));
      // Past the largest number rounding is as if exponents went on.
      double high =
          bits + 1 == infinity ? 2 * low - meaning(format, uint16_t(bits - 1)) : meaning(format, uint16_t(bits + 1));
      if (high > 3.4028235e38) // no f32 in between
        continue;
      float middle = float((low + high) / 2);
      uint32_t even = bits % 2 ? bits + 1 : bits;
      for (uint16_t sign : {0, 0x8000}) {
        float s = sign ? -1.0f : 1.0f;
        ASSERT_EQ(format.narrow(s * middle), sign | even) << format.name << " " << bits;
        ASSERT_EQ(format.narrow(s * std::nextafter(middle, 0.0f)), sign | bits) << format.name << " " << bits;
        ASSERT_EQ(format.narrow(s * std::nextafter(middle, INFINITY)), sign | (bits + 1)) << format.name << " " << bits;
      }
    }
    EXPECT_EQ(format.narrow(INFINITY), infinity);
    EXPECT_EQ(format.narrow(-INFINITY), infinity | 0x8000);
    EXPECT_EQ(format.narrow(3.4e38f), format.exponentBits == 5 ? infinity : format.narrow(3.4e38f));
  }
}
