// Sizes are bound before the import, so an unbound dim is the import's error.
#include "tools/hpc-train/TrainingPlan.h"

#include "compiler/Import/OnnxModel.h"
#include "passes/Driver/Compilation.h"
#include "passes/Driver/InputKind.h"
#include "passes/Driver/RequestDegrees.h"
#include "passes/Phases.h"
#include "passes/Search/SearchReport.h"
#include "runtime/plan/PlanExplain.h"
#include "runtime/plan/PlanStructure.h"
#include "tools/ExitCode.h"
#include "tools/compiling/PredictedStep.h"
#include "tools/compiling/RequestFlags.h"
#include "tools/compiling/SearchFlags.h"

#include "llvm/Support/raw_ostream.h"

namespace hpc {

static Status planUsage(const Twine &message) { return Status::error(ErrorKind::Usage, message.str()); }

/// The degrees, from flags and sidecar.
static Expected<dist::Mesh> degreesOf(CompileRequest request) {
  Expected<std::optional<SpecFile>> spec = findSpec(request.spec, request.configuration, request.input);
  HPC_RETURN_IF_ERROR(spec.status());
  HPC_RETURN_IF_ERROR(takeDegrees(request, *spec));
  return request.options.degrees;
}

static int64_t sizeOf(const dist::Mesh &degrees, StringRef axis) {
  for (const dist::Mesh::Axis &one : degrees.axes)
    if (one.name == axis)
      return one.size;
  return 1;
}

namespace {
/// A size that the model leaves open or fixes, and that a flag may give.
struct OpenSize {
  std::string flag;                ///< "--seq"
  std::optional<int64_t> given;    ///< by the flag
  std::string input;               ///< of the model, that has it
  std::set<std::string> symbols;   ///< of the model's dims
  std::optional<int64_t> fixed;    ///< by the model

  /// Binds the symbols; the size, or nullopt where nobody gives one.
  Expected<std::optional<int64_t>> bind(std::map<std::string, int64_t> &dims) const {
    std::optional<int64_t> size = given;
    for (const std::string &symbol : symbols) {
      auto bound = dims.find(symbol);
      if (bound == dims.end())
        continue;
      if (size && *size != bound->second)
        return planUsage(flag + "=" + Twine(*size) + " and --dim " + symbol + "=" + Twine(bound->second) + " are about one size; give it once");
      size = bound->second;
    }
    if (fixed && size && *size != *fixed)
      return planUsage(flag + "=" + Twine(*size) + ", but input '" + input + "' of the model has " + Twine(*fixed) +
                       " there; leave the flag out, or export the model with a dynamic dim");
    if (!size)
      size = fixed;
    if (size)
      for (const std::string &symbol : symbols)
        dims.emplace(symbol, *size);
    return size;
  }
};
} // namespace

static void take(OpenSize &size, const onnx::ValueInfo &input, const onnx::Dim &dim) {
  if (size.input.empty())
    size.input = input.name;
  if (dim.size && !size.fixed)
    size.fixed = dim.size;
  if (!dim.size && !dim.symbol.empty())
    size.symbols.insert(dim.symbol);
}

/// The batch by its name, as compiler/Dialect/NN/BatchDims finds it, else dim 0.
static void takeBatch(OpenSize &batch, const std::vector<onnx::ValueInfo> &inputs, StringRef wanted) {
  auto takeNamed = [&](auto isIt) {
    for (const onnx::ValueInfo &input : inputs)
      for (const onnx::Dim &dim : input.dims)
        if (!dim.size && isIt(StringRef(dim.symbol)))
          take(batch, input, dim);
    return !batch.symbols.empty();
  };
  auto isName = [](StringRef symbol) { return symbol.find_first_of(" +*/%()") == StringRef::npos; };
  if (!wanted.empty() && takeNamed([&](StringRef symbol) { return symbol == wanted; }))
    return;
  if (wanted.empty() && (takeNamed([](StringRef symbol) { return symbol == "batch"; }) ||
                         takeNamed([&](StringRef symbol) { return symbol.starts_with("batch") && isName(symbol); })))
    return;
  for (const onnx::ValueInfo &input : inputs)
    if (!input.dims.empty())
      return take(batch, input, input.dims.front());
}

/// Sizes of a micro-batch that divide a rank's share.
static std::string divisorsOf(int64_t number) {
  std::string text;
  for (int64_t divisor = 1; divisor <= number; ++divisor)
    if (number % divisor == 0)
      text += (text.empty() ? "" : ", ") + std::to_string(divisor);
  return text;
}

/// --global-batch, --micro-batch and --seq. With --auto only dp that is given decides about them.
static Status bindSizes(const Arguments &arguments, CompileRequest &request) {
  Expected<dist::Mesh> degrees = dist::degreesOf(request.degrees);
  if (!searchesPlan(arguments))
    degrees = degreesOf(request);
  HPC_RETURN_IF_ERROR(degrees.status());
  if (searchesPlan(arguments) && arguments.has("micro-batch") && !arguments.has("dp"))
    return planUsage("--micro-batch=" + Twine(*arguments.whole("micro-batch")) + " with --auto: the number of micro-batches follows from it and from dp, which --auto chooses; add --dp=N, or leave "
                     "--micro-batch out");
  Expected<onnx::Model> model = onnx::readOnnx(request.input, {/*withoutWeights=*/true, request.followLinks});
  HPC_RETURN_IF_ERROR(model.status());
  const int64_t copies = sizeOf(*degrees, "dp");
  const std::optional<int64_t> micro = arguments.whole("micro-batch");
  OpenSize batch{"--global-batch", arguments.whole("global-batch"), "", {}, {}}, length{"--seq", arguments.whole("seq"), "", {}, {}};
  takeBatch(batch, model->inputs, request.options.batchDim);
  for (const onnx::ValueInfo &input : model->inputs)
    if (input.dims.size() == 2 && input.dtype && !isFloat(*input.dtype) && !batch.symbols.count(input.dims[1].symbol))
      take(length, input, input.dims[1]);
  if (length.given && length.input.empty())
    return planUsage("--seq=" + Twine(*length.given) + ": the model has no input of ids, [batch, sequence]; leave it out, and give sizes by --dim");
  Expected<std::optional<int64_t>> sequence = length.bind(request.dims);
  HPC_RETURN_IF_ERROR(sequence.status());
  if (!*sequence && !length.symbols.empty())
    return planUsage("no --seq is given, and input '" + length.input + "' of the model takes sequences of any length; add --seq=1024 or what you like");
  Expected<std::optional<int64_t>> found = batch.bind(request.dims);
  HPC_RETURN_IF_ERROR(found.status());
  if (!*found && micro) {
    batch.given = *micro * copies;
    found = batch.bind(request.dims);
  }
  if (!*found)
    return planUsage("no --global-batch is given, and the model takes any batch; add --global-batch=64 or what you like");
  const int64_t global = **found, share = global / copies;
  if (global % copies)
    return planUsage("--global-batch=" + Twine(global) + " is no multiple of dp=" + Twine(copies) + "; give " + Twine(share * copies) + " or " +
                     Twine((share + 1) * copies));
  if (micro && share % *micro)
    return planUsage("--micro-batch=" + Twine(*micro) + ": each of dp=" + Twine(copies) + " has " + Twine(share) + " sequences of --global-batch=" +
                     Twine(global) + ", which it does not divide; give one of " + divisorsOf(share));
  if (micro) {
    request.degrees["mb"] = share / *micro;
    request.given.insert("micro-batches");
  }
  return Status::success();
}

static Expected<CompileRequest> requestOf(const Arguments &arguments) {
  CompileRequest request;
  request.input = arguments.text("model");
  HPC_RETURN_IF_ERROR(readRequest(arguments, /*trains=*/true, request));
  request.options.target = arguments.text("backend") == "host" ? "host" : request.verify ? "host,cuda" : "cuda";
  if (Expected<std::string> targets = kernelTargets(request.options.target); !targets.ok())
    return targets.status();
  if (arguments.has("weights") && request.verify)
    return planUsage("--verify computes with the model's own weights, and --weights gives others; leave one of them out");
  return request;
}

Expected<int64_t> ranksOfPlan(const Arguments &arguments) {
  Expected<CompileRequest> request = requestOf(arguments);
  HPC_RETURN_IF_ERROR(request.status());
  if (searchesPlan(arguments)) {
    Expected<search::Question> question = readQuestion(arguments, *request);
    HPC_RETURN_IF_ERROR(question.status());
    return *question->request.devices;
  }
  Expected<dist::Mesh> degrees = degreesOf(*request);
  HPC_RETURN_IF_ERROR(degrees.status());
  return dist::ranksOf(*degrees);
}

Expected<plan::Plan> makeTrainingPlan(const Arguments &arguments, const std::string &planFolder, bool evaluates) {
  Expected<CompileRequest> request = requestOf(arguments);
  HPC_RETURN_IF_ERROR(request.status());
  HPC_RETURN_IF_ERROR(bindSizes(arguments, *request));
  request->evaluate = evaluates;
  request->planFolder = planFolder;
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.disableMultithreading(); // remarks come in one order
  DiagnosticPrinter diagnostics(&context, arguments.text("remarks") == "all", [](DiagnosticSeverity severity, ErrorKind kind, const std::string &text) {
    DiagnosticPrinter::print(toolName(), severity, kind, text);
  });
  if (searchesPlan(arguments)) {
    Expected<search::Question> question = readQuestion(arguments, *request);
    HPC_RETURN_IF_ERROR(question.status());
    Expected<search::Answer> answer = search::findPlan(*question, context, diagnostics);
    HPC_RETURN_IF_ERROR(answer.status());
    if (arguments.text("explain") != "json")
      llvm::outs() << search::reportText(*answer);
    answer->applyTo(*request);
  }
  Compilation compilation(std::move(*request), context, diagnostics);
  for (auto step : {&Compilation::load, &Compilation::runPhases, &Compilation::makePlan})
    HPC_RETURN_IF_ERROR((compilation.*step)());
  plan::Plan plan = std::move(compilation.lowered->plan);
  if (arguments.has("explain")) {
    Expected<std::optional<plan::PredictedStep>> step = predictedStep(plan, compilation.request.options);
    HPC_RETURN_IF_ERROR(step.status());
    llvm::outs() << (arguments.text("explain") == "json" ? plan::explainPlanJson(plan, compilation.facts, *step)
                                                         : plan::explainPlan(plan, compilation.facts) + compilation.comparison + (*step ? stepText(plan, **step) : ""));
  }
  if (compilation.request.verify) {
    compilation.lowered->plan = plan;
    Expected<std::string> report = compilation.verify();
    HPC_RETURN_IF_ERROR(report.status());
    llvm::outs() << *report;
  }
  llvm::outs().flush();
  return plan;
}

} // namespace hpc
