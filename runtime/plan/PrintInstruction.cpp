// Instructions, slices and tables as text.
#include "runtime/base/NumberText.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanPrinter.h"

#include <algorithm>

namespace hpc::plan {

namespace {

/// "a | b | c", and "a | b | .. | z" beyond six.
std::string joinCoordinates(const std::vector<std::string> &texts) {
  std::string text;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts.size() > 6 && i == 3)
      text += " | .. (" + std::to_string(texts.size()) + " coordinates)";
    if (texts.size() > 6 && i >= 3 && i + 1 < texts.size())
      continue;
    text += (i ? " | " : "") + texts[i];
  }
  return text;
}

/// One text a coordinate, or a single one where they are all the same.
std::string byCoordinate(std::vector<std::string> texts) {
  if (std::all_of(texts.begin(), texts.end(), [&](const std::string &text) { return text == texts[0]; }))
    texts.resize(1);
  return joinCoordinates(texts);
}

std::string byMicroBatch(const std::vector<std::string> &texts) {
  if (std::all_of(texts.begin(), texts.end(), [&](const std::string &text) { return text == texts[0]; }))
    return texts[0];
  std::string text;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts.size() > 4 && i == 2)
      text += " / ..";
    if (texts.size() > 4 && i >= 2 && i + 1 < texts.size())
      continue;
    text += (i ? " / " : "") + texts[i];
  }
  return text;
}

std::string rangeText(int64_t start, int64_t extent) {
  return extent == 0 ? "none" : std::to_string(start) + ".." + std::to_string(start + extent - 1);
}

std::string dimText(const Plan &plan, const Slice &slice, size_t d) {
  int64_t ranks = plan.ranksPerStage();
  bool perMicroBatch =
      std::max(slice.start[d].values.size(), slice.extent[d].values.size()) > size_t(std::max<int64_t>(ranks, 1));
  std::vector<std::string> texts;
  bool padded = false;
  for (int64_t microBatch = 0; microBatch < (perMicroBatch ? plan.microBatches : 1); ++microBatch) {
    std::vector<std::string> coordinates;
    for (int64_t coordinate = 0; coordinate < ranks; ++coordinate) {
      int64_t extent = slice.extent[d].at(coordinate, microBatch, ranks);
      coordinates.push_back(rangeText(slice.start[d].at(coordinate, microBatch, ranks), extent));
      padded = padded || extent < slice.box[d];
    }
    texts.push_back(byCoordinate(std::move(coordinates)));
  }
  std::string text = byMicroBatch(texts) + " of " + std::to_string(slice.view[d]);
  return padded ? text + " (box " + std::to_string(slice.box[d]) + ")" : text;
}

bool isWhole(const Slice &slice, size_t d) {
  const std::vector<int64_t> &extents = slice.extent[d].values;
  return slice.box[d] == slice.view[d] &&
         std::all_of(extents.begin(), extents.end(), [&](int64_t extent) { return extent == slice.view[d]; });
}

struct Line {
  const Plan &plan;
  const Stage &stage;

  std::string ref(const Ref &ref) const {
    std::string text = "b" + std::to_string(ref.buffer);
    return text + (ref.byteOffset ? "+" + std::to_string(ref.byteOffset) : "") +
           (ref.microBatchStride ? "+" + std::to_string(ref.microBatchStride) + "*micro-batch" : "");
  }
  std::string table(const ByCoord &values) const { return tableText(plan, values); }

  std::string place(const Ref &from, const ByCoord &offset) const {
    return ref(from) + (isEverywhere(offset, 0) ? "" : "+(" + table(offset) + ")");
  }
  std::string operand(const Operand &operand) const {
    return (operand.packed ? "packed " : "") + place(operand.place, operand.offset) + (operand.transpose ? "^T" : "");
  }
  std::string operator()(const Gemm &gemm) const {
    std::string text = "gemm " + operand(gemm.c) + (isEverywhere(gemm.addToC, 1) ? " += " : " = ") + operand(gemm.a) +
                       " * " + operand(gemm.b) + ", m " + table(gemm.m) + ", n " + table(gemm.n) + ", k " +
                       table(gemm.k) + ", ld " + std::to_string(gemm.a.ld) + " " + std::to_string(gemm.b.ld) + " " +
                       std::to_string(gemm.c.ld);
    if (!gemm.batch.empty())
      text += ", batch " + shapeText(gemm.batch) + " strides " + shapeText(gemm.a.stride) + " " +
              shapeText(gemm.b.stride) + " " + shapeText(gemm.c.stride);
    if (const auto &windows = gemm.windows)
      text += ", windows " + shapeText(windows->sizes) + " at " + shapeText(windows->counts) + " of " +
              std::to_string(windows->channels) + " x " + shapeText(windows->image) + ", strides " +
              shapeText(windows->strides) + ", dilations " + shapeText(windows->dilations) + ", low " +
              shapeText(windows->low);
    if (gemm.a.dtype != DType::F32 || gemm.b.dtype != DType::F32 || gemm.c.dtype != DType::F32 ||
        gemm.accumulate != DType::F32)
      text += std::string(", ") + hpc::name(gemm.a.dtype) + " * " + hpc::name(gemm.b.dtype) + " -> " +
              hpc::name(gemm.c.dtype) + " in " + hpc::name(gemm.accumulate);
    if (!isEverywhere(gemm.addToC, 0) && !isEverywhere(gemm.addToC, 1))
      text += ", adds " + table(gemm.addToC);
    if (gemm.epilogue)
      text += std::string(", then ") + name(gemm.epilogue->kind) + " " + ref(gemm.epilogue->bias);
    return text;
  }
  std::string operator()(const Kernel &kernel) const {
    std::string reads, writes, scalars;
    for (const KernelArg &arg : kernel.args) {
      if (arg.reads)
        reads += (reads.empty() ? "" : ", ") + ref(arg.place);
      if (arg.writes)
        writes += (writes.empty() ? "" : ", ") + ref(arg.place);
    }
    for (const ByCoord &scalar : kernel.scalars)
      scalars += (scalars.empty() ? "" : ", ") + table(scalar);
    std::string text =
        "kernel " + writes + " = " + kernel.symbol + "(" + reads + "), rows " + std::to_string(kernel.rows);
    if (!scalars.empty())
      text += ", scalars " + scalars;
    if (!isEverywhere(kernel.launch.blocks, 0))
      text += ", launch " + table(kernel.launch.blocks) + " x " + table(kernel.launch.threads) + ", shared " +
              table(kernel.launch.sharedBytes);
    if (kernel.attention)
      text += ", " + attentionText(*kernel.attention);
    if (kernel.epilogue)
      text += std::string(", epilogue ") + name(kernel.epilogue->kind) + " of argument " +
              std::to_string(kernel.epilogue->product) + " + argument " + std::to_string(kernel.epilogue->bias);
    if (kernel.flops > 0)
      text += ", " + std::to_string(kernel.flops) + " flops";
    return text;
  }
  static std::string attentionText(const Attention &attention) {
    auto number = [](int64_t value) { return std::to_string(value); };
    std::string text = std::string(name(attention.kind)) + " of " + number(attention.batch) + " x " +
                       number(attention.heads) + " heads in " + number(attention.groups) + " groups, " +
                       number(attention.queries) + " queries, " + number(attention.keys) + " keys, channels " +
                       number(attention.depth) + " and " + number(attention.width) + ", scale " + shortest(attention.scale);
    if (attention.causal)
      text += ", causal from " + number(attention.causalOffset);
    if (attention.guarded)
      text += ", guarded";
    auto add = [&](const char *what, const AttentionTensor &tensor) {
      if (tensor.argument < 0)
        return;
      text += std::string(", ") + what + " " + hpc::name(tensor.dtype) + " in argument " + number(tensor.argument) +
              " at " + number(tensor.offset) + " by";
      for (int64_t stride : tensor.stride)
        text += " " + number(stride);
    };
    add("query", attention.query);
    add("key", attention.key);
    add("value", attention.value);
    add("bias", attention.bias);
    add("gradient", attention.gradient);
    for (const AttentionTensor &result : attention.results)
      add("result", result);
    return text;
  }
  static std::string shortest(double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", printed(value));
    return text;
  }
  std::string operator()(const Copy &copy) const {
    return "copy " + place(copy.dst, copy.dstOffset) + " = " + place(copy.src, copy.srcOffset) + ", " + std::to_string(copy.bytes) + " bytes";
  }
  std::string operator()(const Accumulate &sum) const {
    std::string text = "accumulate " + ref(sum.dst) + (isEverywhere(sum.add, 1) ? " += " : " = ") + ref(sum.src) +
                       ", " + std::to_string(sum.count) + " x " + hpc::name(sum.dtype);
    return isEverywhere(sum.add, 0) || isEverywhere(sum.add, 1) ? text : text + ", adds " + table(sum.add);
  }
  std::string operator()(const Collective &collective) const {
    std::string axes;
    for (const std::string &axis : collective.axes)
      axes += (axes.empty() ? "" : ", ") + axis;
    std::string text = std::string(name(collective.kind)) + " " + ref(collective.dst) + " = " + ref(collective.src) +
                       " over {" + axes + "}";
    if (collective.kind == CollectiveKind::AllReduce || collective.kind == CollectiveKind::ReduceScatter)
      text += std::string(" ") + name(collective.reduce);
    if (collective.kind == CollectiveKind::Permute)
      text += " from position " + table(collective.source);
    text += ", " + std::to_string(collective.count) + " x " + hpc::name(collective.dtype) + " (" +
            std::to_string(collective.count * byteSize(collective.dtype)) + " bytes)";
    if (collective.request >= 0)
      text += ", request " + std::to_string(collective.request);
    return text + reason(collective.reason);
  }
  std::string operator()(const Send &send) const {
    return "send " + ref(send.src) + ", " + std::to_string(send.bytes) + " bytes to rank " + table(send.peer) +
           ", channel " + std::to_string(send.channel) + ", request " + std::to_string(send.request) +
           reason(send.reason);
  }
  std::string operator()(const Recv &recv) const {
    return "recv " + ref(recv.dst) + ", " + std::to_string(recv.bytes) + " bytes from rank " + table(recv.peer) +
           ", channel " + std::to_string(recv.channel) + ", request " + std::to_string(recv.request) +
           reason(recv.reason);
  }
  std::string operator()(const Wait &wait) const { return "wait request " + std::to_string(wait.request); }
  std::string operator()(const LoadInput &load) const {
    const Port &port = plan.inputs[load.input];
    return "load " + ref(load.dst) + " = input " + port.name + ": " + sliceText(plan, load.slice, port.shape);
  }
  std::string operator()(const StoreOutput &store) const {
    const Port &port = plan.outputs[store.output];
    return "store output " + port.name + " = " + ref(store.src) + ": " + sliceText(plan, store.slice, port.shape) +
           ", owner " + table(store.owner);
  }
  std::string reason(const Reason &reason) const { return reason.cause.empty() ? "" : ", because " + reason.cause; }
};

} // namespace

std::string tableText(const Plan &plan, const ByCoord &table) {
  int64_t ranks = plan.ranksPerStage();
  std::vector<std::string> microBatches;
  for (size_t first = 0; first < table.values.size(); first += ranks) {
    std::vector<std::string> coordinates;
    for (size_t i = first; i < table.values.size() && i < first + ranks; ++i)
      coordinates.push_back(std::to_string(table.values[i]));
    microBatches.push_back(byCoordinate(std::move(coordinates)));
  }
  std::string text = byMicroBatch(microBatches);
  if (!table.varies())
    return text;
  const bool isKnown = table.input >= 0 && size_t(table.input) < plan.inputs.size();
  return (text == "0" ? "" : text + " + ") + (table.scale == 1 ? "" : std::to_string(table.scale) + " * ") +
         (isKnown ? plan.inputs[size_t(table.input)].name : "input " + std::to_string(table.input));
}

std::string sliceText(const Plan &plan, const Slice &slice, const std::vector<int64_t> &shape) {
  bool asStored = slice.view == shape;
  std::string text;
  for (size_t d = 0; d < slice.view.size(); ++d) {
    if (isWhole(slice, d))
      continue;
    std::string dim = !asStored || slice.view.size() != 2 ? "dim " + std::to_string(d) : d == 0 ? "rows" : "columns";
    text += (text.empty() ? "" : ", ") + dim + " " + dimText(plan, slice, d);
  }
  if (text.empty())
    text = "whole";
  if (!asStored)
    text += " of view " + shapeText(slice.view);
  return text;
}

std::string instructionLine(const Plan &plan, const Stage &stage, const Instruction &instruction) {
  std::string text = std::visit(Line{plan, stage}, instruction.action);
  if (instruction.onRequest)
    text += ", on request";
  if (instruction.part == Part::Repeated)
    text += ", again";
  if (!isEverywhere(instruction.when, 1))
    text += ", when " + tableText(plan, instruction.when);
  return instruction.node.empty() ? text : text + "  # " + instruction.node;
}

} // namespace hpc::plan
