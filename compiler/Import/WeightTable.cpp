// Parameters by reference: hashed once, found again by the tensor itself or by its content.
// Hashes only propose a tie; the bytes decide.
#include "compiler/Import/WeightTable.h"

#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/ElementType.h"
#include "compiler/Import/KnownTensor.h"
#include "compiler/Import/WeightContent.h"
#include "compiler/Interpreter/Tensor.h"
#include "compiler/Location.h"
#include "compiler/Masks.h"

#include <cstring>
#include <set>

namespace hpc::onnx {

/// Exactly two values, of which one masks: zero and "minus infinity".
static bool isMask(const StoredTensor &tensor) {
  int64_t width = byteSize(*tensor.dtype), count = tensor.elements();
  int64_t other = -1;
  for (int64_t i = 1; i < count; ++i) {
    if (!std::memcmp(tensor.data, tensor.data + i * width, size_t(width)))
      continue;
    if (other >= 0 && std::memcmp(tensor.data + other * width, tensor.data + i * width, size_t(width)))
      return false;
    other = i;
  }
  if (other < 0)
    return false;
  double first = tensorFromBytes(*tensor.dtype, {}, tensor.data).floats[0];
  double second = tensorFromBytes(*tensor.dtype, {}, tensor.data + other * width).floats[0];
  return std::min(first, second) <= maskingNumber && std::max(first, second) >= 0;
}

static bool isFilled(const StoredTensor &tensor) {
  return hpc::isFilled(tensor.data, tensor.bytes, byteSize(*tensor.dtype));
}

bool isWeight(const StoredTensor &tensor) {
  if (tensor.isConstant)
    return false;
  if (tensor.isAbsent() || tensor.elements() > maxFoldedElements)
    return tensor.dtype.has_value();
  if (!tensor.dtype || !isFloat(*tensor.dtype))
    return false;
  if (tensor.kind == WeightKind::Parameter && tensor.elements() > 0)
    return true;
  return tensor.elements() > 1 && (isFilled(tensor) || !isMask(tensor));
}

bool mayBeParameter(const StoredTensor &tensor) {
  if (tensor.isConstant || !tensor.dtype || tensor.isAbsent() || tensor.elements() == 0)
    return false;
  if (!isFloat(*tensor.dtype))
    return *tensor.dtype == DType::I8 || *tensor.dtype == DType::U8;
  return tensor.elements() == 1 || isFilled(tensor) || !isMask(tensor);
}

/// The tensors from which PyTorch's exporter made this one; empty where unknown.
static std::vector<std::string> originOf(const StoredTensor &tensor) {
  if (!tensor.madeOf.empty())
    return tensor.madeOf;
  return tensor.kind == WeightKind::Parameter ? std::vector<std::string>{tensor.name} : std::vector<std::string>{};
}

/// Whether two equal tensors come from different parameters (the state matrices of all Mamba layers are equal): that
/// exporter writes a parameter with two uses once, under one name.
static bool areSaidApart(const StoredTensor &a, const StoredTensor &b) {
  std::vector<std::string> first = originOf(a), second = originOf(b);
  bool isOnePlace = !a.file.empty() && a.file == b.file && a.offset == b.offset;
  return !isOnePlace && !first.empty() && !second.empty() && first != second;
}

nn::ParameterOp WeightTable::create(const StoredTensor &tensor, ArrayRef<int64_t> hashes) {
  OpBuilder builder(context);
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(entry);
  auto type = RankedTensorType::get(tensor.shape, typeOf(*tensor.dtype, context));
  Location loc = NameLoc::get(builder.getStringAttr(tensor.name));
  nn::ParameterOp op;
  if (tensor.file.empty()) {
    op = nn::ParameterOp::create(builder, loc, tensor.name, tensorToAttr(tensorFromBytes(*tensor.dtype, tensor.shape, tensor.data), context));
  } else {
    nn::Storage storage;
    storage.file = tensor.file;
    storage.offset = tensor.offset;
    storage.bytes = tensor.bytes;
    storage.hashes = hashes.vec();
    op = nn::ParameterOp::create(builder, loc, type, tensor.name, storage);
  }
  op.setIsStatistic(tensor.kind == WeightKind::Buffer || tensor.isExporters);
  if (tensor.madeOf.size() > 1) // with one origin it is a transpose, which is trained as well
    op.setMadeOfAttr(nn::namesAttr(context, tensor.madeOf));
  op.setIsExporters(tensor.isExporters);
  if (tensor.madeOf.size() == 1 && tensor.shape.size() == 2 && tensor.madeOf[0].find('.') != std::string::npos) {
    op.setStateNamesAttr(nn::namesAttr(context, tensor.madeOf));
    op.setIsMade(true);
  }
  last = op;
  return op;
}

/// Whether the framework's state has a tensor of that name: other exporters name their own tensors "onnx::MatMul_12".
static bool isInState(const StoredTensor &tensor) {
  return !tensor.isExporters && tensor.madeOf.empty() && tensor.name.find("::") == std::string::npos;
}

Value WeightTable::computed(const Tensor &tensor, Location loc, StringRef name, StringRef alias) {
  OpBuilder builder(context);
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(entry);
  ElementsAttr value = tensorToAttr(tensor, context);
  auto op = nn::ParameterOp::create(builder, loc, name, value);
  op.setIsStatistic(true);
  if (alias != name)
    tied[name.str()].push_back(alias.str());
  last = op;
  return op.getResult();
}

Value WeightTable::get(const StoredTensor &tensor) {
  if (auto found = parameters.find(&tensor); found != parameters.end())
    return found->second.getResult();
  // Tensors that may be equal have the same key: place if the content is absent, hashes if it is there.
  std::vector<int64_t> key = {int64_t(*tensor.dtype), tensor.kind == WeightKind::Buffer, tensor.isDefault,
                              int64_t(tensor.shape.size())};
  key.insert(key.end(), tensor.shape.begin(), tensor.shape.end());
  std::vector<int64_t> hashes;
  // A tensor outside of the framework's state is part of the model file; other files of weights do not have it.
  const bool isAbsent = tensor.isAbsent() || (withoutContent && !tensor.file.empty() && !tensor.isExporters);
  if (isAbsent) {
    key.push_back(tensor.offset);
  } else {
    std::vector<uint64_t> chunks = hashContent(tensor.data, tensor.bytes);
    hashes.assign(chunks.begin(), chunks.end());
    key.insert(key.end(), hashes.begin(), hashes.end());
  }
  if (!isAbsent && isFilled(tensor))
    return (parameters[&tensor] = create(tensor, hashes)).getResult();
  std::vector<const StoredTensor *> &others = byContent[{isAbsent ? tensor.file : "", key}];
  std::vector<const StoredTensor *> apart;
  for (const StoredTensor *other : others) {
    if (!isAbsent && !sameContent(other->data, tensor.data, tensor.bytes))
      continue;
    if (isAbsent || !areSaidApart(*other, tensor)) {
      tied[other->name].push_back(tensor.name);
      if (isInState(tensor))
        tiedStates[other->name].push_back(tensor.name);
      return (parameters[&tensor] = parameters[other]).getResult();
    }
    apart.push_back(other);
  }
  others.push_back(&tensor);
  nn::ParameterOp op = parameters[&tensor] = create(tensor, hashes);
  for (const StoredTensor *other : apart) {
    parameters[other].setApartAsAttr(nn::namesAttr(context, originOf(*other)));
    op.setApartAsAttr(nn::namesAttr(context, originOf(tensor)));
  }
  return op.getResult();
}

/// Names of a weight in other modules that read it as their own: "lm_head" that of "transformer.wte", if the exporter
/// wrote it once. The weight's own module has to be among the readers, so that both have the same kind of name.
static std::vector<std::string> namesByReaders(StringRef name, const std::set<std::string> &readers) {
  auto [home, leaf] = name.rsplit('.');
  std::vector<std::string> names;
  if (leaf.empty() || !readers.count(home.str()))
    return names;
  auto isWithin = [](StringRef inner, StringRef outer) { return inner.starts_with(outer) && inner.substr(outer.size()).starts_with("."); };
  for (StringRef reader : readers)
    if (reader != home && !isWithin(reader, home) && !isWithin(home, reader))
      names.push_back((reader + "." + leaf).str());
  return names;
}

void WeightTable::setStateNames(nn::ParameterOp op) const {
  std::set<std::string> readers;
  for (Operation *user : op->getUsers())
    if (std::string path = modulePath(user->getLoc()); !path.empty())
      readers.insert(path);
  const std::string own = op.getName().str();
  if (op.getIsMade() || op.getIsExporters())
    return;
  // PyTorch's older exporter transposes the weights of linear layers, and leaves no name of them.
  if (StringRef(own).starts_with("onnx::") && nn::shapeOf(op.getResult()).size() == 2 && readers.size() == 1) {
    op.setStateNamesAttr(nn::namesAttr(context, {*readers.begin() + ".weight"}));
    op.setIsMade(true);
    return;
  }
  std::vector<std::string> names = {own};
  auto add = [&](const std::string &name) {
    if (!llvm::is_contained(names, name))
      names.push_back(name);
  };
  if (auto found = tiedStates.find(own); found != tiedStates.end())
    llvm::for_each(found->second, add);
  llvm::for_each(namesByReaders(own, readers), add);
  if (names.size() > 1)
    op.setStateNamesAttr(nn::namesAttr(context, names));
}

void WeightTable::setAliases() {
  Builder builder(context);
  for (auto op : entry->getOps<nn::ParameterOp>()) { // not those of `parameters`: some without users are erased
    setStateNames(op);
    std::vector<std::string> &names = tied[op.getName().str()];
    std::set<std::string> known(names.begin(), names.end()), paths;
    known.insert(op.getName().str());
    for (Operation *user : op->getUsers())
      if (std::string path = modulePath(user->getLoc()); !path.empty() && !known.count(path))
        paths.insert(path);
    SmallVector<StringRef> aliases(names.begin(), names.end());
    aliases.append(paths.begin(), paths.end());
    if (!names.empty() && !op.isAbsent())
      op.setTiedNamesAttr(nn::namesAttr(context, names));
    if (!aliases.empty())
      op.setAliasesAttr(builder.getStrArrayAttr(aliases));
  }
}

} // namespace hpc::onnx
