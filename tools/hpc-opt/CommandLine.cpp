// hpc-opt's flags: from the table to a request. This file checks which flags go together, and handles the options of
// MLIR and LLVM, which only --help-hidden lists.
#include "tools/hpc-opt/CommandLine.h"

#include "passes/Driver/InputKind.h"
#include "passes/Phases.h"
#include "runtime/base/ByteSize.h"
#include "tools/OutputFiles.h"
#include "tools/compiling/RequestFlags.h"
#include "tools/compiling/SearchFlags.h"

#include "llvm/Support/Allocator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

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

/// The options of a plan, with those of hpc-opt alone.
static Status readOptions(const Arguments &arguments, CommandLine &line) {
  Options &options = line.options;
  if (!arguments.has("train"))
    for (const Flag *flag : arguments.given(group::training))
      if (flag->name != "evaluate") // which a program may take
        return usage(flag->dashed() + " is about a training step; add --train");
  HPC_RETURN_IF_ERROR(readRequest(arguments, arguments.has("train"), line));
  options.weights = arguments.text("weights");
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
  return Status::success();
}

/// Sizes of a plan for generation, and what it cannot be beside.
static Status readGeneration(const Arguments &arguments, CommandLine &line) {
  for (const char *flag : {"batch", "max-length", "prefill-chunk"})
    if (arguments.has(flag) && !arguments.has("generate"))
      return usage(Twine("--") + flag + " is about a plan that continues texts; add --generate");
  if (!arguments.has("generate"))
    return Status::success();
  for (auto [flag, why] : {std::pair("train", "a step of training has whole sequences"),
                           {"cp", "a step of generation has few positions, which no axis cuts"},
                           {"auto", "plans are compared by a step of whole sequences"},
                           {"rank-layouts", "plans are compared by a step of whole sequences"}})
    if (arguments.has(flag))
      return usage(Twine("--") + flag + " does not go with --generate: " + why + "; leave one of them out");
  if (!arguments.has("max-length"))
    return usage("--generate needs --max-length=N, the positions that a row has at most: those of the prompt and of the answer");
  if (!isInputKind(line.input, InputKind::Model))
    return usage("--generate derives its steps from an .onnx model, and " + line.input + " is none; give the model");
  line.options.maxLength = *arguments.whole("max-length");
  line.batch = arguments.whole("batch").value_or(0);
  line.prefillChunk = arguments.whole("prefill-chunk").value_or(0);
  if (line.prefillChunk > line.options.maxLength)
    return usage("--prefill-chunk=" + Twine(line.prefillChunk) + " is more than the " + Twine(line.options.maxLength) + " positions of --max-length; give at most that");
  return Status::success();
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
    if (line.verify && isOneOf(flag, {"no-code"}))
      return usage("--verify runs the plan, and one of --no-code cannot run; leave one of them out");
    if (!line.compileTo.empty() && isOneOf(flag, {"verify", "explain", "evaluate", "no-code"}))
      return usage(name + " is about a plan, and --compile-to=" + line.compileTo +
                   " stops before there is one; leave one of them out");
    // A proof imports the model once more.
    bool isOfProof = line.verify && isOneOf(flag, {"no-weights", "follow-links"});
    if (isOfImport && !isOfProof && isInputKind(line.input, InputKind::Program))
      return usage(name + " is for an .onnx model, and " + line.input +
                   " is none; leave it out, or start from the model");
    if (line.ranksAlone && (isOneOf(flag, {"output", "write-spec", "write-onnx-annotations", "dump-phases", "compile-to", "verify", "explain", "evaluate", "no-code"})))
      return usage("--rank-layouts lists plans and makes none, so " + name + " would do nothing; add --auto, or leave it out");
    bool isOfLayout = flag->group == group::layout || flag->group == group::training;
    line.givesOptions |= isOneOf(flag, {"dtype", "weights", "deterministic", "target"}) ||
                         (isOfLayout && !isOneOf(flag, {"spec", "onnx-configuration", "auto", "rank-layouts", "write-spec", "write-onnx-annotations", "dropout", "evaluate"}));
  }
  return Status::success();
}

/// An export reads the model and weights, and nothing else.
static Status readExport(const Arguments &arguments, CommandLine &line) {
  for (const char *flag : {"trained", "pretrained", "shard-size"})
    if (arguments.has(flag) && !arguments.has("export"))
      return usage(Twine("--") + flag + " is about --export, which is not given; add --export=trained.onnx, or a folder");
  if (!arguments.has("export"))
    return Status::success();
  line.exported = arguments.text("export");
  line.trained = arguments.text("trained");
  line.pretrained = arguments.text("pretrained");
  const std::string flag = "--export=" + line.exported;
  HPC_RETURN_IF_ERROR(checkOutputName({flag, line.exported}, "a model"));
  if (line.trained.empty())
    return usage(flag + " needs weights; add --trained=FILE or FOLDER, a checkpoint of the model");
  if (!isInputKind(line.input, InputKind::Model))
    return usage(flag + " writes an .onnx model anew, and " + line.input + " is none; give the model that was trained");
  for (const char *ofFolder : {"pretrained", "shard-size"})
    if (arguments.has(ofFolder) && StringRef(line.exported).ends_with(".onnx"))
      return usage(Twine("--") + ofFolder + " is about a folder of Hugging Face, and " + flag + " is a file of ONNX; leave --" + ofFolder + " out, or name a folder");
  Expected<int64_t> bytes = parseByteSize(arguments.text("shard-size"));
  if (!bytes.ok())
    return bytes.status().at("--shard-size=" + arguments.text("shard-size"));
  line.shardBytes = *bytes;
  for (const Flag *other : arguments.given())
    if (other->group != group::trained && !llvm::is_contained({"model", "follow-links", "config"}, other->name))
      return usage(flag + " makes no plan, so " + other->dashed() + " would do nothing; leave one of them out");
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

  if (arguments.has("dump-phases") && arguments.text("dump-phases").empty())
    return usage("--dump-phases= names no folder; give it a name, or leave it out");
  line.input = arguments.text("model");
  HPC_RETURN_IF_ERROR(readExport(arguments, line));
  line.writeSpec = arguments.text("write-spec");
  line.writeAnnotations = arguments.text("write-onnx-annotations");
  HPC_RETURN_IF_ERROR(readOptions(arguments, line));
  HPC_RETURN_IF_ERROR(readGeneration(arguments, line));
  line.output = arguments.text("output");
  line.compileTo = arguments.text("compile-to");
  line.dumpPhases = arguments.text("dump-phases");
  bool isPrinted = line.output == "-" && !line.compileTo.empty();
  if (arguments.has("output") && !isPrinted)
    HPC_RETURN_IF_ERROR(checkOutputName({"-o '" + line.output + "'", line.output}, "a plan"));
  for (auto [flag, kind] : {std::pair("write-spec", "a sidecar"), std::pair("write-onnx-annotations", "a model")})
    if (arguments.has(flag))
      HPC_RETURN_IF_ERROR(checkOutputName({std::string("--") + flag + "=" + arguments.text(flag), arguments.text(flag)}, kind));
  line.evaluate = arguments.has("evaluate");
  line.noWeights = arguments.has("no-weights");
  line.options.withoutCode = arguments.has("no-code");
  line.listParams = arguments.has("list-params");
  line.explain = arguments.has("explain");
  line.explainAsJson = arguments.text("explain") == "json";
  line.allRemarks = arguments.text("remarks") == "all";
  line.ranksAlone = arguments.has("rank-layouts") && !arguments.has("auto");
  line.answersAsJson = arguments.has("json");
  if (line.answersAsJson && !arguments.has("rank-layouts"))
    return usage("--json prints the table of --rank-layouts as JSON; add --rank-layouts=10, or leave it out");
  HPC_RETURN_IF_ERROR(checkTogether(arguments, line));
  if (searchesPlan(arguments)) {
    Expected<search::Question> question = readQuestion(arguments, line);
    HPC_RETURN_IF_ERROR(question.status());
    line.question = std::move(*question);
  }
  return line;
}

} // namespace hpc
