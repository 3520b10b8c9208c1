// The list of fields: it is plan.proto, as protobuf itself reads that, and a plan that has something in every field is the
// same plan after a file. Nothing here names a field, so a new one is tested as soon as it is listed.
#include "runtime/plan/PlanFields.h"

#include "runtime/plan/PlanBody.h"
#include "plan.pb.h" // of the test alone

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::plan;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

namespace {

template <typename Field> using MemberOf = decltype(std::declval<Field>().member);
template <typename Field, typename S> using ValueOf = std::decay_t<std::invoke_result_t<MemberOf<Field>, S &>>;
template <typename Field> constexpr bool isConstant = std::is_same_v<Field, Constant>;

template <typename T> struct ElementOf { using Type = T; };
template <typename T> struct ElementOf<std::vector<T>> { using Type = T; };
template <typename T, size_t size> struct ElementOf<std::array<T, size>> { using Type = T; };
template <typename T> struct ElementOf<std::optional<T>> { using Type = T; };

template <typename S> void expectLikeProto(const Descriptor *message);

template <typename T> void expectType(const FieldDescriptor *stored, bool isZigzag) {
  if constexpr (std::is_enum_v<T>) {
    ASSERT_EQ(stored->type(), FieldDescriptor::TYPE_ENUM);
    EXPECT_EQ(stored->enum_type()->value_count(), enumOf<T>.first + enumOf<T>.count);
    for (int i = 0; i < stored->enum_type()->value_count(); ++i)
      EXPECT_EQ(stored->enum_type()->value(i)->number(), i);
  } else if constexpr (std::is_same_v<T, bool>) {
    EXPECT_EQ(stored->type(), FieldDescriptor::TYPE_BOOL);
  } else if constexpr (std::is_same_v<T, int32_t>) {
    EXPECT_EQ(stored->type(), isZigzag ? FieldDescriptor::TYPE_SINT32 : FieldDescriptor::TYPE_INT32);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    EXPECT_EQ(stored->type(), isZigzag ? FieldDescriptor::TYPE_SINT64 : FieldDescriptor::TYPE_INT64);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    EXPECT_EQ(stored->type(), FieldDescriptor::TYPE_FIXED64);
  } else if constexpr (std::is_same_v<T, double>) {
    EXPECT_EQ(stored->type(), FieldDescriptor::TYPE_DOUBLE);
  } else if constexpr (std::is_same_v<T, std::string>) {
    EXPECT_EQ(stored->type(), FieldDescriptor::TYPE_BYTES);
  } else {
    ASSERT_EQ(stored->type(), FieldDescriptor::TYPE_MESSAGE);
    expectLikeProto<T>(stored->message_type());
  }
}

template <typename S> void expectLikeProto(const Descriptor *message) {
  int count = 0, last = 0;
  forEachField<S>([&](const auto &field, size_t) {
    using Described = std::decay_t<decltype(field)>;
    SCOPED_TRACE(message->name() + "." + field.name);
    ++count;
    EXPECT_GT(field.number, last) << "protobuf writes fields by number";
    last = field.number;
    const FieldDescriptor *stored = message->FindFieldByNumber(field.number);
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->name(), field.name);
    if constexpr (isAlternative<Described>) {
      EXPECT_TRUE(stored->real_containing_oneof());
      expectType<typename Described::Type>(stored, false);
    } else if constexpr (!isConstant<Described>) {
      using T = ValueOf<Described, S>;
      EXPECT_FALSE(stored->real_containing_oneof());
      EXPECT_EQ(stored->is_repeated(), isList<T> || isNumbers<T>);
      EXPECT_EQ(stored->has_optional_keyword(), (std::is_same_v<T, std::optional<int64_t>>));
      expectType<typename ElementOf<T>::Type>(stored, field.isZigzag);
    }
  });
  EXPECT_EQ(message->field_count(), count) << message->name() << " has fields that PlanFields.h lacks";
}

/// Something in every field of a plan, and in each list one of each alternative: no two numbers are equal.
struct Filler {
  int next = 0;

  template <typename T> void fill(T &value) {
    if constexpr (std::is_enum_v<T>) {
      value = T(++next % enumOf<T>.count);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = true;
    } else if constexpr (std::is_arithmetic_v<T>) {
      ++next;
      value = sizeof(T) == 8 && next % 2 ? T(-next) : T(next); // negative ones, too
    } else if constexpr (std::is_same_v<T, std::string>) {
      ++next;
      value = "text " + std::to_string(next) + std::string(size_t(next % 200), '\xff');
    } else if constexpr (isList<T> && isNumbers<T>) {
      value = {};
      for (int i = 0; i < 3; ++i)
        value.push_back(typename T::value_type(++next));
    } else if constexpr (isNumbers<T>) {
      for (auto &each : value)
        each = ++next;
    } else if constexpr (isList<T>) {
      value = T(numAlternatives<typename T::value_type>());
      for (size_t i = 0; i < value.size(); ++i)
        fillStruct(value[i], i);
    } else if constexpr (isOptional<T>) {
      fill(value.emplace());
    } else {
      fillStruct(value, 0);
    }
  }
  template <typename S> static size_t numAlternatives() {
    size_t count = 0;
    forEachField<S>([&](const auto &field, size_t) { count += isAlternative<std::decay_t<decltype(field)>>; });
    return std::max<size_t>(count, 2);
  }
  template <typename S> void fillStruct(S &to, [[maybe_unused]] size_t alternative) {
    if constexpr (std::is_same_v<S, std::string>)
      return fill(to);
    size_t at = 0;
    forEachField<S>([&](const auto &field, size_t) {
      using Described = std::decay_t<decltype(field)>;
      if constexpr (isAlternative<Described>) {
        if (at++ == alternative)
          fill(std::invoke(field.member, to).template emplace<typename Described::Type>());
      } else if constexpr (!isConstant<Described>) {
        fill(std::invoke(field.member, to));
      }
    });
  }
};

/// The name of the first field that differs, or "".
template <typename T> std::string difference(const T &a, const T &b) {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> || isNumbers<T>) {
    return a == b ? "" : "differs";
  } else if constexpr (isList<T>) {
    std::string found = a.size() == b.size() ? "" : "length";
    for (size_t i = 0; i < a.size() && found.empty(); ++i)
      if (std::string inner = difference(a[i], b[i]); !inner.empty())
        found = "[" + std::to_string(i) + "]." + inner;
    return found;
  } else if constexpr (isOptional<T>) {
    return a.has_value() != b.has_value() ? "presence" : a ? difference(*a, *b) : "";
  } else {
    std::string found;
    forEachField<T>([&](const auto &field, size_t) {
      using Described = std::decay_t<decltype(field)>;
      std::string inner;
      if constexpr (isAlternative<Described>) {
        using Type = typename Described::Type;
        const Type *one = std::get_if<Type>(&std::invoke(field.member, a)), *other = std::get_if<Type>(&std::invoke(field.member, b));
        inner = !one != !other ? "presence" : one ? difference(*one, *other) : "";
      } else if constexpr (!isConstant<Described>) {
        inner = difference(std::invoke(field.member, a), std::invoke(field.member, b));
      }
      if (found.empty() && !inner.empty())
        found = std::string(field.name) + "." + inner;
    });
    return found;
  }
}

Plan filledPlan() {
  Plan plan;
  Filler().fill(plan);
  return plan;
}

TEST(PlanFields, AreThoseOfPlanProto) { expectLikeProto<Plan>(proto::Plan::descriptor()); }

TEST(PlanFields, EveryFieldIsTheSameAfterAFile) {
  const Plan plan = filledPlan();
  EXPECT_NE(difference(plan, Plan()), "");
  Expected<Plan> again = decodePlan(encodePlan(plan), 1 << 30);
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(difference(plan, *again), "");
  EXPECT_EQ(plan.stages[0].programs[0].instructions.size(), std::variant_size_v<Action>);
}

/// Right values come from protobuf: it reads our bytes without a field that it does not know, and writes the same.
TEST(PlanFields, ProtobufWritesTheSameBytes) {
  for (const Plan &plan : {filledPlan(), Plan()}) {
    const std::string bytes = encodePlan(plan);
    proto::Plan message;
    ASSERT_TRUE(message.ParseFromString(bytes));
    std::string again;
    {
      google::protobuf::io::StringOutputStream stream(&again);
      google::protobuf::io::CodedOutputStream coded(&stream);
      coded.SetSerializationDeterministic(true);
      message.DiscardUnknownFields();
      message.SerializeToCodedStream(&coded);
    }
    EXPECT_TRUE(again == bytes) << again.size() << " bytes, not " << bytes.size();
  }
}

} // namespace
