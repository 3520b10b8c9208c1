// cuDNN's graph interface under its own names: descriptors that check what they are told, one engine, and plans that run
// on the handle's stream. What it does not know it refuses, as an engine would; what its documentation forbids is a misuse.
#include "runtime/backend/cuda/CudnnApi.h"
#include "test/gpu/standin/CudnnGraph.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace hpc::cuda;
using standin::DnnGraph;
using standin::DnnOperation;
using standin::DnnPlace;
using standin::DnnTensor;
using standin::Machine;
using standin::Running;

namespace hpc::cuda {
struct DnnState {
  StreamHandle stream = nullptr;
};
struct DescriptorState {
  int type = 0;
  bool isFinal = false;
  std::map<int, std::vector<char>> attributes; ///< by name: the elements
  // What it is once it is final.
  DnnTensor tensor;
  DnnOperation operation;
  DnnGraph graph;

  bool has(int name) const { return attributes.count(name) != 0; }
  template <typename T> std::vector<T> all(int name) const {
    auto found = attributes.find(name);
    std::vector<T> list(found == attributes.end() ? 0 : found->second.size() / sizeof(T));
    if (!list.empty())
      std::memcpy(list.data(), found->second.data(), list.size() * sizeof(T));
    return list;
  }
  template <typename T> T one(int name, T missing = {}) const {
    std::vector<T> list = all<T>(name);
    return list.size() == 1 ? list[0] : missing;
  }
};
} // namespace hpc::cuda

namespace {

constexpr int64_t workspaceWanted = 4096;

#define ENTER(FAILURE)                                                                                                 \
  if (int failure = Machine::instance().enter(__func__, FAILURE))                                                      \
  return failure

/// The attributes of a kind of descriptor and their types; those that a finished one must have come first.
struct Form {
  size_t required;
  std::vector<std::pair<int, int>> attributes;
};
const std::map<int, Form> &forms() {
  static const std::map<int, Form> all = {
      {descriptorTensor,
       {5, {{tensorType, attributeDataType}, {tensorDims, attributeI64}, {tensorStrides, attributeI64}, {tensorId, attributeI64},
            {tensorAlignment, attributeI64}, {tensorIsVirtual, attributeBoolean}, {tensorIsByValue, attributeBoolean}}}},
      {descriptorMatmul, {1, {{matmulPrecision, attributeDataType}}}},
      {descriptorMatmulOperation,
       {4, {{matmulA, attributeDescriptor}, {matmulB, attributeDescriptor}, {matmulC, attributeDescriptor}, {matmulDescriptor, attributeDescriptor}}}},
      {descriptorPointwise,
       {2, {{pointwiseMode, attributePointwiseMode}, {pointwisePrecision, attributeDataType}, {pointwiseAxis, attributeI64}}}},
      {descriptorPointwiseOperation,
       {3, {{pointwiseDescriptor, attributeDescriptor}, {pointwiseX, attributeDescriptor}, {pointwiseY, attributeDescriptor},
            {pointwiseB, attributeDescriptor}, {pointwiseT, attributeDescriptor}}}},
      {descriptorReduction, {2, {{reductionOperator, attributeReduction}, {reductionPrecision, attributeDataType}}}},
      {descriptorReductionOperation,
       {3, {{reductionX, attributeDescriptor}, {reductionY, attributeDescriptor}, {reductionDescriptor, attributeDescriptor}}}},
      {descriptorReshapeOperation, {2, {{reshapeX, attributeDescriptor}, {reshapeY, attributeDescriptor}}}},
      {descriptorOperationGraph, {2, {{graphHandle, attributeHandle}, {graphOperations, attributeDescriptor}}}},
      {descriptorEngineChoices, {2, {{choicesGraph, attributeDescriptor}, {choicesMode, attributeHeuristic}}}},
      {descriptorEngineConfig, {0, {}}},
      {descriptorExecutionPlan, {2, {{planHandle, attributeHandle}, {planEngineConfig, attributeDescriptor}}}},
      {descriptorVariantPack, {3, {{packIds, attributeI64}, {packPointers, attributePointer}, {packWorkspace, attributePointer}}}},
  };
  return all;
}
size_t widthOf(int type) {
  switch (type) {
  case attributeHandle:
  case attributeI64:
  case attributePointer:
  case attributeDescriptor:
    return 8;
  case attributeBoolean:
  case attributeCharacter:
    return 1;
  default:
    return 4;
  }
}

/// What another descriptor is, if it is final and of that type.
const DescriptorState *other(const DescriptorState &state, int name, int type) {
  const auto *found = state.one<DescriptorHandle>(name);
  return found && found->isFinal && found->type == type ? found : nullptr;
}

bool finishTensor(DescriptorState &state) {
  const std::vector<int64_t> dims = state.all<int64_t>(tensorDims), strides = state.all<int64_t>(tensorStrides);
  if (dims.size() != 4 || strides.size() != 4 || *std::min_element(dims.begin(), dims.end()) < 1 ||
      *std::min_element(strides.begin(), strides.end()) < 1)
    return false;
  DnnTensor &tensor = state.tensor;
  tensor.id = state.one<int64_t>(tensorId);
  tensor.type = state.one<int>(tensorType, -1);
  std::copy(dims.begin(), dims.end(), tensor.dims.begin());
  std::copy(strides.begin(), strides.end(), tensor.strides.begin());
  tensor.isVirtual = 0 != state.one<char>(tensorIsVirtual);
  tensor.isByValue = 0 != state.one<char>(tensorIsByValue);
  const bool isKnown = tensor.type == dnnF32 || tensor.type == dnnF16 || tensor.type == dnnBF16 ||
                       tensor.type == dnnI32 || tensor.type == dnnBool;
  return isKnown && !(tensor.isVirtual && tensor.isByValue) && (!tensor.isByValue || tensor.size() == 1);
}

bool finishOperation(DescriptorState &state, DnnOperation::Kind kind, int how, int howType, std::pair<int, int> ends,
                     int b = 0, int t = 0) {
  DnnOperation &op = state.operation;
  op.kind = kind;
  const DescriptorState *x = other(state, ends.first, descriptorTensor), *y = other(state, ends.second, descriptorTensor);
  if (!x || !y)
    return false;
  op.x = x->tensor;
  op.y = y->tensor;
  if (how) {
    const DescriptorState *description = other(state, how, howType);
    if (!description)
      return false;
    op.mode = description->one<int>(kind == DnnOperation::Reduction ? reductionOperator : pointwiseMode);
    op.axis = description->one<int64_t>(pointwiseAxis);
  }
  for (auto [name, tensor, has] : {std::tuple(b, &op.b, &op.hasB), {t, &op.t, &op.hasT}})
    if (name && state.has(name)) {
      const DescriptorState *found = other(state, name, descriptorTensor);
      if (!found)
        return false;
      *tensor = found->tensor;
      *has = true;
    }
  auto broadcasts = [&](const DnnTensor &from) {
    for (size_t i = 0; i < 4; ++i)
      if (from.dims[i] != 1 && from.dims[i] != op.y.dims[i])
        return false;
    return true;
  };
  switch (kind) {
  case DnnOperation::Matmul:
    return op.hasB && op.x.dims[3] == op.b.dims[2] && op.y.dims[2] == op.x.dims[2] && op.y.dims[3] == op.b.dims[3] &&
           op.y.dims[1] % op.b.dims[1] == 0 && op.x.dims[1] == op.y.dims[1];
  case DnnOperation::Pointwise:
    return broadcasts(op.x) && (!op.hasB || broadcasts(op.b)) && op.hasT == (op.mode == modeSelect);
  case DnnOperation::Reduction:
    for (size_t i = 0; i < 4; ++i)
      if (op.x.dims[i] % op.y.dims[i] != 0)
        return false;
    return op.mode == reduceAdd || op.mode == reduceMax;
  case DnnOperation::Reshape:
    return op.x.size() == op.y.size();
  }
  return false;
}

DnnResult finishGraph(DescriptorState &state) {
  for (DescriptorHandle handle : state.all<DescriptorHandle>(graphOperations)) {
    if (!handle || !handle->isFinal)
      return dnnBadParameter;
    state.graph.operations.push_back(handle->operation);
  }
  // An engine of fused attention: 16-bit products of heads of up to 128 channels, eight at a time.
  for (const DnnOperation &op : state.graph.operations)
    if (op.kind == DnnOperation::Matmul &&
        (op.x.type == dnnF32 ? !op.x.isVirtual
                             : op.b.type != op.x.type || std::min(op.b.dims[2], op.b.dims[3]) > 128))
      return dnnNotSupported;
  return dnnSuccess;
}

/// What a test has cuDNN refuse.
bool isRefused(int type) {
  using Refusal = standin::Settings::DnnRefusal;
  const Refusal refusal = Machine::instance().settings().dnnRefusal;
  return (refusal == Refusal::Graph && type == descriptorOperationGraph) ||
         (refusal == Refusal::Choice && type == descriptorEngineChoices) ||
         (refusal == Refusal::Engine && type == descriptorExecutionPlan);
}

DnnResult finish(DescriptorState &state) {
  if (isRefused(state.type))
    return dnnNotSupported;
  switch (state.type) {
  case descriptorTensor:
    return finishTensor(state) ? dnnSuccess : dnnBadParameter;
  case descriptorMatmulOperation:
    return finishOperation(state, DnnOperation::Matmul, matmulDescriptor, descriptorMatmul, {matmulA, matmulC}, matmulB)
               ? dnnSuccess
               : dnnBadParameter;
  case descriptorPointwiseOperation:
    return finishOperation(state, DnnOperation::Pointwise, pointwiseDescriptor, descriptorPointwise,
                           {pointwiseX, pointwiseY}, pointwiseB, pointwiseT)
               ? dnnSuccess
               : dnnBadParameter;
  case descriptorReductionOperation:
    return finishOperation(state, DnnOperation::Reduction, reductionDescriptor, descriptorReduction,
                           {reductionX, reductionY})
               ? dnnSuccess
               : dnnBadParameter;
  case descriptorReshapeOperation:
    return finishOperation(state, DnnOperation::Reshape, 0, 0, {reshapeX, reshapeY}) ? dnnSuccess : dnnBadParameter;
  case descriptorOperationGraph:
    return finishGraph(state);
  case descriptorEngineChoices: {
    const DescriptorState *graph = other(state, choicesGraph, descriptorOperationGraph);
    if (!graph)
      return dnnBadParameter;
    state.graph = graph->graph;
    return dnnSuccess;
  }
  case descriptorExecutionPlan: {
    const auto *config = state.one<DescriptorHandle>(planEngineConfig);
    if (!config || config->type != descriptorEngineConfig || config->graph.operations.empty())
      return dnnBadParameter;
    state.graph = config->graph;
    return dnnSuccess;
  }
  case descriptorVariantPack:
    return state.all<int64_t>(packIds).size() == state.all<void *>(packPointers).size() ? dnnSuccess : dnnBadParameter;
  default:
    return dnnSuccess;
  }
}

} // namespace

extern "C" {

size_t cudnnGetVersion() { return Machine::instance().settings().dnnVersion; }
const char *cudnnGetErrorString(DnnResult status) {
  return status == dnnSuccess            ? "CUDNN_STATUS_SUCCESS"
         : status == dnnNotInitialized   ? "CUDNN_STATUS_NOT_INITIALIZED"
         : status == dnnBadParameter     ? "CUDNN_STATUS_BAD_PARAM"
         : status == dnnNotSupported     ? "CUDNN_STATUS_NOT_SUPPORTED"
         : status == dnnExecutionFailed  ? "CUDNN_STATUS_EXECUTION_FAILED"
                                         : "CUDNN_STATUS_INTERNAL_ERROR";
}
void cudnnGetLastErrorString(char *message, size_t size) {
  if (size > 0)
    message[0] = 0;
}
DnnResult cudnnCreate(DnnHandle *handle) {
  ENTER(dnnNotInitialized);
  if (!standin::currentContext())
    return dnnNotInitialized;
  *handle = new DnnState();
  Machine::instance().count("cuDNN handles", 1);
  return dnnSuccess;
}
DnnResult cudnnDestroy(DnnHandle handle) {
  delete handle;
  Machine::instance().count("cuDNN handles", -1);
  return dnnSuccess;
}
DnnResult cudnnSetStream(DnnHandle handle, StreamHandle stream) {
  ENTER(dnnInternalError);
  if (&stream->context != standin::currentContext())
    return dnnBadParameter;
  handle->stream = stream;
  return dnnSuccess;
}
DnnResult cudnnBackendCreateDescriptor(int type, DescriptorHandle *descriptor) {
  ENTER(dnnInternalError);
  if (!forms().count(type))
    return dnnNotSupported;
  *descriptor = new DescriptorState();
  (*descriptor)->type = type;
  Machine::instance().count("cuDNN descriptors", 1);
  return dnnSuccess;
}
DnnResult cudnnBackendDestroyDescriptor(DescriptorHandle descriptor) {
  delete descriptor;
  Machine::instance().count("cuDNN descriptors", -1);
  return dnnSuccess;
}
DnnResult cudnnBackendSetAttribute(DescriptorHandle descriptor, int name, int type, int64_t count, const void *elements) {
  ENTER(dnnInternalError);
  const Form &form = forms().at(descriptor->type);
  if (descriptor->isFinal || count < 1 || !elements ||
      std::find(form.attributes.begin(), form.attributes.end(), std::pair(name, type)) == form.attributes.end())
    return dnnBadParameter;
  const char *bytes = static_cast<const char *>(elements);
  descriptor->attributes[name].assign(bytes, bytes + size_t(count) * widthOf(type));
  return dnnSuccess;
}
DnnResult cudnnBackendGetAttribute(DescriptorHandle descriptor, int name, int type, int64_t wanted, int64_t *count,
                                   void *elements) {
  ENTER(dnnInternalError);
  if (!descriptor->isFinal || wanted < 1)
    return dnnBadParameter;
  *count = 1;
  if (descriptor->type == descriptorEngineChoices && name == choicesResults && type == attributeDescriptor) {
    auto *config = *static_cast<DescriptorHandle *>(elements);
    if (!config || config->type != descriptorEngineConfig)
      return dnnBadParameter;
    config->graph = descriptor->graph;
    return dnnSuccess;
  }
  if (descriptor->type == descriptorExecutionPlan && name == planWorkspace && type == attributeI64) {
    *static_cast<int64_t *>(elements) = workspaceWanted;
    return dnnSuccess;
  }
  return dnnBadParameter;
}
DnnResult cudnnBackendFinalize(DescriptorHandle descriptor) {
  ENTER(dnnInternalError);
  const Form &form = forms().at(descriptor->type);
  for (size_t i = 0; i < form.required; ++i)
    if (!descriptor->has(form.attributes[i].first))
      return dnnBadParameter;
  if (DnnResult result = finish(*descriptor); result != dnnSuccess)
    return result;
  descriptor->isFinal = true;
  return dnnSuccess;
}
DnnResult cudnnBackendExecute(DnnHandle handle, DescriptorHandle plan, DescriptorHandle pack) {
  ENTER(dnnExecutionFailed);
  Machine &machine = Machine::instance();
  if (!handle->stream || plan->type != descriptorExecutionPlan || pack->type != descriptorVariantPack ||
      !plan->isFinal || !pack->isFinal || plan->one<DnnHandle>(planHandle) != handle)
    return dnnBadParameter;
  const std::vector<int64_t> ids = pack->all<int64_t>(packIds);
  const std::vector<void *> pointers = pack->all<void *>(packPointers);
  std::vector<DnnPlace> places;
  for (const DnnOperation &op : plan->graph.operations)
    for (const DnnTensor *tensor : {&op.x, &op.b, &op.t, &op.y}) {
      if (tensor->id == 0 || tensor->isVirtual)
        continue;
      auto found = std::find(ids.begin(), ids.end(), tensor->id);
      if (found == ids.end())
        return dnnBadParameter;
      void *pointer = pointers[size_t(found - ids.begin())];
      DnnPlace place{tensor->id, uint64_t(reinterpret_cast<uintptr_t>(pointer)), {}};
      if (tensor->isByValue)
        std::memcpy(place.value.data(), pointer, place.value.size());
      places.push_back(place);
    }
  for (const DnnTensor &tensor : plan->graph.inMemory())
    for (const DnnPlace &place : places)
      if (place.id == tensor.id && place.address % 16 != 0)
        machine.misuse("a tensor of an attention does not lie at a multiple of 16 bytes");
  const auto workspace = uint64_t(reinterpret_cast<uintptr_t>(pack->one<void *>(packWorkspace)));
  if (workspace == 0)
    return dnnBadParameter;
  handle->stream->enqueue("attention", [graph = plan->graph, places, workspace](const Running &running) {
    std::byte *junk = running.access(workspace, workspaceWanted);
    if (!junk)
      return;
    running.note({{workspace, uint64_t(workspaceWanted)}}, true);
    std::memset(junk, 0x5a, size_t(workspaceWanted));
    evaluate(graph, places, running);
  });
  return dnnSuccess;
}
} // extern "C"

#define HPC_SAME_TYPE(result, member, symbol, arguments)                                                               \
  static_assert(std::is_same_v<decltype(&::symbol), decltype(Cudnn::member)>);
HPC_DNN_FUNCTIONS(HPC_SAME_TYPE)
