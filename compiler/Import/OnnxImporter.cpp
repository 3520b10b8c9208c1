// The importer's steps: read, inline functions, bind sizes, order nodes, import each, return the outputs.
// Everything unsupported is collected before it is reported.
#include "compiler/Import/OnnxImporter.h"

#include "compiler/Dialect/NN/DefaultInputs.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "compiler/Import/BoundInputs.h"
#include "compiler/Import/GraphBuilder.h"
#include "compiler/Import/OnnxModel.h"
#include "compiler/Import/OnnxOps/OnnxOp.h"
#include "compiler/Import/SequenceInputs.h"
#include "compiler/Import/SymbolicDims.h"
#include "compiler/Location.h"
#include "compiler/ModuleAttributes.h"
#include "compiler/ValueNames.h"
#include "mlir/IR/Verifier.h"
#include "runtime/base/CountText.h"

namespace hpc {
namespace onnx {
namespace {

std::string quoted(const std::string &text) { return "'" + text + "'"; }

/// Nodes that no op of the import can express, by op, for one message.
class UnsupportedList {
public:
  void add(const std::string &what, const Node &node) { nodes[what].push_back(quoted(node.name)); }
  bool empty() const { return nodes.empty(); }
  Status status() const {
    std::string text = "this model needs what the import does not have:";
    for (const auto &[what, names] : nodes) {
      text += "\n  " + what + ": node" + (names.size() > 1 ? "s " : " ");
      for (size_t i = 0; i < names.size() && i < maxNames; ++i)
        text += (i ? ", " : "") + names[i];
      if (names.size() > maxNames)
        text += " and " + std::to_string(names.size() - maxNames) + " more";
    }
    return Status::error(ErrorKind::Unsupported, text);
  }

private:
  static constexpr size_t maxNames = 20;
  std::map<std::string, std::vector<std::string>> nodes;
};

int64_t opsetOf(const Model &model, const Node &node) {
  if (node.version)
    return *node.version;
  auto found = model.opsets.find(node.domain);
  return found == model.opsets.end() ? 0 : found->second;
}

/// An op may mean something else in an opset that is newer than the tables.
Status checkOpsets(const Model &model) {
  constexpr int64_t newest = 28;
  auto check = [](const std::map<std::string, int64_t> &opsets) {
    auto found = opsets.find("");
    return found == opsets.end() || found->second <= newest
               ? Status::success()
               : Status::error(ErrorKind::Unsupported, "it imports opset " + std::to_string(found->second) +
                                                           " of ONNX, and the newest that this compiler knows is " +
                                                           std::to_string(newest) + "; export it for that one or an older one");
  };
  for (const Function &function : model.functions)
    HPC_RETURN_IF_ERROR(check(function.opsets).at("function " + quoted(function.name)));
  return check(model.opsets);
}

/// Every op of `nodes` that no table has.
UnsupportedList unknownOps(const Model &model, ArrayRef<const Node *> nodes) {
  UnsupportedList unknown;
  for (const Node *node : nodes) {
    int64_t version = opsetOf(model, *node);
    if (findOnnxOp(node->domain, node->op, version))
      continue;
    std::string op = (node->domain.empty() ? "" : node->domain + ".") + node->op;
    unknown.add(version ? op + " (opset " + std::to_string(version) + ")" : op + " (no opset imported for its domain)",
                *node);
  }
  return unknown;
}

class Importer : BodyImporter {
public:
  Importer(const Model &model, func::FuncOp function, const ImportOptions &options,
           const std::map<std::string, int64_t> &dims)
      : model(model), function(function), builder(function, options.withoutWeights) {
    mode.inference = options.inference;
    mode.training = options.training;
    mode.dims = dims;
    for (const auto &[name, size] : options.dims)
      sizesText += " --dim " + name + "=" + std::to_string(size);
    if (options.sequenceLength)
      sizesText += " --max-length=" + std::to_string(options.sequenceLength);
    if (!sizesText.empty())
      sizesText = "; the sizes are those of" + sizesText + ": give less where the model has no room for one";
  }

  Status run(ArrayRef<const Node *> nodes) {
    bindSources();
    countReaders(nodes);
    for (const Node *node : nodes)
      HPC_RETURN_IF_ERROR(importNode(*node));
    if (!unsupported.empty())
      return unsupported.status();
    if (!mode.switched.empty())
      emitRemark(function.getLoc()) << countText(int64_t(mode.switched.size()), "node")
                                    << " with a training mode compute what they do in inference, as --inference says; "
                                    << "the first is '" << mode.switched.front() << "'";
    for (const std::string &name : mode.smoothed)
      emitWarning(function.getLoc())
          << "'" << name << "' was a cross entropy with label smoothing, which PyTorch's exporter leaves out: its numbers "
          << "and gradients here are those without; write it out in the model, as (1 - s) * cross_entropy(x, y) - s * "
          << "log_softmax(x, 1).mean()";
    if (!mode.settled.empty())
      emitWarning(function.getLoc())
          << "batch norms take mean and variance from the file, and those stay as they are ("
          << countText(int64_t(mode.settled.size()), "node") << ", the first '" << mode.settled.front()
          << "'): PyTorch's exporter writes batch norms for inference, whatever mode the model was in; to train with "
             "statistics of the batch, write them out in the model, or use norms of groups or layers";
    HPC_RETURN_IF_ERROR(returnOutputs());
    if (mode.training)
      warnOfUntrained();
    return Status::success();
  }

private:
  /// Lists tables and weights that are no parameters and so stay unchanged by training.
  void warnOfUntrained() {
    constexpr size_t most = 20;
    for (bool isQuantized : {false, true}) {
      std::vector<std::string> names;
      for (const StoredTensor *tensor : builder.untrained())
        if (tensor->shape.size() >= 2 && tensor->elements() > 1 && isFloat(*tensor->dtype) != isQuantized)
          names.push_back(quoted(tensor->name));
      if (names.empty())
        continue;
      InFlightDiagnostic warning = emitWarning(function.getLoc()) << "--train leaves ";
      for (size_t i = 0; i < std::min(most, names.size()); ++i)
        warning << (i ? ", " : "") << names[i];
      if (names.size() > most)
        warning << " and " << countText(int64_t(names.size() - most), "more tensor");
      warning << " as the file has " << (names.size() == 1 ? "it" : "them")
              << (isQuantized ? ": whole numbers, which are scaled to floats when the model is compiled; train a model in floats "
                                "and quantise that"
                              : ": no product, convolution, recurrent op or lookup reads it by views, casts, sums and products "
                                "alone; to train it, store it as an initializer");
    }
  }

  void bindSources() {
    builder.reserveNames(allNames(model));
    for (auto [input, argument] : llvm::zip_equal(model.inputs, function.getArguments()))
      values[input.name] = input.narrow ? builder.asNarrow(argument, *input.narrow) : Value(argument);
    for (const StoredTensor *tensor : storedTensors(model))
      initializers[tensor->name] = tensor;
  }

  void countReaders(ArrayRef<const Node *> nodes) {
    for (const Node *node : nodes)
      for (const std::vector<std::string> *list : {&node->inputs, &node->captured})
        for (const std::string &input : *list)
          ++readers[input];
    for (const ValueInfo &output : model.outputs)
      ++readers[output.name];
    findCompared(nodes);
  }

  /// A value that comparisons alone read, whole or in part: nothing of it can be learned.
  bool isCompared(const std::string &name) const { return compared.count(name) && !measured.count(name); }

  void findCompared(ArrayRef<const Node *> nodes) {
    static const std::set<std::string> comparisons{"Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual"};
    static const std::set<std::string> views{"Expand", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"};
    for (const ValueInfo &output : model.outputs)
      measured.insert(output.name);
    for (const Node *node : llvm::reverse(nodes)) {
      bool isPart = views.count(node->op) && isCompared(node->outputs.front());
      (comparisons.count(node->op) || isPart ? compared : measured).insert(node->inputs.begin(), node->inputs.end());
      measured.insert(node->captured.begin(), node->captured.end());
    }
  }

  /// Null when the value was not made because a node before it is unsupported.
  Value lookUp(const std::string &name) {
    if (auto found = values.find(name); found != values.end())
      return found->second;
    auto stored = initializers.find(name);
    if (stored == initializers.end())
      return {};
    const StoredTensor &tensor = *stored->second;
    Value value;
    if (!tensor.dtype)
      value = builder.fail("weight " + quoted(name) + " has type " + tensor.typeName, ErrorKind::Unsupported);
    else if (!builder.checkType(tensor.shape, *tensor.dtype))
      value = builder.fail("");
    else
      value = valueOf(tensor);
    return values[name] = value;
  }
  Value valueOf(const StoredTensor &tensor) {
    bool isKnown = isCompared(tensor.name) && !tensor.isAbsent() && tensor.elements() <= maxFoldedElements;
    Value value = isWeight(tensor) && !isKnown ? builder.weight(tensor) : builder.known(tensor);
    return tensor.narrow ? builder.asNarrow(value, *tensor.narrow) : value;
  }

  /// The narrow type among the inputs, if the op may have it; the results then have it too.
  const NarrowType *movedType(const Node &node, ArrayRef<Value> inputs) {
    const NarrowType *moved = nullptr;
    for (Value input : inputs)
      if (const NarrowType *narrow = input ? builder.narrowType(input) : nullptr)
        moved = narrow;
    if (!moved || takesNarrowTypes(node.op))
      return nullptr;
    bool isSame = movesElements(node.op);
    for (size_t i = 0; i < inputs.size() && (i == 0 || node.op == "Concat"); ++i)
      isSame = isSame && inputs[i] && builder.narrowType(inputs[i]) == moved;
    if (!isSame)
      builder.fail(std::string("numbers of type ") + moved->name +
                       ", which are stored, moved and cast, but not computed with; cast them to a float first",
                   ErrorKind::Unsupported);
    return moved;
  }

  void begin(const Node &node) {
    builder.beginNode(onnxLocation(function.getContext(), node.name, node.modulePath),
                      "node " + quoted(node.name) + " (" + node.op + ")");
  }

  /// Sets the builder's error on failure; `failed` is then the node of the error.
  void importInto(const Node &node, ArrayRef<Value> inputs) {
    int64_t version = opsetOf(model, node);
    const OnnxOp *op = findOnnxOp(node.domain, node.op, version);
    Results results;
    const NarrowType *moved = movedType(node, inputs);
    if (!builder.status().ok()) {
    } else if (op) {
      NodeImport context(builder, node, version, inputs, mode, *this);
      context.checkFloatTypes();
      if (builder.status().ok())
        results = op->import(context);
      if (std::optional<size_t> unknown = context.unknownInput(); unknown && builder.status().ok())
        builder.fail("it has input " + std::to_string(*unknown) + ", " + quoted(node.inputs[*unknown]) + ", which " + node.op +
                     " of opset " + std::to_string(version) + " does not take; take it out, or state the opset that it is of");
      // Many attributes of the standard's ops only repeat facts that shapes contain.
      if (std::optional<std::string> unknown = context.unknownAttribute();
          unknown && builder.status().ok() && node.domain == "com.microsoft")
        builder.fail("it has attribute " + quoted(*unknown) + ", which is not known here", ErrorKind::Unsupported);
    } else { // inside a subgraph; those of the graph itself are all reported at once
      builder.fail("no such op in opset " + std::to_string(version), ErrorKind::Unsupported);
    }
    for (size_t i = 0; i < node.outputs.size() && builder.status().ok(); ++i) {
      if (node.outputs[i].empty())
        continue;
      if (i >= results.size())
        builder.fail("it has output " + std::to_string(i) + ", " + quoted(node.outputs[i]) + ", and " + node.op + " of opset " +
                     std::to_string(version) + " gives " + countText(int64_t(results.size()), "output"));
      else
        values[node.outputs[i]] = moved ? builder.asNarrow(results[i], *moved) : results[i];
    }
    if (!builder.status().ok() && !failed)
      failed = &node;
  }

  /// Imports the nodes of a branch or a body at this place. Their names differ from other graphs' and other rounds'.
  Results importBody(const Node &node, const Subgraph &graph, ArrayRef<Value> inputs) override {
    if (++depth > maxDepth || (numUnrolled += 1 + int64_t(graph.nodes.size())) > maxUnrolled) {
      --depth;
      builder.fail(depth == maxDepth ? "subgraphs nest deeper than " + std::to_string(maxDepth)
                                     : "its loops unroll to more than " + countText(maxUnrolled, "node"),
                   ErrorKind::Unsupported);
      return {};
    }
    for (auto [input, value] : llvm::zip(graph.inputs, inputs))
      values[input.name] = value;
    Results results = importOrdered(node, graph);
    --depth;
    begin(node);
    return results;
  }

  Expected<Results> tryBody(const Node &node, const Subgraph &graph, ArrayRef<Value> inputs) override {
    Results results = importBody(node, graph, inputs);
    if (builder.status().ok())
      return results;
    failed = nullptr;
    return builder.takeError();
  }

  Results importOrdered(const Node &node, const Subgraph &graph) {
    Expected<std::vector<const Node *>> nodes = orderedNodes(graph, "a subgraph of node " + quoted(node.name));
    if (!nodes.ok())
      builder.fail(nodes.status().message(), nodes.status().kind());
    for (size_t i = 0; nodes.ok() && i < nodes->size() && builder.status().ok(); ++i) {
      const Node &inner = *(*nodes)[i];
      begin(inner);
      SmallVector<Value> inputs;
      for (const std::string &input : inner.inputs)
        inputs.push_back(input.empty() ? Value() : outerOrInner(input));
      importInto(inner, inputs);
    }
    Results results;
    for (const ValueInfo &output : graph.outputs)
      results.push_back(outerOrInner(output.name));
    return results;
  }
  Value outerOrInner(const std::string &name) {
    Value value = lookUp(name);
    return value ? value : builder.fail(quoted(name) + " is made by nothing that a subgraph can read");
  }

  Status importNode(const Node &node) {
    begin(node);
    SmallVector<Value> inputs;
    for (const std::string &input : node.inputs) {
      inputs.push_back(input.empty() ? Value() : lookUp(input));
      if (!input.empty() && !inputs.back())
        return Status::success(); // depends on something unsupported, which is reported already
    }
    for (const std::string &name : node.captured)
      if (!lookUp(name))
        return Status::success();
    failed = nullptr;
    importInto(node, inputs);
    if (!builder.status().ok()) {
      if (builder.status().kind() != ErrorKind::Unsupported)
        return Status::error(builder.status().kind(), builder.status().message() + sizesText);
      unsupported.add(failed->op + ": " + builder.errorReason(), *failed);
      for (const std::string &output : node.outputs)
        values.erase(output);
      builder.clearError();
      return Status::success();
    }
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty())
        nameValue(node, node.outputs[i], values[node.outputs[i]]);
    keepShared(node);
    forgetInputs(node);
    return Status::success();
  }

  /// Notes the name at the op that makes the value. A node that only passes a value on (Identity) gives it one more
  /// name; a weight or constant has its own.
  void nameValue(const Node &node, const std::string &name, Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      builder.noteName(value, name);
    if (node.op == "SequenceAt" && isa_and_nonnull<nn::ParameterOp, nn::ConstantOp>(op))
      return;
    if (op && (node.op == "SequenceAt" || nodeName(op->getLoc()) == node.name || !valueNames(op->getLoc()).empty()))
      op->setLoc(withValueName(op->getLoc(), name));
  }

  /// Notes values that forgetInputs may not free after the last reader of one name: those that a node returns under two
  /// names or in a sequence.
  void keepShared(const Node &node) {
    llvm::DenseSet<Value> given;
    for (const std::string &output : node.outputs) {
      if (output.empty())
        continue;
      Value value = values[output];
      if (!given.insert(value).second)
        aliased.insert(value);
      SmallVector<Value> parts = builder.parts(value);
      aliased.insert(parts.begin(), parts.end());
    }
  }

  /// Frees folded tensors that nothing reads any more. A value with two names (an Identity's, a Cast's that changes
  /// nothing) stays.
  void forgetInputs(const Node &node) {
    std::vector<std::string> read = node.inputs;
    read.insert(read.end(), node.captured.begin(), node.captured.end());
    for (const std::string &input : read) {
      if (input.empty())
        continue;
      Value value = values[input];
      if (llvm::any_of(node.outputs,
                       [&](const std::string &output) { return !output.empty() && values[output] == value; }))
        aliased.insert(value);
      if (--readers[input] == 0 && !initializers.count(input) && !aliased.count(value))
        builder.forget(value);
    }
  }

  Status returnOutputs() {
    SmallVector<Value> results;
    SmallVector<Type> types;
    builder.beginNode(function.getLoc(), "the model's outputs");
    for (const ValueInfo &output : model.outputs) {
      Value value = lookUp(output.name);
      if (!value || !builder.status().ok())
        return builder.status().ok() ? Status::error(ErrorKind::Model, "output " + quoted(output.name) + " is not made")
                                     : builder.status();
      if (builder.isSequence(value))
        return Status::error(ErrorKind::Unsupported, "output " + quoted(output.name) + " is a sequence of " +
                                                         countText(int64_t(builder.parts(value).size()), "tensor") +
                                                         "; export the model with an output for each");
      if (output.dtype && *output.dtype != builder.dtype(value))
        return Status::error(ErrorKind::Model, "output " + quoted(output.name) + " is declared " + name(*output.dtype) +
                                                   " but the graph makes " + name(builder.dtype(value)));
      if (output.dtype && output.narrow != builder.narrowType(value))
        return Status::error(ErrorKind::Model, "output " + quoted(output.name) + " is declared " + output.typeName +
                                                   " but the graph makes another type");
      results.push_back(builder.real(value));
      types.push_back(results.back().getType());
    }
    Builder attributes(function.getContext());
    function.setType(attributes.getFunctionType(function.getArgumentTypes(), types));
    std::vector<nn::ResultPort> ports;
    for (const ValueInfo &output : model.outputs)
      ports.push_back({output.name, "", ""});
    nn::setResultPorts(function, ports);
    builder.finishFunction(results);
    return Status::success();
  }

  const Model &model;
  func::FuncOp function;
  GraphBuilder builder;
  ImportMode mode;
  std::string sizesText; ///< the end of an error that sizes may be the cause of
  std::map<std::string, Value> values;
  std::map<std::string, const StoredTensor *> initializers;
  std::map<std::string, int64_t> readers;
  std::set<std::string> compared, measured; ///< read by comparisons; by other nodes
  llvm::DenseSet<Value> aliased;
  UnsupportedList unsupported;
  const Node *failed = nullptr; ///< where the builder's error comes from
  static constexpr int maxDepth = 32;
  static constexpr int64_t maxUnrolled = 100'000;
  int depth = 0;
  int64_t numUnrolled = 0;
};

/// @main with the model's inputs as arguments and no results yet.
Expected<func::FuncOp> createMain(const Model &model, const std::vector<std::vector<int64_t>> &shapes,
                                  ModuleOp module) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<Type> types;
  for (auto [input, shape] : llvm::zip_equal(model.inputs, shapes)) {
    if (!input.dtype)
      return Status::error(ErrorKind::Unsupported,
                           "input " + quoted(input.name) + " has type " + input.typeName +
                               "; a plan takes tensors of numbers, so export the model with such inputs");
    if (!input.hasShape)
      return Status::error(ErrorKind::Unsupported, "input " + quoted(input.name) + " has no shape; export it with one");
    HPC_RETURN_IF_ERROR(checkTensor(shape, *input.dtype).at("input " + quoted(input.name)));
    types.push_back(RankedTensorType::get(shape, typeOf(*input.dtype, builder.getContext())));
  }
  auto function = func::FuncOp::create(builder, module.getLoc(), "main", builder.getFunctionType(types, {}));
  function.addEntryBlock();
  std::vector<nn::ArgumentPort> ports;
  for (const ValueInfo &input : model.inputs) {
    nn::ArgumentPort &port = ports.emplace_back();
    port.name = input.name;
    for (size_t dim = 0; dim < input.dims.size(); ++dim)
      port.dims.push_back(dimText(input, dim));
  }
  nn::setArgumentPorts(function, ports);
  return function;
}

/// An output that is listed twice is returned once, since callers find outputs by name.
void dropRepeatedOutputs(Model &model) {
  std::set<std::string> seen;
  llvm::erase_if(model.outputs, [&](const ValueInfo &output) { return !seen.insert(output.name).second; });
}

/// One remark for all weights that are not there.
void remarkAbsent(const Model &model, Location place) {
  int64_t count = 0, bytes = 0;
  std::set<std::string> files;
  for (const StoredTensor *tensor : storedTensors(model))
    if (tensor->isAbsent()) {
      ++count;
      bytes += tensor->bytes;
      files.insert(tensor->file);
    }
  if (count)
    emitRemark(place) << "'" << *files.begin() << "'"
                      << (files.size() > 1 ? " and " + countText(int64_t(files.size()) - 1, "more file") : "")
                      << (files.size() > 1 ? " are" : " is") << " not there: compiling without the content of "
                      << countText(count, "tensor") << " (" << bytes << " bytes); masks and tied weights are not recognised, and hpc-run needs --weights=FILE";
}

Expected<OwningOpRef<ModuleOp>> importModel(Model &model, const ImportOptions &options, MLIRContext *context) {
  if (model.outputs.empty())
    return Status::error(ErrorKind::Model, "the graph has no outputs");
  for (const std::vector<ValueInfo> *list : {&model.inputs, &model.outputs})
    for (const ValueInfo &each : *list)
      if (each.name.empty())
        return Status::error(ErrorKind::Model, list == &model.inputs ? "an input of the graph has no name"
                                                                     : "an output of the graph has no name");
  dropRepeatedOutputs(model);
  HPC_RETURN_IF_ERROR(checkOpsets(model));
  HPC_RETURN_IF_ERROR(inlineFunctions(model));
  separateNames(model);
  std::map<std::string, int64_t> dims = options.dims;
  Expected<std::vector<StoredTensor>> bound = readBoundInputs(model, options.constants, dims);
  if (!bound.ok())
    return bound.status();
  if (options.sequenceLength)
    HPC_RETURN_IF_ERROR(bindSequenceSizes(model, options.sequenceRows, options.sequenceLength, dims));
  Expected<std::vector<std::vector<int64_t>>> shapes = bindDims(model, dims);
  if (!shapes.ok())
    return shapes.status();
  HPC_RETURN_IF_ERROR(bindInputs(model, std::move(*bound), *shapes));
  SmallVector<std::string> ofSequence;
  if (options.sequenceLength) {
    std::vector<StoredTensor> given = sequenceInputs(model, *shapes);
    for (const StoredTensor &tensor : given)
      ofSequence.push_back("'" + tensor.name + "'");
    HPC_RETURN_IF_ERROR(bindInputs(model, std::move(given), *shapes));
  }
  Expected<std::vector<const Node *>> nodes = orderedNodes(model);
  if (!nodes.ok())
    return nodes.status();
  if (UnsupportedList unknown = unknownOps(model, *nodes); !unknown.empty())
    return unknown.status();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  Expected<func::FuncOp> function = createMain(model, *shapes, *module);
  if (!function.ok())
    return function.status();
  if (!options.withoutWeights)
    remarkAbsent(model, (*module)->getLoc());
  if (!ofSequence.empty())
    mlir::emitRemark((*module)->getLoc()) << "--generate gives values to " << llvm::join(ofSequence, ", ") << ": masks are 1, positions count from 0, token types are 0, a past is empty";
  HPC_RETURN_IF_ERROR(Importer(model, *function, options, dims).run(*nodes));
  if (!model.defaults.empty()) {
    SmallVector<StringRef> names;
    for (const ValueInfo &input : model.defaults)
      names.push_back(input.name);
    (*module)->setAttr(nn::defaultInputsAttrName, Builder(context).getStrArrayAttr(names));
  }
  setPhase(*module, "import");
  if (failed(verify(*module)))
    return Status::error(ErrorKind::Internal, "the imported module does not verify");
  return std::move(module);
}

} // namespace
} // namespace onnx

Expected<OwningOpRef<ModuleOp>> importOnnx(const std::string &path, const ImportOptions &options,
                                           MLIRContext *context) {
  context->loadDialect<func::FuncDialect, nn::NNDialect>();
  Expected<onnx::Model> model = onnx::readOnnx(path, {options.withoutWeights, options.followLinks});
  if (!model.ok())
    return model.status();
  Expected<OwningOpRef<ModuleOp>> module = onnx::importModel(*model, options, context);
  return module.ok() || module.status().kind() == ErrorKind::Usage
             ? std::move(module)
             : Expected<OwningOpRef<ModuleOp>>(module.status().at(path));
}

} // namespace hpc
