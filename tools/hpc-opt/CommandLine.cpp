// The flags. They are made inside a function, since the .mlir mode registers mlir-opt's own, among them another -o.
// A flag belongs to one of our groups, in which --help prints it; what MLIR and LLVM register stays behind
// --help-hidden.
#include "tools/hpc-opt/CommandLine.h"

#include "passes/Driver/ByteSize.h"
#include "passes/Driver/InputKind.h"
#include "passes/Phases.h"
#include "runtime/base/NumberText.h"
#include "tools/OutputFiles.h"
#include "tools/Suggestion.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

#include <limits>

namespace hpc {

namespace cl = llvm::cl;

/// The error of a value; LLVM's own parser would print it itself.
static std::string &valueError() {
  static std::string text;
  return text;
}

namespace {
struct WholeNumber {
  int64_t value;
  WholeNumber(int64_t value = 0) : value(value) {}
  operator int64_t() const { return value; }
};
struct Switch {
  bool isOn;
  Switch(bool isOn = false) : isOn(isOn) {}
  operator bool() const { return isOn; }
};
struct RealNumber {
  double value;
  RealNumber(double value = 0) : value(value) {}
  operator double() const { return value; }
};
} // namespace

} // namespace hpc

/// As LLVM's parser of integers, but what is wrong is kept for one of our messages.
template <> class llvm::cl::parser<hpc::WholeNumber> : public llvm::cl::basic_parser<hpc::WholeNumber> {
public:
  using basic_parser::basic_parser;
  bool parse(Option &option, StringRef, StringRef text, hpc::WholeNumber &number) {
    bool failed = text.getAsInteger(0, number.value);
    if (failed)
      hpc::valueError() = "--" + option.ArgStr.str() + "=" + text.str() + " is not a whole number";
    return failed;
  }
  void printOptionDiff(const Option &, const hpc::WholeNumber &, const OptionValue<hpc::WholeNumber> &, size_t) const {}
};

/// A flag that is there or not; `--train=maybe` is one of our messages, too.
template <> class llvm::cl::parser<hpc::Switch> : public llvm::cl::basic_parser<hpc::Switch> {
public:
  using basic_parser::basic_parser;
  enum ValueExpected getValueExpectedFlagDefault() const { return ValueOptional; }
  bool parse(Option &option, StringRef, StringRef text, hpc::Switch &value) {
    value.isOn = text.empty() || text == "true" || text == "1";
    bool failed = !value.isOn && text != "false" && text != "0";
    if (failed)
      hpc::valueError() = "--" + option.ArgStr.str() + "=" + text.str() + " is neither true nor false";
    return failed;
  }
  void printOptionDiff(const Option &, const hpc::Switch &, const OptionValue<hpc::Switch> &, size_t) const {}
};

template <> class llvm::cl::parser<hpc::RealNumber> : public llvm::cl::basic_parser<hpc::RealNumber> {
public:
  using basic_parser::basic_parser;
  bool parse(Option &option, StringRef, StringRef text, hpc::RealNumber &number) {
    bool failed = text.getAsDouble(number.value);
    if (failed)
      hpc::valueError() = "--" + option.ArgStr.str() + "=" + text.str() + " is not a number";
    return failed;
  }
  void printOptionDiff(const Option &, const hpc::RealNumber &, const OptionValue<hpc::RealNumber> &, size_t) const {}
};

namespace hpc {

namespace {
struct Flags {
  Flags() {
    for (const dist::AxisKind &kind : dist::axisKinds())
      degrees.push_back(std::make_unique<cl::opt<WholeNumber>>(StringRef(kind.flag), cl::desc(kind.help), cl::value_desc("N"), cl::init(1),
                                                               cl::cat(layout)));
  }

  cl::OptionCategory model{"Model and plan"};
  cl::OptionCategory training{"Training"};
  cl::OptionCategory layout{"Layout"};
  cl::OptionCategory report{"Explanation and verification"};
  cl::OptionCategory phase{"Phase by phase"};

  cl::opt<std::string> input{cl::Positional, cl::desc("<model.onnx or phase.mlir>")};
  cl::opt<std::string> output{"o", cl::desc("File of the plan; with --compile-to file of the program (default: none)"),
                              cl::value_desc("file"), cl::cat(model)};
  cl::list<std::string> dims{"dim", cl::desc("Size of a symbolic dim of the model, or of one dim of an input (x.2=N); may be repeated"),
                             cl::value_desc("name=N"), cl::cat(model)};
  cl::list<std::string> constants{
      "const", cl::desc("Input bound to the array of a .npz, .npy or .pb file, so that it may decide shapes"),
      cl::value_desc("name=file"), cl::cat(model)};
  cl::opt<Switch> noWeights{"no-weights", cl::desc("No external data is read: the plan fits any weights of its shapes (hpc-run --weights)"),
                          cl::cat(model)};
  cl::opt<Switch> followLinks{"follow-links", cl::desc("External data may be links, as in the model cache of a hub"),
                            cl::cat(model)};
  cl::opt<Switch> inference{"inference", cl::desc("Nodes exported in training mode (Dropout) compute as in inference, also with --train"),
                          cl::cat(model)};

  cl::opt<std::string> dtype{
      "dtype", cl::desc("Type of operands of products: bf16, fp16 (all else stays f32) or model (default: model)"),
      cl::value_desc("which"), cl::init("model"), cl::cat(model)};
  cl::opt<std::string> weights{
      "weights", cl::desc("Weights of products: int8, with a scale for each output channel, or float (default: float)"),
      cl::value_desc("which"), cl::init("float"), cl::cat(model)};
  cl::opt<Switch> deterministic{"deterministic",
                              cl::desc("The same bits on every layout: sums are exact, in f64, which takes time and memory"),
                              cl::cat(model)};
  cl::opt<std::string> target{"target", cl::desc("Device of the plan: host, cuda or host,cuda (default: host)"),
                              cl::value_desc("which"), cl::init("host"), cl::cat(model)};

  cl::opt<std::string> kernelCache{"kernel-cache",
                                   cl::desc("Folder that keeps machine code of kernels for later compilations (default: none)"),
                                   cl::value_desc("folder"), cl::cat(model)};

  cl::opt<Switch> train{"train", cl::desc("A training step: loss, gradients, update"), cl::cat(training)};
  cl::opt<Switch> evaluate{"evaluate", cl::desc("A plan that can also be run for the loss alone, without dropout: the entry evaluate"),
                           cl::cat(training)};
  cl::opt<std::string> loss{
      "loss", cl::desc("Loss: causal-lm, classification, mse or output[:NAME] (default: the model's own, else by rank)"),
      cl::value_desc("which"), cl::cat(training)};
  cl::list<std::string> freeze{"freeze", cl::desc("Parameters that are not trained, by name; may be repeated"),
                               cl::value_desc("pattern"), cl::cat(training)};
  cl::opt<RealNumber> dropout{"dropout", cl::desc("Rate of all dropouts of the model; 0: none (default: the model's own)"),
                              cl::value_desc("rate"), cl::init(0), cl::cat(training)};
  cl::opt<std::string> optimizer{"optimizer", cl::desc("Optimizer: sgd, adam, adamw or lamb (default: adamw)"),
                                 cl::value_desc("which"), cl::init("adamw"), cl::cat(training)};
  cl::opt<RealNumber> momentum{"momentum", cl::desc("Momentum of sgd (default: 0)"), cl::value_desc("x"), cl::init(0),
                               cl::cat(training)};
  cl::opt<Switch> nesterov{"nesterov", cl::desc("Nesterov's momentum of sgd"), cl::cat(training)};
  cl::opt<std::string> betas{"betas", cl::desc("Decay rates of the moments of adam, adamw, lamb (default: 0.9,0.999)"), cl::value_desc("x,y"),
                             cl::cat(training)};
  cl::opt<RealNumber> epsilon{"epsilon", cl::desc("Epsilon of adam, adamw, lamb (default: 1e-8)"), cl::value_desc("x"),
                              cl::init(1e-8), cl::cat(training)};
  cl::opt<RealNumber> weightDecay{"weight-decay", cl::desc("Weight decay of the parameters that decay (default: 0)"),
                                  cl::value_desc("x"), cl::init(0), cl::cat(training)};
  cl::opt<std::string> decay{"decay", cl::desc("Parameters that decay: all, matrices, or patterns of names (default: all)"),
                             cl::value_desc("which"), cl::init("all"), cl::cat(training)};
  cl::opt<WholeNumber> zero{
      "zero", cl::desc("ZeRO level: 1 and 2 cut the optimizer's states over dp, 3 parameters too (default: 0)"),
      cl::value_desc("level"), cl::init(0), cl::cat(training)};
  cl::opt<std::string> recompute{
      "recompute",
      cl::desc("Activations computed again: none, attention, full or auto (to fit --memory) (default: none)"),
      cl::value_desc("which"), cl::init("none"), cl::cat(training)};
  cl::opt<RealNumber> clip{"clip", cl::desc("Largest norm over all gradients; above it they are scaled (default: no limit)"),
                           cl::value_desc("norm"), cl::init(0), cl::cat(training)};

  cl::opt<std::string> spec{"spec", cl::desc("Sidecar with your annotations, or none (default: <model>.shard.json)"),
                            cl::value_desc("file"), cl::cat(layout)};
  cl::opt<std::string> configuration{
      "onnx-configuration", cl::desc("ONNX device configuration of the model (default: its first)"),
      cl::value_desc("name"), cl::cat(layout)};
  cl::opt<std::string> writeSpec{"write-spec", cl::desc("File for the chosen layout, as a sidecar that leads to the same plan"),
                                 cl::value_desc("file"), cl::cat(layout)};
  cl::opt<std::string> writeAnnotations{"write-onnx-annotations",
                                        cl::desc("File for the model with the chosen layout as ONNX device configurations"),
                                        cl::value_desc("file"), cl::cat(layout)};
  std::vector<std::unique_ptr<cl::opt<WholeNumber>>> degrees; ///< one of each of dist::axisKinds
  cl::opt<WholeNumber> devices{"devices", cl::desc("Number of ranks (default: tp * pp * dp)"), cl::value_desc("N"),
                           cl::init(0), cl::cat(layout)};
  cl::opt<std::string> ppSplit{"pp-split",
                               cl::desc("Layers of each stage: uniform, balanced, or a list: 1,2,1 (default: balanced)"),
                               cl::value_desc("how"), cl::init("balanced"), cl::cat(layout)};
  cl::opt<WholeNumber> ppChunks{"pp-chunks", cl::desc("Number of parts of the model that a stage owns (default: 1)"),
                                cl::value_desc("N"), cl::init(1), cl::cat(layout)};
  cl::opt<std::string> ppSchedule{
      "pp-schedule",
      cl::desc("inference, gpipe, 1f1b, interleaved, zb-h1 or ./file.txt (default: 1f1b in training)"),
      cl::value_desc("which"), cl::cat(layout)};
  cl::alias schedule{"schedule", cl::desc("The same as --pp-schedule"), cl::aliasopt(ppSchedule), cl::cat(layout)};
  cl::opt<std::string> batchDim{"batch-dim", cl::desc("The inputs' batch dim (default: batch, else batch*, else dim 0)"),
                                cl::value_desc("name"), cl::cat(layout)};
  cl::opt<std::string> memory{"memory", cl::desc("Memory limit of a rank on its device, as 24GiB (default: no limit)"),
                              cl::value_desc("size"), cl::cat(layout)};

  cl::opt<std::string> explain{
      "explain", cl::desc("Tables of collectives with their causes, memory, schedule; =json for programs"),
      cl::value_desc("json"), cl::ValueOptional, cl::cat(report)};
  cl::opt<std::string> verify{
      "verify", cl::desc("Runs the model and the plan, and compares (default: on made-up inputs)"),
      cl::value_desc("inputs.npz"), cl::ValueOptional, cl::cat(report)};
  cl::opt<Switch> listParams{"list-params", cl::desc("List of the parameters only: names, aliases, shape, dtype, users"),
                           cl::cat(report)};
  cl::opt<std::string> remarks{"remarks", cl::desc("user: remarks to act on; all: also those of single passes (default: user)"),
                               cl::value_desc("which"), cl::init("user"), cl::cat(report)};

  cl::opt<std::string> compileTo{"compile-to", cl::desc("Phase after which the program is printed:"),
                                 cl::value_desc("phase"), cl::cat(phase)};
  cl::opt<std::string> dumpPhases{"dump-phases", cl::desc("Folder for a numbered .mlir of each phase; each leads to the same plan"),
                                  cl::value_desc("folder"), cl::cat(phase)};

  /// In the order of --help.
  std::vector<cl::OptionCategory *> groups() { return {&model, &training, &layout, &report, &phase}; }

  /// The flags of a group in the order of their declaration, which is that of their addresses.
  std::vector<cl::Option *> flagsOf(cl::OptionCategory *group) {
    std::vector<cl::Option *> flags;
    for (auto &[name, option] : cl::getRegisteredOptions())
      if (llvm::is_contained(option->Categories, group))
        flags.push_back(option);
    llvm::sort(flags);
    return flags;
  }
};
} // namespace

static std::string dashed(StringRef name) { return (name.size() == 1 ? "-" : "--") + name.str(); }

/// "--verify[=inputs.npz]", "--tp=N", "-o file".
static std::string spelling(const cl::Option &flag) {
  std::string text = dashed(flag.ArgStr), value = flag.ValueStr.str();
  if (value.empty())
    return text;
  if (flag.getValueExpectedFlag() == cl::ValueOptional)
    return text + "[=" + value + "]";
  return text + (text.size() == 2 || value.find('=') != std::string::npos ? " " : "=") + value;
}

static std::string helpText(Flags &flags) {
  std::string text = R"(hpc-opt: from a serial ONNX model to a plan for many ranks, which hpc-run runs

  hpc-opt model.onnx [flags] -o model.plan     compile
  hpc-opt phase.mlir [flags] -o model.plan     go on from a file of --dump-phases
  hpc-opt file.mlir --hpc-some-pass ...        run single passes, as mlir-opt does

For example
  hpc-opt gpt2.onnx --tp=2 --pp=2 --dim batch_size=2 --dim sequence_length=16 --verify --explain -o gpt2.plan
)";
  for (cl::OptionCategory *group : flags.groups()) {
    text += "\n" + group->getName().str() + "\n";
    for (const cl::Option *flag : flags.flagsOf(group)) {
      std::string left = "  " + spelling(*flag);
      text += left + std::string(left.size() < 25 ? 26 - left.size() : 2, ' ') + flag->HelpStr.str() + "\n";
      if (flag->ArgStr == "compile-to")
        text += std::string(26, ' ') + phaseNames() + "\n";
    }
  }
  return text + "\n--help-hidden lists the single passes and the options of MLIR and LLVM, --mlir-timing among them.\n";
}

static Status usage(const Twine &message) { return Status::error(ErrorKind::Usage, message.str()); }

/// LLVM would offer any of its thousands of options as the nearest, and takes some by the name of a flag of another tool; here
/// it is one of ours.
static Status refuseUnknown(int argc, char **argv, Flags &flags) {
  std::vector<std::string> ours;
  for (cl::OptionCategory *group : flags.groups())
    for (const cl::Option *flag : flags.flagsOf(group))
      ours.push_back(dashed(flag->ArgStr));
  for (StringRef argument : llvm::drop_begin(ArrayRef<char *>(argv, argc))) {
    if (argument == "--")
      break;
    StringRef name = argument.ltrim('-').split('=').first;
    if (!argument.starts_with("-") || name.empty() || llvm::is_contained(ours, dashed(name)))
      continue;
    if (!cl::getRegisteredOptions().contains(name) || !otherToolsWith("hpc-opt", name.str()).empty())
      return usage(unknownFlag("hpc-opt", argument.split('=').first.str(), ours));
  }
  return Status::success();
}

/// What LLVM would say without a name: a flag at the end whose value is missing, and a second model.
static Status refuseIncomplete(int argc, char **argv) {
  auto &known = cl::getRegisteredOptions();
  StringRef model;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i], name = argument.ltrim('-');
    if (argument == "--")
      break;
    if (argument.starts_with("@")) // a file of flags
      continue;
    if (!argument.starts_with("-") || name.empty()) {
      if (!model.empty())
        return usage("'" + argument + "' is one argument too many beside '" + model +
                     "'; one model is compiled at a time");
      model = argument;
      continue;
    }
    auto option = known.find(name); // none for --name=value
    if (option == known.end() || option->second->getValueExpectedFlag() != cl::ValueRequired)
      continue;
    if (++i == argc)
      return usage(argument + " needs a value, as in " + spelling(*option->second));
  }
  return Status::success();
}

/// LLVM's "hpc-opt: Too many positional arguments specified!..." as one of our messages.
static Status parseError(StringRef text) {
  text = text.trim().split('\n').first;
  text.consume_front("hpc-opt: ");
  if (!valueError().empty())
    text = valueError();
  return usage(Twine(text.empty() ? "a flag has a wrong value" : text.rtrim('!')) + "; see hpc-opt --help");
}

/// A degree that a flag gives, in its range.
static Status readDegree(const cl::opt<WholeNumber> &flag, llvm::function_ref<void(int64_t)> take) {
  if (!flag.getNumOccurrences())
    return Status::success();
  int64_t value = flag.getValue();
  if (value < 1 || value > dist::maxDegree)
    return usage("--" + flag.ArgStr + "=" + Twine(value) + " must be from 1 to " + Twine(dist::maxDegree));
  take(value);
  return Status::success();
}

static Status readDegrees(const Flags &flags, CommandLine &line) {
  for (auto [kind, flag] : llvm::zip_equal(dist::axisKinds(), flags.degrees))
    HPC_RETURN_IF_ERROR(readDegree(*flag, [&, name = kind.name](int64_t value) { line.degrees[name] = value; }));
  HPC_RETURN_IF_ERROR(readDegree(flags.devices, [&](int64_t value) { line.devices = value; }));
  if (flags.ppChunks < 1 || flags.ppChunks > 65536)
    return usage("--pp-chunks=" + Twine(int64_t(flags.ppChunks)) + " must be from 1 to 65536");
  return Status::success();
}

/// How parameters are updated. What a formula has no use for is a slip of the pen.
static Status readOptimizer(const Flags &flags, Options &options) {
  StringRef optimizer = options.optimizer = flags.optimizer;
  if (!llvm::is_contained({"sgd", "adam", "adamw", "lamb"}, optimizer))
    return usage("--optimizer=" + optimizer + " is unknown; use sgd, adam, adamw or lamb");
  bool isSgd = optimizer == "sgd";
  for (const cl::Option *flag : {static_cast<const cl::Option *>(&flags.momentum),
                                 static_cast<const cl::Option *>(&flags.nesterov)})
    if (flag->getNumOccurrences() && !isSgd)
      return usage("--" + flag->ArgStr + " is of sgd; leave it out or use --optimizer=sgd");
  for (const cl::Option *flag : {static_cast<const cl::Option *>(&flags.betas),
                                 static_cast<const cl::Option *>(&flags.epsilon)})
    if (flag->getNumOccurrences() && isSgd)
      return usage("--" + flag->ArgStr + " is of adam, adamw and lamb; leave it out or use --optimizer=adamw");
  for (auto [flag, field] :
       {std::pair(&flags.momentum, &options.momentum), std::pair(&flags.epsilon, &options.epsilon),
        std::pair(&flags.weightDecay, &options.weightDecay), std::pair(&flags.clip, &options.clip)}) {
    *field = flag->getValue();
    const bool takesZero = flag == &flags.momentum || flag == &flags.weightDecay;
    // A number that f32 cannot hold would be 0 or infinite in the step.
    if (!(*field == 0 || (*field >= std::numeric_limits<float>::min() && *field <= std::numeric_limits<float>::max())))
      return usage("--" + flag->ArgStr + "=" + numberText(*field) + (takesZero ? " must be 0, or a number" : " must be a number") +
                   " that f32 holds, 1.2e-38 to 3.4e38");
  }
  if (options.momentum >= 1)
    return usage("--momentum=" + numberText(options.momentum) + " must be below 1: a gradient would count more with every step");
  if (flags.clip.getNumOccurrences() && options.clip == 0)
    return usage("--clip=0 would take every gradient away; leave it out for no limit");
  if (!isSgd && options.epsilon == 0)
    return usage("--epsilon=0 would divide 0 by 0 where a gradient is 0; leave it out for 1e-8");
  if (flags.decay.getNumOccurrences() && !flags.weightDecay.getNumOccurrences())
    return usage("--decay says which parameters --weight-decay is for; add --weight-decay=0.01 or what you like");
  options.zero = flags.zero;
  if (options.zero < 0 || options.zero > 3)
    return usage("--zero=" + Twine(options.zero) + " must be 0, 1, 2 or 3");
  options.recompute = flags.recompute;
  if (!llvm::is_contained({"none", "attention", "full", "auto"}, options.recompute))
    return usage("--recompute=" + options.recompute + " is unknown; use none, attention, full or auto");
  options.nesterov = flags.nesterov;
  if (options.nesterov && options.momentum == 0)
    return usage("--nesterov is a kind of momentum; add --momentum=0.9 or what you like");
  if (flags.decay.empty() || StringRef(flags.decay).starts_with(",") || StringRef(flags.decay).ends_with(","))
    return usage("--decay=" + flags.decay + " must be all, matrices, or patterns of names with commas between");
  options.decay = flags.decay;
  if (!flags.betas.getNumOccurrences())
    return Status::success();
  auto [first, second] = StringRef(flags.betas).split(',');
  bool wrong = first.getAsDouble(options.beta1) || second.getAsDouble(options.beta2);
  if (wrong || !(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1))
    return usage("--betas=" + flags.betas + " must be two numbers of at least 0 and below 1, as in --betas=0.9,0.95");
  return Status::success();
}

/// The trained parameters and the loss.
static Status readTraining(Flags &flags, Options &options) {
  if (!flags.train) {
    for (const cl::Option *flag : flags.flagsOf(&flags.training))
      if (flag->getNumOccurrences() && flag != &flags.train && flag != &flags.evaluate) // which a program may take
        return usage("--" + flag->ArgStr + " is about a training step; add --train");
    return Status::success();
  }
  for (const std::string &pattern : flags.freeze)
    if (pattern.empty() || StringRef(pattern).starts_with(",") || StringRef(pattern).ends_with(","))
      return usage("--freeze=" + pattern + " must be a pattern of names, or some with commas between");
  options.loss = flags.loss.getNumOccurrences() ? flags.loss.getValue() : "auto";
  StringRef loss = options.loss;
  auto [kind, output] = loss.split(':');
  bool isKnown = llvm::is_contained({"auto", "causal-lm", "classification", "mse", "output"}, kind) &&
                 output.empty() == (loss.find(':') == StringRef::npos);
  if (!isKnown)
    return usage("--loss=" + flags.loss + " is unknown; use causal-lm, classification, mse or output, each also with :NAME of an output");
  options.freeze = llvm::join(flags.freeze, ",");
  return readOptimizer(flags, options);
}

/// Flags that would do nothing beside another one, or for this input.
static Status checkTogether(Flags &flags, CommandLine &line) {
  std::vector<const cl::Option *> given;
  for (cl::OptionCategory *group : flags.groups())
    for (const cl::Option *flag : flags.flagsOf(group))
      if (flag->getNumOccurrences())
        given.push_back(flag);
  auto isOneOf = [](const cl::Option *flag, ArrayRef<StringRef> names) {
    return llvm::is_contained(names, flag->ArgStr);
  };
  auto isOfImport = [&](const cl::Option *flag) {
    return isOneOf(flag, {"dim", "const", "no-weights", "follow-links", "inference"});
  };
  for (const cl::Option *flag : given) {
    const std::string name = dashed(flag->ArgStr);
    bool isList = isOneOf(flag, {"dim", "const", "freeze"});
    if (flag->getNumOccurrences() > 1 && !isList)
      return usage(name + " is given " + Twine(flag->getNumOccurrences()) + " times; give it once");
    if (flags.listParams && !isOfImport(flag) && !isOneOf(flag, {"list-params", "remarks", "train", "dropout"}))
      return usage("--list-params only lists what is in the model, so " + name +
                   " would do nothing; leave one of them out");
    if (!line.compileTo.empty() && isOneOf(flag, {"verify", "explain", "evaluate"}))
      return usage(name + " is about a plan, and --compile-to=" + line.compileTo +
                   " stops before there is one; leave one of them out");
    // A proof imports the model once more.
    bool isOfProof = line.verify && isOneOf(flag, {"no-weights", "follow-links"});
    if (isOfImport(flag) && !isOfProof && isInputKind(line.input, InputKind::Program))
      return usage(name + " is for an .onnx model, and " + line.input +
                   " is none; leave it out, or start from the model");
    bool isOfLayout =
        llvm::is_contained(flag->Categories, &flags.layout) || llvm::is_contained(flag->Categories, &flags.training);
    line.givesOptions |= isOneOf(flag, {"dtype", "weights", "deterministic", "target"}) ||
                         (isOfLayout && !isOneOf(flag, {"spec", "onnx-configuration", "write-spec",
                                                        "write-onnx-annotations", "dropout", "evaluate"}));
  }
  return Status::success();
}

bool isCompilerFlag(StringRef argument) {
  StringRef name = argument.ltrim('-').split('=').first;
  return argument.starts_with("-") && (name == "h" || name == "help" || toolFlags().front().has(name.str()));
}

Expected<CommandLine> parseCommandLine(int argc, char **argv) {
  static Flags flags; // llvm::cl keeps pointers to them, and lld visits all options later
  registerMLIRContextCLOptions();
  registerPassManagerCLOptions();
  registerAsmPrinterCLOptions();
  registerDefaultTimingManagerCLOptions();
  CommandLine line;
  for (StringRef argument : llvm::drop_begin(ArrayRef<char *>(argv, argc)))
    if (argument == "-h" || argument == "-help" || argument == "--help") {
      line.help = helpText(flags);
      return line;
    }
  HPC_RETURN_IF_ERROR(refuseUnknown(argc, argv, flags));
  HPC_RETURN_IF_ERROR(refuseIncomplete(argc, argv));
  std::string errors;
  llvm::raw_string_ostream errorStream(errors);
  if (!cl::ParseCommandLineOptions(argc, argv, "", &errorStream))
    return parseError(errors);

  HPC_RETURN_IF_ERROR(readDegrees(flags, line));
  line.spec = flags.spec;
  line.configuration = flags.configuration;
  if (flags.configuration.getNumOccurrences() && flags.configuration.empty())
    return usage("--onnx-configuration= names none; leave it out for the model's first");
  line.writeSpec = flags.writeSpec;
  line.writeAnnotations = flags.writeAnnotations;
  line.options.batchDim = flags.batchDim;
  line.options.ppSplit = flags.ppSplit;
  line.options.ppChunks = flags.ppChunks;
  line.options.ppSchedule = flags.ppSchedule;
  if (flags.ppSchedule.getNumOccurrences() && flags.ppSchedule.empty())
    return usage("--pp-schedule= names none; leave it out for what fits");
  HPC_RETURN_IF_ERROR(readTraining(flags, line.options));
  line.options.dtype = flags.dtype;
  line.options.deterministic = flags.deterministic;
  if (flags.deterministic && flags.dtype != "model")
    return usage("--deterministic makes sums of f32 exact, and --dtype=" + flags.dtype + " rounds what is added; leave one of them out");
  line.options.weights = flags.weights;
  if (flags.weights != "float" && flags.weights != "int8")
    return usage("--weights=" + flags.weights + " is unknown; use int8, or float for the types that the model has (the file or folder "
                 "that holds weights is hpc-run's --weights)");
  if (flags.weights == "int8" && flags.train)
    return usage("--weights=int8 is for inference: a step of training changes weights by less than an int8 can show; leave one of "
                 "--weights=int8 and --train out");
  if (flags.weights == "int8" && flags.deterministic)
    return usage("--deterministic makes sums of f32 exact, and --weights=int8 has other products; leave one of them out");
  line.options.target = flags.target;
  if (Expected<std::string> targets = kernelTargets(flags.target); !targets.ok())
    return usage("--target: " + targets.status().message());
  else if (flags.verify.getNumOccurrences() && !StringRef(*targets).contains(hostTarget))
    return usage("--target=" + flags.target + " with --verify: the proof runs the plan on this machine's CPU; use "
                                              "--target=host,cuda");
  line.options.kernelCache = flags.kernelCache;
  if (flags.kernelCache.getNumOccurrences() && flags.kernelCache.empty())
    return usage("--kernel-cache= names no folder; leave it out to keep nothing");
  line.input = flags.input;
  line.output = flags.output;
  line.compileTo = flags.compileTo;
  line.dumpPhases = flags.dumpPhases;
  bool isPrinted = flags.output == "-" && !line.compileTo.empty();
  if (flags.output.getNumOccurrences() && !isPrinted)
    HPC_RETURN_IF_ERROR(checkOutputName({"-o '" + line.output + "'", line.output}, "a plan"));
  for (auto [flag, kind] : {std::pair(&flags.writeSpec, "a sidecar"), std::pair(&flags.writeAnnotations, "a model")})
    if (flag->getNumOccurrences())
      HPC_RETURN_IF_ERROR(
          checkOutputName({"--" + flag->ArgStr.str() + "=" + flag->getValue(), flag->getValue()}, kind));
  if (flags.compileTo.getNumOccurrences() && flags.compileTo.empty())
    return usage("--compile-to= names no phase; phases are " + phaseNames());
  if (flags.dumpPhases.getNumOccurrences() && flags.dumpPhases.empty())
    return usage("--dump-phases= names no folder; give it a name, or leave it out");
  line.inference = flags.inference;
  line.evaluate = flags.evaluate;
  if (flags.dropout.getNumOccurrences()) {
    line.dropout = flags.dropout.getValue();
    if (!(*line.dropout >= 0 && *line.dropout < 1))
      return usage("--dropout=" + numberText(*line.dropout) + " must be at least 0 and below 1");
    if (line.inference)
      return usage("--dropout gives dropouts a rate, and --inference takes them away; leave one of them out");
  }
  line.noWeights = flags.noWeights;
  line.followLinks = flags.followLinks;
  line.listParams = flags.listParams;
  line.explain = flags.explain.getNumOccurrences() > 0;
  line.explainAsJson = flags.explain == "json";
  if (!line.explainAsJson && !flags.explain.empty())
    return usage("--explain=" + Twine(flags.explain) + " is not known; use --explain for people, --explain=json for "
                                                       "programs");
  line.verify = flags.verify.getNumOccurrences() > 0;
  line.verifyInputs = flags.verify;
  line.allRemarks = flags.remarks == "all";
  if (!line.allRemarks && flags.remarks != "user")
    return usage("--remarks=" + Twine(flags.remarks) + " is not known; use user or all");
  if (flags.memory.getNumOccurrences()) {
    Expected<int64_t> bytes = parseByteSize(flags.memory);
    if (!bytes.ok())
      return bytes.status().at("--memory=" + flags.memory);
    line.options.memory = *bytes;
  }
  if (line.options.recompute == "auto" && line.options.memory == 0)
    return usage("--recompute=auto computes again what --memory has no room for; add --memory=SIZE, as in "
                 "--memory=24GiB, or use --recompute=full");
  for (const std::string &dim : flags.dims) {
    auto [name, text] = StringRef(dim).split('=');
    int64_t size = 0;
    if (name.empty() || text.getAsInteger(10, size) || size < 0)
      return usage("--dim=" + Twine(dim) + " is not NAME=N with N >= 0; for example --dim batch_size=2");
    auto [entry, isNew] = line.dims.try_emplace(name.str(), size);
    if (!isNew && entry->second != size)
      return usage("--dim " + name + " is given twice, as " + Twine(entry->second) + " and " + Twine(size));
  }
  for (const std::string &constant : flags.constants) {
    // Names of inputs may hold any sign, files as a rule no '='.
    auto [name, file] = StringRef(constant).rsplit('=');
    if (name.empty() || file.empty())
      return usage("--const=" + Twine(constant) + " is not NAME=FILE; for example --const sizes=sizes.npy");
    auto [entry, isNew] = line.constants.try_emplace(name.str(), file.str());
    if (!isNew && entry->second != file)
      return usage("--const " + name + " is given twice, as " + entry->second + " and " + file);
  }
  HPC_RETURN_IF_ERROR(checkTogether(flags, line));
  return line;
}

} // namespace hpc
