// Products on the stand-in against plain loops: every type, transposition, batch, leading dim, accumulation, epilogue.
#include "runtime/backend/cuda/CudaDevice.h"
#include "runtime/backend/cuda/Products.h"
#include "runtime/backend/host/Gemm.h"
#include "runtime/base/HalfFloat.h"
#include "runtime/plan/PlanNames.h"
#include "test/gpu/backend/GpuFixture.h"

#include <cmath>
#include <cstring>

using namespace hpc;
using testing::HasSubstr;

namespace {

struct Bench {
  cuda::Driver driver = *cuda::loadDriver(HPC_STANDIN_FOLDER);
  cuda::CublasLt blas = *cuda::loadCublasLt(HPC_STANDIN_FOLDER);
  std::unique_ptr<cuda::Gpu> gpu = std::move(*cuda::Gpu::open(driver, 0));
  cuda::ReduceKernels reductions{driver};
  std::unique_ptr<cuda::CudaDevice> device;

  explicit Bench(bool tf32 = false, cuda::Epilogues epilogues = cuda::Epilogues::All) {
    cuda::CudaOptions options = onStandIn();
    options.tf32 = tf32;
    options.epilogues = epilogues;
    device = std::move(*cuda::CudaDevice::create(*gpu, &blas, nullptr, reductions, options));
  }

  std::byte *upload(const std::vector<std::byte> &content) {
    std::byte *memory = *device->allocate(plan::Space::Device, int64_t(content.size()), std::byte{0xff});
    plan::Slice whole{{int64_t(content.size())}, {0}, {int64_t(content.size())}, {int64_t(content.size())}};
    EXPECT_TRUE(device->gather(SliceCopy(whole, 1, {}), content.data(), memory).ok());
    return memory;
  }
  std::vector<std::byte> download(const std::byte *memory, size_t bytes) {
    std::vector<std::byte> content(bytes);
    plan::Slice whole{{int64_t(bytes)}, {0}, {int64_t(bytes)}, {int64_t(bytes)}};
    SliceCopy copy(whole, 1, {});
    EXPECT_TRUE(device->scatter(copy, memory, content.data()).ok());
    EXPECT_TRUE(device->finish().ok());
    return content;
  }
};

/// Small multiples of 1/4, exact in every type and sum.
std::vector<std::byte> matrix(DType dtype, int64_t elements, int64_t seed) {
  Array f32 = Array::zeros(DType::F32, {elements});
  for (int64_t i = 0; i < elements; ++i)
    f32.as<float>()[i] = float((i * 7 + seed * 5) % 9 - 4) / 4;
  std::vector<std::byte> bytes(size_t(elements * byteSize(dtype)));
  for (int64_t i = 0; i < elements; ++i) {
    const float value = f32.as<float>()[i];
    const double wide = value;
    const uint16_t narrow = dtype == DType::F16 ? floatToHalf(value) : floatToBfloat(value);
    const void *from = dtype == DType::F32   ? static_cast<const void *>(&value)
                       : dtype == DType::F64 ? static_cast<const void *>(&wide)
                                             : &narrow;
    std::memcpy(bytes.data() + i * byteSize(dtype), from, size_t(byteSize(dtype)));
  }
  return bytes;
}

double valueAt(const std::vector<std::byte> &bytes, DType dtype, size_t i) {
  const std::byte *at = bytes.data() + i * size_t(byteSize(dtype));
  double wide = 0;
  float value = 0;
  uint16_t bits = 0;
  std::memcpy(dtype == DType::F64   ? static_cast<void *>(&wide)
              : dtype == DType::F32 ? static_cast<void *>(&value)
                                    : &bits,
              at, size_t(byteSize(dtype)));
  return dtype == DType::F64   ? wide
         : dtype == DType::F32 ? double(value)
         : dtype == DType::F16 ? double(halfToFloat(bits))
                               : double(bfloatToFloat(bits));
}

void setValue(std::vector<std::byte> &bytes, DType dtype, size_t i, double wide) {
  const float value = float(wide);
  const uint16_t bits = dtype == DType::F16 ? floatToHalf(value) : floatToBfloat(value);
  std::memcpy(bytes.data() + i * size_t(byteSize(dtype)),
              dtype == DType::F64   ? static_cast<const void *>(&wide)
              : dtype == DType::F32 ? static_cast<const void *>(&value)
                                    : &bits,
              size_t(byteSize(dtype)));
}

double activated(plan::EpilogueKind kind, double x) {
  return kind == plan::EpilogueKind::Bias ? x
         : kind == plan::EpilogueKind::BiasRelu
             ? std::max(x, 0.0)
             : 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

struct Case {
  int64_t m, n, k;
  std::vector<int64_t> batch;
  std::vector<int64_t> strideA, strideB, strideC;
  bool transposeA = false, transposeB = false;
  int64_t lda = 0, ldb = 0, ldc = 0; ///< beyond the least
};

plan::Gemm gemmOf(const Case &test, DType in, DType out) {
  plan::Gemm gemm;
  gemm.m = test.m;
  gemm.n = test.n;
  gemm.k = test.k;
  gemm.a = {{0, 0}, in, (test.transposeA ? test.m : test.k) + test.lda, test.transposeA, test.strideA, false};
  gemm.b = {{1, 0}, in, (test.transposeB ? test.k : test.n) + test.ldb, test.transposeB, test.strideB, false};
  gemm.c = {{2, 0}, out, test.n + test.ldc, false, test.strideC, false};
  gemm.batch = test.batch;
  gemm.accumulate = in == DType::F64 ? DType::F64 : DType::F32;
  return gemm;
}

} // namespace

// Both backends compute from the same plan: the host's product is tested against brute force in GemmTest.
TEST_F(Gpu, ProductsAsOnTheHost) {
  Bench bench;
  const std::vector<Case> cases = {
      {3, 5, 4, {}, {}, {}, {}},
      {1, 5, 4, {}, {}, {}, {}, false, true},
      {3, 1, 4, {}, {}, {}, {}, true, false, 2, 3, 1},
      {4, 4, 1, {}, {}, {}, {}, true, true, 1, 1, 5},
      {2, 3, 4, {2, 3}, {60, 20}, {60, 20}, {60, 20}},             // one batch of 6
      {2, 3, 4, {2, 3}, {20, 60}, {0, 20}, {20, 60}, false, true}, // two, and B for both
      {2, 3, 4, {2, 1, 3}, {100, 7, 30}, {30, 9, 0}, {90, 0, 30}},
      {2, 3, 0, {2}, {0}, {0}, {20}, false, false, 4, 0, 2}, // a sum of nothing
      {0, 3, 4, {}, {}, {}, {}},
      {2, 3, 0, {}, {}, {}, {}, false, false, 4, 0, 2}, // what is done to a sum of nothing
  };
  struct Types {
    DType in, out;
  };
  for (const Types &types :
       {Types{DType::F32, DType::F32}, Types{DType::F64, DType::F64}, Types{DType::F16, DType::F16},
        Types{DType::BF16, DType::F32}, Types{DType::BF16, DType::BF16}})
    for (const Case &test : cases)
      for (bool addToC : {false, true})
        for (std::optional<plan::EpilogueKind> epilogue : std::vector<std::optional<plan::EpilogueKind>>{
                 std::nullopt, plan::EpilogueKind::Bias, plan::EpilogueKind::BiasRelu}) {
          if (epilogue && (addToC || !test.batch.empty()))
            continue;
          plan::Gemm gemm = gemmOf(test, types.in, types.out);
          gemm.addToC = addToC;
          std::vector<std::byte> a = matrix(types.in, 400, 1), b = matrix(types.in, 400, 2),
                                 c = matrix(types.out, 400, 3), bias = matrix(types.out, 8, 4), wanted = c;
          std::vector<std::byte> scratch;
          GemmCall onHost{gemm, test.m, test.n, test.k, addToC, a.data(), b.data(), wanted.data()};
          ASSERT_TRUE(host::gemm(onHost, scratch).ok());
          for (int64_t i = 0; epilogue && i < test.m; ++i)
            for (int64_t j = 0; j < test.n; ++j) {
              const size_t at = size_t(i * gemm.c.ld + j);
              setValue(wanted, types.out, at,
                       activated(*epilogue, valueAt(wanted, types.out, at) + valueAt(bias, types.out, size_t(j))));
            }
          std::byte *deviceC = bench.upload(c);
          GemmCall onDevice{gemm, test.m, test.n, test.k, addToC, bench.upload(a), bench.upload(b), deviceC};
          if (epilogue) {
            onDevice.epilogue = epilogue;
            onDevice.bias = bench.upload(bias);
          }
          const bool isNothing = test.m * test.n == 0;
          if (epilogue) {
            Expected<bool> fuses = bench.device->fuses(onDevice);
            ASSERT_TRUE(fuses.ok()) << fuses.status().text();
            EXPECT_EQ(*fuses, types.in != DType::F64 || isNothing); // cuBLASLt has no epilogue for F64
            if (!*fuses)
              continue;
          }
          Expected<GemmHandle> handle = bench.device->prepare(onDevice);
          ASSERT_TRUE(handle.ok()) << handle.status().text();
          const int64_t before = standin::epilogues();
          Status status = bench.device->gemm(*handle, onDevice);
          ASSERT_TRUE(status.ok()) << status.text();
          EXPECT_EQ(bench.download(deviceC, c.size()), wanted)
              << name(types.in) << " case " << &test - cases.data() << " add " << addToC << " epilogue "
              << (epilogue ? plan::name(*epilogue) : "none");
          EXPECT_EQ(standin::epilogues() - before, epilogue && !isNothing);
        }
}

// Relu makes 0 of NaN on a card, and its tanh of f32 is one of unknown error: only those who say so get them.
TEST_F(Gpu, EpiloguesThatAreLeftToKernels) {
  using cuda::Epilogues, plan::EpilogueKind;
  Case test{2, 2, 2, {}, {}, {}, {}};
  for (auto [wanted, kind, dtype, isTaken] : {std::tuple(Epilogues::None, EpilogueKind::Bias, DType::F32, false),
                                              {Epilogues::Faithful, EpilogueKind::Bias, DType::F32, true},
                                              {Epilogues::Faithful, EpilogueKind::Bias, DType::BF16, true},
                                              {Epilogues::Faithful, EpilogueKind::BiasRelu, DType::BF16, false},
                                              {Epilogues::Faithful, EpilogueKind::BiasGeluTanh, DType::F32, false},
                                              {Epilogues::Faithful, EpilogueKind::BiasGeluTanh, DType::F16, true},
                                              {Epilogues::All, EpilogueKind::BiasRelu, DType::F32, true},
                                              {Epilogues::All, EpilogueKind::BiasGeluTanh, DType::F32, true}}) {
    Bench bench(false, wanted);
    const plan::Gemm gemm = gemmOf(test, dtype, dtype);
    Expected<bool> fuses = bench.device->fuses({gemm, 2, 2, 2, false, nullptr, nullptr, nullptr, kind});
    ASSERT_TRUE(fuses.ok()) << fuses.status().text();
    EXPECT_EQ(*fuses, isTaken) << int(wanted) << " " << plan::name(kind) << " " << name(dtype);
  }
}

// Rows at odd addresses, of C or of A: the pieces are together what the product is, byte for byte, and touch nothing
// between its rows; all but narrow edges is one call, or one for each kind of row, of aligned rows.
TEST_F(Gpu, ProductsCutAtAlignedAddresses) {
  Bench bench;
  cuda::Products products = std::move(*cuda::Products::create(bench.blas, *bench.gpu, false, /*leastOfPieces=*/0));
  cuda::Stream stream = std::move(*bench.gpu->makeStream());
  struct Cut {
    Case shape;
    size_t pieces; ///< at most
    bool isOfA = false;
  };
  auto odd = [](int64_t m, int64_t n, int64_t k, int64_t beyond) {
    return Case{m, n, k, {}, {}, {}, {}, false, true, 0, 0, beyond};
  };
  auto summed = [](int64_t m, int64_t n, int64_t k, int64_t beyond, bool transpose) {
    return Case{m, n, k, {}, {}, {}, {}, transpose, false, beyond};
  };
  const std::vector<Cut> cuts = {{odd(21, 203, 16, 0), 4},           {odd(24, 203, 8, 0), 3},
                                 {odd(9, 201, 8, 2), 4},             {odd(16, 202, 8, 0), 3},
                                 {odd(8, 206, 24, 2), 2},            {odd(16, 204, 8, 1), 3},
                                 {summed(16, 8, 203, 0, false), 16, true}, {summed(19, 16, 209, 0, false), 17, true},
                                 {summed(8, 8, 202, 2, false), 16, true},  {summed(8, 8, 203, 5, false), 2, true},
                                 {summed(203, 8, 21, 0, true), 15, true},  {summed(202, 16, 16, 0, true), 15, true},
                                 {summed(203, 8, 9, 1, true), 3, true}};
  for (auto [in, out] : {std::pair(DType::BF16, DType::F32), {DType::BF16, DType::BF16}, {DType::F16, DType::F16}})
    for (const Cut &cut : cuts)
      for (bool addToC : {false, true}) {
        const auto &[shape, most, isOfA] = cut;
        if (isOfA ? out != DType::F32 : addToC)
          continue;
        SCOPED_TRACE(std::string(name(in)) + " " + name(out) + " cut " + std::to_string(&cut - cuts.data()));
        const plan::Gemm gemm = gemmOf(shape, in, out);
        const int64_t rowsOfA = shape.transposeA ? shape.k : shape.m, rowsOfB = shape.transposeB ? shape.n : shape.k;
        std::vector<std::byte> a = matrix(in, rowsOfA * gemm.a.ld, 1), b = matrix(in, rowsOfB * gemm.b.ld, 2),
                               c = matrix(out, shape.m * gemm.c.ld, 3), wanted = c, scratch;
        ASSERT_TRUE(
            host::gemm({gemm, shape.m, shape.n, shape.k, addToC, a.data(), b.data(), wanted.data()}, scratch).ok());
        std::byte *deviceC = bench.upload(c);
        GemmCall call{gemm, shape.m, shape.n, shape.k, addToC, bench.upload(a), bench.upload(b), deviceC};
        const std::vector<cuda::ProductPiece> pieces = cuda::alignedPieces(call, 0);
        EXPECT_LE(pieces.size(), most);
        int64_t inside = 0; // multiply-adds of aligned rows
        for (const cuda::ProductPiece &piece : pieces) {
          const plan::Gemm &part = piece.plan;
          bool isAligned = true;
          for (const plan::Operand *operand : {&part.a, &part.b, &part.c}) {
            isAligned &= operand->ld * byteSize(operand->dtype) % 16 == 0 && operand->place.byteOffset % 16 == 0;
            for (int64_t stride : operand->stride)
              isAligned &= stride * byteSize(operand->dtype) % 16 == 0;
          }
          isAligned &= piece.n % 8 == 0 && (shape.transposeA || piece.k % 8 == 0);
          inside += isAligned ? piece.m * piece.n * piece.k * (part.batch.empty() ? 1 : part.batch[0]) : 0;
        }
        EXPECT_GT(2 * inside, shape.m * shape.n * shape.k);
        Expected<GemmHandle> handle = products.prepare(call, stream.get());
        ASSERT_TRUE(handle.ok()) << handle.status().text();
        ASSERT_TRUE(bench.device->finish().ok());
        Status status = products.run(*handle, call, stream.get());
        ASSERT_TRUE(status.ok()) << status.text();
        ASSERT_EQ(bench.driver.synchronizeStream(stream.get()), cuda::driverSuccess);
        EXPECT_EQ(bench.download(deviceC, c.size()), wanted);
      }
}

TEST_F(Gpu, ProductsThatStayWhole) {
  using plan::EpilogueKind;
  const Case odd{16, 203, 16, {}, {}, {}, {}, false, true};
  auto pieces = [](const Case &test, DType in, bool addToC = false, std::optional<EpilogueKind> epilogue = {},
                   int64_t least = 0) {
    const plan::Gemm gemm = gemmOf(test, in, DType::F32);
    return cuda::alignedPieces({gemm, test.m, test.n, test.k, addToC, nullptr, nullptr, nullptr, epilogue}, least).size();
  };
  EXPECT_EQ(pieces(odd, DType::BF16), 3u);
  EXPECT_EQ(pieces(odd, DType::F32), 0u); // no tensor cores
  EXPECT_EQ(pieces(odd, DType::BF16, /*addToC=*/true), 0u);
  EXPECT_EQ(pieces(odd, DType::BF16, false, EpilogueKind::Bias), 0u);
  EXPECT_EQ(pieces(odd, DType::BF16, false, {}, 2 * 16 * 203 * 16), 3u);
  EXPECT_EQ(pieces(odd, DType::BF16, false, {}, 2 * 16 * 203 * 16 + 1024 * 16), 0u); // too small
  EXPECT_EQ(pieces({16, 208, 16, {}, {}, {}, {}, false, true}, DType::BF16), 0u); // aligned as it is
  EXPECT_EQ(pieces({16, 203, 12, {}, {}, {}, {}, false, true}, DType::BF16), 0u); // operands that are not
  EXPECT_EQ(pieces({16, 203, 16, {}, {}, {}, {}, false, false}, DType::BF16), 0u); // B too
  EXPECT_EQ(pieces({16, 203, 16, {}, {}, {}, {}, true, true}, DType::BF16), 0u);
  EXPECT_EQ(pieces({203, 16, 16, {}, {}, {}, {}, true, false, 5}, DType::BF16), 0u); // odd, but for its rows
  EXPECT_EQ(pieces({203, 16, 7, {}, {}, {}, {}, true, false}, DType::BF16), 0u);
  EXPECT_EQ(pieces({16, 203, 16, {2}, {256}, {0}, {3248}, false, true}, DType::BF16), 0u);
  EXPECT_EQ(pieces({3, 203, 16, {}, {}, {}, {}, false, true}, DType::BF16), 0u); // fewer rows than kinds of them
  EXPECT_EQ(pieces({16, 13, 16, {}, {}, {}, {}, false, true}, DType::BF16), 0u); // edges are most of it
}

TEST_F(Gpu, ProductsThatThereAreNot) {
  Bench bench;
  Case test{2, 2, 2, {}, {}, {}, {}};
  plan::Gemm mixed = gemmOf(test, DType::F32, DType::F32);
  mixed.b.dtype = DType::F16;
  EXPECT_THAT(
      bench.device->prepare({mixed, 2, 2, 2, false, nullptr, nullptr, nullptr}).status().text(),
      HasSubstr("error[unsupported]: the cuda backend has no product of f32 and f16 into f32 with sums in f32"));
}

namespace {

/// Any numbers of about 1, as a type holds them; and their values.
std::vector<std::byte> random(DType dtype, int64_t elements, uint64_t seed, std::vector<double> &values) {
  std::vector<std::byte> bytes(size_t(elements * byteSize(dtype)));
  for (int64_t i = 0; i < elements; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    float value = float(int32_t(seed >> 32)) / 1.5e9f;
    if (byteSize(dtype) == 2) {
      const uint16_t bits = dtype == DType::F16 ? floatToHalf(value) : floatToBfloat(value);
      value = dtype == DType::F16 ? halfToFloat(bits) : bfloatToFloat(bits);
      std::memcpy(bytes.data() + i * 2, &bits, 2);
    } else {
      std::memcpy(bytes.data() + i * 4, &value, 4);
    }
    values.push_back(double(value));
  }
  return bytes;
}

} // namespace

// Numbers that are not exact, on the card and on the host against sums in double: each within what its arithmetic
// allows, and no better than that where operands are said to be rounded. Sums of 16-bit operands are in f32: in 16 bits
// they would be off by the square root of k more.
TEST_F(Gpu, ProductsRoundAsTheirTypesDo) {
  constexpr int64_t m = 6, n = 10, k = 700;
  struct Types {
    DType in, out;
    bool tf32;
  };
  for (const Types &types : {Types{DType::F32, DType::F32, false}, Types{DType::F32, DType::F32, true},
                             Types{DType::BF16, DType::F32, false}, Types{DType::F16, DType::F32, false},
                             Types{DType::BF16, DType::BF16, false}, Types{DType::F16, DType::F16, false}})
    for (bool hasBias : {false, true}) {
      Bench bench(types.tf32);
      std::vector<double> a, b, c, added;
      const std::vector<std::byte> bytesA = random(types.in, m * k, 1, a), bytesB = random(types.in, k * n, 2, b),
                                   bias = random(types.out, n, 3, added);
      std::vector<std::byte> onHost(size_t(m * n * byteSize(types.out)));
      Case test{m, n, k, {}, {}, {}, {}};
      plan::Gemm gemm = gemmOf(test, types.in, types.out);
      std::vector<std::byte> scratch;
      GemmCall hostCall{gemm, m, n, k, false, bytesA.data(), bytesB.data(), onHost.data()};
      ASSERT_TRUE(host::gemm(hostCall, scratch).ok());
      std::byte *deviceC = bench.upload(onHost);
      GemmCall call{gemm, m, n, k, false, bench.upload(bytesA), bench.upload(bytesB), deviceC};
      if (hasBias) {
        call.epilogue = plan::EpilogueKind::BiasGeluTanh;
        call.bias = bench.upload(bias);
      }
      Expected<GemmHandle> handle = bench.device->prepare(call);
      ASSERT_TRUE(handle.ok()) << handle.status().text();
      ASSERT_TRUE(bench.device->gemm(*handle, call).ok());
      const std::vector<std::byte> onCard = bench.download(deviceC, onHost.size());
      // Rounding of the operands (TF32 keeps 10 bits), of k steps of the sum, of the result.
      const double operand = types.tf32 ? 2 * 0x1p-11 : 0, step = 0x1p-24,
                   result = types.out == DType::F32   ? 0x1p-23
                            : types.out == DType::F16 ? 0x1p-11
                                                      : 0x1p-8;
      double worst = 0;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0, magnitude = 0;
          for (int64_t l = 0; l < k; ++l) {
            sum += a[size_t(i * k + l)] * b[size_t(l * n + j)];
            magnitude += std::abs(a[size_t(i * k + l)] * b[size_t(l * n + j)]);
          }
          const double wanted = hasBias ? activated(plan::EpilogueKind::BiasGeluTanh, sum + added[size_t(j)]) : sum;
          // GELU is at most 1.13 times as steep as what goes into it, and its own terms round a few times.
          const double bound = 1.13 * magnitude * (operand + k * step) + (std::abs(wanted) + hasBias) * 4 * result;
          const size_t at = size_t(i * n + j);
          EXPECT_NEAR(valueAt(onCard, types.out, at), wanted, bound) << name(types.in) << " at " << i << "," << j;
          if (!hasBias)
            EXPECT_NEAR(valueAt(onHost, types.out, at), wanted, bound) << name(types.in) << " at " << i << "," << j;
          worst = std::max(worst, std::abs(valueAt(onCard, types.out, at) - wanted));
        }
      if (types.out == DType::F32 && !hasBias) // --tf32 is what it says, and nothing else is
        EXPECT_EQ(worst > 1e-3, types.tf32) << name(types.in) << " " << worst;
    }
}

// Boxes larger than the pinned memory pass through it in pieces, with their padding.
TEST_F(Gpu, LargeBoxesPassInPieces) {
  Bench bench;
  const int64_t rows = 3000, columns = 2000, box = 2048;
  std::vector<std::byte> global(size_t(rows * columns * 4)), back(global.size());
  for (size_t i = 0; i < global.size(); ++i)
    global[i] = std::byte(i * 2654435761u >> 13);
  plan::Slice slice{{rows, columns}, {0, 0}, {rows, columns}, {rows, box}};
  SliceCopy copy(slice, 4, {});
  std::byte *memory = *bench.device->allocate(plan::Space::Device, copy.boxBytes(), std::byte{0xff});
  ASSERT_GT(copy.boxBytes(), 5 * cuda::Staging::pieceBytes);
  ASSERT_TRUE(bench.device->gather(copy, global.data(), memory).ok());
  ASSERT_TRUE(bench.device->scatter(copy, memory, back.data()).ok());
  ASSERT_TRUE(bench.device->finish().ok());
  EXPECT_EQ(back, global);
  EXPECT_EQ(bench.download(memory + columns * 4, 192), std::vector<std::byte>(192)); // padding is zero
}
