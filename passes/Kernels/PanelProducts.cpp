// Pass hpc-panel-products: at step t a rank computes with panel s + t of q, s the sum of its coordinates along the axes of the exchange.
// The panel of step t + 1 is asked for before the product of step t, so that it can travel meanwhile.
//
// Cannon's skew on a mesh of 3 x 3 (x down, y across), panel of X | panel of W at step 0; at each later step every rank takes the next one:
//
//   0|0  1|1  2|2
//   1|1  2|2  0|0
//   2|2  0|0  1|1
#include "compiler/Accumulations.h"
#include "compiler/Dialect/Dist/Correspondence.h"
#include "passes/Kernels/Fusion/FusionRoles.h"
#include "passes/Kernels/PanelUnits.h"
#include "passes/Kernels/Passes.h"

namespace hpc {
#define GEN_PASS_DEF_PANELPRODUCTS
#include "passes/Kernels/Passes.h.inc"

using kernels::PanelGroup, kernels::PanelTerm, kernels::PanelUnit;

namespace {

/// Sums are not kept in 16 bits from panel to panel.
Type sumType(Type element) {
  return element.getIntOrFloatBitWidth() < 32 ? Type(Float32Type::get(element.getContext())) : element;
}
RankedTensorType withElement(RankedTensorType type, Type element) {
  return RankedTensorType::get(type.getShape(), element, type.getEncoding());
}
/// The type with another size of a dim, which no rank's coordinate cuts: what a panel of it holds depends on the step, too.
RankedTensorType withPanel(RankedTensorType type, unsigned dim, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  auto made = RankedTensorType::get(shape, type.getElementType());
  if (!dist::shardingAttrOf(type))
    return made;
  dist::Sharding sharding = dist::shardingAttrOf(type).getValue();
  sharding.dims[dim] = {dist::SubDim{size, {}}};
  return dist::withSharding(made, sharding);
}

class PanelBuilder {
public:
  PanelBuilder(PanelGroup &group, const dist::Mesh &mesh)
      : group(group), mesh(mesh), builder(group.position), ranks(mesh.size(group.units[0].axes[0])), sums(group.units.size()) {}

  void run() {
    fetch(0);
    for (step = 0; step < ranks; ++step) {
      if (step + 1 < ranks)
        fetch(step + 1);
      for (auto [unit, sum] : llvm::zip_equal(group.units, sums))
        unit.scatter() ? scatter(unit, sum) : add(unit, sum);
    }
    for (auto [unit, sum] : llvm::zip_equal(group.units, sums))
      finish(unit, sum);
  }

private:
  struct Sum {
    Value value;   ///< of the steps so far
    Value arrived; ///< not yet added
  };

  StringAttr causeOf(CollectiveOpInterface op) {
    StringAttr cause = op.getCauseAttr();
    return cause ? builder.getStringAttr(cause.getValue() + ", in panels") : cause;
  }

  /// A rank's own panel; zero where a product that sums over another dim would read its padding.
  Value ownPanel(dist::AllGatherOp gather) {
    Value &own = owned[gather];
    if (own)
      return own;
    own = gather.getOperand();
    for (const PanelUnit &unit : group.units)
      for (const PanelTerm &term : unit.terms)
        for (const std::optional<GatheredValue> &panels : term.panels)
          if (panels && panels->gather == gather && panels->fill)
            return own = dist::FillTailOp::create(builder, gather.getLoc(), own.getType(), own, panels->fill.getDimsAttr(), panels->fill.getValueAttr());
    return own;
  }

  /// A panel's padding is zero, or depends on the rank that the panel comes from: then the type has no sharding.
  RankedTensorType panelType(const GatheredValue &panels) {
    auto type = nn::tensorType(panels.gather.getOperand());
    return dist::hasPadding(panels.cut(), mesh) || ownPanel(panels.gather) != panels.gather.getOperand()
               ? dist::withoutSharding(type)
               : withPanel(type, unsigned(panels.gather.getFromDim()), dist::boxSize(panels.cut(), mesh));
  }

  /// Makes the exchanges of a step.
  void fetch(int64_t at) {
    for (const PanelUnit &unit : group.units)
      for (const PanelTerm &term : unit.terms)
        for (const std::optional<GatheredValue> &panels : term.panels) {
          if (!panels || fetched.count({panels->gather, at}))
            continue;
          dist::AllGatherOp gather = panels->gather;
          Value operand = ownPanel(gather);
          StringAttr skew = unit.skewOf(gather.getAxis());
          if (skew || at > 0)
            operand = dist::RawPermuteOp::create(builder, gather.getLoc(), panelType(*panels), operand, gather.getAxisAttr(), causeOf(gather),
                                                 gather.getAvoidAttr(), builder.getI64IntegerAttr(at), skew, UnitAttr());
          fetched[{gather, at}] = operand;
        }
  }

  /// The panel under the views that the product had of all panels.
  Value seenAs(const GatheredValue &panels) {
    Value value = fetched.at({panels.gather, step});
    const bool hasSharding = bool(dist::shardingAttrOf(panelType(panels)));
    for (const GatheredValue::View &view : panels.views) {
      IRMapping mapping;
      mapping.map(view.op->getOperand(0), value);
      Operation *made = builder.clone(*view.op, mapping);
      setValueIds(made, {});
      value = made->getResult(0);
      auto type = withPanel(nn::tensorType(value), view.dim, dist::boxSize(panels.cut(), mesh));
      value.setType(hasSharding ? type : dist::withoutSharding(type));
    }
    return value;
  }

  /// The step's part of a dim; of a panel: its extent. With a sharding where a tail is filled then, which else may be already.
  Value partOf(const PanelUnit &unit, Value value, unsigned dim, const dist::DimSharding &cut, bool isFilled = false) {
    const int64_t box = dist::boxSize(cut, mesh);
    RankedTensorType type = withPanel(nn::tensorType(value), dim, box);
    return dist::RawBlockOp::create(builder, unit.root->getLoc(), isFilled ? type : dist::withoutSharding(type), value,
                                    builder.getI64IntegerAttr(dim), dist::ShardingAttr::get(builder.getContext(), dist::Sharding{{cut}, {}}),
                                    builder.getI64IntegerAttr(step), unit.skewOf(cut[0].axes[0]));
  }

  Value operandOf(const PanelUnit &unit, const PanelTerm &term, unsigned operand) {
    Value value = term.product->getOperand(operand);
    std::optional<unsigned> dim = dimOfOperand(term.product, operand, unit.dim);
    if (const std::optional<GatheredValue> &panels = term.panels[operand]) {
      value = seenAs(*panels);
      return unit.dim == ProductDim::Sum && dist::hasPadding(panels->cut(), mesh) ? partOf(unit, value, *dim, panels->cut()) : value;
    }
    if (!dim)
      return value;
    auto fill = value.getDefiningOp<dist::FillTailOp>();
    if (fill && !kernels::isExactExtent(fill))
      fill = nullptr; // it is in memory
    Value part = partOf(unit, fill ? fill.getOperand() : value, *dim, unit.cut, /*isFilled=*/bool(fill));
    if (!fill)
      return part;
    return dist::FillTailOp::create(builder, fill.getLoc(), part.getType(), part, fill.getDimsAttr(), fill.getValueAttr());
  }

  Value multiply(const PanelUnit &unit, const PanelTerm &term, RankedTensorType type) {
    Value lhs = operandOf(unit, term, 0), rhs = operandOf(unit, term, 1);
    return nn::MatmulOp::create(builder, term.product.getLoc(), type, lhs, rhs, term.product.getTransposeLhs(),
                                term.product.getTransposeRhs());
  }

  /// One call of the library: sum += product.
  Value addProduct(Location loc, Value sum, Value product) {
    if (!sum)
      return product;
    auto add = nn::AddOp::create(builder, loc, product.getType(), sum, product);
    add->setAttr(addsInProductAttrName, builder.getUnitAttr());
    return add;
  }

  Value castTo(Location loc, Value value, Type element) {
    RankedTensorType type = nn::tensorType(value);
    return type.getElementType() == element ? value : nn::CastOp::create(builder, loc, withElement(type, element), value).getResult();
  }

  /// A product over what is summed: one more panel.
  void add(const PanelUnit &unit, Sum &sum) {
    auto type = nn::tensorType(unit.root->getResult(0));
    sum.value = addProduct(unit.root->getLoc(), sum.value, multiply(unit, unit.terms[0], withElement(type, sumType(type.getElementType()))));
  }

  void addArrived(const PanelUnit &unit, Sum &sum) {
    Value term = castTo(unit.root->getLoc(), sum.arrived, sumType(nn::tensorType(sum.arrived).getElementType()));
    sum.value = sum.value ? nn::AddOp::create(builder, unit.root->getLoc(), term.getType(), sum.value, term).getResult() : term;
  }

  /// The panel of a rank's result that this one computes goes there. What arrives is added behind the next product.
  void scatter(const PanelUnit &unit, Sum &sum) {
    dist::ReduceScatterOp op = unit.scatter();
    auto result = nn::tensorType(op.getResult());
    Value panel;
    for (const PanelTerm &term : unit.terms) {
      Type element = nn::tensorType(term.product.getResult()).getElementType();
      panel = addProduct(term.product.getLoc(), panel,
                         multiply(unit, term, RankedTensorType::get(result.getShape(), unit.terms.size() > 1 ? sumType(element) : element)));
    }
    panel = castTo(unit.rounding ? unit.rounding.getLoc() : op.getLoc(), panel, result.getElementType());
    if (sum.arrived)
      addArrived(unit, sum);
    StringAttr skew = unit.skewOf(op.getAxis());
    sum.arrived = panel;
    if (skew || step > 0)
      sum.arrived = dist::RawPermuteOp::create(builder, op.getLoc(), panel.getType(), panel, op.getAxisAttr(), causeOf(op), op.getAvoidAttr(),
                                               builder.getI64IntegerAttr(-step), skew, skew ? builder.getUnitAttr() : UnitAttr());
  }

  void finish(PanelUnit &unit, Sum &sum) {
    if (unit.scatter())
      addArrived(unit, sum);
    Value old = unit.root->getResult(0), made = castTo(unit.root->getLoc(), sum.value, nn::tensorType(old).getElementType());
    made.setType(old.getType());
    setValueIds(made.getDefiningOp(), valueIdsOf(unit.root));
    old.replaceAllUsesWith(made);
  }

  PanelGroup &group;
  const dist::Mesh &mesh;
  OpBuilder builder;
  const int64_t ranks;
  int64_t step = 0;
  SmallVector<Sum> sums;
  llvm::DenseMap<Operation *, Value> owned;                 ///< by gather
  std::map<std::pair<Operation *, int64_t>, Value> fetched; ///< by gather and step
};

/// Erases the op and what only it read.
void eraseUnread(Operation *root) {
  llvm::SetVector<Operation *> open;
  open.insert(root);
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!op->use_empty())
      continue;
    for (Value operand : op->getOperands())
      if (Operation *made = operand.getDefiningOp(); made && !isa<nn::ParameterOp>(made))
        open.insert(made);
    op->erase();
  }
}

struct PanelProductsPass : impl::PanelProductsBase<PanelProductsPass> {
  void runOnOperation() override {
    const dist::Mesh mesh = dist::meshOf(getOperation());
    SmallVector<Block *> blocks; // of the function without stages, or of their programs
    getOperation().walk([&](Operation *op) {
      if (isa<func::FuncOp, pipe::StageOp>(op))
        for (Region &region : op->getRegions())
          for (Block &block : region)
            blocks.push_back(&block);
    });
    bool isUsed = false;
    for (Block *block : blocks) {
      SmallVector<Operation *> roots;
      std::vector<PanelGroup> groups = kernels::findPanels(*block, mesh);
      isUsed |= !groups.empty();
      for (PanelGroup &group : groups) {
        PanelBuilder(group, mesh).run();
        for (const PanelUnit &unit : group.units)
          roots.push_back(unit.root);
      }
      for (Operation *root : llvm::reverse(roots))
        eraseUnread(root);
    }
    if (!isUsed)
      mlir::emitRemark(getOperation().getLoc()) << "--panels changes nothing: no product has an operand that is gathered along what it sums over and that products "
                                                   "alone read; use it with --tp-layout=2d";
  }
};
} // namespace
} // namespace hpc
