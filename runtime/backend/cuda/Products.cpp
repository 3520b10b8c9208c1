// Descriptors, and the one call. Names a, b, c are the plan's; to cuBLASLt "A" is the plan's b.
#include "runtime/backend/cuda/Products.h"

#include <algorithm>

namespace hpc::cuda {

namespace {

constexpr int64_t mostWorkspace = int64_t(32) << 20;

int dataType(DType dtype) {
  return dtype == DType::F64 ? typeF64 : dtype == DType::F16 ? typeF16 : dtype == DType::BF16 ? typeBF16 : typeF32;
}

bool hasProduct(const plan::Gemm &gemm) {
  const DType a = gemm.a.dtype, c = gemm.c.dtype;
  if (gemm.b.dtype != a || gemm.accumulate != (a == DType::F64 ? DType::F64 : DType::F32))
    return false;
  return ((a == DType::F32 || a == DType::F64) && c == a) ||
         ((a == DType::F16 || a == DType::BF16) && (c == a || c == DType::F32));
}

Status checkTypes(const plan::Gemm &gemm) {
  if (gemm.windows)
    return Status::error(ErrorKind::Unsupported, "the cuda backend multiplies matrices in memory, not windows of images; "
                                                 "compile the model with --target=cuda or --target=host,cuda");
  if (hasProduct(gemm))
    return Status::success();
  return Status::error(ErrorKind::Unsupported,
                       std::string("the cuda backend has no product of ") + name(gemm.a.dtype) + " and " +
                           name(gemm.b.dtype) + " into " + name(gemm.c.dtype) + " with sums in " +
                           name(gemm.accumulate) +
                           "; both operands must have one type: f32 into f32, f64 into f64 with sums in f64, f16 or "
                           "bf16 into itself or f32");
}

uint32_t epilogueNumber(std::optional<plan::EpilogueKind> kind) {
  if (!kind)
    return epilogueNone;
  switch (*kind) {
  case plan::EpilogueKind::Bias:
    return epilogueBias;
  case plan::EpilogueKind::BiasRelu:
    return epilogueReluBias;
  case plan::EpilogueKind::BiasGeluTanh:
    return epilogueGeluBias;
  }
  return epilogueNone;
}

/// Whether the library's epilogue equals the kernel, except for roundings of the result's type.
bool isFaithful(plan::EpilogueKind kind, DType result) {
  return kind == plan::EpilogueKind::Bias || (kind == plan::EpilogueKind::BiasGeluTanh && byteSize(result) == 2);
}

/// The largest power of two, 16 at most, that divides all numbers: the known alignment of an address, since buffers
/// begin at multiples of 64.
uint32_t alignment(std::initializer_list<int64_t> bytes) {
  uint32_t power = 16;
  for (int64_t number : bytes)
    while (number % power != 0)
      power /= 2;
  return power;
}

} // namespace

/// Batch dims: one is in the call, by its stride; the others are loops. Strides are in elements, of A, B and C.
struct Products::Batch {
  struct Dim {
    int64_t size;
    Offsets stride;
  };
  int64_t size = 1; ///< of all dims
  Dim strided{1, {0, 0, 0}};
  std::vector<Dim> others;

  explicit Batch(const plan::Gemm &gemm) {
    std::vector<Dim> dims;
    for (size_t d = 0; d < gemm.batch.size(); ++d) {
      size *= gemm.batch[d];
      Dim dim{gemm.batch[d], {gemm.a.stride[d], gemm.b.stride[d], gemm.c.stride[d]}};
      auto continues = [&](const Dim &outer) {
        for (size_t i = 0; i < 3; ++i)
          if (outer.stride[i] != dim.size * dim.stride[i])
            return false;
        return true;
      };
      if (dim.size == 1)
        continue;
      if (!dims.empty() && continues(dims.back()))
        dims.back() = {dims.back().size * dim.size, dim.stride};
      else
        dims.push_back(dim);
    }
    auto largest =
        std::max_element(dims.begin(), dims.end(), [](const Dim &x, const Dim &y) { return x.size < y.size; });
    if (largest != dims.end()) {
      strided = *largest;
      dims.erase(largest);
    }
    others = std::move(dims);
  }
};

Expected<Products> Products::create(const CublasLt &blas, const Gpu &gpu, bool tf32, int64_t leastOfPieces) {
  Products products(blas, gpu, tf32, leastOfPieces);
  BlasHandle handle = nullptr;
  HPC_RETURN_IF_ERROR(check(blas, blas.create(&handle), "starting cuBLASLt on " + gpu.name()));
  products.handle = Blas(blas, handle);
  return products;
}

Status Products::describe(const GemmCall &call, const Batch &batch, Prepared &entry) const {
  const plan::Gemm &gemm = call.plan;
  const std::string what = "describing a product";
  const bool isDouble = gemm.accumulate == DType::F64;
  const bool rounded = tf32 && gemm.a.dtype == DType::F32;
  ProductHandle product = nullptr;
  HPC_RETURN_IF_ERROR(check(*blas,
                            blas->createProduct(&product,
                                                isDouble  ? computeF64
                                                : rounded ? computeTF32
                                                          : computeF32,
                                                isDouble ? typeF64 : typeF32),
                            what));
  entry.product = ProductDescriptor(*blas, product);
  const int32_t operationA = gemm.b.transpose ? operationTranspose : operationNone;
  const int32_t operationB = gemm.a.transpose ? operationTranspose : operationNone;
  const uint32_t epilogue = epilogueNumber(call.epilogue);
  HPC_RETURN_IF_ERROR(
      check(*blas, blas->setProduct(product, productTransposeA, &operationA, sizeof(operationA)), what));
  HPC_RETURN_IF_ERROR(
      check(*blas, blas->setProduct(product, productTransposeB, &operationB, sizeof(operationB)), what));
  HPC_RETURN_IF_ERROR(check(*blas, blas->setProduct(product, productEpilogue, &epilogue, sizeof(epilogue)), what));

  // A stored row is a column for cuBLASLt.
  auto makeLayout = [&](Layout &layout, const plan::Operand &operand, int64_t rows, int64_t columns, size_t index) {
    if (operand.transpose)
      std::swap(rows, columns);
    const int64_t ld = rows <= 1 ? std::max(operand.ld, columns) : operand.ld; // one row has any step to the next
    LayoutHandle made = nullptr;
    HPC_RETURN_IF_ERROR(
        check(*blas, blas->createLayout(&made, dataType(operand.dtype), uint64_t(columns), uint64_t(rows), ld), what));
    layout = Layout(*blas, made);
    const int32_t count = int32_t(batch.strided.size);
    const int64_t stride = batch.strided.stride[index];
    HPC_RETURN_IF_ERROR(check(*blas, blas->setLayout(made, layoutBatchCount, &count, sizeof(count)), what));
    return check(*blas, blas->setLayout(made, layoutBatchStride, &stride, sizeof(stride)), what);
  };
  HPC_RETURN_IF_ERROR(makeLayout(entry.a, gemm.a, call.m, call.k, 0));
  HPC_RETURN_IF_ERROR(makeLayout(entry.b, gemm.b, call.k, call.n, 1));
  return makeLayout(entry.c, gemm.c, call.m, call.n, 2);
}

Status Products::choose(const GemmCall &call, const Batch &batch, Prepared &entry) const {
  const plan::Gemm &gemm = call.plan;
  const std::string what = "choosing how to multiply";
  PreferenceHandle made = nullptr;
  HPC_RETURN_IF_ERROR(check(*blas, blas->createPreference(&made), what));
  Preference preference(*blas, made);
  const uint64_t most = uint64_t(mostWorkspace);
  HPC_RETURN_IF_ERROR(check(*blas, blas->setPreference(made, preferenceWorkspace, &most, sizeof(most)), what));
  auto align = [&](int attribute, const plan::Operand &operand, size_t index) {
    const int64_t bytes = byteSize(operand.dtype);
    uint32_t known = alignment({operand.place.byteOffset, batch.strided.stride[index] * bytes});
    for (const Batch::Dim &dim : batch.others)
      known = std::min(known, alignment({dim.stride[index] * bytes}));
    for (int64_t offset : operand.offset.values)
      known = std::min(known, alignment({offset}));
    return check(*blas, blas->setPreference(made, attribute, &known, sizeof(known)), what);
  };
  HPC_RETURN_IF_ERROR(align(preferenceAlignA, gemm.b, 1));
  HPC_RETURN_IF_ERROR(align(preferenceAlignB, gemm.a, 0));
  HPC_RETURN_IF_ERROR(align(preferenceAlignC, gemm.c, 2));
  HPC_RETURN_IF_ERROR(align(preferenceAlignD, gemm.c, 2));
  BlasChoice choice{};
  int found = 0;
  Status status = check(*blas,
                        blas->choose(handle.get(), entry.product.get(), entry.b.get(), entry.a.get(), entry.c.get(),
                                     entry.c.get(), made, 1, &choice, &found),
                        what);
  if (status.ok() && (found < 1 || choice.state != blasSuccess))
    status = Status::error(ErrorKind::Unsupported, what + ": cuBLASLt offers no way");
  if (!status.ok())
    return status.at("a product of m=" + std::to_string(call.m) + " n=" + std::to_string(call.n) + " k=" +
                     std::to_string(call.k) + " in " + name(gemm.a.dtype) + ", batch " + std::to_string(batch.size));
  entry.algorithm = choice.algorithm;
  entry.workspace = int64_t(choice.workspaceBytes);
  return Status::success();
}

/// The epilogue alone, which comes with a product only: that of a column of zeros and a row of zeros.
Expected<GemmHandle> Products::prepareEpilogueOfNothing(const GemmCall &call, StreamHandle stream) {
  const int64_t bytes = std::max(call.m, call.n) * byteSize(call.plan.a.dtype);
  if (zeroBytes < bytes) {
    Expected<DeviceMemory> memory = gpu->allocate(bytes);
    if (!memory.ok())
      return memory.status();
    zeros = std::move(*memory);
    zeroBytes = bytes;
    HPC_RETURN_IF_ERROR(
        check(gpu->driver(), gpu->driver().fillAsync(zeros.get(), 0, size_t(bytes), stream), "writing zeros"));
  }
  plan::Gemm ofZeros = call.plan;
  ofZeros.k = 1;
  for (plan::Operand *operand : {&ofZeros.a, &ofZeros.b}) {
    operand->place.byteOffset = 0;
    operand->transpose = false;
    operand->stride.assign(operand->stride.size(), 0);
  }
  ofZeros.a.ld = 1;
  ofZeros.b.ld = call.n;
  Expected<GemmHandle> handle =
      prepare({ofZeros, call.m, call.n, 1, false, nullptr, nullptr, nullptr, call.epilogue, call.bias}, stream);
  if (handle.ok())
    prepared[size_t(*handle)].isOfZeros = true;
  return handle;
}

Expected<GemmHandle> Products::prepare(const GemmCall &call, StreamHandle stream) {
  HPC_RETURN_IF_ERROR(checkTypes(call.plan));
  std::vector<ProductPiece> pieces = alignedPieces(call, leastOfPieces);
  if (pieces.empty())
    return prepareWhole(call, stream);
  Prepared entry;
  entry.what = Prepared::Pieces;
  for (ProductPiece &piece : pieces) {
    Expected<GemmHandle> handle =
        prepareWhole({piece.plan, piece.m, piece.n, piece.k, piece.addToC, nullptr, nullptr, nullptr}, stream);
    if (!handle.ok())
      return handle;
    entry.pieces.emplace_back(std::move(piece), *handle);
  }
  prepared.push_back(std::move(entry));
  return GemmHandle(prepared.size()) - 1;
}

Expected<GemmHandle> Products::prepareWhole(const GemmCall &call, StreamHandle stream) {
  const plan::Gemm &gemm = call.plan;
  const Batch batch(gemm);
  Prepared entry;
  if (call.m == 0 || call.n == 0 || batch.size == 0 || (call.k == 0 && call.addToC)) {
    entry.what = Prepared::Nothing;
  } else if (call.k == 0) {
    if (call.epilogue)
      return prepareEpilogueOfNothing(call, stream);
    entry.what = Prepared::Zeros;
  } else {
    entry.what = Prepared::Multiply;
    HPC_RETURN_IF_ERROR(describe(call, batch, entry));
    HPC_RETURN_IF_ERROR(choose(call, batch, entry));
  }
  // A sum of nothing is written product by product.
  std::vector<Batch::Dim> dims = batch.others;
  if (entry.what == Prepared::Zeros)
    dims.push_back(batch.strided);
  entry.rounds = {{0, 0, 0}};
  const int64_t bytes[3] = {byteSize(gemm.a.dtype), byteSize(gemm.b.dtype), byteSize(gemm.c.dtype)};
  for (const Batch::Dim &dim : dims) {
    std::vector<Offsets> more;
    for (const Offsets &round : entry.rounds)
      for (int64_t i = 0; i < dim.size; ++i) {
        Offsets next = round;
        for (size_t operand = 0; operand < 3; ++operand)
          next[operand] += i * dim.stride[operand] * bytes[operand];
        more.push_back(next);
      }
    entry.rounds = std::move(more);
  }
  if (entry.workspace > reserved) {
    Expected<DeviceMemory> memory = gpu->allocate(entry.workspace);
    if (!memory.ok())
      return memory.status();
    workspace = std::move(*memory);
    reserved = entry.workspace;
  }
  prepared.push_back(std::move(entry));
  return GemmHandle(prepared.size()) - 1;
}

Expected<bool> Products::fuses(const GemmCall &call, Epilogues wanted, StreamHandle stream) {
  if (wanted == Epilogues::None || (wanted == Epilogues::Faithful && !isFaithful(*call.epilogue, call.plan.c.dtype)))
    return false;
  GemmCall plain = call;
  plain.epilogue.reset();
  if (!alignedPieces(plain, leastOfPieces).empty())
    return false; // the kernel costs less than a slow product
  Expected<GemmHandle> handle = prepare(call, stream);
  if (!handle.ok())
    return handle.status().kind() == ErrorKind::Unsupported ? Expected<bool>(false) : Expected<bool>(handle.status());
  prepared.pop_back();
  return true;
}

Status Products::run(GemmHandle index, const GemmCall &call, StreamHandle stream) {
  const Prepared &entry = prepared[size_t(index)];
  const plan::Gemm &gemm = call.plan;
  if (entry.what == Prepared::Nothing)
    return Status::success();
  if (entry.what == Prepared::Pieces) {
    for (const auto &[piece, handle] : entry.pieces)
      HPC_RETURN_IF_ERROR(run(handle,
                              {piece.plan, piece.m, piece.n, piece.k, piece.addToC, call.a + piece.offset[0],
                               call.b + piece.offset[1], call.c + piece.offset[2]},
                              stream));
    return Status::success();
  }
  if (entry.what == Prepared::Zeros) {
    const size_t element = size_t(byteSize(gemm.c.dtype));
    for (const Offsets &round : entry.rounds)
      HPC_RETURN_IF_ERROR(check(gpu->driver(),
                                gpu->driver().fillRowsAsync(DevicePointer(call.c + round[2]),
                                                            size_t(std::max(gemm.c.ld, call.n)) * element, 0,
                                                            size_t(call.n) * element, size_t(call.m), stream),
                                "writing zeros"));
    return Status::success();
  }
  if (call.bias)
    HPC_RETURN_IF_ERROR(check(*blas, blas->setProduct(entry.product.get(), productBias, &call.bias, sizeof(call.bias)),
                              "setting the bias of a product"));
  const auto *nothing = reinterpret_cast<const std::byte *>(uintptr_t(zeros.get()));
  const std::byte *a = entry.isOfZeros ? nothing : call.a, *b = entry.isOfZeros ? nothing : call.b;
  const bool isDouble = gemm.accumulate == DType::F64;
  const float one = 1, scale = call.addToC ? 1.0f : 0.0f;
  const double wideOne = 1, wideScale = scale;
  const void *alpha = isDouble ? static_cast<const void *>(&wideOne) : &one;
  const void *beta = isDouble ? static_cast<const void *>(&wideScale) : &scale;
  for (const Offsets &round : entry.rounds)
    HPC_RETURN_IF_ERROR(check(
        *blas,
        blas->multiply(handle.get(), entry.product.get(), alpha, b + round[1], entry.b.get(), a + round[0],
                       entry.a.get(), beta, call.c + round[2], entry.c.get(), call.c + round[2], entry.c.get(),
                       &entry.algorithm, reinterpret_cast<void *>(workspace.get()), size_t(entry.workspace), stream),
        "a product"));
  return Status::success();
}

} // namespace hpc::cuda
