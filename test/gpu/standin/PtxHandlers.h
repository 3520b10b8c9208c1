// The handlers: what an instruction does to the registers of one thread, for every type.
#pragma once

#include "runtime/base/HalfFloat.h"
#include "test/gpu/standin/Ptx.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace standin::ptx {

using hpc::bfloatToFloat, hpc::floatToBfloat, hpc::floatToHalf, hpc::halfToFloat;

/// The 16-bit floats: computed with as f32 and rounded.
struct Half {
  uint16_t bits;
  Half() = default;
  Half(float value) : bits(floatToHalf(value)) {}
  operator float() const { return halfToFloat(bits); }
};
struct BFloat {
  uint16_t bits;
  BFloat() = default;
  BFloat(float value) : bits(floatToBfloat(value)) {}
  operator float() const { return bfloatToFloat(bits); }
};

template <typename T> T get(const Frame &frame, int number) {
  T value;
  std::memcpy(&value, &frame.registers[number], sizeof(T));
  return value;
}
template <typename T> void put(Frame &frame, int number, T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  frame.registers[number] = bits;
}

/// result = Op()(operands...)
template <typename T, typename Op> void unary(Frame &f, const Instruction &i) {
  put<T>(f, i.args[0], T(Op()(get<T>(f, i.args[1]))));
}
template <typename T, typename Op> void binary(Frame &f, const Instruction &i) {
  put<T>(f, i.args[0], T(Op()(get<T>(f, i.args[1]), get<T>(f, i.args[2]))));
}
template <typename T, typename Op> void ternary(Frame &f, const Instruction &i) {
  put<T>(f, i.args[0], T(Op()(get<T>(f, i.args[1]), get<T>(f, i.args[2]), get<T>(f, i.args[3]))));
}
template <typename T>
using WideOf = std::conditional_t<sizeof(T) == 8, __int128, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
template <typename T>
using DoubleOf = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                                    std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
template <typename T> void multiplyWide(Frame &f, const Instruction &i) {
  using D = DoubleOf<T>;
  put<D>(f, i.args[0], D(D(get<T>(f, i.args[1])) * D(get<T>(f, i.args[2]))));
}
template <typename T> void multiplyAddWide(Frame &f, const Instruction &i) {
  using D = DoubleOf<T>;
  using U = std::make_unsigned_t<D>;
  put<U>(f, i.args[0], U(D(get<T>(f, i.args[1])) * D(get<T>(f, i.args[2]))) + get<U>(f, i.args[3]));
}
template <typename T> void multiplyHigh(Frame &f, const Instruction &i) {
  put<T>(f, i.args[0], T(WideOf<T>(get<T>(f, i.args[1])) * WideOf<T>(get<T>(f, i.args[2])) >> (8 * sizeof(T))));
}
template <> inline void multiplyHigh<uint64_t>(Frame &f, const Instruction &i) {
  using U = unsigned __int128;
  put<uint64_t>(f, i.args[0], uint64_t(U(get<uint64_t>(f, i.args[1])) * U(get<uint64_t>(f, i.args[2])) >> 64));
}

#define HPC_OP(NAME, ARGUMENTS, EXPRESSION)                                                                            \
  struct NAME {                                                                                                        \
    template <typename T> auto operator() ARGUMENTS const { return EXPRESSION; }                                       \
  };
HPC_OP(Add, (T a, T b), a + b)
HPC_OP(Subtract, (T a, T b), a - b)
HPC_OP(Multiply, (T a, T b), a *b)
HPC_OP(DivideFloat, (T a, T b), a / b)
HPC_OP(DivideInt, (T a, T b),
       b == 0                                ? T(-1)
       : (std::is_signed_v<T> && b == T(-1)) ? T(0 - std::make_unsigned_t<T>(a))
                                             : T(a / b))
HPC_OP(Remainder, (T a, T b), b == 0 ? a : (std::is_signed_v<T> && b == T(-1)) ? T(0) : T(a % b))
HPC_OP(And, (T a, T b), a &b)
HPC_OP(Or, (T a, T b), a | b)
HPC_OP(Xor, (T a, T b), a ^ b)
HPC_OP(Not, (T a), T(~a))
HPC_OP(NotPredicate, (T a), T((a & 1) ^ 1))
HPC_OP(Negate, (T a), T(0) - a)
HPC_OP(NegateFloat, (T a), -a)
HPC_OP(Same, (T a), a)
HPC_OP(MultiplyAdd, (T a, T b, T c), T(a *b) + c)
HPC_OP(Fused, (T a, T b, T c), std::fma(a, b, c))
HPC_OP(Absolute, (T a), a < 0 ? T(0 - std::make_unsigned_t<T>(a)) : a)
HPC_OP(AbsoluteFloat, (T a), std::fabs(a))
HPC_OP(MaxInt, (T a, T b), std::max(a, b))
HPC_OP(MinInt, (T a, T b), std::min(a, b))
HPC_OP(SquareRoot, (T a), std::sqrt(a))
HPC_OP(InverseRoot, (T a), T(1) / std::sqrt(a))
HPC_OP(Inverse, (T a), T(1) / a)
HPC_OP(Exp2, (T a), std::exp2(a))
HPC_OP(Log2, (T a), std::log2(a))
HPC_OP(Sine, (T a), std::sin(a))
HPC_OP(Cosine, (T a), std::cos(a))
HPC_OP(HyperbolicTangent, (T a), std::tanh(a))
HPC_OP(CopySign, (T a, T b), std::copysign(b, a)) // the sign of the first
HPC_OP(CountOnes, (T a), T(__builtin_popcountll(a)))
#undef HPC_OP

/// Of two numbers the larger one; of two zeros the one with the wanted sign; NaN if both are, or one under `Nan`.
template <bool IsMax, bool Nan> struct Extreme {
  template <typename T> T operator()(T a, T b) const {
    if (std::isnan(float(a)) || std::isnan(float(b)))
      return Nan || (std::isnan(float(a)) && std::isnan(float(b))) ? T(std::numeric_limits<float>::quiet_NaN())
             : std::isnan(float(a))                                ? b
                                                                   : a;
    if (a == b)
      return std::signbit(float(a)) == IsMax ? b : a;
    return (a < b) == IsMax ? b : a;
  }
};

/// A shift by more than the width gives what shifting bit by bit would.
template <typename T, bool IsLeft> void shift(Frame &f, const Instruction &i) {
  const T value = get<T>(f, i.args[1]);
  const uint32_t by = get<uint32_t>(f, i.args[2]), width = 8 * sizeof(T);
  T result;
  if (IsLeft)
    result = by >= width ? T(0) : T(std::make_unsigned_t<T>(value) << by);
  else
    result = by >= width ? (std::is_signed_v<T> && value < 0 ? T(-1) : T(0)) : T(value >> by);
  put<T>(f, i.args[0], result);
}
/// shf: the upper or lower half of two words that are shifted together.
template <bool IsLeft, bool Wraps> void funnel(Frame &f, const Instruction &i) {
  const uint64_t both = get<uint32_t>(f, i.args[1]) | uint64_t(get<uint32_t>(f, i.args[2])) << 32;
  uint32_t by = get<uint32_t>(f, i.args[3]);
  by = Wraps ? by & 31 : std::min(by, 32u);
  put<uint32_t>(f, i.args[0], uint32_t(IsLeft ? both << by >> 32 : both >> by));
}
template <typename T> void select(Frame &f, const Instruction &i) {
  put<T>(f, i.args[0], f.registers[i.args[3]] & 1 ? get<T>(f, i.args[1]) : get<T>(f, i.args[2]));
}
template <typename T> void extractBits(Frame &f, const Instruction &i) {
  const uint32_t from = get<uint32_t>(f, i.args[2]) & 255, length = get<uint32_t>(f, i.args[3]) & 255;
  constexpr uint32_t width = 8 * sizeof(T);
  const T value = get<T>(f, i.args[1]);
  T result = from >= width ? (std::is_signed_v<T> && value < 0 ? T(-1) : T(0)) : T(value >> from);
  if (length < width) {
    using U = std::make_unsigned_t<T>;
    result = length == 0 ? T(0) : T(U(result) << (width - length)) >> (width - length);
  }
  put<T>(f, i.args[0], result);
}
template <typename T> void insertBits(Frame &f, const Instruction &i) {
  const uint32_t at = get<uint32_t>(f, i.args[3]) & 255, length = get<uint32_t>(f, i.args[4]) & 255;
  constexpr uint32_t width = 8 * sizeof(T);
  T mask = length >= width ? T(~T(0)) : T((T(1) << length) - 1);
  mask = at >= width ? T(0) : T(mask << at);
  const T value = at >= width ? T(0) : T(get<T>(f, i.args[1]) << at);
  put<T>(f, i.args[0], T((value & mask) | (get<T>(f, i.args[2]) & ~mask)));
}
inline void permuteBytes(Frame &f, const Instruction &i) {
  const uint64_t both = get<uint32_t>(f, i.args[1]) | uint64_t(get<uint32_t>(f, i.args[2])) << 32;
  const uint32_t selector = get<uint32_t>(f, i.args[3]);
  uint32_t result = 0;
  for (int byte = 0; byte < 4; ++byte) {
    const uint32_t nibble = selector >> (4 * byte) & 15;
    uint32_t value = uint32_t(both >> (8 * (nibble & 7))) & 255;
    if (nibble & 8)
      value = value & 128 ? 255 : 0;
    result |= value << (8 * byte);
  }
  put<uint32_t>(f, i.args[0], result);
}
inline void logic3(Frame &f, const Instruction &i) {
  const uint32_t a = get<uint32_t>(f, i.args[1]), b = get<uint32_t>(f, i.args[2]), c = get<uint32_t>(f, i.args[3]),
                 table = get<uint32_t>(f, i.args[4]);
  uint32_t result = 0;
  for (int bit = 0; bit < 32; ++bit)
    result |= (table >> ((a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1)) & 1) << bit;
  put<uint32_t>(f, i.args[0], result);
}
template <typename T> void countLeadingZeros(Frame &f, const Instruction &i) {
  const T value = get<T>(f, i.args[1]);
  put<uint32_t>(f, i.args[0],
                value == 0       ? uint32_t(8 * sizeof(T))
                : sizeof(T) == 8 ? uint32_t(__builtin_clzll(value))
                                 : uint32_t(__builtin_clz(uint32_t(value))));
}
template <typename T> void reverseBits(Frame &f, const Instruction &i) {
  T value = get<T>(f, i.args[1]), result = 0;
  for (size_t bit = 0; bit < 8 * sizeof(T); ++bit)
    result = T(result | T(value >> bit & 1) << (8 * sizeof(T) - 1 - bit));
  put<T>(f, i.args[0], result);
}

/// `mov`, whatever the type: registers hold bits.
inline void moveBits(Frame &f, const Instruction &i) { f.registers[i.args[0]] = f.registers[i.args[1]]; }
template <int ElementBytes> void pack(Frame &f, const Instruction &i) {
  uint64_t result = 0;
  const uint64_t mask = (uint64_t(1) << (8 * ElementBytes)) - 1;
  for (size_t part = 1; part < i.args.size(); ++part)
    result |= (f.registers[i.args[part]] & mask) << (8 * ElementBytes * (part - 1));
  f.registers[i.args[0]] = result;
}
template <int ElementBytes> void unpack(Frame &f, const Instruction &i) {
  const uint64_t value = f.registers[i.args.back()], mask = (uint64_t(1) << (8 * ElementBytes)) - 1;
  for (size_t part = 0; part + 1 < i.args.size(); ++part)
    f.registers[i.args[part]] = value >> (8 * ElementBytes * part) & mask;
}

/// Narrow loads fill a wider register by the sign of their type. Vectors are one access.
template <typename T> void load(Frame &f, const Instruction &i) {
  const size_t count = i.args.size() - 1;
  const std::byte *data = address(f, i, f.registers[i.args.back()] + uint64_t(i.offset), count * sizeof(T), false);
  for (size_t n = 0; data && n < count; ++n) {
    T value;
    std::memcpy(&value, data + n * sizeof(T), sizeof(T));
    put<uint64_t>(f, i.args[n], uint64_t(value));
  }
}
template <typename T> void store(Frame &f, const Instruction &i) {
  const size_t count = i.args.size() - 1;
  std::byte *data = address(f, i, f.registers[i.args[0]] + uint64_t(i.offset), count * sizeof(T), true);
  for (size_t n = 0; data && n < count; ++n)
    std::memcpy(data + n * sizeof(T), &f.registers[i.args[n + 1]], sizeof(T));
}

enum Type : uint8_t { S8, U8, S16, U16, S32, U32, S64, U64, F16, BF16, F32, F64, Pred, NumTypes };

inline int typeOf(const std::string &name) {
  static const char *const names[] = {"s8",  "u8",  "s16",  "u16", "s32", "u32", "s64",
                                      "u64", "f16", "bf16", "f32", "f64", "pred"};
  for (int i = 0; i < NumTypes; ++i)
    if (name == names[i])
      return i;
  static const char *const bits[] = {"b8", "b16", "b32", "b64"};
  for (int i = 0; i < 4; ++i)
    if (name == bits[i])
      return 2 * i + 1;
  return -1;
}
inline bool isFloatType(int type) { return type >= F16 && type <= F64; }

/// Calls f with a value of the C++ type.
template <typename F> auto withType(int type, F f) {
  switch (type) {
  case S8:
    return f(int8_t());
  case U8:
  case Pred:
    return f(uint8_t());
  case S16:
    return f(int16_t());
  case U16:
    return f(uint16_t());
  case S32:
    return f(int32_t());
  case U32:
    return f(uint32_t());
  case S64:
    return f(int64_t());
  case F16:
    return f(Half());
  case BF16:
    return f(BFloat());
  case F32:
    return f(float());
  case F64:
    return f(double());
  default:
    return f(uint64_t());
  }
}

enum How : uint8_t { AsIs, ToNearest, ToZero, Down, Up };

inline double rounded(double value, uint8_t how) {
  return how == ToNearest ? std::nearbyint(value)
         : how == Down    ? std::floor(value)
         : how == Up      ? std::ceil(value)
         : how == ToZero  ? std::trunc(value)
                          : value;
}

inline void convert(Frame &f, const Instruction &i) {
  withType(i.from, [&](auto from) {
    using From = decltype(from);
    const From value = get<From>(f, i.args[1]);
    withType(i.to, [&](auto to) {
      using To = decltype(to);
      if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
        To result = To(value);
        if (i.saturates) {
          const __int128 wide = value, least = std::numeric_limits<To>::min(), most = std::numeric_limits<To>::max();
          result = To(std::clamp(wide, least, most));
        }
        // A wider register is filled by the sign of the type.
        put<uint64_t>(f, i.args[0], uint64_t(result));
      } else if constexpr (std::is_integral_v<To>) { // out of range: the nearest; NaN: 0
        const double wide =
            rounded(double(float(value)) == double(value) ? double(float(value)) : double(value), i.how);
        To result = std::isnan(wide)                                 ? To(0)
                    : wide <= double(std::numeric_limits<To>::min()) ? std::numeric_limits<To>::min()
                    : wide >= double(std::numeric_limits<To>::max()) ? std::numeric_limits<To>::max()
                                                                     : To(wide);
        put<uint64_t>(f, i.args[0], uint64_t(result));
      } else if constexpr (std::is_same_v<To, double>) {
        put<double>(f, i.args[0], rounded(double(value), i.how));
      } else if constexpr (std::is_same_v<From, double> || std::is_integral_v<From>) {
        float narrow = float(value);
        put<To>(f, i.args[0], To(narrow));
      } else {
        float result = i.how == AsIs ? float(value) : float(rounded(double(float(value)), i.how));
        if (i.saturates)
          result = std::isnan(result) ? 0 : std::clamp(result, 0.0f, 1.0f);
        put<To>(f, i.args[0], To(result));
      }
    });
  });
}
/// cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
template <typename T> void convertPair(Frame &f, const Instruction &i) {
  const T high(get<float>(f, i.args[1])), low(get<float>(f, i.args[2]));
  put<uint32_t>(f, i.args[0], uint32_t(high.bits) << 16 | low.bits);
}

inline constexpr const char *comparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge", "equ", "neu", "ltu",
                                              "leu", "gtu", "geu", "num", "nan", "lo", "ls",  "hi",  "hs"};
template <typename T> bool compare(T a, T b, uint8_t how) {
  bool unordered = false;
  if constexpr (!std::is_integral_v<T>)
    unordered = std::isnan(double(a)) || std::isnan(double(b));
  switch (how) {
  case 0:
    return !unordered && a == b;
  case 1:
    return !unordered && a != b;
  case 2:
  case 14:
    return a < b;
  case 3:
  case 15:
    return a <= b;
  case 4:
  case 16:
    return a > b;
  case 5:
  case 17:
    return a >= b;
  case 6:
    return unordered || a == b;
  case 7:
    return unordered || a != b;
  case 8:
    return unordered || a < b;
  case 9:
    return unordered || a <= b;
  case 10:
    return unordered || a > b;
  case 11:
    return unordered || a >= b;
  case 12:
    return !unordered;
  default:
    return unordered;
  }
}
/// `to`: 0 plain; 1 and, 2 or, 3 xor with a further predicate.
inline void setPredicate(Frame &f, const Instruction &i) {
  const size_t first = i.to == 0 ? i.args.size() - 2 : i.args.size() - 3;
  bool result = withType(i.from, [&](auto type) {
    using T = decltype(type);
    return compare<T>(get<T>(f, i.args[first]), get<T>(f, i.args[first + 1]), i.how);
  });
  const bool other = i.to != 0 && f.registers[i.args.back()] & 1;
  auto combine = [&](bool value) {
    return i.to == 1 ? value && other : i.to == 2 ? value || other : i.to == 3 ? value != other : value;
  };
  f.registers[i.args[0]] = combine(result);
  if (first == 2)
    f.registers[i.args[1]] = combine(!result);
}

} // namespace standin::ptx
