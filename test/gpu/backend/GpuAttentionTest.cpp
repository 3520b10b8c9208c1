// cuDNN's attention on the stand-in against plain loops: forward and backward, grouped heads, both diagonals, heads that are
// strides; what it is not asked for, and what it refuses.
#include "runtime/backend/cuda/CudaDevice.h"
#include "runtime/base/HalfFloat.h"
#include "test/gpu/backend/GpuFixture.h"

#include <cmath>
#include <cstring>

using namespace hpc;
using testing::HasSubstr;

namespace {

struct Bench {
  cuda::Driver driver = *cuda::loadDriver(HPC_STANDIN_FOLDER);
  cuda::Cudnn dnn = *cuda::loadCudnn(HPC_STANDIN_FOLDER);
  std::unique_ptr<cuda::Gpu> gpu = std::move(*cuda::Gpu::open(driver, 0));
  cuda::ReduceKernels reductions{driver};
  std::unique_ptr<cuda::CudaDevice> device;

  explicit Bench(const cuda::CudaOptions &options = onStandIn()) {
    device = std::move(*cuda::CudaDevice::create(*gpu, nullptr, &dnn, reductions, options));
  }
  static plan::Slice whole(int64_t bytes) { return {{bytes}, {0}, {bytes}, {bytes}}; }
  std::byte *upload(const std::vector<uint16_t> &content) {
    const auto bytes = int64_t(content.size() * 2);
    std::byte *memory = *device->allocate(plan::Space::Device, bytes, std::byte{0xff});
    EXPECT_TRUE(device->gather(SliceCopy(whole(bytes), 1, {}), reinterpret_cast<const std::byte *>(content.data()), memory).ok());
    return memory;
  }
  std::vector<uint16_t> download(const std::byte *memory, size_t elements) {
    std::vector<uint16_t> content(elements);
    SliceCopy copy(whole(int64_t(elements * 2)), 1, {});
    EXPECT_TRUE(device->scatter(copy, memory, reinterpret_cast<std::byte *>(content.data())).ok());
    EXPECT_TRUE(device->finish().ok());
    return content;
  }
};

/// A tensor of rank 4 on the host, dims in the order of the attention, and where its elements lie in a buffer.
struct Matrices {
  std::array<int64_t, 4> dims, stride;
  DType dtype;
  std::vector<double> values; ///< row-major in dims

  /// Positions outside of heads, as the projections leave them, or inside.
  Matrices(std::array<int64_t, 4> dims, bool headsInside, DType dtype, int64_t seed) : dims(dims), dtype(dtype) {
    const auto [b, h, s, c] = dims;
    stride = headsInside ? std::array<int64_t, 4>{h * s * c, c, h * c, 1} : std::array<int64_t, 4>{h * s * c, s * c, c, 1};
    for (int64_t i = 0; i < b * h * s * c; ++i)
      values.push_back(double(wide(narrow(float((i * 37 + seed * 11) % 101 - 50) / 40))));
  }
  uint16_t narrow(float value) const { return dtype == DType::F16 ? floatToHalf(value) : floatToBfloat(value); }
  float wide(uint16_t bits) const { return dtype == DType::F16 ? halfToFloat(bits) : bfloatToFloat(bits); }
  double &at(int64_t b, int64_t h, int64_t s, int64_t c) {
    return values[size_t(((b * dims[1] + h) * dims[2] + s) * dims[3] + c)];
  }
  template <typename F> void each(F body) const {
    for (int64_t b = 0, i = 0; b < dims[0]; ++b)
      for (int64_t h = 0; h < dims[1]; ++h)
        for (int64_t s = 0; s < dims[2]; ++s)
          for (int64_t c = 0; c < dims[3]; ++c)
            body(size_t(i++), size_t(b * stride[0] + h * stride[1] + s * stride[2] + c));
  }
  std::vector<uint16_t> stored() const {
    std::vector<uint16_t> bits(values.size());
    each([&](size_t i, size_t place) { bits[place] = narrow(float(values[i])); });
    return bits;
  }
  void expectStored(const std::vector<uint16_t> &bits, const std::string &what) const {
    const double bound = dtype == DType::F16 ? 2.5e-3 : 2e-2;
    int failures = 0;
    each([&](size_t i, size_t place) {
      const double actual = double(wide(bits[place]));
      const bool isClose = std::abs(actual - values[i]) <= bound * std::max(1.0, std::abs(values[i]));
      failures += !isClose;
      EXPECT_TRUE(isClose || failures > 3) << what << " " << i << ": " << actual << ", expected " << values[i];
    });
    EXPECT_EQ(failures, 0) << what;
  }
  plan::AttentionTensor tensor(int32_t argument) const { return {argument, dtype, 0, stride}; }
};

struct Case {
  int64_t b, g, r, q, k, d, x;
  int64_t causalOffset = -1; ///< -1: nothing is masked
  bool headsInside = false;
  DType dtype = DType::BF16;
};

/// What the definition gives, and the plan's description of it.
struct Attention {
  Case size;
  int64_t h = size.g * size.r;
  double scale = 0.25;
  Matrices query{{size.b, h, size.q, size.d}, size.headsInside, size.dtype, 1};
  Matrices key{{size.b, size.g, size.k, size.d}, size.headsInside, size.dtype, 2};
  Matrices value{{size.b, size.g, size.k, size.x}, size.headsInside, size.dtype, 3};
  Matrices gradient{{size.b, h, size.q, size.x}, size.headsInside, size.dtype, 4};
  Matrices result = zeroed(gradient), queryGradient = zeroed(query), keyGradient = zeroed(key),
           valueGradient = zeroed(value);

  static Matrices zeroed(Matrices like) {
    std::fill(like.values.begin(), like.values.end(), 0.0);
    return like;
  }
  explicit Attention(const Case &size) : size(size) {
    for (int64_t b = 0; b < size.b; ++b)
      for (int64_t i = 0; i < h; ++i)
        for (int64_t q = 0; q < size.q; ++q)
          addRow(b, i, i / size.r, q);
  }
  void addRow(int64_t b, int64_t i, int64_t group, int64_t q) {
    const int64_t seen = size.causalOffset < 0 ? size.k : std::min(size.k, q + size.causalOffset + 1);
    std::vector<double> p(size_t(seen), 0.0), dp(size_t(seen), 0.0);
    double largest = -INFINITY, sum = 0, mean = 0;
    for (int64_t k = 0; k < seen; ++k) {
      for (int64_t c = 0; c < size.d; ++c)
        p[size_t(k)] += scale * query.at(b, i, q, c) * key.at(b, group, k, c);
      largest = std::max(largest, p[size_t(k)]);
    }
    for (double &one : p)
      sum += one = std::exp(one - largest);
    for (int64_t k = 0; k < seen; ++k) {
      p[size_t(k)] /= sum;
      for (int64_t c = 0; c < size.x; ++c) {
        result.at(b, i, q, c) += p[size_t(k)] * value.at(b, group, k, c);
        dp[size_t(k)] += gradient.at(b, i, q, c) * value.at(b, group, k, c);
        valueGradient.at(b, group, k, c) += p[size_t(k)] * gradient.at(b, i, q, c);
      }
      mean += p[size_t(k)] * dp[size_t(k)];
    }
    for (int64_t k = 0; k < seen; ++k)
      for (int64_t c = 0; c < size.d; ++c) {
        const double ofScore = scale * p[size_t(k)] * (dp[size_t(k)] - mean);
        queryGradient.at(b, i, q, c) += ofScore * key.at(b, group, k, c);
        keyGradient.at(b, group, k, c) += ofScore * query.at(b, i, q, c);
      }
  }

  plan::Attention description(plan::AttentionKind kind) const {
    plan::Attention a;
    a.kind = kind;
    a.batch = size.b;
    a.heads = h;
    a.groups = size.g;
    a.queries = size.q;
    a.keys = size.k;
    a.depth = size.d;
    a.width = size.x;
    a.scale = scale;
    a.causal = size.causalOffset >= 0;
    a.causalOffset = std::max<int64_t>(size.causalOffset, 0);
    a.query = query.tensor(0);
    a.key = key.tensor(1);
    a.value = value.tensor(2);
    if (kind == plan::AttentionKind::Forward) {
      a.results = {result.tensor(3)};
    } else {
      a.gradient = gradient.tensor(3);
      a.results = {queryGradient.tensor(4), keyGradient.tensor(5), valueGradient.tensor(6)};
    }
    return a;
  }
};

/// Runs it on the device; what comes out is in the order of the results, each of two numbers of 16 bits an element if `isWide`.
std::vector<std::vector<uint16_t>> run(Bench &bench, const Attention &attention, plan::AttentionKind kind, bool isWide = false) {
  plan::Kernel kernel;
  kernel.symbol = "none";
  kernel.attention = attention.description(kind);
  for (plan::AttentionTensor &result : kernel.attention->results)
    result.dtype = isWide ? DType::F32 : result.dtype;
  const size_t halves = isWide ? 2 : 1;
  const bool isForward = kind == plan::AttentionKind::Forward;
  std::vector<void *> args;
  for (const Matrices *in : {&attention.query, &attention.key, &attention.value})
    args.push_back(bench.upload(in->stored()));
  if (!isForward)
    args.push_back(bench.upload(attention.gradient.stored()));
  std::vector<const Matrices *> outs = {&attention.result};
  if (!isForward)
    outs = {&attention.queryGradient, &attention.keyGradient, &attention.valueGradient};
  for (const Matrices *out : outs)
    args.push_back(*bench.device->allocate(plan::Space::Device, int64_t(out->values.size() * 2 * halves), std::byte{0xff}));
  Expected<int64_t> library = bench.device->prepare(*kernel.attention);
  EXPECT_TRUE(library.ok()) << library.status().text();
  EXPECT_GE(*library, 0);
  EXPECT_TRUE(bench.device->begin().ok());
  Status status = bench.device->kernel({nullptr, args.data(), nullptr, kernel, 1, 32, 0, *library});
  EXPECT_TRUE(status.ok()) << status.text();
  std::vector<std::vector<uint16_t>> contents;
  for (size_t i = 0; i < outs.size(); ++i)
    contents.push_back(bench.download(static_cast<std::byte *>(args[args.size() - outs.size() + i]), outs[i]->values.size() * halves));
  return contents;
}

} // namespace

TEST_F(Gpu, AttentionAsDefined) {
  Bench bench;
  for (const Case &size : {Case{1, 1, 1, 5, 7, 8, 16}, Case{2, 3, 1, 9, 9, 8, 8, 0}, Case{1, 2, 3, 6, 11, 16, 8, 5, true},
                           Case{2, 2, 2, 4, 4, 64, 64, 0, true, DType::F16}, Case{1, 2, 2, 1, 13, 8, 8, 12, false, DType::F16}}) {
    Attention attention(size);
    SCOPED_TRACE("queries " + std::to_string(size.q) + ", keys " + std::to_string(size.k));
    attention.result.expectStored(run(bench, attention, plan::AttentionKind::Forward)[0], "result");
    auto gradients = run(bench, attention, plan::AttentionKind::Backward);
    attention.queryGradient.expectStored(gradients[0], "query's gradient");
    attention.keyGradient.expectStored(gradients[1], "key's gradient");
    attention.valueGradient.expectStored(gradients[2], "value's gradient");
  }
  EXPECT_GE(bench.device->scratchBytes(), 4096);
}

// cuDNN writes 16 bits where f32 is wanted, so each number here is one of the operands' type; a note says so, once.
TEST_F(Gpu, GradientsInF32AreWidened) {
  std::vector<std::string> notes;
  cuda::CudaOptions options = onStandIn();
  options.note = [&](const std::string &text) { notes.push_back(text); };
  Bench bench(options);
  const std::vector<Case> cases = {Case{2, 3, 1, 9, 9, 8, 16, 0}, Case{1, 2, 3, 6, 11, 16, 8, 5, true}, Case{2, 2, 2, 4, 4, 64, 64, 0, true, DType::F16}};
  for (const Case &size : cases) {
    Attention attention(size);
    SCOPED_TRACE("queries " + std::to_string(size.q) + ", keys " + std::to_string(size.k));
    auto gradients = run(bench, attention, plan::AttentionKind::Backward, /*isWide=*/true);
    run(bench, attention, plan::AttentionKind::Backward, /*isWide=*/true);
    const Matrices *expected[] = {&attention.queryGradient, &attention.keyGradient, &attention.valueGradient};
    for (size_t i = 0; i < 3; ++i) {
      std::vector<uint16_t> narrow;
      for (size_t element = 0; element < gradients[i].size() / 2; ++element) {
        float wide;
        std::memcpy(&wide, &gradients[i][2 * element], sizeof(wide));
        narrow.push_back(expected[i]->narrow(wide));
        EXPECT_EQ(expected[i]->wide(narrow.back()), wide) << i << ", element " << element;
      }
      expected[i]->expectStored(narrow, "gradient " + std::to_string(i));
    }
  }
  ASSERT_EQ(notes.size(), cases.size());
  EXPECT_THAT(notes[0], HasSubstr("the gradient of attention (2 x 3 heads, 9 queries, 9 keys, 8 channels and 16, causal) is rounded to bf16 by cuDNN, where the plan has f32; --no-cudnn keeps f32"));
  EXPECT_THAT(notes[2], HasSubstr("rounded to f16"));
}

// Layers have one attention, which is planned once.
TEST_F(Gpu, EqualAttentionsAreOne) {
  Bench bench;
  Attention attention({1, 2, 1, 8, 8, 8, 8, 0});
  plan::Attention first = attention.description(plan::AttentionKind::Forward), second = first;
  second.query.argument = 5; // another kernel's numbering
  const int64_t before = standin::calls();
  EXPECT_EQ(*bench.device->prepare(first), 0);
  const int64_t between = standin::calls();
  EXPECT_EQ(*bench.device->prepare(second), 0);
  EXPECT_GT(between, before);
  EXPECT_EQ(standin::calls(), between);
  second.scale = 0.5;
  EXPECT_EQ(*bench.device->prepare(second), 1);
}

// A bias is no number of the shape, and still another attention: cuDNN has it in neither order.
TEST_F(Gpu, AttentionsThatDifferInTheBiasAlone) {
  Attention attention({1, 2, 1, 8, 8, 8, 8});
  plan::Attention bare = attention.description(plan::AttentionKind::Forward), biased = bare;
  biased.bias = {4, DType::BF16, 0, {0, 0, 8, 1}};
  Bench bareFirst, biasedFirst;
  EXPECT_EQ(*bareFirst.device->prepare(bare), 0);
  EXPECT_EQ(*bareFirst.device->prepare(biased), -1);
  EXPECT_EQ(*biasedFirst.device->prepare(biased), -1);
  EXPECT_EQ(*biasedFirst.device->prepare(bare), 0);
}

// Whatever cuDNN has no engine for, or has other numbers for, stays with the kernel, and nothing is made for it.
TEST_F(Gpu, AttentionsThatAreLeftToKernels) {
  using Change = void (*)(plan::Attention &);
  const std::vector<std::pair<Change, const char *>> changes = {
      {[](plan::Attention &a) { a.query.dtype = a.key.dtype = a.value.dtype = DType::F32; }, "operands are f32"},
      {[](plan::Attention &a) { a.results[0].dtype = DType::F32; }, "a result is f32"},
      {[](plan::Attention &a) { a.bias.argument = 4; }, "added to its scores"},
      {[](plan::Attention &a) { a.keys = 0; }, "empty"},
      {[](plan::Attention &a) { a.depth = 12; }, "12 and 8 channels"},
      {[](plan::Attention &a) { a.width = 136; }, "8 and 136 channels"},
      {[](plan::Attention &a) { a.causal = true, a.causalOffset = 3; }, "diagonal begins at 3"},
      {[](plan::Attention &a) { a.key.stride[3] = 2; }, "side by side"},
      {[](plan::Attention &a) { a.value.offset = 4; }, "multiple of 16 bytes"},
      {[](plan::Attention &a) { a.results[0].stride[2] = 12; }, "multiple of 16 bytes"},
  };
  Bench bench;
  Attention attention({1, 2, 1, 8, 9, 8, 8});
  for (const auto &[change, reason] : changes) {
    plan::Attention one = attention.description(plan::AttentionKind::Forward);
    change(one);
    EXPECT_THAT(cuda::fitsCudnn(one).message(), HasSubstr(reason));
    const int64_t before = standin::calls();
    EXPECT_EQ(*bench.device->prepare(one), -1) << reason;
    EXPECT_EQ(standin::calls(), before) << reason;
  }
  // Gradients, of each of the three.
  for (size_t i = 0; i < 3; ++i) {
    plan::Attention one = attention.description(plan::AttentionKind::Backward);
    one.results[i].dtype = DType::F32;
    EXPECT_THAT(cuda::fitsCudnn(one).message(), HasSubstr("a result is f32, the operands bf16"));
    EXPECT_EQ(*bench.device->prepare(one), -1);
  }
}

// A graph that this cuDNN has no engine for, wherever it says so, is the kernel's: no error, nothing left behind, and one note, however
// many layers and gradients ask again.
TEST_F(Gpu, RefusedGraphsAreLeftToKernels) {
  using Refusal = standin::Settings::DnnRefusal;
  for (Refusal refusal : {Refusal::Graph, Refusal::Choice, Refusal::Engine}) {
    SCOPED_TRACE(int(refusal));
    standin::Settings settings;
    settings.dnnRefusal = refusal;
    standin::configure(settings);
    std::vector<std::string> notes;
    {
      cuda::CudaOptions options = onStandIn();
      options.note = [&](const std::string &text) { notes.push_back(text); };
      Bench bench(options);
      Attention attention({2, 2, 2, 8, 16, 8, 24, 0});
      for (plan::AttentionKind kind : {plan::AttentionKind::Forward, plan::AttentionKind::Forward, plan::AttentionKind::Backward}) {
        Expected<int64_t> library = bench.device->prepare(attention.description(kind));
        ASSERT_TRUE(library.ok()) << library.status().text();
        EXPECT_EQ(*library, -1);
      }
    }
    ASSERT_EQ(notes.size(), 2u); // forward and its gradient
    EXPECT_THAT(notes[0], HasSubstr("attention (2 x 4 heads, 8 queries, 16 keys, 8 channels and 24, causal) runs on generated kernels, "
                                    "since cuDNN 9.19.0 does not take it: "));
    EXPECT_THAT(notes[1], HasSubstr("the gradient of attention (2 x 4 heads, 8 queries"));
    expectClean("after a refusal");
  }
}

// Gradients of a cuDNN that has them wrong are the kernels', and the note names the release that mends it. Blocks of keys that are full it has right.
TEST_F(Gpu, GradientsOfAnOldCudnnAreTheKernels) {
  standin::Settings settings;
  settings.dnnVersion = 90700;
  standin::configure(settings);
  std::vector<std::string> notes;
  cuda::CudaOptions options = onStandIn();
  options.note = [&](const std::string &text) { notes.push_back(text); };
  Bench bench(options);
  Attention attention({1, 2, 1, 8, 8, 8, 8, 0});
  EXPECT_EQ(*bench.device->prepare(attention.description(plan::AttentionKind::Forward)), 0);
  EXPECT_EQ(*bench.device->prepare(attention.description(plan::AttentionKind::Backward)), -1);
  Attention whole({1, 2, 1, 8, 128, 8, 8, 0});
  EXPECT_EQ(*bench.device->prepare(whole.description(plan::AttentionKind::Backward)), 1);
  EXPECT_THAT(notes, testing::ElementsAre(HasSubstr("since cuDNN 9.7.0 does not take it: its gradients are right from 9.15.1 on")));
}

// cuDNN's gradients are not the same bits each time; --deterministic promises that they are.
TEST_F(Gpu, GradientsThatRepeatAreTheKernels) {
  cuda::CudaOptions options = onStandIn();
  options.inRankOrder = true;
  Bench bench(options);
  Attention attention({1, 2, 1, 8, 8, 8, 8, 0});
  EXPECT_EQ(*bench.device->prepare(attention.description(plan::AttentionKind::Backward)), -1);
  EXPECT_EQ(*bench.device->prepare(attention.description(plan::AttentionKind::Forward)), 0);
}
