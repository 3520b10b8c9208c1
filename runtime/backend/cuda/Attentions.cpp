// A gradient needs the result and a number of each row, which training keeps neither of: the forward pass runs once more,
// into the workspace.
#include "runtime/backend/cuda/Attentions.h"

#include <cstring>

namespace hpc::cuda {

namespace {

/// Before it, keys that are no multiple of 128 had wrong gradients without a mask of their padding (cuDNN's release notes).
constexpr size_t leastForGradients = 91501;

std::vector<int64_t> keyOf(const plan::Attention &a) {
  int64_t scale;
  std::memcpy(&scale, &a.scale, sizeof(scale));
  std::vector<int64_t> key = {int64_t(a.kind), a.batch, a.heads,           a.groups,       a.queries,
                              a.keys,          a.depth, a.width,           scale,          int64_t(a.causal),
                              a.causalOffset,  a.guarded, a.bias.argument >= 0};
  auto add = [&](const plan::AttentionTensor &tensor) {
    key.push_back(int64_t(tensor.dtype));
    key.push_back(tensor.offset);
    key.insert(key.end(), tensor.stride.begin(), tensor.stride.end());
  };
  for (const plan::AttentionTensor *tensor : {&a.query, &a.key, &a.value, &a.gradient})
    add(*tensor);
  for (const plan::AttentionTensor &result : a.results)
    add(result);
  return key;
}

std::string versionText(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string nameOf(const plan::Attention &a) {
  return std::string(a.kind == plan::AttentionKind::Backward ? "the gradient of attention" : "attention") + " (" +
         std::to_string(a.batch) + " x " + std::to_string(a.heads) + " heads, " + std::to_string(a.queries) +
         " queries, " + std::to_string(a.keys) + " keys, " + std::to_string(a.depth) + " channels" +
         (a.width == a.depth ? "" : " and " + std::to_string(a.width)) + (a.causal ? ", causal)" : ")");
}

} // namespace

Expected<Attentions> Attentions::create(const Cudnn &dnn, const Gpu &gpu, StreamHandle stream, bool sameBits, Note note) {
  Attentions attentions(dnn, gpu, stream, sameBits, std::move(note));
  DnnHandle handle = nullptr;
  HPC_RETURN_IF_ERROR(check(dnn, dnn.create(&handle), "starting cuDNN on " + gpu.name()));
  attentions.handle = Dnn(dnn, handle);
  HPC_RETURN_IF_ERROR(check(dnn, dnn.setStream(handle, stream), "giving cuDNN a stream"));
  return attentions;
}

Expected<std::optional<Attentions::Prepared>> Attentions::make(const plan::Attention &attention, int64_t &bytes) {
  using Nothing = std::optional<Prepared>;
  const bool isBackward = attention.kind == plan::AttentionKind::Backward;
  if (!fitsCudnn(attention).ok() || (isBackward && sameBits))
    return Nothing();
  auto orKernel = [&](const Status &status) -> Expected<std::optional<Prepared>> {
    if (status.kind() != ErrorKind::Unsupported)
      return status;
    if (note)
      note(nameOf(attention) + " runs on generated kernels, since cuDNN " + versionText(dnn->version()) +
           " does not take it: " + status.message());
    return Nothing();
  };
  if (isBackward && attention.keys % 128 != 0 && dnn->version() < leastForGradients)
    return orKernel(Status::error(ErrorKind::Unsupported, "its gradients are right from " +
                                                              versionText(leastForGradients) + " on"));
  Prepared entry;
  Expected<CudnnPlan> forward = makeForward(*dnn, handle.get(), attention, /*withStats=*/isBackward);
  if (!forward.ok())
    return orKernel(forward.status());
  entry.forward = std::move(*forward);
  bytes = entry.forward.workspaceBytes();
  if (isBackward) {
    Expected<CudnnPlan> backward = makeBackward(*dnn, handle.get(), attention);
    if (!backward.ok())
      return orKernel(backward.status());
    entry.backward = std::move(*backward);
    bytes = std::max(bytes, entry.backward->workspaceBytes());
    const int64_t rows = attention.batch * attention.heads * attention.queries, element = byteSize(attention.query.dtype),
                  keys = attention.batch * attention.groups * attention.keys;
    std::vector<int64_t> sizes = {rows * attention.width * element, rows * 4, rows * 4, rows * attention.depth * 4};
    if (isWidened(attention)) {
      if (std::max(rows, keys) * std::max(attention.depth, attention.width) >= WidenKernels::mostElements)
        return orKernel(Status::error(ErrorKind::Unsupported, "its gradients are f32 of 2^31 elements or more"));
      Expected<KernelObject> widening = widenKernels.find(gpu->driver(), attention.query.dtype);
      if (!widening.ok())
        return widening.status();
      entry.widening = *widening;
      sizes.insert(sizes.end(), {rows * attention.depth * element, keys * attention.depth * element, keys * attention.width * element});
      if (note)
        note(nameOf(attention) + " is rounded to " + name(attention.query.dtype) + " by cuDNN, where the plan has f32; --no-cudnn keeps f32, on kernels that take many times as long");
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      entry.place[i + 1] = (bytes + 255) / 256 * 256;
      bytes = entry.place[i + 1] + sizes[i];
    }
  }
  return Nothing(std::move(entry));
}

Expected<int64_t> Attentions::prepare(const plan::Attention &attention) {
  auto [found, isNew] = known.emplace(keyOf(attention), -1);
  if (!isNew)
    return found->second;
  int64_t bytes = 0;
  Expected<std::optional<Prepared>> made = make(attention, bytes);
  if (!made.ok())
    return made.status();
  if (!*made)
    return int64_t(-1);
  if (bytes > reserved) {
    Expected<DeviceMemory> memory = gpu->allocate(bytes);
    if (!memory.ok())
      return memory.status();
    workspace = std::move(*memory);
    reserved = bytes;
  }
  prepared.push_back(std::move(**made));
  return found->second = int64_t(prepared.size()) - 1;
}

Status Attentions::run(int64_t index, const KernelCall &call) const {
  const Prepared &entry = prepared[size_t(index)];
  const plan::Attention &attention = *call.plan.attention;
  auto *own = reinterpret_cast<std::byte *>(uintptr_t(workspace.get()));
  auto at = [&](const plan::AttentionTensor &tensor) -> void * {
    return static_cast<std::byte *>(call.args[tensor.argument]) + tensor.offset * byteSize(tensor.dtype);
  };
  std::vector<void *> pointers = {at(attention.query), at(attention.key), at(attention.value)};
  if (!entry.backward) {
    pointers.push_back(at(attention.results[0]));
    return entry.forward.run(handle.get(), pointers, own);
  }
  std::vector<void *> first = pointers;
  first.insert(first.end(), {own + entry.place[1], own + entry.place[2]});
  HPC_RETURN_IF_ERROR(entry.forward.run(handle.get(), first, own));
  pointers.push_back(at(attention.gradient));
  for (size_t i = 1; i < 5; ++i)
    pointers.push_back(own + entry.place[i]);
  for (size_t i = 0; i < attention.results.size(); ++i)
    pointers.push_back(entry.widening ? own + entry.place[5 + i] : at(attention.results[i]));
  HPC_RETURN_IF_ERROR(entry.backward->run(handle.get(), pointers, own));
  for (size_t i = 0; entry.widening && i < attention.results.size(); ++i) {
    const plan::AttentionTensor &result = attention.results[i];
    const bool isQuery = i == 0;
    const Dims dims = {attention.batch, isQuery ? attention.heads : attention.groups, isQuery ? attention.queries : attention.keys, i == 2 ? attention.width : attention.depth};
    HPC_RETURN_IF_ERROR(WidenKernels::launch(entry.widening, *gpu, stream, own + entry.place[5 + i], static_cast<std::byte *>(at(result)), dims, result.stride));
  }
  return Status::success();
}

} // namespace hpc::cuda
