// Operations on tensors in cuDNN's graph interface, and their execution plan. Tensors without memory of their own are
// virtual; cuDNN fuses the operations that they connect into one kernel, or refuses the graph.
#pragma once

#include "runtime/backend/cuda/Handles.h"
#include "runtime/base/Status.h"

#include <array>
#include <vector>

namespace hpc::cuda {

/// Four dims, strides in elements.
using Dims = std::array<int64_t, 4>;
/// Row-major.
Dims packedStrides(const Dims &dims);

/// The engine chosen for a graph. Keeps the descriptors of which it was built.
class CudnnPlan {
public:
  int64_t workspaceBytes() const { return workspace; }
  /// `pointers`: of the tensors that were named by memory(), in their order.
  Status run(DnnHandle handle, const std::vector<void *> &pointers, void *workspace) const;

private:
  friend class CudnnGraph;
  const Cudnn *dnn = nullptr;
  std::vector<Descriptor> owned;
  struct Number {
    alignas(8) std::array<char, 4> bytes;
  };
  std::vector<Number> numbers; ///< given by value
  std::vector<int64_t> ids;                ///< of tensors in memory, then of numbers
  DescriptorHandle plan = nullptr;
  int64_t workspace = 0;
};

/// Keeps the first error of a call, after which nothing more is built; finish() returns it.
class CudnnGraph {
public:
  explicit CudnnGraph(const Cudnn &dnn);

  using Tensor = DescriptorHandle;
  /// In memory, at a multiple of `alignment` bytes.
  Tensor memory(int type, const Dims &dims, const Dims &strides, int64_t alignment);
  Tensor inBetween(int type, const Dims &dims);
  Tensor inBetween(int type, const Dims &dims, const Dims &strides);
  Tensor number(float value);
  Tensor number(int32_t value);

  void matmul(Tensor a, Tensor b, Tensor c);
  /// y = mode(x, b); in a select, b where t is false. `precision`: the type that is computed in.
  void pointwise(int mode, Tensor x, Tensor b, Tensor y, int precision = dnnF32, Tensor t = nullptr);
  /// y = the index of each element along `axis`.
  void index(int64_t axis, Tensor x, Tensor y);
  void reduce(int operation, Tensor x, Tensor y);
  void reshape(Tensor x, Tensor y);

  /// The plan of the first engine that supports the graph, in cuDNN's ranking. An error of kind Unsupported: none does.
  /// Without a handle, `device` names the card in cuDNN's JSON, and the plan cannot be run.
  Expected<CudnnPlan> finish(DnnHandle handle, const std::string &device = {});

private:
  DescriptorHandle make(int type, const char *what);
  void set(DescriptorHandle descriptor, int name, int type, int64_t count, const void *elements);
  void finalize(DescriptorHandle descriptor);
  void operation(DescriptorHandle descriptor);
  Tensor tensor(int type, const Dims &dims, const Dims &strides, int64_t alignment, bool isVirtual, bool isByValue);
  Tensor byValue(int type, const void *value);
  std::vector<DescriptorHandle> choices(DescriptorHandle graph, DescriptorHandle device, int mode);

  const Cudnn &dnn;
  CudnnPlan made;
  Status failure;
  std::string doing; ///< the call in progress, for `failure`
  std::vector<DescriptorHandle> operations;
  std::vector<int64_t> numberIds;
  int64_t nextId = 1;
};

} // namespace hpc::cuda
