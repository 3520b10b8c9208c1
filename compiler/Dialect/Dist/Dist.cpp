// Registration, the text of the attributes (the algebra's own notation inside a string), and access to shardings.
#include "compiler/Dialect/Dist/Dist.h"

#include "compiler/Dialect/Dist/DistDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/Dialect/Dist/DistAttributes.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/Dialect/Dist/DistOps.cpp.inc"

namespace hpc::dist {

llvm::hash_code hash_value(const Mesh &mesh) { return llvm::hash_value(toString(mesh)); }
llvm::hash_code hash_value(const Sharding &sharding) { return llvm::hash_value(toString(sharding)); }
llvm::hash_code hash_value(const Seed &seed) {
  return llvm::hash_combine(shardingText(seed), seed.priority, seed.origin);
}

namespace {
/// Prints shardings and the mesh under short names at the head of a file.
struct Aliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    if (isa<MeshAttr>(attr))
      return os << "mesh", AliasResult::OverridableAlias;
    return AliasResult::NoAlias;
  }
};
} // namespace

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/Dialect/Dist/DistAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/Dialect/Dist/DistOps.cpp.inc"
      >();
  addInterfaces<Aliases>();
}

AxisNames axesOf(ArrayAttr names) {
  AxisNames axes;
  for (StringRef name : names.getAsValueRange<StringAttr>())
    axes.push_back(name.str());
  return axes;
}

/// `<"text">`, where text is what `parse` reads.
template <typename T> static std::optional<T> parseQuoted(AsmParser &parser, Expected<T> (*parse)(std::string_view)) {
  std::string text;
  SMLoc place = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseString(&text) || parser.parseGreater())
    return std::nullopt;
  Expected<T> value = parse(text);
  if (!value.ok()) {
    parser.emitError(place, value.status().message());
    return std::nullopt;
  }
  return *value;
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  std::optional<Mesh> mesh = parseQuoted<Mesh>(parser, parseMesh);
  return mesh ? MeshAttr::get(parser.getContext(), *mesh) : MeshAttr();
}
void MeshAttr::print(AsmPrinter &printer) const { printer << "<\"" << toString(getValue()) << "\">"; }

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  std::optional<Sharding> sharding = parseQuoted<Sharding>(parser, parseSharding);
  return sharding ? ShardingAttr::get(parser.getContext(), *sharding) : ShardingAttr();
}
void ShardingAttr::print(AsmPrinter &printer) const { printer << "<\"" << toString(getValue()) << "\">"; }

Attribute SeedAttr::parse(AsmParser &parser, Type) {
  std::string text, origin;
  SMLoc place = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseString(&text))
    return {};
  Expected<Seed> seed = parseSeedSharding(text);
  if (!seed.ok()) {
    parser.emitError(place, seed.status().message());
    return {};
  }
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("priority"))) {
      if (parser.parseEqual() || parser.parseInteger(seed->priority))
        return {};
    } else if (parser.parseKeyword("origin") || parser.parseEqual() || parser.parseString(&seed->origin)) {
      return {};
    }
  }
  return parser.parseGreater() ? SeedAttr() : SeedAttr::get(parser.getContext(), *seed);
}
void SeedAttr::print(AsmPrinter &printer) const {
  const Seed seed = getValue(), defaults;
  printer << "<\"" << shardingText(seed) << "\"";
  if (seed.priority != defaults.priority)
    printer << ", priority = " << seed.priority;
  if (seed.origin != defaults.origin) {
    printer << ", origin = ";
    printer.printString(seed.origin);
  }
  printer << ">";
}

Mesh meshOf(Operation *op) {
  for (Operation *parent = op; parent; parent = parent->getParentOp())
    if (auto mesh = parent->getAttrOfType<MeshAttr>(meshAttrName))
      return mesh.getValue();
  return {};
}

/// What `dist.seed` says of the value at `index` of those that it speaks of.
static std::optional<Seed> readSeed(Attribute attr, unsigned index) {
  if (auto list = dyn_cast_if_present<ArrayAttr>(attr))
    attr = index < list.size() ? list[index] : Attribute();
  if (auto seed = dyn_cast_if_present<SeedAttr>(attr))
    return seed.getValue();
  if (auto sharding = dyn_cast_if_present<ShardingAttr>(attr))
    return layoutSeed(sharding.getValue());
  return std::nullopt;
}

std::optional<Seed> seedOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    return function ? readSeed(function.getArgAttr(argument.getArgNumber(), seedAttrName), 0) : std::nullopt;
  }
  return readSeed(value.getDefiningOp()->getAttr(seedAttrName), cast<OpResult>(value).getResultNumber());
}

void setSeed(Value value, const Seed &seed) {
  Attribute attr = SeedAttr::get(value.getContext(), seed);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    cast<func::FuncOp>(argument.getOwner()->getParentOp()).setArgAttr(argument.getArgNumber(), seedAttrName, attr);
    return;
  }
  Operation *op = value.getDefiningOp();
  if (op->getNumResults() > 1) {
    auto list = op->getAttrOfType<ArrayAttr>(seedAttrName);
    SmallVector<Attribute> seeds(op->getNumResults(), UnitAttr::get(value.getContext()));
    if (list && list.size() == seeds.size())
      llvm::copy(list, seeds.begin());
    seeds[cast<OpResult>(value).getResultNumber()] = attr;
    attr = ArrayAttr::get(value.getContext(), seeds);
  }
  op->setAttr(seedAttrName, attr);
}

std::optional<Seed> readSeedOf(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result || result.getResultNumber() != 0)
    return std::nullopt;
  return readSeed(result.getOwner()->getAttr(readSeedAttrName), 0);
}

void setReadSeed(Value value, const Seed &seed) {
  value.getDefiningOp()->setAttr(readSeedAttrName, SeedAttr::get(value.getContext(), seed));
}

void removeSeeds(func::FuncOp function) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    function.removeArgAttr(index, seedAttrName);
  function.walk([](Operation *op) {
    op->removeAttr(seedAttrName);
    op->removeAttr(readSeedAttrName);
  });
}

ShardingAttr shardingAttrOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_if_present<ShardingAttr>(tensor.getEncoding()) : ShardingAttr();
}

Sharding shardingOf(Value value) {
  if (ShardingAttr attr = shardingAttrOf(value))
    return attr.getValue();
  return replicated(cast<RankedTensorType>(value.getType()).getShape().vec());
}

RankedTensorType withSharding(RankedTensorType type, const Sharding &sharding) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), ShardingAttr::get(type.getContext(), sharding));
}
RankedTensorType withoutSharding(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), type.getElementType());
}
RankedTensorType localType(RankedTensorType global, const Mesh &mesh) {
  ShardingAttr attr = shardingAttrOf(global);
  if (!attr)
    return global;
  return RankedTensorType::get(boxShape(attr.getValue(), mesh), global.getElementType(), attr);
}
RankedTensorType globalType(RankedTensorType local) {
  ShardingAttr attr = shardingAttrOf(local);
  if (!attr)
    return local;
  return RankedTensorType::get(globalShape(attr.getValue()), local.getElementType(), attr);
}

LogicalResult ReshardOp::verify() {
  auto from = cast<RankedTensorType>(getOperand().getType()), to = cast<RankedTensorType>(getResult().getType());
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
    return emitOpError("(C1) operand ") << from << " and result " << to
                                        << " must have the same global shape and element type";
  for (const std::string &axis : shardingOf(getResult()).partial)
    if (!llvm::is_contained(shardingOf(getOperand()).partial, axis))
      return emitOpError("(C2) the result is partial over '") << axis << "', the operand is not";
  return success();
}

/// (C1) the encodings are the normal forms of `before` and `after`, and the shapes their local boxes.
static LogicalResult verifyStep(Operation *op, ShardingAttr before, ShardingAttr after) {
  Mesh mesh = meshOf(op);
  auto check = [&](Value value, const Sharding &sharding, StringRef what) -> LogicalResult {
    auto type = cast<RankedTensorType>(value.getType());
    if (!shardingAttrOf(value) || normalize(shardingOf(value), mesh) != normalize(sharding, mesh))
      return op->emitOpError("(C1) ") << what << " type " << type << " must carry the sharding " << toString(sharding);
    if (type.getShape() != ArrayRef<int64_t>(boxShape(sharding, mesh)))
      return op->emitOpError("(C1) ") << what << " type " << type << " must have the shape of its local box";
    return success();
  };
  return success(succeeded(check(op->getOperand(0), before.getValue(), "operand")) &&
                 succeeded(check(op->getResult(0), after.getValue(), "result")));
}
LogicalResult AllReduceOp::verify() { return verifyStep(*this, getBefore(), getAfter()); }
LogicalResult AccumulateOp::verify() {
  Mesh mesh = meshOf(*this);
  const std::vector<std::string> partial = getBefore().getValue().partial;
  for (StringRef axis : getAxes().getAsValueRange<StringAttr>())
    if (!mesh.hasRole(axis.str(), AxisRole::Time) || !llvm::is_contained(partial, axis.str()))
      return emitOpError("(C2) adds up over '")
             << axis << "', which must be an axis of time over which the operand is partial; the mesh is '"
             << toString(mesh) << "', the operand " << toString(getBefore().getValue());
  return verifyStep(*this, getBefore(), getAfter());
}
LogicalResult FillTailOp::verify() {
  auto type = cast<RankedTensorType>(getOperand().getType());
  if (getValue().getType() != type.getElementType())
    return emitOpError("(C1) value ") << getValue() << " must be a number of the element type "
                                      << type.getElementType();
  for (int64_t dim : getDims())
    if (dim < 0 || dim >= type.getRank())
      return emitOpError("(C2) dim ") << dim << " is no dim of " << type;
  if (getOperand().getType() != getResult().getType())
    return emitOpError("(C3) operand and result must have one type");
  return success();
}
LogicalResult AllGatherOp::verify() { return verifyStep(*this, getBefore(), getAfter()); }
LogicalResult ReduceScatterOp::verify() { return verifyStep(*this, getBefore(), getAfter()); }
LogicalResult AllToAllOp::verify() { return verifyStep(*this, getBefore(), getAfter()); }
LogicalResult PermuteOp::verify() { return verifyStep(*this, getBefore(), getAfter()); }
LogicalResult SliceOp::verify() { return verifyStep(*this, getBefore(), getAfter()); }

/// (C1) `blocks`, a value with one block per rank along `axis`, is [k] + the shape of `block`.
static LogicalResult verifyRaw(Operation *op, StringRef axis, Value blocks, ArrayRef<int64_t> block) {
  auto type = cast<RankedTensorType>(blocks.getType());
  int64_t ranks = meshOf(op).size(axis.str());
  if (type.getRank() == 0 || type.getDimSize(0) != ranks || type.getShape().drop_front() != block)
    return op->emitOpError("(C1) type ") << type << " must be one block per rank: " << ranks << " along '" << axis
                                         << "', each of the other side's shape";
  return success();
}
LogicalResult RawAllGatherOp::verify() {
  return verifyRaw(*this, getAxis(), getResult(), cast<RankedTensorType>(getOperand().getType()).getShape());
}
LogicalResult RawReduceScatterOp::verify() {
  return verifyRaw(*this, getAxis(), getOperand(), cast<RankedTensorType>(getResult().getType()).getShape());
}
LogicalResult RawAllToAllOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (type.getRank() == 0)
    return emitOpError("(C1) result type ") << type << " has no dim of blocks";
  return verifyRaw(*this, getAxis(), getOperand(), type.getShape().drop_front());
}
LogicalResult RawPermuteOp::verify() {
  auto from = cast<RankedTensorType>(getOperand().getType()), to = cast<RankedTensorType>(getResult().getType());
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
    return emitOpError("(C1) operand ") << from << " and result " << to << " must have one shape and element type";
  const Mesh mesh = meshOf(*this);
  if (getSkew() && (*getSkew() == getAxis() || mesh.index(getSkew()->str()) < 0))
    return emitOpError("(C2) skew '") << *getSkew() << "' must be another axis of the mesh '" << toString(mesh)
                                      << "' than '" << getAxis() << "'";
  return success();
}
/// (mine + shift +- my coordinate along `skew`) modulo the ranks of `axis`.
static int64_t placeInRing(StringRef axis, int64_t shift, std::optional<StringRef> skew, bool isAgainst, const Mesh &mesh,
                           const std::vector<int64_t> &coordinate) {
  auto along = [&](StringRef name) { return mesh.index(name.str()) < 0 ? 0 : coordinate[size_t(mesh.index(name.str()))]; };
  const int64_t ranks = mesh.size(axis.str()), turn = skew ? along(*skew) : 0;
  const int64_t place = along(axis) + shift % ranks + (isAgainst ? -turn : turn);
  return (place % ranks + ranks) % ranks;
}
std::vector<int64_t> OffsetOp::placeOf(const Mesh &mesh, const std::vector<int64_t> &coordinate) {
  const DimSharding dim = getDim().getValue().dims.front();
  for (const SubDim &sub : dim)
    if (!sub.axes.empty())
      return further(coordinate, mesh, sub.axes.back(), int64_t(getShift()));
  return coordinate;
}
int64_t RawPermuteOp::sourceOf(const Mesh &mesh, const std::vector<int64_t> &coordinate) {
  return placeInRing(getAxis(), int64_t(getShift()), getSkew(), getAgainst(), mesh, coordinate);
}

LogicalResult RawBlockOp::verify() {
  auto from = cast<RankedTensorType>(getOperand().getType()), to = cast<RankedTensorType>(getResult().getType());
  if (int64_t(getDim()) < 0 || int64_t(getDim()) >= from.getRank())
    return emitOpError("(C1) dim ") << getDim() << " is no dim of " << from;
  const Mesh mesh = meshOf(*this);
  const Sharding cut = getCut().getValue();
  auto isWhole = [](const SubDim &sub) { return sub.axes.empty(); };
  if (cut.dims.size() != 1 || cut.dims[0].empty() || cut.dims[0][0].axes.size() != 1 ||
      !llvm::all_of(ArrayRef(cut.dims[0]).drop_front(), isWhole) || mesh.index(cut.dims[0][0].axes[0]) < 0 ||
      (getSkew() && (*getSkew() == cut.dims[0][0].axes[0] || mesh.index(getSkew()->str()) < 0)))
    return emitOpError("(C4) cut ") << toString(cut) << " must be one dim whose first sub-dim one axis cuts, and skew another axis of the mesh '"
                                    << toString(mesh) << "'";
  SmallVector<int64_t> shape(from.getShape());
  const int64_t box = boxSize(cut.dims[0], mesh);
  if (shape[getDim()] != box && shape[getDim()] != globalSize(cut.dims[0]))
    return emitOpError("(C3) dim ") << getDim() << " of " << from << " must be " << globalSize(cut.dims[0]) << " or " << box;
  shape[getDim()] = box;
  if (to.getShape() != ArrayRef<int64_t>(shape) || to.getElementType() != from.getElementType())
    return emitOpError("(C2) the result of ") << from << " is " << to << " and must have " << box << " at dim " << getDim();
  return success();
}
Range RawBlockOp::rangeAt(const Mesh &mesh, const std::vector<int64_t> &coordinate) {
  const DimSharding dim = getCut().getValue().dims[0];
  const std::string &axis = dim[0].axes[0];
  std::vector<int64_t> other = coordinate;
  other[size_t(mesh.index(axis))] = placeInRing(axis, int64_t(getShift()), getSkew(), false, mesh, coordinate);
  Range range = heldDigits(dim[0], mesh, other);
  const int64_t inner = globalSize(dim) / std::max<int64_t>(dim[0].size, 1);
  const bool isPart = cast<RankedTensorType>(getOperand().getType()).getDimSize(unsigned(getDim())) == boxSize(dim, mesh);
  return {isPart ? 0 : range.start * inner, range.extent * inner};
}

} // namespace hpc::dist
