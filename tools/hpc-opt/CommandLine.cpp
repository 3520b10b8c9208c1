// The flags. They are made inside a function, since the .mlir mode registers mlir-opt's own, among them another -o.
#include "tools/hpc-opt/CommandLine.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/CommandLine.h"

namespace hpc {

namespace cl = llvm::cl;

namespace {
struct Flags {
  cl::OptionCategory category{"hpc-opt options"};
  cl::opt<std::string> input{cl::Positional, cl::desc("<model.onnx or phase.mlir>"), cl::Required, cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("Write the plan (or, with --compile-to, the IR) to this file"),
                              cl::value_desc("file"), cl::cat(category)};
  cl::opt<int64_t> tp{"tp", cl::desc("Degree of tensor parallelism"), cl::init(1), cl::cat(category)};
  cl::opt<int64_t> pp{"pp", cl::desc("Number of pipeline stages"), cl::init(1), cl::cat(category)};
  cl::opt<int64_t> dp{"dp", cl::desc("Degree of data parallelism (default: devices / (tp * pp))"), cl::init(0),
                      cl::cat(category)};
  cl::opt<int64_t> devices{"devices", cl::desc("Number of ranks (default: tp * pp * dp)"), cl::init(0),
                           cl::cat(category)};
  cl::opt<int64_t> microBatches{"micro-batches", cl::desc("Number of micro-batches that a batch is cut into"),
                                cl::init(1), cl::cat(category)};
  cl::opt<std::string> ppSplit{"pp-split", cl::desc("uniform, balanced (default), or the blocks of every stage: 1,2,1"),
                               cl::init("balanced"), cl::cat(category)};
  cl::opt<int64_t> ppChunks{"pp-chunks", cl::desc("Number of parts of the model that every stage owns (interleaved)"),
                            cl::init(1), cl::cat(category)};
  cl::opt<std::string> ppSchedule{
      "pp-schedule",
      cl::desc("inference, gpipe, 1f1b, interleaved, zb-h1, or a file: ./mine.txt (default: what fits the programs)"),
      cl::cat(category)};
  cl::opt<std::string> batchDim{"batch-dim", cl::desc("Name of the inputs' batch dim (default: batch*, else dim 0)"),
                                cl::cat(category)};
  cl::list<std::string> dims{"dim", cl::desc("Size of a symbolic dim"), cl::value_desc("name=N"), cl::cat(category)};
  cl::opt<std::string> compileTo{
      "compile-to",
      cl::desc("Stop after a phase and print: import, raise, annotate, propagate, partition, stage, kernels"),
      cl::value_desc("phase"), cl::cat(category)};
  cl::opt<std::string> dumpPhases{"dump-phases",
                                  cl::desc("Write numbered .mlir files, one a phase; each leads to the same plan"),
                                  cl::value_desc("folder"), cl::cat(category)};
  cl::opt<bool> inference{"inference",
                          cl::desc("Compile nodes that were exported in training mode (Dropout) for inference"),
                          cl::cat(category)};
  cl::opt<bool> noWeights{"no-weights", cl::desc("Do not read external data: the plan fits any weights of its shapes"),
                          cl::cat(category)};
  cl::opt<bool> listParams{"list-params", cl::desc("List parameters: names, aliases, shape, dtype, users"),
                           cl::cat(category)};
  cl::opt<bool> explain{"explain", cl::desc("One line a collective: what, bytes, why, and what would avoid it"),
                        cl::cat(category)};
  cl::opt<std::string> verify{
      "verify", cl::desc("Prove that the plan equals the serial model, on inputs of an .npz or made-up ones"),
      cl::value_desc("inputs.npz"), cl::ValueOptional, cl::cat(category)};
  cl::opt<int64_t> deviceMemory{"device-memory",
                                cl::desc("Bytes that a rank may take; a plan that takes more is refused"), cl::init(0),
                                cl::cat(category)};
};
} // namespace

static Status usage(const Twine &message) { return Status::error(ErrorKind::Usage, message.str()); }

/// dp follows from --devices, and all degrees must multiply to it.
static Status resolveDegrees(const Flags &flags, Options &options) {
  for (auto [name, value, least] :
       {std::tuple("tp", flags.tp.getValue(), int64_t(1)), std::tuple("pp", flags.pp.getValue(), int64_t(1)),
        std::tuple("pp-chunks", flags.ppChunks.getValue(), int64_t(1)),
        std::tuple("dp", flags.dp.getValue(), int64_t(flags.dp.getNumOccurrences() ? 1 : 0)),
        std::tuple("devices", flags.devices.getValue(), int64_t(flags.devices.getNumOccurrences() ? 1 : 0)),
        std::tuple("micro-batches", flags.microBatches.getValue(), int64_t(1))})
    if (value < least || value > 65536)
      return usage(Twine("--") + name + "=" + Twine(value) + " must be from 1 to 65536");
  options.tp = flags.tp;
  options.pp = flags.pp;
  options.dp = flags.dp ? int64_t(flags.dp) : 1;
  int64_t devices = flags.devices;
  if (devices && !flags.dp) {
    if (devices % (options.tp * options.pp))
      return usage("--devices=" + Twine(devices) + " is no multiple of tp * pp = " + Twine(options.tp * options.pp) +
                   "; use a multiple, or other degrees");
    options.dp = devices / (options.tp * options.pp);
  }
  if (devices && options.tp * options.pp * options.dp != devices)
    return usage("tp * pp * dp = " + Twine(options.tp) + " * " + Twine(options.pp) + " * " + Twine(options.dp) + " = " +
                 Twine(options.tp * options.pp * options.dp) + " ranks, but --devices=" + Twine(devices) +
                 "; leave out --dp or --devices");
  return Status::success();
}

Expected<CommandLine> parseCommandLine(int argc, char **argv) {
  static Flags flags; // llvm::cl keeps pointers to them, and lld visits all options later
  registerMLIRContextCLOptions();
  registerPassManagerCLOptions();
  registerAsmPrinterCLOptions();
  registerDefaultTimingManagerCLOptions();
  cl::ParseCommandLineOptions(argc, argv, "hpc-opt: from a serial ONNX model to a plan for many ranks\n");

  CommandLine line;
  HPC_RETURN_IF_ERROR(resolveDegrees(flags, line.options));
  line.options.microBatches = flags.microBatches;
  line.options.batchDim = flags.batchDim;
  line.options.ppSplit = flags.ppSplit;
  line.options.ppChunks = flags.ppChunks;
  line.options.ppSchedule = flags.ppSchedule;
  line.input = flags.input;
  line.output = flags.output;
  line.compileTo = flags.compileTo;
  line.dumpPhases = flags.dumpPhases;
  line.inference = flags.inference;
  line.noWeights = flags.noWeights;
  line.listParams = flags.listParams;
  line.explain = flags.explain;
  line.verify = flags.verify.getNumOccurrences() > 0;
  line.verifyInputs = flags.verify;
  line.deviceMemory = flags.deviceMemory;
  for (const std::string &dim : flags.dims) {
    auto [name, text] = StringRef(dim).split('=');
    int64_t size = 0;
    if (name.empty() || text.getAsInteger(10, size) || size < 0)
      return usage("--dim=" + Twine(dim) + " is not NAME=N with N >= 0; for example --dim batch_size=2");
    auto [entry, isNew] = line.dims.try_emplace(name.str(), size);
    if (!isNew && entry->second != size)
      return usage("--dim " + name + " is given twice, as " + Twine(entry->second) + " and " + Twine(size));
  }
  return line;
}

} // namespace hpc
