// Numbers are given by value, from memory of the host that lives as long as the plan.
#include "runtime/backend/cuda/CudnnGraph.h"

#include "runtime/backend/cuda/Library.h"

#include <algorithm>
#include <cstring>

namespace hpc::cuda {

Dims packedStrides(const Dims &dims) {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}

CudnnGraph::CudnnGraph(const Cudnn &dnn) : dnn(dnn) { made.dnn = &dnn; }

// ---- descriptors --------------------------------------------------------------------------------

DescriptorHandle CudnnGraph::make(int type, const char *what) {
  if (!failure.ok())
    return nullptr;
  doing = std::string("describing ") + what;
  DescriptorHandle descriptor = nullptr;
  failure = check(dnn, dnn.createDescriptor(type, &descriptor), doing);
  if (!failure.ok())
    return nullptr;
  made.owned.emplace_back(dnn, descriptor);
  return descriptor;
}

void CudnnGraph::set(DescriptorHandle descriptor, int name, int type, int64_t count, const void *elements) {
  if (failure.ok())
    failure = check(dnn, dnn.set(descriptor, name, type, count, elements), doing);
}

void CudnnGraph::finalize(DescriptorHandle descriptor) {
  if (failure.ok())
    failure = check(dnn, dnn.finalize(descriptor), doing);
}

void CudnnGraph::operation(DescriptorHandle descriptor) {
  finalize(descriptor);
  operations.push_back(descriptor);
}

// ---- tensors ------------------------------------------------------------------------------------

CudnnGraph::Tensor CudnnGraph::tensor(int type, const Dims &dims, const Dims &strides, int64_t alignment,
                                      bool isVirtual, bool isByValue) {
  DescriptorHandle made = make(descriptorTensor, "a tensor");
  const int64_t id = nextId++;
  set(made, tensorType, attributeDataType, 1, &type);
  set(made, tensorDims, attributeI64, 4, dims.data());
  set(made, tensorStrides, attributeI64, 4, strides.data());
  set(made, tensorId, attributeI64, 1, &id);
  set(made, tensorAlignment, attributeI64, 1, &alignment);
  set(made, tensorIsVirtual, attributeBoolean, 1, &isVirtual);
  set(made, tensorIsByValue, attributeBoolean, 1, &isByValue);
  finalize(made);
  return made;
}

CudnnGraph::Tensor CudnnGraph::memory(int type, const Dims &dims, const Dims &strides, int64_t alignment) {
  made.ids.push_back(nextId);
  return tensor(type, dims, strides, alignment, false, false);
}
CudnnGraph::Tensor CudnnGraph::inBetween(int type, const Dims &dims) { return inBetween(type, dims, packedStrides(dims)); }
CudnnGraph::Tensor CudnnGraph::inBetween(int type, const Dims &dims, const Dims &strides) {
  return tensor(type, dims, strides, 16, true, false);
}
CudnnGraph::Tensor CudnnGraph::byValue(int type, const void *value) {
  std::memcpy(made.numbers.emplace_back().bytes.data(), value, 4);
  numberIds.push_back(nextId);
  return tensor(type, {1, 1, 1, 1}, {1, 1, 1, 1}, 4, false, true);
}
CudnnGraph::Tensor CudnnGraph::number(float value) { return byValue(dnnF32, &value); }
CudnnGraph::Tensor CudnnGraph::number(int32_t value) { return byValue(dnnI32, &value); }

// ---- operations ---------------------------------------------------------------------------------

void CudnnGraph::matmul(Tensor a, Tensor b, Tensor c) {
  DescriptorHandle how = make(descriptorMatmul, "a product");
  set(how, matmulPrecision, attributeDataType, 1, &dnnF32);
  finalize(how);
  DescriptorHandle op = make(descriptorMatmulOperation, "a product");
  set(op, matmulA, attributeDescriptor, 1, &a);
  set(op, matmulB, attributeDescriptor, 1, &b);
  set(op, matmulC, attributeDescriptor, 1, &c);
  set(op, matmulDescriptor, attributeDescriptor, 1, &how);
  operation(op);
}

void CudnnGraph::pointwise(int mode, Tensor x, Tensor b, Tensor y, int precision, Tensor t) {
  DescriptorHandle how = make(descriptorPointwise, "an operation on elements");
  set(how, pointwiseMode, attributePointwiseMode, 1, &mode);
  set(how, pointwisePrecision, attributeDataType, 1, &precision);
  finalize(how);
  DescriptorHandle op = make(descriptorPointwiseOperation, "an operation on elements");
  set(op, pointwiseDescriptor, attributeDescriptor, 1, &how);
  set(op, pointwiseX, attributeDescriptor, 1, &x);
  if (b)
    set(op, pointwiseB, attributeDescriptor, 1, &b);
  if (t)
    set(op, pointwiseT, attributeDescriptor, 1, &t);
  set(op, pointwiseY, attributeDescriptor, 1, &y);
  operation(op);
}

void CudnnGraph::index(int64_t axis, Tensor x, Tensor y) {
  DescriptorHandle how = make(descriptorPointwise, "indices");
  set(how, pointwiseMode, attributePointwiseMode, 1, &modeIndex);
  set(how, pointwisePrecision, attributeDataType, 1, &dnnI32);
  set(how, pointwiseAxis, attributeI64, 1, &axis);
  finalize(how);
  DescriptorHandle op = make(descriptorPointwiseOperation, "indices");
  set(op, pointwiseDescriptor, attributeDescriptor, 1, &how);
  set(op, pointwiseX, attributeDescriptor, 1, &x);
  set(op, pointwiseY, attributeDescriptor, 1, &y);
  operation(op);
}

void CudnnGraph::reduce(int operation, Tensor x, Tensor y) {
  DescriptorHandle how = make(descriptorReduction, "a reduction");
  set(how, reductionOperator, attributeReduction, 1, &operation);
  set(how, reductionPrecision, attributeDataType, 1, &dnnF32);
  finalize(how);
  DescriptorHandle op = make(descriptorReductionOperation, "a reduction");
  set(op, reductionX, attributeDescriptor, 1, &x);
  set(op, reductionY, attributeDescriptor, 1, &y);
  set(op, reductionDescriptor, attributeDescriptor, 1, &how);
  this->operation(op);
}

void CudnnGraph::reshape(Tensor x, Tensor y) {
  DescriptorHandle op = make(descriptorReshapeOperation, "a transposition");
  set(op, reshapeX, attributeDescriptor, 1, &x);
  set(op, reshapeY, attributeDescriptor, 1, &y);
  operation(op);
}

// ---- plans --------------------------------------------------------------------------------------

std::vector<DescriptorHandle> CudnnGraph::choices(DescriptorHandle graph, DescriptorHandle device, int mode) {
  constexpr int64_t most = 8;
  DescriptorHandle query = make(descriptorEngineChoices, "a choice of engines");
  set(query, choicesGraph, attributeDescriptor, 1, &graph);
  set(query, choicesMode, attributeHeuristic, 1, &mode);
  if (device)
    set(query, choicesDevice, attributeDescriptor, 1, &device);
  finalize(query);
  if (!failure.ok()) {
    if (failure.kind() == ErrorKind::Unsupported) // none that it ranks so; the choice is not final and has no answers
      failure = Status::success();
    return {};
  }
  std::vector<DescriptorHandle> found;
  for (int64_t i = 0; i < most; ++i)
    found.push_back(make(descriptorEngineConfig, "an engine"));
  int64_t count = 0;
  if (!failure.ok())
    return {};
  failure = check(dnn, dnn.get(query, choicesResults, attributeDescriptor, most, &count, found.data()), doing);
  found.resize(size_t(failure.ok() ? std::min(count, most) : 0));
  return found;
}

Expected<CudnnPlan> CudnnGraph::finish(DnnHandle handle, const std::string &device) {
  DescriptorHandle properties = nullptr;
  if (!handle) {
    properties = make(descriptorDeviceProperties, "a card");
    set(properties, deviceJson, attributeCharacter, int64_t(device.size()) + 1, device.c_str());
    finalize(properties);
  }
  DescriptorHandle graph = make(descriptorOperationGraph, "a graph of operations");
  if (handle)
    set(graph, graphHandle, attributeHandle, 1, &handle);
  set(graph, graphOperations, attributeDescriptor, int64_t(operations.size()), operations.data());
  finalize(graph);
  if (!failure.ok())
    return failure;
  Status refusal = Status::error(ErrorKind::Unsupported, "cuDNN has no engine for the graph");
  for (int mode : {heuristicA, heuristicFallback})
    for (DescriptorHandle config : choices(graph, properties, mode)) {
      DescriptorHandle plan = make(descriptorExecutionPlan, "a plan of execution");
      if (handle)
        set(plan, planHandle, attributeHandle, 1, &handle);
      else
        set(plan, planDevice, attributeDescriptor, 1, &properties);
      set(plan, planEngineConfig, attributeDescriptor, 1, &config);
      if (!failure.ok())
        return failure;
      if (Status taken = check(dnn, dnn.finalize(plan), "asking an engine"); !taken.ok()) {
        if (taken.kind() != ErrorKind::Unsupported)
          return taken;
        refusal = taken;
        continue;
      }
      int64_t count = 0;
      HPC_RETURN_IF_ERROR(
          check(dnn, dnn.get(plan, planWorkspace, attributeI64, 1, &count, &made.workspace), "asking for a workspace"));
      made.plan = plan;
      made.ids.insert(made.ids.end(), numberIds.begin(), numberIds.end());
      return std::move(made);
    }
  return failure.ok() ? refusal : failure;
}

Status CudnnPlan::run(DnnHandle handle, const std::vector<void *> &pointers, void *workspace) const {
  const std::string what = "an attention";
  DescriptorHandle handed = nullptr;
  HPC_RETURN_IF_ERROR(check(*dnn, dnn->createDescriptor(descriptorVariantPack, &handed), what));
  Descriptor pack(*dnn, handed);
  std::vector<void *> all = pointers;
  for (const Number &number : numbers)
    all.push_back(const_cast<char *>(number.bytes.data()));
  const int64_t count = int64_t(ids.size());
  HPC_RETURN_IF_ERROR(check(*dnn, dnn->set(handed, packIds, attributeI64, count, ids.data()), what));
  HPC_RETURN_IF_ERROR(check(*dnn, dnn->set(handed, packPointers, attributePointer, count, all.data()), what));
  HPC_RETURN_IF_ERROR(check(*dnn, dnn->set(handed, packWorkspace, attributePointer, 1, &workspace), what));
  HPC_RETURN_IF_ERROR(check(*dnn, dnn->finalize(handed), what));
  return check(*dnn, dnn->execute(handle, plan, handed), what);
}

} // namespace hpc::cuda
