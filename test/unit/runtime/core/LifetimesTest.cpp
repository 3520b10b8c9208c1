// Buffers by lifetime and space, run: accumulators over micro-batches, states over steps, what is offloaded to host
// memory and comes back, instructions that some micro-batches skip; and every element type of what these need.
#include "runtime/backend/host/HostBackend.h"
#include "runtime/backend/host/HostDevice.h"
#include "runtime/base/HalfFloat.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanCheck.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::plan;

namespace {

constexpr int64_t width = 4;

int32_t addBuffer(Stage &stage, Lifetime lifetime, int64_t slots = 1, Space space = Space::Device) {
  Buffer buffer;
  buffer.name = "b" + std::to_string(stage.buffers.size());
  buffer.box = {width};
  buffer.bytes = width * 4;
  buffer.lifetime = lifetime;
  buffer.space = space;
  buffer.slots = slots;
  buffer.slotStride = slots > 1 ? 64 : 0;
  ArenaKind arena = arenaOf(buffer);
  int64_t &end = arena == ArenaKind::Session ? stage.sessionBytes
                 : arena == ArenaKind::Work  ? stage.workBytes
                                             : stage.hostBytes;
  buffer.offset = end;
  end += 64 * slots;
  stage.buffers.push_back(buffer);
  return int32_t(stage.buffers.size()) - 1;
}

/// Three micro-batches of `width` numbers. Forward: sum += x, x goes to host memory. Backward: it comes back, and the
/// last one's is kept. Update: state += sum.
Plan offloadingPlan() {
  Plan plan;
  plan.model = "lifetimes";
  plan.axes = {{"tp", 1}};
  plan.microBatches = 3;
  plan.inputs = {{"x", DType::F32, {3 * width}, false}};
  plan.outputs = {{"state", DType::F32, {width}, false}, {"last", DType::F32, {width}, false}};
  Stage &stage = plan.stages.emplace_back();
  int32_t x = addBuffer(stage, Lifetime::Program), sum = addBuffer(stage, Lifetime::Step),
          away = addBuffer(stage, Lifetime::MicroBatch, 3, Space::Host), back = addBuffer(stage, Lifetime::Program),
          last = addBuffer(stage, Lifetime::Step), state = addBuffer(stage, Lifetime::Session);
  Slice whole{{width}, {0}, {width}, {width}}, part{{3 * width}, {0}, {width}, {width}};
  part.start[0].values = {0, width, 2 * width};
  stage.bindings = {{state, whole, Number{0.5}, "state", {width}}};
  ByCoord later, atEnd;
  later.values = {0, 1, 1};
  atEnd.values = {0, 0, 1};
  stage.programs = {
      {ProgramKind::Forward,
       0,
       {{LoadInput{0, {x, 0}, part}, "x"},
        {Accumulate{{x, 0}, {sum, 0}, DType::F32, width, later}, "sum"},
        {Copy{{x, 0}, {away, 0}, width * 4}, "offload"}}},
      {ProgramKind::Backward,
       0,
       {{Copy{{away, 0}, {back, 0}, width * 4}, "fetch"}, {Copy{{back, 0}, {last, 0}, width * 4}, "last", atEnd}}},
      {ProgramKind::Update,
       0,
       {{Accumulate{{sum, 0}, {state, 0}, DType::F32, width, 1}, "state"},
        {StoreOutput{0, {state, 0}, whole, 1}, "state"},
        {StoreOutput{1, {last, 0}, whole, 1}, "last"}}}};
  stage.schedule = {{0, 0}, {0, 1}, {0, 2}, {1, 2}, {1, 0}, {1, 1}, {2, 0}};
  return plan;
}

/// 3 in an element type, and back.
std::vector<std::byte> bytesOf(DType dtype, double value) {
  std::vector<std::byte> bytes(size_t(byteSize(dtype)));
  auto put = [&](auto number) { std::memcpy(bytes.data(), &number, sizeof(number)); };
  switch (dtype) {
  case DType::F32:
    put(float(value));
    break;
  case DType::F64:
    put(value);
    break;
  case DType::F16:
    put(floatToHalf(float(value)));
    break;
  case DType::BF16:
    put(floatToBfloat(float(value)));
    break;
  case DType::Bool:
    put(uint8_t(value != 0));
    break;
  default: { // integers: little endian, so one conversion serves all widths
    int64_t number = int64_t(value);
    std::memcpy(bytes.data(), &number, bytes.size());
  }
  }
  return bytes;
}

std::vector<std::byte> repeatedBytes(DType dtype, double value, int64_t count) {
  std::vector<std::byte> one = bytesOf(dtype, value), all;
  for (int64_t i = 0; i < count; ++i)
    all.insert(all.end(), one.begin(), one.end());
  return all;
}

} // namespace

// With poison: a sum that read what the step before left, or a slot of another micro-batch, would be NaN or off.
TEST(Lifetimes, SumsStatesAndWhatIsOffloaded) {
  Plan plan = offloadingPlan();
  Status checked = checkPlan(plan);
  ASSERT_TRUE(checked.ok()) << checked.text();
  SessionOptions options;
  options.poison = true;
  Expected<std::unique_ptr<Session>> session = Session::create(plan, host::createHostBackend(), options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  std::vector<float> state(width, 0.5f);
  for (int step = 0; step < 3; ++step) {
    Array x = Array::zeros(DType::F32, {3 * width});
    for (int i = 0; i < 3 * width; ++i) {
      x.as<float>()[i] = float(i * i % 11 - step);
      state[size_t(i % width)] += x.as<float>()[i];
    }
    Expected<std::vector<Array>> outputs = (*session)->run({x});
    ASSERT_TRUE(outputs.ok()) << outputs.status().text();
    for (int i = 0; i < width; ++i) {
      EXPECT_EQ((*outputs)[0].as<float>()[i], state[size_t(i)]) << "step " << step;
      EXPECT_EQ((*outputs)[1].as<float>()[i], x.as<float>()[2 * width + i]) << "step " << step;
    }
  }
}

// Every type that has a sum, over more than one block of the device.
TEST(Lifetimes, AccumulatesEveryType) {
  constexpr int64_t count = 5000;
  host::HostDevice device;
  for (int i = 0; i < numDTypes; ++i) {
    DType dtype = DType(i);
    std::vector<std::byte> target = repeatedBytes(dtype, 3, count), source = repeatedBytes(dtype, 4, count);
    Status status = device.accumulate(target.data(), source.data(), dtype, count);
    EXPECT_EQ(status.ok(), dtype != DType::Bool) << name(dtype);
    if (status.ok())
      EXPECT_EQ(target, repeatedBytes(dtype, 7, count)) << name(dtype);
  }
}

// A state of any type starts as its number, in all of its box.
TEST(Lifetimes, StartsAsANumberOfEveryType) {
  Plan plan;
  plan.axes = {{"tp", 1}};
  Expected<Weights> weights = Weights::open(plan, {".", ""});
  ASSERT_TRUE(weights.ok()) << weights.status().text();
  host::HostDevice device;
  for (int i = 0; i < numDTypes; ++i) {
    Buffer buffer;
    buffer.dtype = DType(i);
    buffer.box = {7};
    buffer.bytes = 7 * byteSize(buffer.dtype);
    Binding binding{0, {{5}, {0}, {5}, {7}}, Number{3}, "", {}};
    std::vector<std::byte> target(size_t(buffer.bytes), poisonByte);
    ASSERT_TRUE(weights->load(binding, buffer, {0, 0, 1}, device, target.data()).ok());
    EXPECT_EQ(target, repeatedBytes(buffer.dtype, 3, 7)) << name(buffer.dtype);
  }
}
