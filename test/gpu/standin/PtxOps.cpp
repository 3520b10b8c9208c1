// What each instruction does to the registers of one thread, by opcode and type.
#include "runtime/base/HalfFloat.h"
#include "test/gpu/standin/Ptx.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace standin::ptx {

namespace {

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
template <> void multiplyHigh<uint64_t>(Frame &f, const Instruction &i) {
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
void permuteBytes(Frame &f, const Instruction &i) {
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
void logic3(Frame &f, const Instruction &i) {
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
void moveBits(Frame &f, const Instruction &i) { f.registers[i.args[0]] = f.registers[i.args[1]]; }
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

int typeOf(const std::string &name) {
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
bool isFloatType(int type) { return type >= F16 && type <= F64; }

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

double rounded(double value, uint8_t how) {
  return how == ToNearest ? std::nearbyint(value)
         : how == Down    ? std::floor(value)
         : how == Up      ? std::ceil(value)
         : how == ToZero  ? std::trunc(value)
                          : value;
}

void convert(Frame &f, const Instruction &i) {
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

constexpr const char *comparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge", "equ", "neu", "ltu",
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
void setPredicate(Frame &f, const Instruction &i) {
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

template <typename Op> Handler onFloats(int type) {
  switch (type) {
  case F16:
    return binary<Half, Op>;
  case BF16:
    return binary<BFloat, Op>;
  case F32:
    return binary<float, Op>;
  case F64:
    return binary<double, Op>;
  }
  return nullptr;
}
template <typename Op> Handler onFloats1(int type) {
  return type == F32 ? Handler(unary<float, Op>) : type == F64 ? Handler(unary<double, Op>) : nullptr;
}
/// Integers of 16 bits and more.
template <typename Op> Handler onInts(int type) {
  switch (type) {
  case S16:
    return binary<int16_t, Op>;
  case U16:
    return binary<uint16_t, Op>;
  case S32:
    return binary<int32_t, Op>;
  case U32:
    return binary<uint32_t, Op>;
  case S64:
    return binary<int64_t, Op>;
  case U64:
    return binary<uint64_t, Op>;
  }
  return nullptr;
}
/// Where the sign makes no difference, on unsigned numbers, which may overflow.
template <typename Op> Handler onBits(int type) {
  return type == Pred ? Handler(binary<uint64_t, Op>) : onInts<Op>(type | 1);
}
template <typename Op> Handler onBits1(int type) {
  switch (type | 1) {
  case U16:
    return unary<uint16_t, Op>;
  case U32:
    return unary<uint32_t, Op>;
  case U64:
    return unary<uint64_t, Op>;
  }
  return nullptr;
}
template <typename Op> Handler onBits3(int type) {
  switch (type | 1) {
  case U16:
    return ternary<uint16_t, Op>;
  case U32:
    return ternary<uint32_t, Op>;
  case U64:
    return ternary<uint64_t, Op>;
  }
  return nullptr;
}

} // namespace

bool decode(const std::vector<std::string> &opcode, Instruction &instruction) {
  const std::string &name = opcode[0];
  auto has = [&](const char *part) { return std::find(opcode.begin() + 1, opcode.end(), part) != opcode.end(); };
  const int type = typeOf(opcode.back());
  const bool isFloat = isFloatType(type), isSigned = type >= 0 && type % 2 == 0;
  Handler &handler = instruction.handler;
  if (opcode.back() == "f16x2" || opcode.back() == "bf16x2")
    return false;

  if (name == "mov") {
    const int bytes = type == U32 || type == S32 || type == F32 ? 4 : 8, parts = int(instruction.args.size()) - 1;
    if (has("pack") || has("unpack")) {
      const int element = bytes / std::max(parts, 1);
      handler = has("pack") ? (element == 4   ? pack<4>
                               : element == 2 ? pack<2>
                                              : pack<1>)
                            : (element == 4   ? unpack<4>
                               : element == 2 ? unpack<2>
                                              : unpack<1>);
    } else {
      handler = moveBits;
    }
  } else if (name == "cvta") { // windows: see address(). Offsets in shared and local memory are small numbers
    handler = has("shared")  ? (has("to") ? Handler([](Frame &f, const Instruction &i) {
      f.registers[i.args[0]] = f.registers[i.args[1]] & ~sharedWindow;
    })
                                          : Handler([](Frame &f, const Instruction &i) {
                                             f.registers[i.args[0]] = f.registers[i.args[1]] | sharedWindow;
                                            }))
              : has("local") ? (has("to") ? Handler([](Frame &f, const Instruction &i) {
                  f.registers[i.args[0]] = f.registers[i.args[1]] & ~localWindow;
                })
                                          : Handler([](Frame &f, const Instruction &i) {
                                              f.registers[i.args[0]] = f.registers[i.args[1]] | localWindow;
                                            }))
                             : moveBits;
  } else if (name == "ld" || name == "ldu" || name == "st") {
    const bool isLoad = name != "st";
    switch (isFloat ? (type == F64 ? int(U64) : type == F32 ? int(U32) : int(U16)) : type) {
    case S8:
      handler = isLoad ? load<int8_t> : store<int8_t>;
      break;
    case U8:
      handler = isLoad ? load<uint8_t> : store<uint8_t>;
      break;
    case S16:
      handler = isLoad ? load<int16_t> : store<int16_t>;
      break;
    case U16:
      handler = isLoad ? load<uint16_t> : store<uint16_t>;
      break;
    case S32:
      handler = isLoad ? load<int32_t> : store<int32_t>;
      break;
    case U32:
      handler = isLoad ? load<uint32_t> : store<uint32_t>;
      break;
    case S64:
    case U64:
      handler = isLoad ? load<uint64_t> : store<uint64_t>;
      break;
    }
  } else if (name == "cvt") {
    if (has("f16x2") || has("bf16x2")) {
      handler = has("f16x2") ? convertPair<Half> : convertPair<BFloat>;
      return opcode.back() == "f32";
    }
    const int to = opcode.size() > 2 ? typeOf(opcode[opcode.size() - 2]) : -1;
    if (to < 0 || type < 0)
      return false;
    instruction.to = uint8_t(to);
    instruction.from = uint8_t(type);
    instruction.how = has("rni") ? ToNearest : has("rzi") ? ToZero : has("rmi") ? Down : has("rpi") ? Up : AsIs;
    instruction.saturates = has("sat");
    handler = convert;
  } else if (name == "setp") {
    for (size_t i = 0; i < std::size(comparisons); ++i)
      if (opcode.size() > 1 && opcode[1] == comparisons[i]) {
        instruction.how = uint8_t(i);
        handler = setPredicate;
      }
    instruction.to = has("and") ? 1 : has("or") ? 2 : has("xor") ? 3 : 0;
    instruction.from = uint8_t(type);
    return handler && type >= 0;
  } else if (name == "selp") {
    handler = select<uint64_t>;
  } else if (name == "add") {
    handler = isFloat ? onFloats<Add>(type) : onBits<Add>(type);
  } else if (name == "sub") {
    handler = isFloat ? onFloats<Subtract>(type) : onBits<Subtract>(type);
  } else if (name == "mul" && has("wide")) {
    handler = type == S16   ? multiplyWide<int16_t>
              : type == U16 ? multiplyWide<uint16_t>
              : type == S32 ? multiplyWide<int32_t>
              : type == U32 ? multiplyWide<uint32_t>
                            : nullptr;
  } else if (name == "mul" && has("hi")) {
    handler = type == S32   ? multiplyHigh<int32_t>
              : type == U32 ? multiplyHigh<uint32_t>
              : type == S64 ? multiplyHigh<int64_t>
              : type == U64 ? multiplyHigh<uint64_t>
                            : nullptr;
  } else if (name == "mul") {
    handler = isFloat ? onFloats<Multiply>(type) : type == U16 || type == S16 ? [](Frame &f, const Instruction &i) {
      put<uint16_t>(f, i.args[0], uint16_t(uint32_t(get<uint16_t>(f, i.args[1])) * get<uint16_t>(f, i.args[2])));
    } : onBits<Multiply>(type);
  } else if (name == "mad" && has("wide")) {
    handler = type == S32 ? multiplyAddWide<int32_t> : type == U32 ? multiplyAddWide<uint32_t> : nullptr;
  } else if (name == "mad" && !isFloat) {
    handler = has("lo") ? onBits3<MultiplyAdd>(type) : nullptr;
  } else if (name == "fma" || name == "mad") {
    handler = type == F32 ? ternary<float, Fused> : type == F64 ? ternary<double, Fused> : nullptr;
  } else if (name == "div") {
    handler = isFloat ? onFloats<DivideFloat>(type) : onInts<DivideInt>(type);
  } else if (name == "rem") {
    handler = onInts<Remainder>(type);
  } else if (name == "and") {
    handler = onBits<And>(type);
  } else if (name == "or") {
    handler = onBits<Or>(type);
  } else if (name == "xor") {
    handler = onBits<Xor>(type);
  } else if (name == "not") {
    handler = type == Pred ? unary<uint64_t, NotPredicate> : onBits1<Not>(type);
  } else if (name == "neg") {
    handler = isFloat ? (type == F16    ? unary<Half, NegateFloat>
                         : type == BF16 ? unary<BFloat, NegateFloat>
                                        : onFloats1<NegateFloat>(type))
                      : onBits1<Negate>(type);
  } else if (name == "abs") {
    handler = isFloat       ? onFloats1<AbsoluteFloat>(type)
              : type == S32 ? unary<int32_t, Absolute>
              : type == S64 ? unary<int64_t, Absolute>
              : type == S16 ? unary<int16_t, Absolute>
                            : nullptr;
  } else if (name == "max") {
    handler = !isFloat     ? onInts<MaxInt>(type)
              : has("NaN") ? onFloats<Extreme<true, true>>(type)
                           : onFloats<Extreme<true, false>>(type);
  } else if (name == "min") {
    handler = !isFloat     ? onInts<MinInt>(type)
              : has("NaN") ? onFloats<Extreme<false, true>>(type)
                           : onFloats<Extreme<false, false>>(type);
  } else if (name == "sqrt") {
    handler = onFloats1<SquareRoot>(type);
  } else if (name == "rsqrt") {
    handler = onFloats1<InverseRoot>(type);
  } else if (name == "rcp") {
    handler = onFloats1<Inverse>(type);
  } else if (name == "ex2") {
    handler = onFloats1<Exp2>(type);
  } else if (name == "lg2") {
    handler = onFloats1<Log2>(type);
  } else if (name == "sin") {
    handler = onFloats1<Sine>(type);
  } else if (name == "cos") {
    handler = onFloats1<Cosine>(type);
  } else if (name == "tanh") {
    handler = onFloats1<HyperbolicTangent>(type);
  } else if (name == "copysign") {
    handler = type == F32 ? binary<float, CopySign> : type == F64 ? binary<double, CopySign> : nullptr;
  } else if (name == "shl") {
    handler = (type | 1) == U16   ? shift<uint16_t, true>
              : (type | 1) == U32 ? shift<uint32_t, true>
              : (type | 1) == U64 ? shift<uint64_t, true>
                                  : nullptr;
  } else if (name == "shr") {
    handler = (type | 1) == U16   ? (isSigned ? shift<int16_t, false> : shift<uint16_t, false>)
              : (type | 1) == U32 ? (isSigned ? shift<int32_t, false> : shift<uint32_t, false>)
              : (type | 1) == U64 ? (isSigned ? shift<int64_t, false> : shift<uint64_t, false>)
                                  : nullptr;
  } else if (name == "shf") {
    handler = has("l") ? (has("wrap") ? funnel<true, true> : funnel<true, false>)
                       : (has("wrap") ? funnel<false, true> : funnel<false, false>);
  } else if (name == "bfe") {
    handler = type == S32   ? extractBits<int32_t>
              : type == U32 ? extractBits<uint32_t>
              : type == S64 ? extractBits<int64_t>
              : type == U64 ? extractBits<uint64_t>
                            : nullptr;
  } else if (name == "bfi") {
    handler = type == U32 ? insertBits<uint32_t> : type == U64 ? insertBits<uint64_t> : nullptr;
  } else if (name == "prmt") {
    handler = opcode.size() == 2 ? permuteBytes : nullptr;
  } else if (name == "lop3") {
    handler = logic3;
  } else if (name == "popc") {
    handler = onBits1<CountOnes>(type);
  } else if (name == "clz") {
    handler = type == U32 ? countLeadingZeros<uint32_t> : type == U64 ? countLeadingZeros<uint64_t> : nullptr;
  } else if (name == "brev") {
    handler = type == U32 ? reverseBits<uint32_t> : type == U64 ? reverseBits<uint64_t> : nullptr;
  }
  return handler != nullptr;
}

} // namespace standin::ptx
