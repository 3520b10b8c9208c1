// Creation, verification and folding of ops, and writing out of known values.
// Every op is verified when it is made, so that a model's mistake is reported with the node that made it.
#include "compiler/Import/GraphBuilder.h"

#include "compiler/ElementType.h"
#include "compiler/Import/Folding.h"
#include "mlir/IR/Verifier.h"
#include "runtime/base/Array.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/CheckedMath.h"

namespace hpc::onnx {

GraphBuilder::GraphBuilder(func::FuncOp function, bool withoutWeights)
    : function(function), withoutWeights(withoutWeights), builder(OpBuilder::atBlockEnd(&function.getBody().front())),
      weights(&function.getBody().front(), function.getContext(), withoutWeights), loc(function.getLoc()) {}

GraphBuilder::~GraphBuilder() {
  for (auto &[value, entry] : entries)
    if (entry.maker) {
      entry.maker->dropAllReferences();
      entry.maker->dropAllUses();
      entry.maker->destroy();
    }
  placeholders.dropAllDefinedValueUses();
}

void GraphBuilder::beginNode(Location location, std::string text) {
  loc = location;
  label = std::move(text);
}

Value GraphBuilder::fail(const std::string &message, ErrorKind kind) {
  if (failure.ok()) {
    failure = Status::error(kind, label + ": " + message);
    reason = message;
  }
  return placeholder(type({}, DType::F32));
}

Status checkRank(int64_t rank) {
  if (rank > maxRank)
    return Status::error(ErrorKind::Unsupported,
                         "a tensor of " + countText(rank, "dim") + "; at most " + std::to_string(maxRank) + " are possible");
  return Status::success();
}

Status checkTensor(ArrayRef<int64_t> shape, DType dtype) {
  int64_t bytes = byteSize(dtype);
  for (int64_t size : shape)
    bytes = size < 0 ? plan::saturated : plan::multiplySizes(bytes, std::max<int64_t>(size, 1));
  if (bytes > maxTensorBytes)
    return Status::error(ErrorKind::Model, "a tensor of shape " + shapeText(shape.vec()) +
                                               " cannot be; sizes are 0 or more, and at most 2^46 bytes in all");
  return checkRank(int64_t(shape.size()));
}

bool GraphBuilder::checkType(ArrayRef<int64_t> shape, DType dtype) {
  Status status = checkTensor(shape, dtype);
  if (!status.ok())
    fail(status.message(), status.kind());
  return status.ok();
}

void GraphBuilder::reserveNames(const std::set<std::string> &names) {
  for (const std::string &name : names)
    takenNames.insert(name);
}

// ---- known values -------------------------------------------------------------------------------

Value GraphBuilder::placeholder(RankedTensorType type) { return placeholders.addArgument(type, loc); }

Value GraphBuilder::known(KnownTensor tensor) {
  if (!checkType(tensor.shape, tensor.dtype()))
    return placeholder(type({}, tensor.dtype()));
  Value value = placeholder(type(tensor.shape, tensor.dtype()));
  entries.try_emplace(value, Entry{std::make_shared<const KnownTensor>(std::move(tensor)), nullptr, loc});
  return value;
}

Value GraphBuilder::known(const StoredTensor &stored) {
  Value value = placeholder(type(stored.shape, *stored.dtype));
  Entry entry{nullptr, &stored, loc};
  entry.root = mayBeParameter(stored) ? &stored : nullptr;
  entries.try_emplace(value, std::move(entry));
  return value;
}

Value GraphBuilder::constant(const void *key, StoredTensor stored, StringRef name) {
  auto [found, isNew] = constants.try_emplace(key, std::move(stored));
  if (isNew)
    found->second.name = name.str();
  return known(found->second);
}

std::shared_ptr<const KnownTensor> GraphBuilder::find(Value value) {
  auto found = entries.find(value);
  if (found == entries.end())
    return nullptr;
  Entry &entry = found->second;
  if (entry.tensor || !entry.stored)
    return entry.tensor;
  auto loaded = std::make_shared<const KnownTensor>(
      tensorFromBytes(*entry.stored->dtype, entry.stored->shape, entry.stored->data));
  if (loaded->compact.size() <= 4096) // big ones are loaded again rather than kept
    entry.tensor = loaded;
  return loaded;
}

Value GraphBuilder::weight(const StoredTensor &stored) {
  if (withoutWeights && stored.file.empty() && stored.elements() > 0)
    return fail("weight '" + stored.name +
                    "' is not stored as bytes of its own, so the plan would hold its numbers and no others would fit; "
                    "save the model with it as an initializer of raw data (numpy_helper.from_array makes such), or leave out --no-weights",
                ErrorKind::Unsupported);
  Value value = weights.get(stored);
  storedWeights.try_emplace(value, &stored);
  return value;
}

std::shared_ptr<const KnownTensor> GraphBuilder::content(Value value) {
  auto found = storedWeights.find(value);
  if (found == storedWeights.end() || found->second->isAbsent())
    return find(value);
  return std::make_shared<const KnownTensor>(
      tensorFromBytes(*found->second->dtype, found->second->shape, found->second->data));
}

void GraphBuilder::forget(Value value) {
  if (auto found = entries.find(value); found != entries.end())
    found->second.tensor.reset();
}

std::string GraphBuilder::valueText(Value value) {
  std::string name = "the data";
  if (auto parameter = value.getDefiningOp<nn::ParameterOp>())
    name = "'" + parameter.getName().str() + "'";
  else if (auto entry = entries.find(value); entry != entries.end() && entry->second.stored)
    name = "'" + entry->second.stored->name + "'";
  return name + " " + shapeText(nn::shapeOf(value).vec());
}

/// "'a', 'b' and 3 more"
static std::string listText(const llvm::SetVector<StringRef> &names) {
  constexpr size_t most = 3;
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i)
    text += (i ? ", '" : "'") + names[i].str() + "'";
  return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more" : text;
}

std::string GraphBuilder::unknownText(Value value) {
  constexpr size_t most = 10'000; // ops that are looked at
  llvm::SetVector<StringRef> absent, read, inputs;
  std::string file;
  llvm::SetVector<Value> open;
  open.insert(value);
  for (size_t next = 0; next < open.size() && next < most; ++next) {
    if (auto parameter = open[next].getDefiningOp<nn::ParameterOp>()) {
      (parameter.isAbsent() ? absent : read).insert(parameter.getName());
      if (parameter.isAbsent() && file.empty())
        file = parameter.getFile().str();
    } else if (Operation *op = open[next].getDefiningOp()) {
      open.insert(op->operand_begin(), op->operand_end());
    } else if (auto argument = dyn_cast<BlockArgument>(open[next]); argument.getOwner() == &function.front()) {
      auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "nn.name");
      if (name && !name.empty())
        inputs.insert(name.getValue());
    }
  }
  if (!absent.empty())
    return (value.getDefiningOp<nn::ParameterOp>() ? " is " : " is computed from ") + listText(absent) + " in " + file +
           ", which was not read; compile with that file in its place and without --no-weights, or store it in the model";
  std::string why = " depends on the data, not on shapes alone";
  if (!inputs.empty())
    why += ": on input" + std::string(inputs.size() > 1 ? "s " : " ") + listText(inputs) + "; bind what decides it with --const " +
           (inputs.size() == 1 ? inputs[0].str() : "NAME") + "=FILE";
  else if (!read.empty())
    why += ": on " + listText(read) + ", which counts as a weight; store it as a Constant node";
  return why;
}

SmallVector<int64_t> GraphBuilder::integers(Value value, const std::string &what) {
  std::shared_ptr<const KnownTensor> known = find(value);
  if (!known) {
    fail("its " + what + unknownText(value), ErrorKind::Unsupported);
    return {};
  }
  if (known->compact.isFloat() || known->elements() > (1 << 20)) {
    fail("its " + what + " must be a few whole numbers");
    return {};
  }
  Tensor full = broadcastTo(known->compact, known->shape);
  return SmallVector<int64_t>(full.ints.begin(), full.ints.end());
}

Tensor GraphBuilder::element(Value value, const std::string &what) {
  std::shared_ptr<const KnownTensor> known = find(value);
  if (!known)
    fail("its " + what + unknownText(value), ErrorKind::Unsupported);
  else if (!known->isSplat())
    fail("its " + what + " must be one number");
  Tensor one = known && known->isSplat() ? known->compact : Tensor(dtype(value), {});
  one.shape.clear();
  return one;
}

Value GraphBuilder::scalar(double value, DType dtype) {
  Tensor tensor(dtype, {});
  tensor.setNumber(0, value);
  round(tensor);
  return known(std::move(tensor));
}

Value GraphBuilder::indices(ArrayRef<int64_t> values) {
  Tensor tensor(DType::I64, {int64_t(values.size())});
  tensor.ints.assign(values.begin(), values.end());
  return known(std::move(tensor));
}

bool GraphBuilder::checkSequence(int64_t count) {
  constexpr int64_t most = 1'000'000;
  if (count > most - numHeld)
    fail("its sequence has " + countText(count, "tensor") + "; all of a model may have " + std::to_string(most) +
             ", so split into fewer parts, or take out the loop that makes it longer",
         ErrorKind::Unsupported);
  return failure.ok();
}

Value GraphBuilder::sequence(ArrayRef<Value> parts) {
  if (!failure.ok() || !checkSequence(int64_t(parts.size())))
    return placeholder(type({}, DType::F32));
  numHeld += int64_t(parts.size());
  Value value = placeholder(type({}, DType::F32));
  sequences.try_emplace(value, parts);
  return value;
}

// ---- types --------------------------------------------------------------------------------------

DType GraphBuilder::dtype(Value value) const { return dtypeOf(value.getType()); }

RankedTensorType GraphBuilder::type(ArrayRef<int64_t> shape, DType dtype) const {
  return RankedTensorType::get(shape, typeOf(dtype, builder.getContext()));
}

/// "2x3xf32"
static std::string typeText(Value value) {
  std::string text;
  for (int64_t size : nn::shapeOf(value))
    text += std::to_string(size) + "x";
  return text + name(dtypeOf(value.getType()));
}

bool GraphBuilder::broadcasts(ArrayRef<Value> values) {
  for (Value value : values.drop_front())
    if (nn::tensorType(value).getElementType() != nn::tensorType(values[0]).getElementType()) {
      fail("operands of types " + typeText(values[0]) + " and " + typeText(value) + " must have one element type");
      return false;
    }
  if (nn::broadcastType(values))
    return true;
  std::string types;
  for (Value value : values)
    types += (types.empty() ? "" : ", ") + typeText(value);
  fail("the shapes of " + types + " do not broadcast; each dim, counted from the last, must be the same or 1");
  return false;
}

// ---- creation -----------------------------------------------------------------------------------

/// A verifier's text is for authors of .mlir: "'nn.concat' op (C1) operand 'tensor<2x4xf32>' differs ...". A user of a
/// model needs "operand 2x4xf32 differs ...".
static std::string withoutSyntax(StringRef text) {
  std::string result = text.str();
  if (text.starts_with("'nn."))
    result = text.split("' op ").second.str();
  if (StringRef(result).starts_with("(C"))
    result = StringRef(result).split(") ").second.str();
  for (size_t begin; (begin = result.find("'tensor<")) != std::string::npos;) {
    size_t end = result.find(">'", begin);
    if (end == std::string::npos)
      break;
    result = result.substr(0, begin) + result.substr(begin + 8, end - begin - 8) + result.substr(end + 2);
  }
  return result;
}

bool GraphBuilder::verifyOp(Operation *op) {
  std::string message;
  ScopedDiagnosticHandler handler(op->getContext(), [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  bool good = succeeded(verify(op, /*verifyRecursively=*/false));
  if (!good)
    fail(withoutSyntax(message));
  return good;
}

Value GraphBuilder::finish(Operation *op, bool elementwise) {
  // Folded and failed ops are replaced by a placeholder of their type.
  auto replaced = [&](Value value) {
    op->erase();
    return value;
  };
  auto resultType = nn::tensorType(op->getResult(0));
  // A failed op keeps its rank, on which callers continue to rely.
  if (!failure.ok() || !checkType(resultType.getShape(), dtypeOf(resultType)) || !verifyOp(op))
    return replaced(placeholder(resultType));
  SmallVector<std::shared_ptr<const KnownTensor>> held;
  SmallVector<const KnownTensor *> operands;
  bool allKnown = llvm::all_of(op->getOperands(), [&](Value operand) { return isKnown(operand); });
  if (allKnown) {
    for (Value operand : op->getOperands()) {
      held.push_back(find(operand));
      operands.push_back(held.back().get());
    }
    Expected<std::vector<KnownTensor>> results = foldOp(op, operands, elementwise);
    if (!results.ok()) {
      fail(results.status().message(), results.status().kind());
      return replaced(placeholder(resultType));
    }
    Value result = known(std::move(results->front()));
    if (noteMaker(result, op))
      op->remove();
    else
      op->erase();
    return result;
  }
  useRealOperands(op, elementwise);
  return op->getResult(0);
}

/// Elementwise ops read the compact form of a known operand, and the operand of a broadcast, as long as some operand
/// still has the result's size along every dim.
void GraphBuilder::useRealOperands(Operation *op, bool elementwise) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  SmallVector<Value> full(op->getOperands());
  for (OpOperand &operand : op->getOpOperands())
    if (isKnown(operand.get()))
      operand.set(writtenOut(operand.get(), elementwise));
  if (!elementwise)
    return;
  auto keepsShape = [&] {
    auto broadcast = nn::broadcastType(op->getOperands());
    return broadcast && broadcast.getShape() == nn::shapeOf(op->getResult(0));
  };
  for (auto [index, value] : llvm::enumerate(full))
    if (isKnown(value) && !keepsShape())
      op->setOperand(index, writtenOut(value, false));
  for (OpOperand &operand : op->getOpOperands())
    if (auto broadcast = operand.get().getDefiningOp<nn::BroadcastOp>()) {
      operand.set(broadcast.getOperand());
      if (!keepsShape())
        operand.set(broadcast);
    }
}

std::string GraphBuilder::freeName() {
  std::string name;
  do
    name = "constant_" + std::to_string(numWritten++);
  while (takenNames.contains(name));
  return name;
}

Value GraphBuilder::writtenOut(Value value, bool compact) {
  if (!isKnown(value))
    return value;
  // `entries` may not change while the reference is held: building constants adds none.
  Entry &entry = entries.find(value)->second;
  if (entry.parameter && entry.root) // the same numbers twice would be trained apart
    return entry.parameter;
  if (!entry.compact) {
    std::shared_ptr<const KnownTensor> known = find(value);
    assert(known && "a forgotten value is used");
    bool large = known->compact.size() > maxConstantElements;
    // Weights of a few bits are bytes.
    bool isWeight = known->compact.isFloat() || known->dtype() == DType::U8 || known->dtype() == DType::I8;
    if (entry.stored && !large)
      writtenStored.push_back(value);
    else if (entry.root && !entry.stored)
      leftOut.insert(entry.root);
    if (entry.stored && large && isWeight)
      entry.compact = weights.get(*entry.stored);
    else
      entry.compact = buildConstant(builder, entry.loc, *known, freeName());
  }
  if (compact)
    return entry.compact;
  if (!entry.full) {
    auto wanted = nn::tensorType(value);
    Value held = entry.compact;
    auto constant = held.getDefiningOp<nn::ConstantOp>();
    if (held.getType() == wanted)
      entry.full = held;
    else if (auto splat = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
             splat && splat.isSplat() && splat.getNumElements() == 1 && wanted.getNumElements() == 1)
      entry.full = nn::ConstantOp::create(builder, entry.loc, splat.resizeSplat(wanted));
    else
      entry.full = nn::BroadcastOp::create(builder, entry.loc, wanted, held);
  }
  return entry.full;
}

void GraphBuilder::finishFunction(ArrayRef<Value> results) {
  func::ReturnOp::create(builder, function.getLoc(), results);
  // A tensor that was written into the program before a product read it becomes the same parameter.
  for (Value value : writtenStored) {
    Entry &entry = entries.find(value)->second;
    for (Value constant : {entry.full, entry.compact})
      if (entry.parameter && constant && constant != entry.parameter)
        constant.replaceAllUsesWith(entry.parameter);
    if (entry.root && !entry.parameter)
      leftOut.insert(entry.root);
  }
  Block &body = function.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  weights.setAliases();
}

} // namespace hpc::onnx
