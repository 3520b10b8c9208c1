// The loss, as a sum over all labels that count, and their number: the ratio is the mean over a whole step, however
// many micro-batches and ranks see a part of it.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/GradientBuilder.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Location.h"
#include "compiler/ModuleAttributes.h"
#include "passes/Train/Labels.h"
#include "passes/Train/Passes.h"
#include "passes/Train/StepFunction.h"
#include "runtime/plan/StepPorts.h"

namespace hpc {

#define GEN_PASS_DEF_APPENDLOSS
#include "passes/Train/Passes.h.inc"

using namespace train;

namespace {
constexpr int64_t ignoreIndex = -100; // as PyTorch's and Hugging Face's losses have it

/// A kind of loss, and the output that it is of.
struct Choice {
  StringRef kind;
  Value output;
  std::string name;
};

class LossBuilder {
public:
  LossBuilder(func::FuncOp function, StepFunction &step)
      : function(function), step(step), ops(step.builder()),
        b(ops, onnxLocation(function.getContext(), plan::lossName, "")) {}

  LogicalResult append(StringRef spec) {
    std::optional<Choice> choice = choose(spec);
    if (!choice)
      return failure();
    function->getParentOfType<ModuleOp>()->setAttr(lossAttrName, b.builder.getStringAttr(choice->kind + ":" + choice->name));
    step.results.clear(); // results of inference
    if (choice->kind == "output") {
      step.addResult(b.reshape(choice->output, {}), {plan::lossName, "", ""});
      return success();
    }
    return choice->kind == "mse" ? appendSquares(*choice) : appendCrossEntropy(*choice);
  }

private:
  InFlightDiagnostic error() { return userError(function, ErrorKind::Model); }

  /// "logits (tensor<2x16x257xf32>), hidden (...)".
  static std::string list(ArrayRef<StepFunction::Result> outputs) {
    std::string text;
    llvm::raw_string_ostream out(text);
    llvm::interleaveComma(outputs, out, [&](const StepFunction::Result &each) {
      out << "'" << each.port.name << "' (" << each.value.getType() << ")";
    });
    return text;
  }

  /// The outputs that a kind of loss fits.
  SmallVector<StepFunction::Result> candidates(StringRef kind) {
    SmallVector<StepFunction::Result> found;
    for (const StepFunction::Result &result : step.results) {
      auto type = dyn_cast<RankedTensorType>(result.value.getType());
      if (!type || !isa<FloatType>(type.getElementType()))
        continue;
      bool fits = kind == "causal-lm"        ? type.getRank() == 3
                  : kind == "classification" ? type.getRank() == 2
                  : kind == "output"         ? type.getNumElements() == 1
                                             : true;
      if (fits)
        found.push_back(result);
    }
    return found;
  }

  std::optional<Choice> chooseAmong(StringRef kind, StringRef name) {
    SmallVector<StepFunction::Result> fitting = candidates(kind);
    if (!name.empty())
      llvm::erase_if(fitting, [&](const StepFunction::Result &each) { return each.port.name != name; });
    if (fitting.size() == 1)
      return Choice{kind, fitting[0].value, fitting[0].port.name};
    StringRef wanted = kind == "causal-lm"        ? "of floats [batch, sequence, vocabulary]"
                       : kind == "classification" ? "of floats [batch, classes]"
                       : kind == "output"         ? "that is one float"
                                                  : "of floats";
    if (!fitting.empty())
      error() << "--loss=" << kind << " could be of the outputs " << list(fitting) << "; say which: --loss=" << kind
              << ":" << fitting[0].port.name;
    else
      error() << "--loss=" << kind << (name.empty() ? "" : ":") << name << " needs an output " << wanted
              << (name.empty() ? "" : " of that name") << "; the model has " << list(step.results)
              << (kind == "output" ? "; take the mean or the sum in the model" : "");
    return std::nullopt;
  }

  /// The arguments that a value depends on.
  static DenseSet<Value> inputsOf(Value value) {
    llvm::SetVector<Value> open;
    open.insert(value);
    DenseSet<Value> inputs;
    for (size_t next = 0; next < open.size(); ++next)
      if (Operation *op = open[next].getDefiningOp())
        open.insert(op->operand_begin(), op->operand_end());
      else
        inputs.insert(open[next]);
    return inputs;
  }

  /// Whether a loss depends on an input that no output of several numbers depends on, such as labels: another output of
  /// one float (a temperature, say) is no loss.
  bool readsLabels(const StepFunction::Result &loss) {
    DenseSet<Value> labels = inputsOf(loss.value);
    for (const StepFunction::Result &other : step.results)
      if (nn::tensorType(other.value).getNumElements() != 1)
        for (Value input : inputsOf(other.value))
          labels.erase(input);
    return !labels.empty();
  }

  /// Without --loss=KIND: a loss of the model's own that reads labels; otherwise by the rank of the output: a
  /// vocabulary, classes, one number, numbers.
  std::optional<Choice> choose(StringRef spec) {
    auto [kind, name] = spec.split(':');
    if (kind != "auto")
      return chooseAmong(kind, name);
    if (llvm::any_of(candidates("output"), [&](const StepFunction::Result &own) { return readsLabels(own); }))
      return chooseAmong("output", "");
    for (StringRef each : {"causal-lm", "classification", "output"})
      if (candidates(each).size() == 1)
        return chooseAmong(each, "");
    return chooseAmong(candidates("causal-lm").size() > 1 ? "causal-lm" : "mse", "");
  }

  /// The labels: the graph's input of that name, or a new one, replaced by `defaultInput` where the data has none.
  FailureOr<Value> labels(RankedTensorType type, const std::string &defaultInput) {
    for (BlockArgument argument : function.getArguments()) {
      if (nn::argumentPort(function, argument.getArgNumber()).name != plan::labelsName)
        continue;
      if (argument.getType() == type)
        return Value(argument);
      error() << "input '" << plan::labelsName << "' of type " << argument.getType() << " must be " << type
              << " for this loss; rename it, or use --loss=output:NAME for a loss that the model computes";
      return failure();
    }
    nn::ArgumentPort port;
    port.name = plan::labelsName;
    port.dims = dimsOfLabels(function, type.getShape(), defaultInput);
    port.defaultInput = defaultInput;
    return step.addArgument(type, port, b.loc);
  }

  Value sumAll(Value value) {
    return b.reshape(b.sum(value, llvm::to_vector(llvm::seq<int64_t>(0, int64_t(nn::shapeOf(value).size())))), {});
  }

  void addResults(Value sum, Value count) {
    step.addResult(b.div(sum, count), {plan::lossName, "", ""});
    step.addResult(count, {plan::validTokensName, "", ""});
  }

  LogicalResult noElement(const Choice &choice) {
    return error() << "output '" << choice.name << "' " << choice.output.getType() << " has no element to compare; give larger dims";
  }

  /// For classes, or for the next token at every position. The labels are shifted: that of position s is the id of s +
  /// 1, and the last position has none; so logits keep their shape.
  LogicalResult appendCrossEntropy(const Choice &choice) {
    ArrayRef<int64_t> shape = nn::shapeOf(choice.output), rows = shape.drop_back();
    bool isShifted = choice.kind == "causal-lm";
    if (isShifted && rows.back() < 2)
      return error() << "output '" << choice.name << "' " << choice.output.getType()
                     << " has no position with a next token; use sequences of 2 or more";
    auto type = RankedTensorType::get(rows, b.builder.getI64Type());
    if (nn::tensorType(choice.output).getNumElements() == 0)
      return noElement(choice);
    FailureOr<Value> given = labels(type, isShifted ? findIds(function, rows, shape.back()) : "");
    if (failed(given))
      return failure();
    Value classes = *given;
    if (isShifted) {
      SmallVector<int64_t> starts(rows.size(), 0), steps(rows.size(), 1), sizes(rows), none(rows.size(), 0), high = none;
      starts.back() = 1;
      sizes.back() -= 1;
      high.back() = 1;
      classes = nn::PadOp::create(b.builder, b.loc, type, b.slice(classes, starts, steps, sizes),
                                  b.builder.getDenseI64ArrayAttr(none), b.builder.getDenseI64ArrayAttr(high),
                                  b.builder.getI64IntegerAttr(ignoreIndex));
    }
    // The sum over rows and their number exceed the range of 16-bit floats.
    Type element = nn::tensorType(choice.output).getElementType();
    Value logits = element.isF16() || element.isBF16() ? b.cast(choice.output, b.builder.getF32Type()) : choice.output;
    auto loss = nn::CrossEntropyOp::create(b.builder, b.loc, logits, classes, ignoreIndex);
    Value counts = b.compare(nn::ComparePredicate::ne, classes, b.number(classes, double(ignoreIndex)));
    Value count = sumAll(b.cast(counts, nn::tensorType(loss.getLoss()).getElementType()));
    addResults(sumAll(loss.getLoss()), count);
    return success();
  }

  /// The mean of the squares over all elements.
  LogicalResult appendSquares(const Choice &choice) {
    auto type = nn::tensorType(choice.output);
    if (type.getNumElements() == 0)
      return noElement(choice);
    if (type.getRank() == 3 && hasTableOf(function, type.getShape().back()))
      if (std::string ids = findIds(function, type.getShape().drop_back(), type.getShape().back()); !ids.empty())
        mlir::emitWarning(function->getParentOfType<ModuleOp>().getLoc())
            << "--loss=mse compares output '" << choice.name << "' with an input '" << plan::labelsName << "' of its own type, " << type << ", which --data has to give; the model reads ids ('"
            << ids << "') and its output has a number for each of them, whose loss is --loss=causal-lm as a rule";
    FailureOr<Value> target = labels(RankedTensorType::get(type.getShape(), type.getElementType()), "");
    if (failed(target))
      return failure();
    Type element = type.getElementType();
    if (element.isF16() || element.isBF16())
      element = b.builder.getF32Type();
    Value square = b.square(b.sub(b.cast(choice.output, element), b.cast(*target, element)));
    Value sum = sumAll(square);
    step.addResult(b.div(sum, b.number(sum, double(type.getNumElements()))), {plan::lossName, "", ""});
    return success();
  }

  func::FuncOp function;
  StepFunction &step;
  OpBuilder ops;
  GradientBuilder b;
};

struct AppendLoss : impl::AppendLossBase<AppendLoss> {
  using AppendLossBase::AppendLossBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    // 1. The loss, in place of the graph's results.
    StepFunction step(function);
    if (failed(LossBuilder(function, step).append(loss)))
      return signalPassFailure();
    step.write();
    // 2. Ops without readers are erased. A parameter is still saved with the others.
    llvm::MapVector<StringRef, std::pair<DictionaryAttr, Type>> parameters;
    for (nn::ParameterOp op : function.getOps<nn::ParameterOp>())
      parameters[op.getName()] = {op->getAttrDictionary(), op.getType()};
    eraseDeadOps(function);
    for (nn::ParameterOp op : function.getOps<nn::ParameterOp>())
      parameters.erase(op.getName());
    SmallVector<std::pair<DictionaryAttr, Type>> unread;
    for (auto &[name, parameter] : parameters)
      unread.push_back(parameter);
    nn::noteUnread(getOperation(), unread);
  }
};
} // namespace

} // namespace hpc
