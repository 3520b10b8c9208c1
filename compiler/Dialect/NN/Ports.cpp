// The attributes of arguments and results, read and written in one place.
#include "compiler/Dialect/NN/Ports.h"

#include "compiler/Diagnostics.h"

namespace hpc::nn {

/// "" where there is none.
static StringRef refOf(DictionaryAttr attrs, StringRef name) {
  auto text = attrs ? attrs.getAs<StringAttr>(name) : StringAttr();
  return text ? text.getValue() : StringRef();
}

static std::string textOf(DictionaryAttr attrs, StringRef name) { return refOf(attrs, name).str(); }

static Attribute toAttribute(Builder &b, const Lookup &lookup) {
  NamedAttrList list;
  list.set("begin", b.getDenseI64ArrayAttr(lookup.begin));
  list.set("end", b.getDenseI64ArrayAttr(lookup.end));
  list.set("low", b.getI64IntegerAttr(lookup.low));
  list.set("high", b.getI64IntegerAttr(lookup.high));
  if (lookup.ignored)
    list.set("ignored", b.getI64IntegerAttr(*lookup.ignored));
  list.set("reader", b.getStringAttr(lookup.reader));
  return list.getDictionary(b.getContext());
}

/// nullopt: it is not what toAttribute makes of a lookup by an input of that rank.
static std::optional<Lookup> lookupFrom(Attribute attribute, size_t rank) {
  auto list = dyn_cast<DictionaryAttr>(attribute);
  if (!list)
    return std::nullopt;
  auto begin = list.getAs<DenseI64ArrayAttr>("begin"), end = list.getAs<DenseI64ArrayAttr>("end");
  auto low = list.getAs<IntegerAttr>("low"), high = list.getAs<IntegerAttr>("high");
  auto ignored = list.getAs<IntegerAttr>("ignored");
  auto reader = list.getAs<StringAttr>("reader");
  if (!begin || !end || !low || !high || !reader || size_t(begin.size()) != rank || size_t(end.size()) != rank)
    return std::nullopt;
  Lookup lookup;
  lookup.begin = begin.asArrayRef().vec();
  lookup.end = end.asArrayRef().vec();
  lookup.low = low.getInt();
  lookup.high = high.getInt();
  if (ignored)
    lookup.ignored = ignored.getInt();
  lookup.reader = reader.str();
  return lookup;
}

LogicalResult verifyLookups(func::FuncOp function, unsigned index) {
  auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[index]);
  for (Attribute lookup : function.getArgAttrOfType<ArrayAttr>(index, ports::lookups))
    if (!type || !lookupFrom(lookup, size_t(type.getRank())))
      return function.emitError() << "'" << ports::lookups << "' of argument " << index << " has to list lookups by its dims, as {begin = array<i64: 0>, end = array<i64: 4>, "
                                  << "low = 0, high = 9, reader = \"wte\"}, and has " << lookup;
  return success();
}

ArgumentPort argumentPort(func::FuncOp function, unsigned index) {
  DictionaryAttr attrs = function.getArgAttrDict(index);
  ArgumentPort port{textOf(attrs, ports::name), {}, textOf(attrs, ports::state), 0, textOf(attrs, ports::stepScalar),
                    textOf(attrs, ports::defaultInput), textOf(attrs, ports::wholeOf), {}};
  if (auto dims = attrs ? attrs.getAs<ArrayAttr>(ports::dims) : ArrayAttr())
    for (Attribute dim : dims)
      port.dims.push_back(isa<StringAttr>(dim) ? cast<StringAttr>(dim).str() : std::string());
  if (auto initial = attrs ? attrs.getAs<FloatAttr>(ports::initial) : FloatAttr())
    port.initial = initial.getValueAsDouble();
  if (auto largest = attrs ? attrs.getAs<IntegerAttr>(ports::largest) : IntegerAttr())
    port.largest = largest.getInt();
  size_t rank = shapeOf(function.getArgument(index)).size();
  if (auto lookups = attrs ? attrs.getAs<ArrayAttr>(ports::lookups) : ArrayAttr())
    for (Attribute lookup : lookups)
      if (std::optional<Lookup> known = lookupFrom(lookup, rank))
        port.lookups.push_back(*known);
  return port;
}

ResultPort resultPort(func::FuncOp function, unsigned index) {
  DictionaryAttr attrs = function.getResultAttrDict(index);
  return {textOf(attrs, ports::name), textOf(attrs, ports::writes), textOf(attrs, ports::gradient)};
}

using NamedValue = std::pair<StringRef, Attribute>;

/// The notes of a port, each under its attribute's name; null where there is none.
static SmallVector<NamedValue> valuesOf(const ArgumentPort &port, Builder &builder) {
  SmallVector<StringRef> dims(port.dims.begin(), port.dims.end());
  auto text = [&](const std::string &text) { return text.empty() ? Attribute() : builder.getStringAttr(text); };
  SmallVector<Attribute> lookups;
  for (const Lookup &lookup : port.lookups)
    lookups.push_back(toAttribute(builder, lookup));
  return {{ports::name, text(port.name)},
          {ports::dims, dims.empty() ? Attribute() : builder.getStrArrayAttr(dims)},
          {ports::state, text(port.state)},
          {ports::initial, port.isState() ? builder.getF64FloatAttr(port.initial) : Attribute()},
          {ports::stepScalar, text(port.stepScalar)},
          {ports::defaultInput, text(port.defaultInput)},
          {ports::wholeOf, text(port.wholeOf)},
          {ports::largest, port.largest ? builder.getI64IntegerAttr(*port.largest) : Attribute()},
          {ports::lookups, lookups.empty() ? Attribute() : builder.getArrayAttr(lookups)}};
}
static SmallVector<NamedValue> valuesOf(const ResultPort &port, Builder &builder) {
  auto text = [&](const std::string &text) { return text.empty() ? Attribute() : builder.getStringAttr(text); };
  return {{ports::name, text(port.name)}, {ports::writes, text(port.writes)}, {ports::gradient, text(port.gradient)}};
}

/// `attrs` with the port's own attributes as it says them.
template <typename Port> static DictionaryAttr merged(DictionaryAttr attrs, const Port &port, Builder &builder) {
  NamedAttrList list(attrs);
  for (auto [name, value] : valuesOf(port, builder))
    if (value)
      list.set(name, value);
    else
      list.erase(name);
  return list.getDictionary(builder.getContext());
}

void setArgumentPort(func::FuncOp function, unsigned index, const ArgumentPort &port) {
  Builder builder(function.getContext());
  function.setArgAttrs(index, merged(function.getArgAttrDict(index), port, builder));
}

void setResultPort(func::FuncOp function, unsigned index, const ResultPort &port) {
  Builder builder(function.getContext());
  function.setResultAttrs(index, merged(function.getResultAttrDict(index), port, builder));
}

void setArgumentPorts(func::FuncOp function, ArrayRef<ArgumentPort> ports) {
  Builder builder(function.getContext());
  SmallVector<DictionaryAttr> all;
  for (auto [index, port] : llvm::enumerate(ports))
    all.push_back(merged(function.getArgAttrDict(unsigned(index)), port, builder));
  function.setAllArgAttrs(all);
}

void setResultPorts(func::FuncOp function, ArrayRef<ResultPort> ports) {
  Builder builder(function.getContext());
  SmallVector<DictionaryAttr> all;
  for (auto [index, port] : llvm::enumerate(ports))
    all.push_back(merged(function.getResultAttrDict(unsigned(index)), port, builder));
  function.setAllResultAttrs(all);
}

std::map<std::string, unsigned> writtenBy(func::FuncOp function) {
  std::map<std::string, unsigned> written;
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (std::string name = resultPort(function, index).writes; !name.empty())
      written.emplace(name, index);
  return written;
}

bool isWritten(Value value) {
  StringRef name;
  func::FuncOp function;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    name = function ? refOf(function.getArgAttrDict(argument.getArgNumber()), ports::state) : StringRef();
  } else if (auto parameter = value.getDefiningOp<ParameterOp>()) {
    function = parameter->getParentOfType<func::FuncOp>();
    name = parameter.getName();
  }
  if (!function || name.empty())
    return false;
  ArrayAttr results = function.getAllResultAttrs(); // null where no result has any
  return results && llvm::any_of(results.getAsRange<DictionaryAttr>(),
                                 [&](DictionaryAttr result) { return refOf(result, ports::writes) == name; });
}

LogicalResult verifyPorts(func::FuncOp function) {
  std::map<std::string, Type> parameters, states, inputs;
  function.walk([&](ParameterOp op) { parameters.try_emplace(op.getName().str(), op.getType()); });
  for (BlockArgument argument : function.getArguments())
    if (ArgumentPort port = argumentPort(function, argument.getArgNumber()); port.isGiven())
      inputs.try_emplace(port.name, argument.getType());
  for (BlockArgument argument : function.getArguments()) {
    ArgumentPort port = argumentPort(function, argument.getArgNumber());
    if (Type input = inputs[port.wholeOf]; !port.wholeOf.empty() && input != argument.getType()) {
      InFlightDiagnostic error = userError(argument.getLoc(), ErrorKind::Model)
                                 << "argument " << argument.getArgNumber() << " of type " << argument.getType()
                                 << " is to be all of input '" << port.wholeOf << "', which is ";
      return input ? error << input : error << "not there";
    }
    if (port.isState() && !states.try_emplace(port.state, argument.getType()).second)
      return userError(argument.getLoc(), ErrorKind::Model)
             << "state '" << port.state << "' is an argument twice; give each state a name of its own";
    if (port.isState() && parameters.count(port.state))
      return userError(argument.getLoc(), ErrorKind::Model)
             << "state '" << port.state << "' has the name of a parameter; rename it, as 'momentum/" << port.state
             << "'";
    if (!port.stepScalar.empty() && (port.isState() || !shapeOf(argument).empty()))
      return userError(argument.getLoc(), ErrorKind::Model)
             << "step scalar '" << port.stepScalar << "' of type " << argument.getType()
             << " must have rank 0 and be no state";
    if (port.largest && (port.stepScalar.empty() || *port.largest < 0 || !tensorType(argument).getElementType().isInteger(64)))
      return userError(argument.getLoc(), ErrorKind::Model)
             << "argument " << argument.getArgNumber() << " of type " << argument.getType() << " is to be at most " << *port.largest
             << "; only step scalars of i64 have a largest value, 0 or more";
  }
  std::set<std::string> written;
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    std::string name = resultPort(function, index).writes;
    if (name.empty())
      continue;
    Type target = parameters.count(name) ? parameters[name] : states[name];
    if (!target)
      return userError(function, ErrorKind::Model)
             << "result " << index << " writes '" << name << "', which is neither a parameter nor a state";
    if (target != function.getResultTypes()[index])
      return userError(function, ErrorKind::Model) << "result " << index << " of type "
                                                   << function.getResultTypes()[index] << " writes '" << name
                                                   << "' of type " << target << "; they must be equal";
    if (!written.insert(name).second)
      return userError(function, ErrorKind::Model) << "'" << name << "' is written twice, at last by result " << index;
  }
  return success();
}

} // namespace hpc::nn
