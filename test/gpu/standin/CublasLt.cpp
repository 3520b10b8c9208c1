// cuBLASLt's functions under their own names: column-major products in plain loops on the stream that they are given.
// It checks that a product is called as it was chosen: layouts, alignment and workspace.
#include "runtime/backend/cuda/CublasLtApi.h"
#include "runtime/base/HalfFloat.h"
#include "test/gpu/standin/Machine.h"

#include <cmath>
#include <cstring>

using namespace hpc::cuda;
using standin::Machine;
using standin::Range;
using standin::Running;

namespace hpc::cuda {
struct BlasState {
  int unused = 0;
};
struct ProductState {
  int compute = 0, scale = 0;
  int32_t transposeA = operationNone, transposeB = operationNone;
  uint32_t epilogue = epilogueNone;
  const void *bias = nullptr;
};
struct LayoutState {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct PreferenceState {
  uint64_t workspace = 0;
  uint32_t align[4] = {256, 256, 256, 256};
};
} // namespace hpc::cuda

namespace {

constexpr size_t workspaceWanted = 4096;

#define ENTER(FAILURE)                                                                                                 \
  if (int failure = Machine::instance().enter(__func__, FAILURE))                                                      \
  return failure

template <typename T> BlasResult make(T **handle, const char *kind, T value) {
  *handle = new T(value);
  Machine::instance().count(kind, 1);
  return blasSuccess;
}
template <typename T> BlasResult destroy(T *handle, const char *kind) {
  delete handle;
  Machine::instance().count(kind, -1);
  return blasSuccess;
}
template <typename T> BlasResult assign(T &field, const void *value, size_t bytes) {
  if (bytes != sizeof(T))
    return blasInvalidValue;
  std::memcpy(&field, value, bytes);
  return blasSuccess;
}

int64_t bytesOf(int type) { return type == typeF64 ? 8 : type == typeF32 ? 4 : 2; }

double loadElement(const std::byte *data, int type, int64_t index) {
  data += index * bytesOf(type);
  if (type == typeF64) {
    double value;
    std::memcpy(&value, data, 8);
    return value;
  }
  if (type == typeF32) {
    float value;
    std::memcpy(&value, data, 4);
    return double(value);
  }
  uint16_t bits;
  std::memcpy(&bits, data, 2);
  return double(type == typeF16 ? hpc::halfToFloat(bits) : hpc::bfloatToFloat(bits));
}
void storeElement(std::byte *data, int type, int64_t index, double value) {
  data += index * bytesOf(type);
  if (type == typeF64) {
    std::memcpy(data, &value, 8);
  } else if (type == typeF32) {
    float narrow = float(value);
    std::memcpy(data, &narrow, 4);
  } else {
    uint16_t bits = type == typeF16 ? hpc::floatToHalf(float(value)) : hpc::floatToBfloat(float(value));
    std::memcpy(data, &bits, 2);
  }
}

/// As a tensor core takes an f32 in TF32: 10 bits of mantissa, the nearest, ties away from zero.
double roundedToTF32(double value) {
  float narrow = float(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, 4);
  bits = (bits + 0x1000u) & ~0x1fffu;
  std::memcpy(&narrow, &bits, 4);
  return double(narrow);
}

/// What of a product decides whether an algorithm is one for it.
uint64_t fingerprint(const ProductState &product, std::initializer_list<const LayoutState *> layouts) {
  uint64_t hash = uint64_t(product.compute) * 31 + uint64_t(product.transposeA) * 7 + uint64_t(product.transposeB) * 3 +
                  product.epilogue;
  for (const LayoutState *layout : layouts)
    for (uint64_t number : {uint64_t(layout->type), layout->rows, layout->columns, uint64_t(layout->ld),
                            uint64_t(layout->batch), uint64_t(layout->stride)})
      hash = hash * 1000003 + number;
  return hash;
}

bool fits(const LayoutState &layout) {
  return layout.rows > 0 && layout.columns > 0 && layout.ld >= int64_t(layout.rows) && layout.batch > 0;
}

/// The bytes of all matrices of a layout, column by column.
std::vector<Range> rangesOf(const LayoutState &layout, uint64_t address) {
  std::vector<Range> ranges;
  const int64_t bytes = bytesOf(layout.type);
  for (int64_t batch = 0; batch < layout.batch; ++batch)
    for (uint64_t column = 0; column < layout.columns; ++column)
      ranges.push_back({address + uint64_t((batch * layout.stride + int64_t(column) * layout.ld) * bytes),
                        layout.rows * uint64_t(bytes)});
  return ranges;
}

/// Where the matrices are, all bytes checked.
std::byte *reach(const Running &running, const LayoutState &layout, uint64_t address) {
  for (const Range &range : rangesOf(layout, address))
    if (!running.access(range.begin, range.bytes))
      return nullptr;
  return running.access(address, 1);
}

struct Call {
  ProductState product;
  LayoutState a, b, c;
  double alpha, beta;
  uint64_t addressA, addressB, addressC, bias, workspace;
};

double activated(uint32_t epilogue, double x) {
  if (epilogue == epilogueReluBias)
    return x > 0 ? x : 0; // as a card does it: 0 of NaN
  if (epilogue == epilogueGeluBias)
    return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  return x;
}

void multiplyNow(const Call &call, const Running &running) {
  const auto &[product, a, b, c, alpha, beta, addressA, addressB, addressC, biasAddress, workspace] = call;
  running.note(rangesOf(a, addressA), false);
  running.note(rangesOf(b, addressB), false);
  running.note(rangesOf(c, addressC), true);
  running.note({{workspace, workspaceWanted}}, true);
  const std::byte *dataA = reach(running, a, addressA), *dataB = reach(running, b, addressB);
  std::byte *dataC = reach(running, c, addressC), *junk = running.access(workspace, workspaceWanted);
  const bool hasBias = product.epilogue != epilogueNone;
  const std::byte *bias = hasBias ? running.access(biasAddress, c.rows * uint64_t(bytesOf(c.type))) : nullptr;
  if (!dataA || !dataB || !dataC || !junk || (hasBias && !bias))
    return;
  std::memset(junk, 0x5a, workspaceWanted);
  if (hasBias)
    running.note({{biasAddress, c.rows * uint64_t(bytesOf(c.type))}}, false);
  const bool isRounded = product.compute == computeTF32;
  auto load = [&](const std::byte *data, int type, int64_t index) {
    const double value = loadElement(data, type, index);
    return isRounded ? roundedToTF32(value) : value;
  };
  const int64_t m = int64_t(c.rows), n = int64_t(c.columns);
  const int64_t k = int64_t(product.transposeA == operationTranspose ? a.rows : a.columns);
  std::vector<double> left(static_cast<size_t>(m * k)), sums(static_cast<size_t>(m));
  for (int64_t batch = 0; batch < c.batch; ++batch) {
    for (int64_t l = 0; l < k; ++l)
      for (int64_t i = 0; i < m; ++i)
        left[size_t(l * m + i)] = load(
            dataA, a.type, batch * a.stride + (product.transposeA == operationTranspose ? i * a.ld + l : l * a.ld + i));
    for (int64_t j = 0; j < n; ++j) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t l = 0; l < k; ++l) {
        const double factor = load(
            dataB, b.type, batch * b.stride + (product.transposeB == operationTranspose ? l * b.ld + j : j * b.ld + l));
        for (int64_t i = 0; i < m; ++i)
          sums[size_t(i)] += left[size_t(l * m + i)] * factor;
      }
      for (int64_t i = 0; i < m; ++i) {
        const int64_t at = batch * c.stride + j * c.ld + i;
        double value = alpha * sums[size_t(i)] + (beta != 0 ? beta * loadElement(dataC, c.type, at) : 0);
        if (hasBias)
          value = activated(product.epilogue, value + loadElement(bias, c.type, i));
        storeElement(dataC, c.type, at, value);
      }
    }
  }
}

} // namespace

extern "C" {

const char *cublasLtGetStatusName(BlasResult status) {
  return status == blasNotSupported  ? "CUBLAS_STATUS_NOT_SUPPORTED"
         : status == blasAllocFailed ? "CUBLAS_STATUS_ALLOC_FAILED"
                                     : "CUBLAS_STATUS_INTERNAL_ERROR";
}
BlasResult cublasLtCreate(BlasHandle *handle) {
  ENTER(blasAllocFailed);
  if (!standin::currentContext())
    return blasNotInitialized;
  return make(handle, "cublasLt handles", BlasState());
}
BlasResult cublasLtDestroy(BlasHandle handle) { return destroy(handle, "cublasLt handles"); }
BlasResult cublasLtMatmulDescCreate(ProductHandle *product, int compute, int scale) {
  ENTER(blasAllocFailed);
  ProductState state;
  state.compute = compute;
  state.scale = scale;
  return make(product, "product descriptors", state);
}
BlasResult cublasLtMatmulDescDestroy(ProductHandle product) { return destroy(product, "product descriptors"); }
BlasResult cublasLtMatmulDescSetAttribute(ProductHandle product, int attribute, const void *value, size_t bytes) {
  ENTER(blasInvalidValue);
  switch (attribute) {
  case productTransposeA:
    return assign(product->transposeA, value, bytes);
  case productTransposeB:
    return assign(product->transposeB, value, bytes);
  case productEpilogue:
    return assign(product->epilogue, value, bytes);
  case productBias:
    return assign(product->bias, value, bytes);
  }
  return blasInvalidValue;
}
BlasResult cublasLtMatrixLayoutCreate(LayoutHandle *layout, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  ENTER(blasAllocFailed);
  LayoutState state;
  state.type = type;
  state.rows = rows;
  state.columns = columns;
  state.ld = ld;
  return make(layout, "layouts", state);
}
BlasResult cublasLtMatrixLayoutDestroy(LayoutHandle layout) { return destroy(layout, "layouts"); }
BlasResult cublasLtMatrixLayoutSetAttribute(LayoutHandle layout, int attribute, const void *value, size_t bytes) {
  ENTER(blasInvalidValue);
  return attribute == layoutBatchCount    ? assign(layout->batch, value, bytes)
         : attribute == layoutBatchStride ? assign(layout->stride, value, bytes)
                                          : blasInvalidValue;
}
BlasResult cublasLtMatmulPreferenceCreate(PreferenceHandle *preference) {
  ENTER(blasAllocFailed);
  return make(preference, "preferences", PreferenceState());
}
BlasResult cublasLtMatmulPreferenceDestroy(PreferenceHandle preference) { return destroy(preference, "preferences"); }
BlasResult cublasLtMatmulPreferenceSetAttribute(PreferenceHandle preference, int attribute, const void *value,
                                                size_t bytes) {
  ENTER(blasInvalidValue);
  if (attribute == preferenceWorkspace)
    return assign(preference->workspace, value, bytes);
  if (attribute >= preferenceAlignA && attribute <= preferenceAlignD)
    return assign(preference->align[attribute - preferenceAlignA], value, bytes);
  return blasInvalidValue;
}
BlasResult cublasLtMatmulAlgoGetHeuristic(BlasHandle, ProductHandle product, LayoutHandle a, LayoutHandle b,
                                          LayoutHandle c, LayoutHandle d, PreferenceHandle preference, int wanted,
                                          BlasChoice *choices, int *found) {
  ENTER(blasInvalidValue);
  *found = 0;
  const bool transposeA = product->transposeA == operationTranspose,
             transposeB = product->transposeB == operationTranspose;
  const uint64_t m = transposeA ? a->columns : a->rows, k = transposeA ? a->rows : a->columns,
                 k2 = transposeB ? b->columns : b->rows, n = transposeB ? b->rows : b->columns;
  const bool isDouble = product->compute == computeF64;
  if (wanted < 1 || !fits(*a) || !fits(*b) || !fits(*c) || !fits(*d) || k != k2 || c->rows != m || c->columns != n ||
      a->type != b->type || isDouble != (a->type == typeF64) || product->scale != (isDouble ? typeF64 : typeF32) ||
      a->batch != c->batch || b->batch != c->batch || (c->batch > 1 && c->stride == 0) ||
      preference->workspace < workspaceWanted)
    return blasInvalidValue;
  if (isDouble && product->epilogue != epilogueNone)
    return blasNotSupported;
  *choices = BlasChoice();
  choices->workspaceBytes = workspaceWanted;
  choices->algorithm.data[0] = fingerprint(*product, {a, b, c, d});
  for (size_t i = 0; i < 4; ++i)
    choices->algorithm.data[i + 1] = preference->align[i];
  *found = 1;
  return blasSuccess;
}
BlasResult cublasLtMatmul(BlasHandle, ProductHandle product, const void *alpha, const void *a, LayoutHandle layoutA,
                          const void *b, LayoutHandle layoutB, const void *beta, const void *c, LayoutHandle layoutC,
                          void *d, LayoutHandle layoutD, const BlasAlgorithm *algorithm, void *workspace,
                          size_t workspaceBytes, StreamHandle stream) {
  ENTER(blasExecutionFailed);
  Machine &machine = Machine::instance();
  if (&stream->context != standin::currentContext())
    return blasInvalidValue;
  if (algorithm->data[0] != fingerprint(*product, {layoutA, layoutB, layoutC, layoutD}))
    machine.misuse("a product is called in a way that it was not chosen for");
  const void *pointers[] = {a, b, c, d};
  for (size_t i = 0; i < 4; ++i)
    if (reinterpret_cast<uintptr_t>(pointers[i]) % algorithm->data[i + 1] != 0)
      machine.misuse("an operand of a product is not as aligned as it was said to be");
  if (c != d || workspaceBytes < workspaceWanted || !workspace)
    return blasInvalidValue;
  if (product->epilogue != epilogueNone)
    ++machine.epilogues;
  const bool isDouble = product->scale == typeF64;
  auto scalar = [&](const void *value) {
    return isDouble ? *static_cast<const double *>(value) : double(*static_cast<const float *>(value));
  };
  auto number = [](const void *pointer) { return uint64_t(reinterpret_cast<uintptr_t>(pointer)); };
  Call call{*product,         *layoutA,  *layoutB,  *layoutC,  scalar(alpha),
            scalar(beta),     number(a), number(b), number(c), number(product->bias),
            number(workspace)};
  stream->enqueue("product", [call](const Running &running) { multiplyNow(call, running); });
  return blasSuccess;
}
} // extern "C"

#define HPC_SAME_TYPE(result, member, symbol, arguments)                                                               \
  static_assert(std::is_same_v<decltype(&::symbol), decltype(CublasLt::member)>);
HPC_BLAS_FUNCTIONS(HPC_SAME_TYPE)
