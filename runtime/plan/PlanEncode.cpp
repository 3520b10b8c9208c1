// Structs to bytes. A message's length stands in front of it, so it is put there when the message is complete.
#include "runtime/base/WireFormat.h"
#include "runtime/plan/PlanBody.h"
#include "runtime/plan/PlanFields.h"

#include <cstring>

namespace hpc::plan {
namespace {

struct Encoder {
  std::string out;

  void key(int number, unsigned type) { wire::appendVarint(uint64_t(number) << 3 | type, out); }
  void varint(int number, uint64_t value) {
    key(number, wire::varintType);
    wire::appendVarint(value, out);
  }
  void fixed(uint64_t value) { out.append(reinterpret_cast<const char *>(&value), sizeof(value)); }
  template <typename Content> void lengthAnd(int number, const Content &content) {
    key(number, wire::bytesType);
    const size_t begin = out.size();
    content();
    out.insert(begin, wire::varint(out.size() - begin));
  }

  static uint64_t stored(bool isZigzag, int64_t value) { return isZigzag ? wire::zigzag(value) : uint64_t(value); }

  void text(int number, const std::string &value) {
    key(number, wire::bytesType);
    wire::appendVarint(value.size(), out);
    out += value;
  }
  template <typename S> void inner(int number, const S &value) {
    if constexpr (std::is_same_v<S, std::string>)
      text(number, value);
    else
      lengthAnd(number, [&] { message(value); });
  }

  template <typename Numbers> void numbers(int number, bool isZigzag, const Numbers &values) {
    if (values.size() == 0)
      return;
    lengthAnd(number, [&] {
      for (auto value : values)
        if constexpr (std::is_same_v<decltype(value), uint64_t>)
          fixed(value);
        else
          wire::appendVarint(stored(isZigzag, value), out);
    });
  }

  template <typename Member, typename S> void put(const Field<Member> &field, const S &from) {
    const auto &value = std::invoke(field.member, from);
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_enum_v<T>) {
      varint(field.number, uint64_t(value) + uint64_t(enumOf<T>.first));
    } else if constexpr (std::is_integral_v<T>) {
      if (value != 0)
        varint(field.number, stored(field.isZigzag, value));
    } else if constexpr (std::is_same_v<T, double>) {
      uint64_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      if (bits != 0) {
        key(field.number, wire::fixedType);
        fixed(bits);
      }
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!value.empty())
        text(field.number, value);
    } else if constexpr (isNumbers<T>) {
      numbers(field.number, field.isZigzag, value);
    } else if constexpr (isList<T>) {
      for (const auto &each : value)
        inner(field.number, each);
    } else if constexpr (std::is_same_v<T, std::optional<int64_t>>) {
      if (value)
        varint(field.number, uint64_t(*value));
    } else if constexpr (isOptional<T>) {
      if (value)
        inner(field.number, *value);
    } else if (!field.isOptional || !isAbsent(value)) {
      inner(field.number, value);
    }
  }
  template <typename T, typename Member, typename S> void put(const Alternative<T, Member> &field, const S &from) {
    if (const T *value = std::get_if<T>(&std::invoke(field.member, from)))
      inner(field.number, *value);
  }
  template <typename S> void put(const Constant &field, const S &) { varint(field.number, field.value); }

  template <typename S> void message(const S &from) {
    forEachField<S>([&](const auto &field, size_t) { put(field, from); });
  }
};

} // namespace

std::string encodePlan(const Plan &plan) {
  Encoder encoder;
  encoder.message(plan);
  return std::move(encoder.out);
}

} // namespace hpc::plan
