// Which handler an opcode has, by its name, its modifiers and its type.
#include "test/gpu/standin/PtxHandlers.h"

#include <algorithm>

namespace standin::ptx {

namespace {

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
    handler = type == S16   ? multiplyHigh<int16_t>
              : type == U16 ? multiplyHigh<uint16_t>
              : type == S32 ? multiplyHigh<int32_t>
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
