// Asks cuDNN's own library, for a card that is described in its JSON, whether it has an engine for the backend's graphs of
// attention: no card is needed. Built and run by cudnn-engines.sh.
#include "runtime/backend/cuda/AttentionGraph.h"
#include "runtime/backend/cuda/Library.h"

#include <cstdio>

using namespace hpc;
using namespace hpc::cuda;

namespace {

struct Case {
  int64_t batch, heads, groups, queries, keys, depth, width;
  int64_t causalOffset; ///< -1: no mask
  DType dtype;
  bool headsInside; ///< positions outside of heads, as projections leave them
};

const Case cases[] = {
    {2, 12, 12, 128, 128, 64, 64, -1, DType::BF16, false}, {16, 12, 12, 1024, 1024, 64, 64, 0, DType::BF16, true},
    {2, 5, 5, 33, 33, 8, 8, 0, DType::BF16, true},         {1, 8, 2, 64, 96, 128, 128, 32, DType::F16, false},
    {1, 8, 2, 1, 40, 64, 64, 39, DType::F16, false},       {2, 25, 25, 1024, 1024, 64, 64, 0, DType::F16, true},
    {1, 4, 4, 7, 11, 16, 24, -1, DType::F16, false},
};

plan::Attention attentionOf(const Case &one) {
  plan::Attention a;
  a.batch = one.batch;
  a.heads = one.heads;
  a.groups = one.groups;
  a.queries = one.queries;
  a.keys = one.keys;
  a.depth = one.depth;
  a.width = one.width;
  a.scale = 0.125;
  a.causal = one.causalOffset >= 0;
  a.causalOffset = a.causal ? one.causalOffset : 0;
  auto tensor = [&](int64_t heads, int64_t rows, int64_t columns) {
    plan::AttentionTensor made{0, one.dtype, 0, {heads * rows * columns, rows * columns, columns, 1}};
    if (one.headsInside)
      made.stride = {heads * rows * columns, columns, heads * columns, 1};
    return made;
  };
  a.query = tensor(one.heads, one.queries, one.depth);
  a.key = tensor(one.groups, one.keys, one.depth);
  a.value = tensor(one.groups, one.keys, one.width);
  a.gradient = tensor(one.heads, one.queries, one.width);
  a.results = {a.gradient};
  return a;
}

bool tell(const char *what, const Status &status, int64_t bytes) {
  std::printf("%s %s%s%s\n", status.ok() ? "ok  " : "FAIL", what, status.ok() ? ", workspace " : ": ",
              status.ok() ? std::to_string(bytes).c_str() : status.message().c_str());
  return status.ok();
}

} // namespace

int main(int, char **arguments) {
  Expected<Cudnn> dnn = loadCudnn("");
  if (!dnn.ok()) {
    std::printf("%s\n", dnn.status().message().c_str());
    return 1;
  }
  std::printf("cuDNN %zu\n", dnn->version());
  const std::string card = arguments[1];
  bool passed = true;
  for (const Case &one : cases) {
    plan::Attention attention = attentionOf(one);
    std::printf("%s, %ld x %ld heads in %ld groups, %ld queries, %ld keys, %ld and %ld channels, diagonal %ld\n", name(one.dtype),
                long(one.batch), long(one.heads), long(one.groups), long(one.queries), long(one.keys), long(one.depth), long(one.width), long(one.causalOffset));
    Expected<CudnnPlan> forward = makeForward(*dnn, nullptr, attention, false, card);
    passed &= tell("forward", forward.status(), forward.ok() ? forward->workspaceBytes() : 0);
    attention.kind = plan::AttentionKind::Backward;
    attention.results = {attention.query, attention.key, attention.value};
    Expected<CudnnPlan> again = makeForward(*dnn, nullptr, attention, true, card);
    passed &= tell("forward with sums of rows", again.status(), again.ok() ? again->workspaceBytes() : 0);
    Expected<CudnnPlan> backward = makeBackward(*dnn, nullptr, attention, card);
    passed &= tell("backward", backward.status(), backward.ok() ? backward->workspaceBytes() : 0);
    for (plan::AttentionTensor &result : attention.results)
      result.dtype = DType::F32;
    Expected<CudnnPlan> rounded = makeBackward(*dnn, nullptr, attention, card);
    passed &= tell("backward of f32", rounded.status(), rounded.ok() ? rounded->workspaceBytes() : 0);
  }
  return passed ? 0 : 1;
}
