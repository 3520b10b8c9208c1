// Flags that make no sense together are errors here, before anything is read.
#include "tools/compiling/RequestFlags.h"

#include "runtime/base/ByteSize.h"
#include "runtime/base/NumberText.h"
#include "runtime/cost/MachineFile.h"

#include "llvm/ADT/StringExtras.h"

#include <cstdlib>
#include <limits>

namespace hpc {

static Status usage(const Twine &message) { return Status::error(ErrorKind::Usage, message.str()); }

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

static Status readDims(const Arguments &arguments, CompileRequest &request) {
  for (const std::string &dim : arguments.all("dim")) {
    auto [name, text] = StringRef(dim).split('=');
    int64_t size = 0;
    if (name.empty() || text.getAsInteger(10, size) || size < 0)
      return usage("--dim=" + Twine(dim) + " is not NAME=N with N >= 0; for example --dim batch_size=2");
    auto [entry, isNew] = request.dims.try_emplace(name.str(), size);
    if (!isNew && entry->second != size)
      return usage("--dim " + name + " is given twice, as " + Twine(entry->second) + " and " + Twine(size));
  }
  for (const std::string &constant : arguments.all("const")) {
    // Names of inputs may hold any sign, files as a rule no '='.
    auto [name, file] = StringRef(constant).rsplit('=');
    if (name.empty() || file.empty())
      return usage("--const=" + Twine(constant) + " is not NAME=FILE; for example --const sizes=sizes.npy");
    auto [entry, isNew] = request.constants.try_emplace(name.str(), file.str());
    if (!isNew && entry->second != file)
      return usage("--const " + name + " is given twice, as " + entry->second + " and " + file);
  }
  return Status::success();
}

Status readRequest(const Arguments &arguments, bool trains, CompileRequest &request) {
  Options &options = request.options;
  for (const dist::AxisKind &kind : dist::axisKinds())
    if (std::optional<int64_t> degree = arguments.whole(kind.flag))
      request.degrees[kind.name] = *degree;
  request.devices = arguments.whole("devices");
  for (const Flag *flag : arguments.given())
    request.given.insert(flag->name);
  options.batchDim = arguments.text("batch-dim");
  options.tpLayout = arguments.text("tp-layout");
  request.givesLayout = arguments.has("tp-layout");
  options.sp = arguments.has("sp");
  for (auto [flag, field] : {std::pair("cp-mode", &options.cpMode), {"cp-balance", &options.cpBalance}, {"pp-schedule", &options.ppSchedule}})
    if (arguments.knows(flag))
      *field = arguments.text(flag);
  options.panels = arguments.has("panels");
  if (arguments.has("explain") && arguments.text("explain") != "json")
    request.layouts = arguments.text("explain") == "layouts" ? CompileRequest::ComparesAll : CompileRequest::ComparesSmall;
  options.ppSplit = arguments.text("pp-split");
  options.ppChunks = arguments.whole("pp-chunks").value_or(1);
  for (auto [flag, why] : {std::pair("onnx-configuration", "names none; leave it out for the model's first"),
                           {"pp-schedule", "names none; leave it out for what fits"},
                           {"machine", "names none; leave it out, or give a name or a file"},
                           {"kernel-cache", "names no folder; leave it out for that of HPC_KERNEL_CACHE, or to keep nothing"}})
    if (arguments.has(flag) && arguments.text(flag).empty())
      return usage(Twine("--") + flag + "= " + why);
  request.spec = arguments.text("spec");
  request.configuration = arguments.text("onnx-configuration");
  if (trains)
    HPC_RETURN_IF_ERROR(readTraining(arguments, options));
  options.dtype = arguments.text("dtype");
  options.deterministic = arguments.has("deterministic");
  if (options.deterministic && options.dtype != "model")
    return usage("--deterministic makes sums of f32 exact, and --dtype=" + options.dtype + " rounds what is added; leave one of them out");
  options.kernelCache = arguments.text("kernel-cache");
  if (const char *folder = std::getenv("HPC_KERNEL_CACHE"); folder && !arguments.has("kernel-cache"))
    options.kernelCache = folder;
  if (arguments.has("memory")) {
    Expected<int64_t> bytes = parseByteSize(arguments.text("memory"));
    if (!bytes.ok())
      return bytes.status().at("--memory=" + arguments.text("memory"));
    options.memory = *bytes;
  }
  if (arguments.has("machine")) {
    Expected<cost::Machine> machine = cost::readMachine(arguments.text("machine"));
    if (!machine.ok())
      return machine.status().at("--machine");
    options.machine = cost::machineText(*machine);
  }
  if (options.recompute == "auto" && options.memory == 0)
    return usage("--recompute=auto computes again what --memory has no room for; add --memory=SIZE, as in "
                 "--memory=24GiB, or use --recompute=full");
  request.inference = arguments.has("inference");
  request.dropout = arguments.real("dropout");
  if (request.dropout && !(*request.dropout >= 0 && *request.dropout < 1))
    return usage("--dropout=" + numberText(*request.dropout) + " must be at least 0 and below 1");
  if (request.dropout && request.inference)
    return usage("--dropout gives dropouts a rate, and --inference takes them away; leave one of them out");
  request.followLinks = arguments.has("follow-links");
  request.verify = arguments.has("verify");
  request.verifyInputs = arguments.text("verify");
  return readDims(arguments, request);
}

} // namespace hpc
