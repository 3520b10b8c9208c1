// A gather is taken in panels where all its readers are. So a reader that cannot be leaves the gather to all others, which then read parts of
// the gathered operand, or stay as they are.
#include "passes/Kernels/PanelUnits.h"

#include "compiler/ElementType.h"
#include "llvm/ADT/MapVector.h"

namespace hpc::kernels {

StringAttr PanelUnit::skewOf(StringRef axis) const {
  if (axes.size() < 2)
    return {};
  return StringAttr::get(root->getContext(), axes[0] == axis ? axes[1] : axes[0]);
}

namespace {

int64_t bytesOf(Value value) {
  return nn::tensorType(value).getNumElements() * elementBytes(nn::tensorType(value));
}

/// Whether both cut a dim at the same places, for as many ranks.
bool areCutAlike(const dist::DimSharding &a, const dist::DimSharding &b, const dist::Mesh &mesh) {
  return mesh.size(a[0].axes[0]) == mesh.size(b[0].axes[0]) && dist::globalSize(a) == dist::globalSize(b) &&
         dist::boxSize(a, mesh) == dist::boxSize(b, mesh);
}

/// Whether no two ranks along the axis hold the same elements: each adds up panels in an order of its own, so what they held
/// alike would differ by rounding.
bool differsAlong(const dist::Sharding &sharding, const std::string &axis) {
  return llvm::is_contained(dist::cutAxes(sharding), axis) || llvm::is_contained(sharding.partial, axis);
}

std::optional<GatheredValue> gatheredOperand(nn::MatmulOp product, unsigned operand, ProductDim dim) {
  std::optional<unsigned> at = dimOfOperand(product, operand, dim);
  return at ? gatheredAlong(product->getOperand(operand), *at) : std::nullopt;
}

/// A product with operands that are gathered along what it sums over.
std::optional<PanelUnit> matchProduct(nn::MatmulOp product, const dist::Mesh &mesh) {
  PanelUnit unit;
  unit.root = product;
  PanelTerm &term = unit.terms.emplace_back(PanelTerm{product, {}});
  for (unsigned operand : {0u, 1u})
    if (auto panels = gatheredOperand(product, operand, ProductDim::Sum); panels && differsAlong(dist::shardingOf(product.getResult()), panels->axis()))
      term.panels[operand] = panels;
  auto &[lhs, rhs] = term.panels;
  if (!lhs && !rhs)
    return std::nullopt;
  if (lhs && rhs && (lhs->axis() == rhs->axis() || !areCutAlike(lhs->cut(), rhs->cut(), mesh)))
    (bytesOf(product.getLhs()) < bytesOf(product.getRhs()) ? lhs : rhs).reset();
  for (const std::optional<GatheredValue> *each : {&lhs, &rhs})
    if (*each)
      unit.axes.push_back((*each)->axis());
  unit.cut = (lhs ? lhs : rhs)->cut();
  return unit;
}

/// The products of a sum that nothing else reads; false where something else is added, too.
bool collectTerms(Value value, std::vector<PanelTerm> &terms) {
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!next.hasOneUse())
      return false;
    if (auto product = next.getDefiningOp<nn::MatmulOp>()) {
      terms.push_back(PanelTerm{product, {}});
      continue;
    }
    auto add = next.getDefiningOp<nn::AddOp>();
    if (!add || nn::shapeOf(add.getLhs()) != nn::shapeOf(next) || nn::shapeOf(add.getRhs()) != nn::shapeOf(next))
      return false;
    open.append({add.getRhs(), add.getLhs()});
  }
  return true;
}

/// A reduce-scatter of products along a dim of theirs, along which an operand is gathered.
std::optional<PanelUnit> matchScatter(dist::ReduceScatterOp scatter, const dist::Mesh &mesh) {
  PanelUnit unit;
  unit.root = scatter;
  const size_t dim = size_t(scatter.getToDim()), rank = nn::shapeOf(scatter.getOperand()).size();
  unit.cut = scatter.getAfter().getValue().dims[dim];
  if (scatter.getToSub() != 0 || !isCutInBlocks(unit.cut) || rank < 2 || dim + 2 < rank)
    return std::nullopt;
  unit.dim = dim + 1 == rank ? ProductDim::Columns : ProductDim::Rows;
  Value sum = scatter.getOperand();
  if (auto cast = sum.getDefiningOp<nn::CastOp>(); cast && sum.hasOneUse()) {
    unit.rounding = cast;
    sum = cast.getOperand();
  }
  if (!collectTerms(sum, unit.terms))
    return std::nullopt;
  const unsigned operand = unit.dim == ProductDim::Columns ? 1 : 0;
  unsigned gathered = 0, alike = 0;
  for (PanelTerm &term : unit.terms) {
    std::optional<GatheredValue> &panels = term.panels[operand] = gatheredOperand(term.product, operand, unit.dim);
    gathered += panels.has_value();
    alike += panels && panels->axis() != scatter.getAxis() && areCutAlike(panels->cut(), unit.cut, mesh) &&
             differsAlong(dist::shardingOf(scatter.getResult()), panels->axis()) &&
             panels->axis() == (unit.terms[0].panels[operand] ? unit.terms[0].panels[operand]->axis() : "");
  }
  if (gathered == 0)
    return std::nullopt;
  unit.axes = {scatter.getAxis().str()};
  if (alike == unit.terms.size())
    unit.axes.push_back(unit.terms[0].panels[operand]->axis());
  else
    for (PanelTerm &term : unit.terms)
      term.panels[operand].reset();
  return unit;
}

/// Whether every reader of a gather, through views, takes it in panels.
bool isReadInPanels(dist::AllGatherOp gather, ArrayRef<PanelUnit> units) {
  auto takes = [&](OpOperand &use) {
    return llvm::any_of(units, [&](const PanelUnit &unit) {
      return llvm::any_of(unit.terms, [&](const PanelTerm &term) {
        const std::optional<GatheredValue> &panels = term.panels[std::min(use.getOperandNumber(), 1u)];
        return term.product == use.getOwner() && panels && panels->gather == gather;
      });
    });
  };
  SmallVector<Value> open{gather.getResult()};
  while (!open.empty())
    for (OpOperand &use : open.pop_back_val().getUses()) {
      if (isa<nn::MatmulOp>(use.getOwner())) {
        if (!takes(use))
          return false;
      } else if (isa<nn::ReshapeOp, nn::TransposeOp, dist::FillTailOp, nn::CastOp>(use.getOwner())) {
        open.push_back(use.getOwner()->getResult(0));
      } else {
        return false;
      }
    }
  return true;
}

/// Takes the gather out of a unit's panels; false where nothing is left to take in panels.
bool giveUp(PanelUnit &unit, dist::AllGatherOp gather) {
  bool isFound = false;
  for (PanelTerm &term : unit.terms)
    for (std::optional<GatheredValue> &panels : term.panels)
      isFound |= panels && panels->gather == gather;
  if (!isFound)
    return true;
  if (unit.scatter()) {
    for (PanelTerm &term : unit.terms)
      for (std::optional<GatheredValue> &panels : term.panels)
        panels.reset();
    unit.axes.resize(1);
    return true;
  }
  unit.axes.clear();
  for (std::optional<GatheredValue> &panels : unit.terms[0].panels) {
    if (panels && panels->gather == gather)
      panels.reset();
    if (panels) {
      unit.axes = {panels->axis()};
      unit.cut = panels->cut();
    }
  }
  return !unit.axes.empty();
}

std::vector<PanelUnit> findUnits(Block &block, const dist::Mesh &mesh) {
  std::vector<PanelUnit> units;
  llvm::DenseSet<Operation *> taken;
  auto add = [&](std::optional<PanelUnit> unit) {
    if (!unit)
      return;
    for (const PanelTerm &term : unit->terms)
      taken.insert(term.product);
    units.push_back(std::move(*unit));
  };
  for (auto scatter : block.getOps<dist::ReduceScatterOp>())
    add(matchScatter(scatter, mesh));
  for (auto product : block.getOps<nn::MatmulOp>())
    if (!taken.contains(product))
      add(matchProduct(product, mesh));
  for (bool isStable = false; !isStable;) {
    isStable = true;
    llvm::SetVector<Operation *> gathers;
    for (const PanelUnit &unit : units)
      for (const PanelTerm &term : unit.terms)
        for (const std::optional<GatheredValue> &panels : term.panels)
          if (panels)
            gathers.insert(panels->gather);
    for (Operation *op : gathers) {
      auto gather = cast<dist::AllGatherOp>(op);
      if (isReadInPanels(gather, units))
        continue;
      isStable = false;
      llvm::erase_if(units, [&](PanelUnit &unit) { return !giveUp(unit, gather); });
    }
  }
  llvm::sort(units, [](const PanelUnit &a, const PanelUnit &b) { return a.root->isBeforeInBlock(b.root); });
  return units;
}

// ---- groups -------------------------------------------------------------------------------------

bool shareGather(const PanelUnit &a, const PanelUnit &b) {
  auto gathers = [](const PanelUnit &unit) {
    SmallVector<Operation *> found;
    for (const PanelTerm &term : unit.terms)
      for (const std::optional<GatheredValue> &panels : term.panels)
        if (panels)
          found.push_back(panels->gather);
    return found;
  };
  SmallVector<Operation *> ofB = gathers(b);
  return llvm::any_of(gathers(a), [&](Operation *gather) { return llvm::is_contained(ofB, gather); });
}

bool haveSameSteps(const PanelUnit &a, const PanelUnit &b) {
  auto sorted = [](std::vector<std::string> axes) {
    llvm::sort(axes);
    return axes;
  };
  return sorted(a.axes) == sorted(b.axes);
}

/// Ops behind `from` on which `op`'s operands depend, in order; false where one is no view or gather of a weight.
bool collectLight(Operation *op, Operation *from, llvm::SetVector<Operation *> &ops) {
  for (Value operand : op->getOperands()) {
    Operation *made = operand.getDefiningOp();
    if (!made || made->getBlock() != from->getBlock() || made->isBeforeInBlock(from) || ops.contains(made))
      continue;
    const bool isLight = isa<nn::ParameterOp, nn::ConstantOp, nn::CastOp, dist::AllGatherOp, dist::FillTailOp>(made) || isView(made);
    if (!isLight || !collectLight(made, from, ops))
      return false;
    ops.insert(made);
  }
  return true;
}

/// Appends the unit where all can be made in one place: the last root's, if nothing needs a result before; else the first one's.
bool join(PanelGroup &group, const PanelUnit &unit) {
  Operation *first = group.units.front().root;
  const bool isLate = llvm::all_of(group.units, [&](const PanelUnit &each) {
    return llvm::all_of(each.root->getUsers(), [&](Operation *user) {
      return user->getBlock() != unit.root->getBlock() || unit.root->isBeforeInBlock(user);
    });
  });
  if (isLate && group.position == group.units.back().root) {
    group.position = unit.root;
    group.units.push_back(unit);
    return true;
  }
  llvm::SetVector<Operation *> light;
  if (group.position != first || unit.scatter() || !collectLight(unit.root, first, light))
    return false;
  for (Operation *op : light)
    op->moveBefore(first);
  group.units.push_back(unit);
  return true;
}
} // namespace

std::vector<PanelGroup> findPanels(Block &block, const dist::Mesh &mesh) {
  std::vector<PanelGroup> groups;
  for (PanelUnit &unit : findUnits(block, mesh)) {
    auto takesIt = [&](PanelGroup &group) {
      return llvm::any_of(group.units, [&](const PanelUnit &each) { return shareGather(each, unit) && haveSameSteps(each, unit); }) &&
             join(group, unit);
    };
    if (llvm::none_of(groups, takesIt))
      groups.push_back({{unit}, unit.root});
  }
  return groups;
}

} // namespace hpc::kernels
