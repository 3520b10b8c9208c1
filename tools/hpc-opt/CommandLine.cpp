// hpc-opt's flags: from the table to a request. This file checks which flags go together, and handles the options of
// MLIR and LLVM, which only --help-hidden lists.
#include "tools/hpc-opt/CommandLine.h"

#include "passes/Driver/ByteSize.h"
#include "passes/Driver/InputKind.h"
#include "passes/Phases.h"
#include "runtime/base/NumberText.h"
#include "tools/OutputFiles.h"
#include "tools/flags/Arguments.h"

#include "llvm/Support/Allocator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

#include <cstdlib>
#include <limits>

namespace hpc {

namespace cl = llvm::cl;

static Status usage(const Twine &message) { return Status::error(ErrorKind::Usage, message.str()); }

/// The options of LLVM that are given beside ours.
static Status parseForeign(const std::vector<std::string> &words) {
  std::vector<const char *> arguments = {"hpc-opt"};
  for (const std::string &word : words)
    arguments.push_back(word.c_str());
  std::string errors;
  llvm::raw_string_ostream stream(errors);
  if (cl::ParseCommandLineOptions(int(arguments.size()), arguments.data(), "", &stream))
    return Status::success();
  StringRef text = StringRef(errors).trim().split('\n').first;
  text.consume_front("hpc-opt: ");
  return usage(Twine(text.empty() ? "a flag has a wrong value" : text.rtrim('!')) + "; see hpc-opt --help");
}

static Foreign foreignKind(StringRef word) {
  auto [name, value] = word.ltrim('-').split('=');
  auto option = cl::getRegisteredOptions().find(name);
  if (option == cl::getRegisteredOptions().end())
    return Foreign::Unknown;
  return word.contains('=') || option->second->getValueExpectedFlag() != cl::ValueRequired ? Foreign::Alone : Foreign::TakesNext;
}

/// How parameters are updated. A flag that the formula has no use for is a mistake.
static Status readOptimizer(const Arguments &arguments, Options &options) {
  options.optimizer = arguments.text("optimizer");
  bool isSgd = options.optimizer == "sgd";
  for (const char *flag : {"momentum", "nesterov"})
    if (arguments.has(flag) && !isSgd)
      return usage(Twine("--") + flag + " is of sgd; leave it out or use --optimizer=sgd");
  for (const char *flag : {"betas", "epsilon"})
    if (arguments.has(flag) && isSgd)
      return usage(Twine("--") + flag + " is of adam, adamw and lamb; leave it out or use --optimizer=adamw");
  for (auto [flag, field] : {std::pair("momentum", &options.momentum), std::pair("epsilon", &options.epsilon),
                             std::pair("weight-decay", &options.weightDecay), std::pair("clip", &options.clip)}) {
    *field = arguments.real(flag).value_or(0);
    const bool takesZero = field == &options.momentum || field == &options.weightDecay;
    // A number that f32 cannot hold would be 0 or infinite in the step.
    if (!(*field == 0 || (*field >= std::numeric_limits<float>::min() && *field <= std::numeric_limits<float>::max())))
      return usage(Twine("--") + flag + "=" + numberText(*field) + (takesZero ? " must be 0, or a number" : " must be a number") +
                   " that f32 holds, 1.2e-38 to 3.4e38");
  }
  if (options.momentum >= 1)
    return usage("--momentum=" + numberText(options.momentum) + " must be below 1: a gradient would count more with every step");
  if (arguments.has("clip") && options.clip == 0)
    return usage("--clip=0 would take every gradient away; leave it out for no limit");
  if (!isSgd && options.epsilon == 0)
    return usage("--epsilon=0 would divide 0 by 0 where a gradient is 0; leave it out for 1e-8");
  if (arguments.has("decay") && !arguments.has("weight-decay"))
    return usage("--decay says which parameters --weight-decay is for; add --weight-decay=0.01 or what you like");
  options.zero = *arguments.whole("zero");
  options.recompute = arguments.text("recompute");
  options.nesterov = arguments.has("nesterov");
  if (options.nesterov && options.momentum == 0)
    return usage("--nesterov is a kind of momentum; add --momentum=0.9 or what you like");
  options.decay = arguments.text("decay");
  if (StringRef decay = options.decay; decay.empty() || decay.starts_with(",") || decay.ends_with(","))
    return usage("--decay=" + decay + " must be all, matrices, or patterns of names with commas between");
  const std::string betas = arguments.text("betas");
  auto [first, second] = StringRef(betas).split(',');
  bool wrong = first.getAsDouble(options.beta1) || second.getAsDouble(options.beta2);
  if (wrong || !(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1))
    return usage("--betas=" + betas + " must be two numbers of at least 0 and below 1, as in --betas=0.9,0.95");
  return Status::success();
}

/// The trained parameters and the loss.
static Status readTraining(const Arguments &arguments, Options &options) {
  if (!arguments.has("train")) {
    for (const Flag *flag : arguments.given(group::training))
      if (flag->name != "evaluate") // which a program may take
        return usage(flag->dashed() + " is about a training step; add --train");
    return Status::success();
  }
  for (const std::string &pattern : arguments.all("freeze"))
    if (pattern.empty() || StringRef(pattern).starts_with(",") || StringRef(pattern).ends_with(","))
      return usage("--freeze=" + pattern + " must be a pattern of names, or some with commas between");
  options.loss = arguments.has("loss") ? arguments.text("loss") : "auto";
  StringRef loss = options.loss;
  auto [kind, output] = loss.split(':');
  bool isKnown = llvm::is_contained({"auto", "causal-lm", "classification", "mse", "output"}, kind) &&
                 output.empty() == (loss.find(':') == StringRef::npos);
  if (!isKnown)
    return usage("--loss=" + loss + " is unknown; use causal-lm, classification, mse or output, each also with :NAME of an output");
  options.freeze = llvm::join(arguments.all("freeze"), ",");
  return readOptimizer(arguments, options);
}

/// Flags that would do nothing beside another one, or for this input.
static Status checkTogether(const Arguments &arguments, CommandLine &line) {
  auto isOneOf = [](const Flag *flag, ArrayRef<StringRef> names) { return llvm::is_contained(names, flag->name); };
  for (const Flag *flag : arguments.given()) {
    const std::string name = flag->dashed();
    const bool isOfImport = isOneOf(flag, {"dim", "const", "no-weights", "follow-links", "inference"});
    if (line.listParams && !isOfImport && !isOneOf(flag, {"list-params", "remarks", "train", "dropout", "config"}))
      return usage("--list-params only lists what is in the model, so " + name +
                   " would do nothing; leave one of them out");
    if (!line.compileTo.empty() && isOneOf(flag, {"verify", "explain", "evaluate"}))
      return usage(name + " is about a plan, and --compile-to=" + line.compileTo +
                   " stops before there is one; leave one of them out");
    // A proof imports the model once more.
    bool isOfProof = line.verify && isOneOf(flag, {"no-weights", "follow-links"});
    if (isOfImport && !isOfProof && isInputKind(line.input, InputKind::Program))
      return usage(name + " is for an .onnx model, and " + line.input +
                   " is none; leave it out, or start from the model");
    bool isOfLayout = flag->group == group::layout || flag->group == group::training;
    line.givesOptions |= isOneOf(flag, {"dtype", "weights", "deterministic", "target"}) ||
                         (isOfLayout && !isOneOf(flag, {"spec", "onnx-configuration", "write-spec", "write-onnx-annotations", "dropout", "evaluate"}));
  }
  return Status::success();
}

/// The properties of the plan, besides its training step.
static Status readOptions(const Arguments &arguments, CommandLine &line) {
  Options &options = line.options;
  for (const dist::AxisKind &kind : dist::axisKinds())
    if (std::optional<int64_t> degree = arguments.whole(kind.flag))
      line.degrees[kind.name] = *degree;
  line.devices = arguments.whole("devices");
  options.batchDim = arguments.text("batch-dim");
  options.tpLayout = arguments.text("tp-layout");
  options.ppSplit = arguments.text("pp-split");
  options.ppChunks = *arguments.whole("pp-chunks");
  options.ppSchedule = arguments.text("pp-schedule");
  HPC_RETURN_IF_ERROR(readTraining(arguments, options));
  options.dtype = arguments.text("dtype");
  options.deterministic = arguments.has("deterministic");
  options.weights = arguments.text("weights");
  if (options.deterministic && options.dtype != "model")
    return usage("--deterministic makes sums of f32 exact, and --dtype=" + options.dtype + " rounds what is added; leave one of them out");
  if (options.weights == "int8" && options.trains())
    return usage("--weights=int8 is for inference: a step of training changes weights by less than an int8 can show; leave one of "
                 "--weights=int8 and --train out");
  if (options.weights == "int8" && options.deterministic)
    return usage("--deterministic makes sums of f32 exact, and --weights=int8 has other products; leave one of them out");
  options.target = arguments.text("target");
  if (Expected<std::string> targets = kernelTargets(options.target); !targets.ok())
    return usage("--target: " + targets.status().message());
  else if (arguments.has("verify") && !StringRef(*targets).contains(hostTarget))
    return usage("--target=" + options.target + " with --verify: the proof runs the plan on this machine's CPU; use "
                                                "--target=host,cuda");
  options.kernelCache = arguments.text("kernel-cache");
  if (const char *folder = std::getenv("HPC_KERNEL_CACHE"); folder && !arguments.has("kernel-cache"))
    options.kernelCache = folder;
  if (arguments.has("memory")) {
    Expected<int64_t> bytes = parseByteSize(arguments.text("memory"));
    if (!bytes.ok())
      return bytes.status().at("--memory=" + arguments.text("memory"));
    options.memory = *bytes;
  }
  if (options.recompute == "auto" && options.memory == 0)
    return usage("--recompute=auto computes again what --memory has no room for; add --memory=SIZE, as in "
                 "--memory=24GiB, or use --recompute=full");
  return Status::success();
}

static Status readDims(const Arguments &arguments, CommandLine &line) {
  for (const std::string &dim : arguments.all("dim")) {
    auto [name, text] = StringRef(dim).split('=');
    int64_t size = 0;
    if (name.empty() || text.getAsInteger(10, size) || size < 0)
      return usage("--dim=" + Twine(dim) + " is not NAME=N with N >= 0; for example --dim batch_size=2");
    auto [entry, isNew] = line.dims.try_emplace(name.str(), size);
    if (!isNew && entry->second != size)
      return usage("--dim " + name + " is given twice, as " + Twine(entry->second) + " and " + Twine(size));
  }
  for (const std::string &constant : arguments.all("const")) {
    // Names of inputs may hold any sign, files as a rule no '='.
    auto [name, file] = StringRef(constant).rsplit('=');
    if (name.empty() || file.empty())
      return usage("--const=" + Twine(constant) + " is not NAME=FILE; for example --const sizes=sizes.npy");
    auto [entry, isNew] = line.constants.try_emplace(name.str(), file.str());
    if (!isNew && entry->second != file)
      return usage("--const " + name + " is given twice, as " + entry->second + " and " + file);
  }
  return Status::success();
}

bool isCompilerFlag(StringRef argument) {
  std::string name = argument.ltrim('-').split('=').first.str();
  return argument.starts_with("-") && (name == "h" || (name.size() > 1 && Arguments(HpcOpt).knows(name))); // mlir-opt has an -o, too
}

Expected<CommandLine> parseCommandLine(int argc, char **argv) {
  registerMLIRContextCLOptions();
  registerPassManagerCLOptions();
  registerAsmPrinterCLOptions();
  registerDefaultTimingManagerCLOptions();
  Arguments arguments(HpcOpt);
  std::vector<std::string> names = {"import"};
  for (const Phase &phase : phases())
    names.push_back(phase.name.str());
  arguments.offer("compile-to", names);
  arguments.foreign = foreignKind;
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver(allocator);
  SmallVector<const char *> words(argv, argv + argc);
  cl::ExpandResponseFiles(saver, cl::TokenizeGNUCommandLine, words); // @FILE, as all tools of LLVM take
  Status status = arguments.parse(int(words.size()), words.data());
  if (!arguments.note.empty())
    llvm::errs() << "hpc-opt: note: " << arguments.note << "\n";
  HPC_RETURN_IF_ERROR(status);
  CommandLine line;
  line.help = arguments.page;
  if (!line.help.empty())
    return line;
  HPC_RETURN_IF_ERROR(parseForeign(arguments.foreignWords));

  // Texts that may not be empty.
  for (auto [flag, why] : {std::pair("onnx-configuration", "names none; leave it out for the model's first"),
                           {"pp-schedule", "names none; leave it out for what fits"},
                           {"kernel-cache", "names no folder; leave it out for that of HPC_KERNEL_CACHE, or to keep nothing"},
                           {"dump-phases", "names no folder; give it a name, or leave it out"}})
    if (arguments.has(flag) && arguments.text(flag).empty())
      return usage(Twine("--") + flag + "= " + why);
  line.spec = arguments.text("spec");
  line.configuration = arguments.text("onnx-configuration");
  line.writeSpec = arguments.text("write-spec");
  line.writeAnnotations = arguments.text("write-onnx-annotations");
  HPC_RETURN_IF_ERROR(readOptions(arguments, line));
  line.input = arguments.text("model");
  line.output = arguments.text("output");
  line.compileTo = arguments.text("compile-to");
  line.dumpPhases = arguments.text("dump-phases");
  bool isPrinted = line.output == "-" && !line.compileTo.empty();
  if (arguments.has("output") && !isPrinted)
    HPC_RETURN_IF_ERROR(checkOutputName({"-o '" + line.output + "'", line.output}, "a plan"));
  for (auto [flag, kind] : {std::pair("write-spec", "a sidecar"), std::pair("write-onnx-annotations", "a model")})
    if (arguments.has(flag))
      HPC_RETURN_IF_ERROR(checkOutputName({std::string("--") + flag + "=" + arguments.text(flag), arguments.text(flag)}, kind));
  line.inference = arguments.has("inference");
  line.evaluate = arguments.has("evaluate");
  line.dropout = arguments.real("dropout");
  if (line.dropout && !(*line.dropout >= 0 && *line.dropout < 1))
    return usage("--dropout=" + numberText(*line.dropout) + " must be at least 0 and below 1");
  if (line.dropout && line.inference)
    return usage("--dropout gives dropouts a rate, and --inference takes them away; leave one of them out");
  line.noWeights = arguments.has("no-weights");
  line.followLinks = arguments.has("follow-links");
  line.listParams = arguments.has("list-params");
  line.explain = arguments.has("explain");
  line.explainAsJson = arguments.text("explain") == "json";
  line.verify = arguments.has("verify");
  line.verifyInputs = arguments.text("verify");
  line.allRemarks = arguments.text("remarks") == "all";
  HPC_RETURN_IF_ERROR(readDims(arguments, line));
  HPC_RETURN_IF_ERROR(checkTogether(arguments, line));
  return line;
}

} // namespace hpc
