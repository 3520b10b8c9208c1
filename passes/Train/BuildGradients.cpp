// Reverse accumulation over @main, one rule an op. A cotangent is a tensor and a scalar factor of the loss that all its
// elements share, such as 1 / (number of tokens): that is known only when all of a step has been seen, so it is
// multiplied in where a parameter's gradient is complete, never before. So is 1 / loss_scale where the loss is scaled.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/GradientBuilder.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Location.h"
#include "compiler/Sidecar/ModuleSidecar.h"
#include "compiler/Sidecar/ParamRules.h"
#include "compiler/StepPart.h"
#include "passes/Train/Passes.h"
#include "passes/Train/StepFunction.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/StepPorts.h"
#include "runtime/plan/TextTable.h"

namespace hpc {

#define GEN_PASS_DEF_BUILDGRADIENTS
#include "passes/Train/Passes.h.inc"

using namespace train;

/// Whether gradients may flow through f16, whose range has no small gradients.
static bool hasHalves(func::FuncOp function) {
  return llvm::any_of(function.getBody().front(), [](Operation &op) {
    return llvm::any_of(op.getResults(), [](Value result) { return nn::tensorType(result).getElementType().isF16(); });
  });
}

static bool isReal(Value value) { return isa<FloatType>(nn::tensorType(value).getElementType()); }
static bool isOneElement(Value value) { return nn::tensorType(value).getNumElements() == 1; }

namespace {
struct Cotangent {
  Value tensor;
  Value factor; ///< of rank 0; null is 1
};

class Backward {
public:
  /// `trained`: each trained parameter's value, and the one that represents it (a parameter may be several ops).
  /// `lossScale`: a step scalar that backward starts from instead of 1, or null.
  Backward(func::FuncOp function, StepFunction &step, const DenseMap<Value, Value> &trained, Value lossScale)
      : function(function), builder(step.builder()), trained(trained), lossScale(lossScale) {
    for (auto [parameter, name] : trained)
      active.insert(parameter);
    for (Operation &op : function.getBody().front())
      if (!isa<nn::DetachOp>(op) &&
          llvm::any_of(op.getOperands(), [&](Value operand) { return active.contains(operand); }))
        for (Value result : op.getResults())
          if (isReal(result))
            active.insert(result);
  }

  LogicalResult run(Value loss) {
    SmallVector<Operation *> forward;
    for (Operation &op : function.getBody().front().without_terminator())
      forward.push_back(&op);
    GradientBuilder b(builder, updateLocation(builder.getContext(), ""));
    if (active.contains(loss))
      cotangents[loss] = {b.number(loss, 1), {}};
    for (Operation *op : llvm::reverse(forward))
      if (llvm::any_of(op->getResults(), [&](Value result) { return cotangents.contains(result); }) &&
          failed(differentiate(op)))
        return failure();
    return success();
  }

  /// Complete, of the parameter's type; null where the loss does not depend on it.
  Value gradient(Value parameter, StringRef name) {
    auto found = cotangents.find(parameter);
    if (found == cotangents.end())
      return {};
    GradientBuilder b(builder, updateLocation(builder.getContext(), name));
    return b.broadcast(whole(b, found->second), nn::shapeOf(parameter));
  }

  /// A product whose result is only widened to a parameter's gradient gives the wide type itself: it is not rounded on the way, and may be added to an
  /// accumulator as it is computed. To be called once results are written: until then another op may still read the product.
  void joinWithProducts() {
    for (Operation *cast : widened) {
      Value narrow = cast->getOperand(0), wide = cast->getResult(0);
      Operation *product = narrow.getDefiningOp();
      if (!isa_and_present<MixedPrecisionOpInterface>(product) || product->getNumResults() != 1 || !narrow.hasOneUse() ||
          nn::tensorType(wide).getElementTypeBitWidth() <= nn::tensorType(narrow).getElementTypeBitWidth())
        continue;
      narrow.setType(wide.getType());
      wide.replaceAllUsesWith(narrow);
      cast->erase();
    }
  }

private:
  /// The tensor times the factor.
  static Value whole(GradientBuilder &b, const Cotangent &cotangent) {
    if (!cotangent.factor)
      return cotangent.tensor;
    Type element = nn::tensorType(cotangent.tensor).getElementType();
    return b.mul(cotangent.tensor, b.cast(cotangent.factor, element));
  }

  static Value product(GradientBuilder &b, Value factor, Value more) {
    more = b.reshape(more, {});
    return factor ? b.mul(factor, b.cast(more, nn::tensorType(factor).getElementType())) : more;
  }

  /// Multiplies in the factor except for the scale of the loss, which stays part of gradients until they are complete.
  Cotangent scaledAlone(GradientBuilder &b, const Cotangent &cotangent) {
    auto found = unscaled.find(cotangent.factor);
    if (found == unscaled.end())
      return {whole(b, cotangent), {}};
    if (!found->second)
      return cotangent;
    return {whole(b, {cotangent.tensor, found->second}), inverseScale()};
  }

  /// 1 / loss_scale, once a step.
  Value inverseScale() {
    if (!inverseOfScale) {
      GradientBuilder b(builder, updateLocation(builder.getContext(), ""));
      inverseOfScale = b.div(b.number(lossScale, 1), lossScale);
      unscaled[inverseOfScale] = {};
    }
    return inverseOfScale;
  }

  /// Gives all cotangents that meet the same factor.
  void makeCommon(GradientBuilder &b, ArrayRef<Cotangent *> meeting) {
    auto areEqual = [&] {
      return llvm::all_of(meeting, [&](Cotangent *each) { return each->factor == meeting.front()->factor; });
    };
    if (areEqual())
      return;
    for (Cotangent *each : meeting)
      *each = scaledAlone(b, *each);
    if (areEqual())
      return;
    for (Cotangent *each : meeting)
      *each = {whole(b, *each), {}};
  }

  static bool isFactorAlone(const Cotangent &cotangent) {
    return isOneElement(cotangent.tensor) && splatOf(cotangent.tensor) == 1;
  }

  /// Terms meet at the earliest op that reads the value.
  void accumulate(GradientBuilder &b, Value value, Cotangent more) {
    if (auto parameter = trained.find(value); parameter != trained.end()) {
      value = parameter->second;
      if (auto cast = more.tensor.getDefiningOp<nn::CastOp>())
        widened.insert(cast);
    }
    auto [found, isNew] = cotangents.try_emplace(value, more);
    if (isNew)
      return;
    Cotangent sum = found->second;
    if (isFactorAlone(sum) && isFactorAlone(more)) { // a number that is read twice, as a mean and its root
      GradientBuilder once(builder, updateLocation(builder.getContext(), ""));
      auto number = [&](const Cotangent &each) { return each.factor ? each.factor : once.reshape(each.tensor, {}); };
      Value factor = number(sum);
      sum.factor = once.add(factor, once.cast(number(more), nn::tensorType(factor).getElementType()));
    } else {
      makeCommon(b, {&sum, &more});
      sum.tensor = b.add(sum.tensor, more.tensor);
    }
    cotangents[value] = sum;
  }

  /// "--freeze=a --freeze=b": the trained parameters that the op depends on, some of them.
  std::string parametersBefore(Operation *op) const {
    constexpr size_t most = 3;
    llvm::SetVector<Operation *> open;
    llvm::SetVector<StringRef> names;
    open.insert(op);
    for (size_t next = 0; next < open.size(); ++next)
      for (Value operand : open[next]->getOperands())
        if (auto parameter = operand.getDefiningOp<nn::ParameterOp>(); parameter && trained.contains(operand))
          names.insert(parameter.getName());
        else if (Operation *before = operand.getDefiningOp())
          open.insert(before);
    std::string text;
    for (StringRef name : names.getArrayRef().take_front(most))
      text += (text.empty() ? "--freeze=" : " --freeze=") + name.str();
    return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more" : text;
  }

  LogicalResult differentiate(Operation *op) {
    auto rule = dyn_cast<DifferentiableOpInterface>(op);
    llvm::BitVector wanted(op->getNumOperands());
    for (OpOperand &operand : op->getOpOperands())
      if (active.contains(operand.get()))
        wanted.set(operand.getOperandNumber());
    if (wanted.none())
      return success();
    if (!rule)
      return userError(op, ErrorKind::Unsupported)
             << "a gradient must flow through " << describeOp(op)
             << ", which has no rule for it; freeze what it reads (" << parametersBefore(op)
             << "), or take the loss of another output (--loss=KIND:NAME)";
    return isOfFactor(op, wanted) ? differentiateFactor(rule, wanted) : differentiateTensor(rule, wanted);
  }

  /// Whether an op, between the loss and the sum that it is computed from, reads and makes single numbers: factors.
  bool isOfFactor(Operation *op, const llvm::BitVector &wanted) const {
    if (op->getNumResults() != 1 || !isFactorAlone(cotangents.find(op->getResult(0))->second))
      return false;
    return llvm::all_of(wanted.set_bits(), [&](unsigned operand) { return isOneElement(op->getOperand(operand)); });
  }

  LogicalResult differentiateFactor(DifferentiableOpInterface rule, const llvm::BitVector &wanted) {
    Cotangent own = cotangents.lookup(rule->getResult(0));
    // Once a step, for all parameters: a per-step number.
    GradientBuilder b(builder, rule, {own.tensor}, wanted, updateLocation(builder.getContext(), ""));
    rule.buildGradients(b);
    for (unsigned operand : wanted.set_bits()) {
      Value value = rule->getOperand(operand), local = b.given(operand);
      if (!local)
        continue;
      Value one = b.broadcast(b.number(value, 1), nn::shapeOf(value));
      accumulate(b, value, {one, splatOf(local) == 1 ? own.factor : product(b, own.factor, local)});
    }
    return success();
  }

  /// Where the gradient of one number, so far a factor alone, becomes that of a tensor, the scale of the loss moves
  /// from the factor into the tensor. So does 1 / (elements), rounded to a power of two: the factor contains the mean,
  /// and scales are chosen for gradients of a mean.
  Cotangent scaled(const Cotangent &cotangent, DifferentiableOpInterface rule) {
    if (!lossScale || !cotangent.tensor || !isFactorAlone(cotangent))
      return cotangent;
    int64_t elements = 1;
    for (Value operand : rule->getOperands())
      elements = std::max(elements, nn::tensorType(operand).getNumElements());
    const double share = 1 / double(llvm::PowerOf2Ceil(uint64_t(elements)));
    auto [factor, isNew] = scaledFactors.try_emplace({cotangent.factor, elements});
    if (isNew) { // once a step
      GradientBuilder b(builder, updateLocation(builder.getContext(), ""));
      Value like = cotangent.factor ? cotangent.factor : cotangent.tensor;
      Value inverse = b.div(b.number(like, 1 / share), b.cast(lossScale, nn::tensorType(like).getElementType()));
      factor->second = cotangent.factor ? b.mul(cotangent.factor, inverse) : inverse;
      unscaled[factor->second] = cotangent.factor ? b.scaled(cotangent.factor, 1 / share) : b.number(like, 1 / share);
    }
    GradientBuilder b(builder, gradientLocation(rule->getLoc()));
    Value scale = b.scaled(b.cast(lossScale, nn::tensorType(cotangent.tensor).getElementType()), share);
    return {b.broadcast(scale, nn::shapeOf(cotangent.tensor)), factor->second};
  }

  LogicalResult differentiateTensor(DifferentiableOpInterface rule, const llvm::BitVector &wanted) {
    // 1. One factor for all results.
    SmallVector<Cotangent> own;
    for (Value result : rule->getResults())
      own.push_back(scaled(cotangents.lookup(result), rule));
    GradientBuilder helper(builder, gradientLocation(rule->getLoc()));
    SmallVector<Cotangent *> given;
    for (Cotangent &each : own)
      if (each.tensor)
        given.push_back(&each);
    makeCommon(helper, given);
    SmallVector<Value> tensors;
    for (const Cotangent &each : own)
      tensors.push_back(each.tensor);
    // 2. The rule.
    GradientBuilder b(builder, rule, tensors, wanted, gradientLocation(rule->getLoc()));
    rule.buildGradients(b);
    for (unsigned operand : wanted.set_bits())
      if (Value gradient = b.given(operand))
        accumulate(b, rule->getOperand(operand), {gradient, given.front()->factor});
    return success();
  }

  func::FuncOp function;
  OpBuilder builder;
  const DenseMap<Value, Value> &trained;
  DenseSet<Value> active; ///< depends on a trained parameter, as a real number
  DenseMap<Value, Cotangent> cotangents;
  Value lossScale;
  DenseMap<std::pair<Value, int64_t>, Value> scaledFactors; ///< of a factor and a number of elements: without the scale
  DenseMap<Value, Value> unscaled; ///< for these: the factor without 1 / scale; null: 1
  Value inverseOfScale;
  llvm::SetVector<Operation *> widened; ///< casts that a parameter's gradient comes from
};

/// The parameters that are trained: reals that are no statistics and that neither a pattern nor a rule of the sidecar freezes.
/// Maps every op of each to its first.
class Trained {
public:
  LogicalResult find(func::FuncOp function, StringRef freeze, ArrayRef<ParamDecision> decisions) {
    std::map<std::string, const ParamRule *> rules; // by name: the parts of one tensor are trained together
    for (const ParamDecision &decision : decisions)
      if (decision.trainable) {
        auto [found, isNew] = rules.try_emplace(nn::ParameterOp(decision.parameter).getName().str(), decision.trainable);
        if (!isNew) // the first of the file, whose rules are one array
          found->second = std::min(found->second, decision.trainable);
      }
    SmallVector<StringRef> patterns;
    freeze.split(patterns, ',', -1, /*KeepEmpty=*/false);
    std::vector<bool> matched(patterns.size());
    std::vector<std::string> names;
    std::map<std::string, Value> first;
    function.walk([&](nn::ParameterOp op) {
      std::vector<std::string> own = nn::namesOf(op);
      bool isFrozen = !isReal(op) || op.getIsStatistic();
      auto rule = rules.find(own[0]);
      if (!isFrozen && rule != rules.end() && !*rule->second->trainable) {
        isFrozen = true;
        frozenBy = frozenBy ? frozenBy : rule->second;
      }
      for (size_t index = 0; index < patterns.size(); ++index)
        if (llvm::any_of(own, [&](const std::string &name) { return matchesName(patterns[index].str(), name); }))
          isFrozen = matched[index] = true;
      llvm::append_range(names, own);
      if (!isFrozen)
        ops[op] = first.try_emplace(own[0], op).first->second;
      if (!isFrozen && first[own[0]] == op)
        order.push_back(op);
    });
    for (auto [index, pattern] : llvm::enumerate(patterns))
      if (!matched[index]) {
        std::string near = nearestMatch(pattern.str(), names);
        return userError(function, ErrorKind::Usage)
               << "--freeze=" << pattern << " matches no parameter"
               << (near.empty() ? "" : "; did you mean '" + near + "'?") << "; hpc-opt --list-params has their names";
      }
    return success();
  }

  /// Whether a parameter that these modules read may be several of the model. A vector hardly ever is one on purpose; a
  /// matrix is (an embedding and the head), but not one of the same place in several layers.
  static bool mayBeMerged(nn::ParameterOp parameter, ArrayRef<StringAttr> paths) {
    if (nn::shapeOf(parameter.getResult()).size() == 1)
      return paths.size() > 1;
    std::set<std::string> places;
    return llvm::any_of(paths,
                        [&](StringAttr path) { return !places.insert(plan::withoutNumbers(path.str())).second; });
  }

  /// Exporters merge initializers of equal content: in a fresh model all biases, which are 0, and all norms' weights;
  /// all weights of layers that are copies of one another, as in nn.TransformerEncoder.
  void warnOfMerged(func::FuncOp function) const {
    DenseMap<Value, llvm::SetVector<StringAttr>> modules;
    for (Operation &op : function.getBody().front())
      if (std::string path = modulePath(op.getLoc()); !path.empty())
        for (Value operand : op.getOperands())
          if (auto found = ops.find(operand); found != ops.end())
            modules[found->second].insert(StringAttr::get(function.getContext(), path));
    for (nn::ParameterOp parameter : order) {
      auto found = modules.find(parameter.getResult());
      if (found == modules.end() || !mayBeMerged(parameter, found->second.getArrayRef()))
        continue;
      ArrayRef<StringAttr> paths = found->second.getArrayRef();
      emitWarning(parameter.getLoc())
          << "'" << parameter.getName() << "' is one parameter of " << paths.size() << " modules ("
          << paths[0].getValue() << ", " << paths[1].getValue() << (paths.size() > 2 ? ", ..." : "")
          << ") and is trained as one; exporters merge initializers of equal content, as those of a fresh model are: "
             "if these are to differ, export with torch.onnx.export(..., dynamo=True, optimize=False), which keeps "
             "them apart, or move them a little before the export";
    }
  }

  /// PyTorch's exporter folds constants: tables, and slices or expansions of weights.
  void warnOfComputed() const {
    for (nn::ParameterOp parameter : order) {
      std::vector<std::string> values = nn::namesIn(parameter.getMadeOf());
      if (values.empty())
        continue;
      SmallVector<StringRef> names; // names of modules, which have dots, are clearer than those of nodes
      for (bool isOfModule : {true, false})
        llvm::copy_if(values, std::back_inserter(names),
                      [&](StringRef name) { return name.contains('.') == isOfModule; });
      constexpr size_t most = 3;
      InFlightDiagnostic warning = emitWarning(parameter.getLoc())
                                   << "'" << parameter.getName()
                                   << "' is trained, but the exporter has computed it from ";
      for (size_t i = 0; i < std::min(most, names.size()); ++i)
        warning << (i == 0 ? "'" : i + 1 == names.size() ? " and '" : ", '") << names[i] << "'";
      if (names.size() > most)
        warning << " and " << countText(int64_t(names.size() - most), "other value");
      warning << ", which the file no longer has; if it is a table, leave it as it is with --freeze="
              << parameter.getName()
              << "; torch.onnx.export(..., optimize=False) keeps the parameters that the model has";
    }
  }

  /// An old exporter writes a weight that two modules share twice, and a file does not show whether equal ones are one.
  void noteTied() const {
    std::string first;
    int64_t count = 0;
    for (nn::ParameterOp parameter : order)
      for (const std::string &name : nn::namesIn(parameter.getTiedNames()))
        if (++count == 1)
          first = "'" + name + "' and '" + parameter.getName().str() + "'";
    if (count > 0)
      mlir::emitRemark(nn::ParameterOp(order.front())->getParentOfType<ModuleOp>().getLoc())
          << first << (count > 1 ? " and " + countText(count - 1, "other pair") : "") << " of the file hold equal numbers and are trained as one parameter" << (count > 1 ? " each" : "")
          << "; if they are to differ, export with torch.onnx.export(..., dynamo=True, optimize=False), or move one a little before the export";
  }

  DenseMap<Value, Value> ops;
  SmallVector<nn::ParameterOp> order;
  const ParamRule *frozenBy = nullptr; ///< the rule that froze the first parameter that a rule did
};

/// The first op of its block that reads a parameter, or has an op inside that does; the next one where none does.
Operation *firstReader(nn::ParameterOp parameter) {
  Operation *first = nullptr;
  for (Operation *user : parameter.getResult().getUsers())
    if (Operation *op = parameter->getBlock()->findAncestorOpInBlock(*user); !first || op->isBeforeInBlock(first))
      first = op;
  return first ? first : parameter->getNextNode();
}

/// Makes trained parameters of 16 bits f32, as --dtype does; their stored type and the type that ops read stay. An
/// update is far smaller than a weight, and in 16 bits most of it would be lost. A parameter is rounded before its first reader, so its gradient
/// is widened, added and sent as soon as it is complete: none of 16 bits waits for the end of backward.
void widenTrained(const Trained &trained) {
  for (auto [value, first] : trained.ops) {
    Type narrow = nn::tensorType(value).getElementType();
    if (!narrow.isF16() && !narrow.isBF16())
      continue;
    auto parameter = value.getDefiningOp<nn::ParameterOp>();
    auto type = nn::tensorType(value);
    OpBuilder builder(parameter->getContext());
    builder.setInsertionPoint(firstReader(parameter));
    parameter.getResult().setType(RankedTensorType::get(type.getShape(), builder.getF32Type()));
    nn::Storage storage = parameter.stored();
    storage.type = narrow;
    parameter.setStored(storage);
    auto read = nn::CastOp::create(builder, parameter.getLoc(), type, parameter.getResult());
    parameter.getResult().replaceAllUsesExcept(read, read);
  }
}

/// Saved tensors do not have the model's type. `names`: the trained parameters of a type.
void noteWidened(func::FuncOp function, Type type, ArrayRef<StringRef> names) {
  if (names.empty())
    return;
  std::string text;
  llvm::raw_string_ostream(text) << type;
  mlir::emitRemark(function->getParentOfType<ModuleOp>().getLoc())
      << countText(int64_t(names.size()), "parameter") << " of " << text << " ('" << names[0] << (names.size() > 1 ? "', ...) are" : "') is")
      << " held, updated and saved as f32, and rounded to " << text << " where the model reads " << (names.size() > 1 ? "them" : "it");
}

struct BuildGradients : impl::BuildGradientsBase<BuildGradients> {
  using BuildGradientsBase::BuildGradientsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (function && failed(build(function)))
      signalPassFailure();
  }

  LogicalResult build(func::FuncOp function) {
    // 1. The loss, and the parameters to train.
    StepFunction step(function);
    Value loss = step.resultNamed(plan::lossName);
    if (!loss || !nn::shapeOf(loss).empty() || !isReal(loss))
      return userError(function, ErrorKind::Model)
             << "there is no result '" << plan::lossName << "' that is one float; run hpc-append-loss";
    Expected<std::optional<Sidecar>> sidecar = sidecarOf(getOperation());
    Expected<std::vector<ParamDecision>> decisions = std::vector<ParamDecision>();
    if (sidecar.ok() && *sidecar)
      decisions = decideParams(**sidecar, function);
    if (!sidecar.ok() || !decisions.ok()) {
      Status status = sidecar.ok() ? decisions.status() : sidecar.status();
      return userError(getOperation(), status.kind()) << status.message();
    }
    Trained trained;
    if (failed(trained.find(function, freeze, *decisions)))
      return failure();
    if (trained.order.empty() && trained.frozenBy)
      return userError(function, ErrorKind::Sidecar)
             << (*sidecar)->place(*trained.frozenBy) << ": \"" << trained.frozenBy->match
             << "\" leaves nothing to train: no parameter is both a float and not frozen; match less, or name what is "
                "trained in a rule before it, with \"trainable\": true";
    trained.warnOfMerged(function);
    trained.warnOfComputed();
    trained.noteTied();
    widenTrained(trained);
    // 2. Backwards.
    Backward backward(function, step, trained.ops, scaleLoss || hasHalves(function) ? step.stepScalar(plan::lossScaleName) : Value());
    if (failed(backward.run(loss)))
      return failure();
    // 3. The gradients of parameters become results.
    bool any = false;
    SmallVector<StringRef> ofF16, ofBf16;
    for (nn::ParameterOp parameter : trained.order)
      if (Value gradient = backward.gradient(parameter, parameter.getName())) {
        step.addResult(gradient, {"", "", parameter.getName().str()});
        any = true;
        if (std::optional<Type> stored = parameter.getStoredType())
          (stored->isF16() ? ofF16 : ofBf16).push_back(parameter.getName());
      }
    noteWidened(function, Float16Type::get(function.getContext()), ofF16);
    noteWidened(function, BFloat16Type::get(function.getContext()), ofBf16);
    if (!any)
      return userError(function, ErrorKind::Model)
             << "there is nothing to train: " << (trained.order.empty() ? "no parameter is both a float and not frozen"
                                                                       : "the loss depends on no such parameter")
             << "; see hpc-opt --list-params and --freeze";
    step.write();
    backward.joinWithProducts();
    for (nn::DetachOp detach : llvm::to_vector(function.getOps<nn::DetachOp>())) {
      detach.replaceAllUsesWith(detach.getOperand());
      detach.erase();
    }
    // One that let gradients into one branch alone: a table's rows without the one of padding.
    for (nn::SelectOp select : llvm::to_vector(function.getOps<nn::SelectOp>()))
      if (select->getOperand(1) == select->getOperand(2) && select.getType() == select->getOperand(1).getType()) {
        select.replaceAllUsesWith(select->getOperand(1));
        select.erase();
      }
    eraseDeadOps(function);
    return success();
  }
};
} // namespace

} // namespace hpc
