// Plans for generation against the forward pass of the same model: each step has the logits that whole sequences have at its last row, in
// every layout; after rows change places each goes on as the sequence that it became.
#include "passes/Driver/Compilation.h"
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"
#include "runtime/plan/Entries.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace hpc;

namespace {

struct Case {
  const char *name, *model;
  int64_t batch, length, chunk;
  std::map<std::string, int64_t> degrees = {};
  const char *tpLayout = "1d", *dtype = "model", *weights = "float";
  double tolerance = 5e-6; ///< of logits
};

void PrintTo(const Case &one, std::ostream *to) { *to << one.name; }

CompileRequest requestOf(const Case &given) {
  CompileRequest request;
  request.input = std::string(HPC_SOURCE_DIR) + "/models/" + given.model;
  request.options.dtype = given.dtype;
  request.options.weights = given.weights;
  if (const char *folder = std::getenv("HPC_KERNEL_CACHE"))
    request.options.kernelCache = folder;
  return request;
}

std::unique_ptr<Session> open(const plan::Plan &plan) {
  SessionOptions options;
  options.poison = true;
  Expected<std::unique_ptr<Session>> session = Session::create(plan, host::createHostBackend(), options);
  EXPECT_TRUE(session.ok()) << session.status().text();
  return session.ok() ? std::move(*session) : nullptr;
}

struct StepsEqualForward : testing::TestWithParam<Case> {
  const Case given = GetParam();
  std::vector<int64_t> ids; ///< [batch, length]
  CompiledPlan forward, steps;
  std::unique_ptr<Session> forwardSession, session;
  std::vector<Array> whole; ///< logits of the ids
  size_t prefill = 0, decode = 0, reorder = 0;

  void SetUp() override {
    CompileRequest request = requestOf(given);
    request.dims = {{"batch_size", given.batch}, {"sequence_length", given.length}};
    if (std::string(given.model).find("decoder") != std::string::npos)
      request.dims = {{"batch", given.batch}, {"time", given.length}};
    Expected<CompiledPlan> plan = compile(request);
    ASSERT_TRUE(plan.ok()) << plan.status().text();
    forward = std::move(*plan);
    request = requestOf(given);
    for (const auto &[axis, degree] : given.degrees)
      request.degrees[axis] = degree;
    request.options.tpLayout = given.tpLayout;
    request.givesLayout = true;
    request.options.maxLength = given.length;
    request.batch = given.batch;
    request.prefillChunk = given.chunk;
    plan = compile(request);
    ASSERT_TRUE(plan.ok()) << plan.status().text();
    steps = std::move(*plan);
    EXPECT_EQ(plan::entryNames(steps.plan), "prefill, decode, reorder");
    prefill = *plan::findEntry(steps.plan, "prefill");
    decode = *plan::findEntry(steps.plan, "decode");
    reorder = *plan::findEntry(steps.plan, "reorder");
    forwardSession = open(forward.plan);
    session = open(steps.plan);
    for (int64_t i = 0; i < given.batch * given.length; ++i)
      ids.push_back((i * i * 7 + i * 3 + i / given.length) % 50);
    runForward();
  }

  static void put(Array &array, int64_t index, int64_t value) {
    if (array.dtype == DType::I32)
      array.as<int32_t>()[index] = int32_t(value);
    else
      array.as<int64_t>()[index] = value;
  }

  void runForward() {
    std::vector<Array> inputs;
    for (const plan::Port &port : forward.plan.inputs) {
      Array &input = inputs.emplace_back(Array::zeros(port.dtype, port.shape));
      for (size_t i = 0; i < ids.size(); ++i)
        put(input, int64_t(i), port.name == "attention_mask" ? 1 : ids[i]);
    }
    const Status status = forwardSession->run(0, inputs, whole);
    ASSERT_TRUE(status.ok()) << status.text();
  }

  /// A step from `position` on whose row `row` is the last real one.
  void step(size_t entry, int64_t position, int64_t row) {
    const plan::Plan &own = session->entry(entry);
    std::vector<Array> inputs, outputs;
    for (const plan::Port &port : own.inputs) {
      Array &input = inputs.emplace_back(Array::zeros(port.dtype, port.shape));
      if (port.isStepScalar) {
        put(input, 0, port.name == "position" ? position : row);
        continue;
      }
      ASSERT_EQ(port.shape[0], given.batch);
      for (int64_t batch = 0; batch < given.batch; ++batch)
        for (int64_t at = 0; at < port.shape[1]; ++at) // padding is ids that are nowhere in the sequence
          put(input, batch * port.shape[1] + at, at <= row ? ids[size_t(batch * given.length + position + at)] : 49);
    }
    const Status status = session->run(entry, inputs, outputs);
    ASSERT_TRUE(status.ok()) << status.text();
    const int64_t vocabulary = forward.plan.outputs[0].shape[2];
    ASSERT_EQ(outputs[0].elements(), given.batch * vocabulary);
    double worst = 0, largest = 0;
    for (int64_t batch = 0; batch < given.batch; ++batch)
      for (int64_t i = 0; i < vocabulary; ++i) {
        const double is = outputs[0].as<float>()[batch * vocabulary + i],
                     should = whole[0].as<float>()[(batch * given.length + position + row) * vocabulary + i];
        worst = std::isnan(is) ? INFINITY : std::max(worst, std::abs(is - should));
        largest = std::max(largest, std::abs(should));
      }
    EXPECT_LE(worst, given.tolerance * std::max(1.0, largest)) << (entry == prefill ? "prefill" : "decode") << " at position " << position << ", row " << row;
  }
};

TEST_P(StepsEqualForward, InEveryStep) {
  if (HasFatalFailure())
    return;
  const int64_t chunk = session->entry(prefill).inputs[0].shape[1];
  // 1. A chunk, then one with padding where there is room, which decoding overwrites.
  step(prefill, 0, chunk - 1);
  int64_t next = chunk;
  if (2 * chunk <= given.length && chunk > 2) {
    step(prefill, chunk, chunk - 3);
    next = 2 * chunk - 2;
  }
  // 2. Over the chunk's end, and on.
  for (; next < given.length - 3; ++next)
    step(decode, next, 0);
  // 3. Rows go on as others, of which the second half starts twice; the ids are those of what they became.
  std::vector<Array> rows, nothing;
  std::vector<int64_t> before = ids;
  for (int64_t batch = 0; batch < given.batch; ++batch) {
    const int64_t from = given.batch - 1 - batch / 2;
    rows.push_back(Array::zeros(DType::I64, {}));
    rows.back().as<int64_t>()[0] = from;
    std::copy_n(before.begin() + from * given.length, given.length, ids.begin() + batch * given.length);
  }
  const Status status = session->run(reorder, rows, nothing);
  ASSERT_TRUE(status.ok()) << status.text();
  runForward();
  for (; next < given.length; ++next)
    step(decode, next, 0);
  // 4. A new sequence in the same session: nothing of the old one is read.
  std::reverse(ids.begin(), ids.end());
  runForward();
  step(prefill, 0, chunk - 1);
  if (chunk < given.length)
    step(decode, chunk, 0);
}

constexpr const char *tiny = "gpt2-tiny/dynamo-eager-op18.onnx", *odd = "gpt2-odd/dynamo-eager-op18.onnx", *decoder = "decoder/model.onnx";

INSTANTIATE_TEST_SUITE_P(Layouts, StepsEqualForward,
                         testing::Values(Case{"Serial", tiny, 2, 16, 4}, Case{"Tensor2", tiny, 2, 16, 4, {{"tp", 2}}}, Case{"Tensor3", tiny, 2, 16, 8, {{"tp", 3}}},
                                         Case{"Rows2", tiny, 4, 16, 4, {{"dp", 2}}}, Case{"UnequalRows2", tiny, 3, 16, 4, {{"dp", 2}}},
                                         Case{"TwoDimensional", tiny, 2, 16, 4, {{"tp", 4}}, "2d:2x2"}, Case{"ChunkOfOne", tiny, 1, 13, 4},
                                         Case{"Bf16", tiny, 2, 16, 4, {{"tp", 2}}, "1d", "bf16", "float", 2e-2},
                                         Case{"Int8", tiny, 2, 16, 4, {{"tp", 2}}, "1d", "model", "int8", 1e-5},
                                         Case{"OddSerial", odd, 2, 15, 5}, Case{"OddTensor3", odd, 2, 15, 5, {{"tp", 3}}},
                                         Case{"DecoderSerial", decoder, 2, 12, 4}, Case{"DecoderTensor2", decoder, 2, 12, 4, {{"tp", 2}}}),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
