// Bytes to structs. A message is walked once for the lengths of its lists, which then take exactly their memory, and once
// for its fields. The first thing that is wrong ends the decoding; its place is put together on the way out.
#include "runtime/base/WireFormat.h"
#include "runtime/plan/PlanBody.h"
#include "runtime/plan/PlanFields.h"

#include <algorithm>
#include <cstring>

namespace hpc::plan {
namespace {

struct Decoder {
  const std::byte *data;
  int64_t size, memory; ///< of all, and what is left of the memory that it may take
  std::string wrong = "", place = "";

  bool fail(const std::string &what) {
    wrong = what;
    return false;
  }
  bool at(const char *name, int64_t index, bool isRead) {
    if (!isRead)
      place = name + (index < 0 ? "" : "[" + std::to_string(index) + "]") + (place.empty() ? "" : "." + place);
    return isRead;
  }
  bool take(int64_t bytes) {
    constexpr int64_t block = 32; ///< that an allocation takes for itself
    memory -= bytes + block;
    return memory >= 0 || fail("the file's " + std::to_string(size) + " bytes would become structs of more than memory "
                               "may be taken for: millions of empty or tiny pieces, as no program writes them");
  }

  template <typename T> bool integer(bool isZigzag, uint64_t stored, T &to) {
    const int64_t value = isZigzag ? wire::fromZigzag(stored) : int64_t(stored);
    to = T(value);
    return int64_t(to) == value || fail(std::to_string(value) + " does not fit; the file is corrupt");
  }

  template <typename T> bool numbers(bool isZigzag, const wire::Field &found, std::vector<T> &to) {
    const std::byte *begin = data + found.begin;
    const int64_t bytes = found.end - found.begin;
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (bytes % 8 != 0)
        return fail(std::to_string(bytes) + " bytes hold no whole number of hashes");
      if (!take(bytes))
        return false;
      to.resize(size_t(bytes / 8));
      std::memcpy(to.data(), begin, size_t(bytes));
      return true;
    } else {
      const int64_t count = std::count_if(begin, begin + bytes, [](std::byte each) { return uint8_t(each) < 128; });
      if (!take(count * int64_t(sizeof(T))))
        return false;
      to.resize(size_t(count));
      return runOf(isZigzag, found, to);
    }
  }
  template <typename T, size_t count> bool numbers(bool isZigzag, const wire::Field &found, std::array<T, count> &to) {
    return runOf(isZigzag, found, to);
  }
  template <typename List> bool runOf(bool isZigzag, const wire::Field &found, List &to) {
    wire::Varints run(data, found.begin, found.end);
    size_t read = 0;
    for (uint64_t stored; run.next(stored); ++read)
      if (read == to.size() || !integer(isZigzag, stored, to[read]))
        return wrong.empty() ? fail("more than " + std::to_string(to.size()) + " numbers") : false;
    return (run.atEnd() && read == to.size()) || fail(std::to_string(read) + " whole numbers, not " + std::to_string(to.size()));
  }

  bool inner(const wire::Field &found, std::string &to) {
    const size_t length = size_t(found.end - found.begin);
    if (length > to.capacity() && !take(int64_t(length)))
      return false;
    to.assign(reinterpret_cast<const char *>(data) + found.begin, length);
    return true;
  }
  template <typename S> bool inner(const wire::Field &found, S &to) { return message(found.begin, found.end, to); }

  template <typename T> static constexpr uint64_t typeOf() {
    return std::is_integral_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::optional<int64_t>> ? wire::varintType
           : std::is_same_v<T, double>                                                             ? wire::fixedType
                                                                                                   : wire::bytesType;
  }
  bool isOf(uint64_t type, const wire::Field &found) {
    return found.type == type || fail("is stored as type " + std::to_string(found.type) + " of protobuf, not " +
                                      std::to_string(type) + "; the file is corrupt or of a newer version");
  }

  template <typename T> bool value(bool isZigzag, const wire::Field &found, T &to) {
    if (!isOf(typeOf<T>(), found))
      return false;
    if constexpr (std::is_enum_v<T>) {
      constexpr EnumFacts facts = enumOf<T>;
      if (found.value < uint64_t(facts.first) || found.value >= uint64_t(facts.first + facts.count))
        return fail("unknown " + std::string(facts.what) + " " + std::to_string(int64_t(found.value)) +
                    "; the file is corrupt or of a newer version");
      to = T(found.value - uint64_t(facts.first));
      return true;
    } else if constexpr (std::is_integral_v<T>) {
      return integer(isZigzag, found.value, to);
    } else if constexpr (std::is_same_v<T, double>) {
      std::memcpy(&to, data + found.begin, sizeof(to));
      return true;
    } else if constexpr (isNumbers<T>) {
      return numbers(isZigzag, found, to);
    } else if constexpr (isOptional<T>) {
      return value(isZigzag, found, to.emplace());
    } else {
      return inner(found, to);
    }
  }

  template <typename Member, typename S> bool get(const Field<Member> &field, const wire::Field &found, S &to) {
    auto &member = std::invoke(field.member, to);
    if constexpr (isList<std::decay_t<decltype(member)>> && !isNumbers<std::decay_t<decltype(member)>>) {
      member.emplace_back();
      return at(field.name, int64_t(member.size()) - 1, isOf(wire::bytesType, found) && inner(found, member.back()));
    } else {
      return at(field.name, -1, value(field.isZigzag, found, member));
    }
  }
  template <typename T, typename Member, typename S>
  bool get(const Alternative<T, Member> &field, const wire::Field &found, S &to) {
    return at(field.name, -1, isOf(wire::bytesType, found) && inner(found, std::invoke(field.member, to).template emplace<T>()));
  }
  template <typename S> bool get(const Constant &field, const wire::Field &found, S &) {
    return at(field.name, -1, (isOf(wire::varintType, found) && found.value == field.value) ||
                                  fail(std::to_string(found.value) + ", which is " + std::to_string(field.value) + " in every plan"));
  }

  /// All others are left out where they are 0 or empty.
  template <typename T>
  static constexpr bool isAlwaysThere =
      std::is_enum_v<T> || (std::is_class_v<T> && !std::is_same_v<T, std::string> && !isList<T> && !isOptional<T>);

  /// Before the fields are read: how often each is there is known, the struct is new.
  template <typename Member, typename S> bool prepare(const Field<Member> &field, int64_t count, S &to) {
    auto &member = std::invoke(field.member, to);
    using T = std::decay_t<decltype(member)>;
    if constexpr (isList<T> && !isNumbers<T>) {
      if (count == 0)
        return true;
      if (!take(count * int64_t(sizeof(member[0]))))
        return at(field.name, -1, false);
      member.reserve(size_t(count));
      return true;
    } else if (count > 1) {
      return at(field.name, -1, fail("is there " + std::to_string(count) + " times; the file is corrupt"));
    } else if (count == 0 && isAlwaysThere<T>) {
      return field.isOptional || at(field.name, -1, fail("is missing; the file is corrupt"));
    } else {
      if (count == 0)
        member = T();
      return true;
    }
  }
  template <typename T, typename Member, typename S> bool prepare(const Alternative<T, Member> &, int64_t, S &) { return true; }
  template <typename S> bool prepare(const Constant &, int64_t, S &) { return true; }

  template <typename S> bool message(int64_t begin, int64_t end, S &to) {
    std::array<int64_t, std::tuple_size_v<std::decay_t<decltype(fieldsOf<S>)>>> counts = {};
    wire::Fields all(data, begin, end);
    for (wire::Field found; all.next(found);)
      forEachField<S>([&](const auto &field, size_t index) { counts[index] += uint64_t(field.number) == found.number; });
    if (!all.atEnd())
      return fail("is cut off or malformed: its protobuf does not parse");
    bool isRead = true, isOneOf = false;
    int64_t alternatives = 0;
    forEachField<S>([&](const auto &field, size_t index) {
      isRead = isRead && prepare(field, counts[index], to);
      if constexpr (isAlternative<std::decay_t<decltype(field)>>) {
        isOneOf = true;
        alternatives += counts[index];
      }
    });
    if (isRead && isOneOf && alternatives != 1)
      return fail((alternatives == 0 ? "none" : "more than one") + std::string(" of the alternatives that this program knows is there; "
                                                                              "the file is corrupt or of a newer version"));
    wire::Fields again(data, begin, end);
    for (wire::Field found; isRead && again.next(found);)
      forEachField<S>([&](const auto &field, size_t) {
        if (uint64_t(field.number) == found.number)
          isRead = get(field, found, to);
      });
    return isRead;
  }
};

} // namespace

Expected<Plan> decodePlan(std::string_view bytes, int64_t memory) {
  Decoder decoder{reinterpret_cast<const std::byte *>(bytes.data()), int64_t(bytes.size()), memory};
  Plan plan;
  if (decoder.message(0, decoder.size, plan))
    return plan;
  return Status::error(ErrorKind::Plan, (decoder.place.empty() ? "its plan" : decoder.place) + ": " + decoder.wrong);
}

} // namespace hpc::plan
