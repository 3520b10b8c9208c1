// Name, value, help, group, tools, other name. The axes of a plan are rows of dist::axisKinds.
#include "tools/flags/FlagTable.h"

#include "compiler/Dialect/Dist/MeshDegrees.h"
#include "runtime/base/Nearest.h"
#include "runtime/cost/MachineFile.h"
#include "runtime/plan/PlanStructure.h"
#include "runtime/train/RunState.h"

#include <charconv>
#include <cmath>

namespace hpc {

using Kind = FlagValue::Kind;
using Words = std::vector<std::string>;

static FlagValue onOff() { return {}; }
static FlagValue text(const char *name) {
  FlagValue value;
  value.kind = Kind::Text;
  value.name = name;
  return value;
}
static FlagValue file(const char *name = "FILE") {
  FlagValue value = text(name);
  value.isFile = true;
  return value;
}
static FlagValue folder() {
  FlagValue value = text("FOLDER");
  value.isFolder = true;
  return value;
}
static FlagValue oneOf(const Words &choices, const char *name = "") {
  FlagValue value = text(name).offers(choices);
  value.isOneOf = true;
  for (size_t i = 0; !*name && i < choices.size(); ++i)
    value.name += (i ? "|" : "") + choices[i];
  return value;
}
static FlagValue whole(const char *name, int64_t least, int64_t most) {
  FlagValue value = text(name);
  value.kind = Kind::Whole;
  value.least = least;
  value.most = most;
  return value;
}
static FlagValue real(const char *name) {
  FlagValue value = text(name);
  value.kind = Kind::Real;
  return value;
}
static FlagValue realFromZero(const char *name, bool zeroToo) {
  FlagValue value = real(name);
  value.above = 0;
  value.withBound = zeroToo;
  return value;
}

/// More would take the machine's processes and address space before they computed anything.
constexpr int64_t mostThreads = 1024;
/// A double counts them.
constexpr int64_t mostSteps = int64_t(1) << 53;

/// hpc-train has --micro-batch instead; rows of a decoding step are no sequences to cut.
static unsigned toolsOf(dist::AxisRole role) {
  return HpcOpt | (role == dist::AxisRole::Time ? 0u : HpcTrain) | (role == dist::AxisRole::Sequence ? 0u : HpcGenerate);
}

static std::vector<Flag> makeTable() {
  std::vector<Flag> table = {
      // hpc-generate
      {"model", file("MODEL").positional(), "An .onnx model of a decoder, or a plan of hpc-opt --generate", group::general, HpcGenerate},
      {"prompt", text("TEXT").repeated(), "Text that the model continues", group::texts, HpcGenerate},
      {"prompts", file("FILE.jsonl"), "File with a prompt a line: {\"prompt\": \"...\"} or {\"text\": \"...\"}; - is standard input", group::texts, HpcGenerate},
      {"ids", file("FILE.jsonl").optional(), "Prompts as ids, {\"ids\": [5, 9]} a line, and answers likewise, without a tokenizer (default: standard input)", group::texts, HpcGenerate},
      {"tokenizer", file("FOLDER|FILE"),
       "Tokenizer of the model: a folder with tokenizer.json, or vocab.json and merges.txt, or SentencePiece's tokenizer.model; its end token ends an answer",
       group::texts, HpcGenerate},
      {"output", file("FILE.jsonl"), "File with a line of JSON for each answer: prompt, text, ids, finish_reason, score of a beam (default: text is printed as it comes)",
       group::texts, HpcGenerate, "o"},
      {"end-token", whole("ID", 0, std::numeric_limits<int32_t>::max()).repeated(), "Token that ends an answer (default: the tokenizer's end token)", group::texts, HpcGenerate},
      {"stop", text("TEXT").repeated(), "Text that ends an answer, and is left out", group::texts, HpcGenerate},
      {"strategy", oneOf({"greedy", "sampling", "beam"}),
       "Strategy: greedy: the most likely token; sampling: one drawn at random; beam: the most likely of --beams answers (default: beam with --beams, sampling with "
       "--temperature, --top-k, --top-p or --seed, else greedy)",
       group::choice, HpcGenerate},
      {"max-new-tokens", whole("N", 1, std::numeric_limits<int32_t>::max()).orElse("128"), "Tokens of an answer at most", group::choice, HpcGenerate},
      {"min-length", whole("N", 0, std::numeric_limits<int32_t>::max()).orElse("0"), "Tokens of prompt and answer before an end token may come", group::choice, HpcGenerate},
      {"min-new-tokens", whole("N", 0, std::numeric_limits<int32_t>::max()).orElse("0"), "Tokens of an answer before an end token may come", group::choice, HpcGenerate},
      {"repetition-penalty", realFromZero("X", /*zeroToo=*/false).orElse("1"), "Above 1, tokens that prompt or answer have become less likely", group::choice, HpcGenerate},
      {"temperature", realFromZero("X", /*zeroToo=*/false).orElse("1"), "Logits are divided by it before one is drawn", group::choice, HpcGenerate},
      {"top-k", whole("N", 0, std::numeric_limits<int32_t>::max()).orElse("0"), "One of the N most likely tokens is drawn; 0: of all", group::choice, HpcGenerate},
      {"top-p", realFromZero("X", /*zeroToo=*/false).orElse("1"), "One of the most likely tokens that together have this probability is drawn", group::choice, HpcGenerate},
      {"seed", whole("N", 0, RunState::largestSeed).orElse("0"), "Seed of what is drawn, the same on every layout", group::choice, HpcGenerate},
      {"beams", whole("N", 2, 1024).orElse("4"), "Answers that a beam search follows at a time", group::choice, HpcGenerate},
      {"length-penalty", real("X").orElse("1"), "Power of an answer's length that divides its log probability", group::choice, HpcGenerate},
      {"early-stopping", oneOf({"no", "yes", "never"}).orElse("no"),
       "End of a beam search, once --beams answers have ended: yes: at once; no: when the best running one scores lower; never: when none can score higher",
       group::choice, HpcGenerate},
      {"num-return-sequences", whole("N", 1, 1024).orElse("1"), "Answers to each prompt", group::choice, HpcGenerate},
      {"batch", whole("N", 1, dist::maxDegree), "Rows that are computed together (default: one for each answer or beam, as far as 8 reach)", group::model, HpcGenerate},
      {"prefill-chunk", whole("N", 1, int64_t(1) << 32), "Positions of prompts that are computed together (default: 64, or all)", group::model, HpcGenerate},
      {"weights-type", oneOf({"float", "int8"}).orElse("float"), "Weights of products; int8 has a scale for each output channel", group::model, HpcGenerate},

      // hpc-opt
      {"model", file("MODEL").positional(), "An .onnx model, or a program in .mlir from --dump-phases", group::general, HpcOpt},
      {"output", file("PLAN"), "File of the plan; with --compile-to file of the program (default: none)", group::model, HpcOpt, "o"},
      {"dim", text("NAME=N").repeated(), "Size of a symbolic dim of the model, or of one dim of an input (x.2=N)", group::model, HpcOpt | HpcTrain | HpcGenerate},
      {"const", file("NAME=FILE").repeated(), "Input bound to the array of a .npz, .npy or .pb file; it may decide shapes", group::model, HpcOpt | HpcTrain | HpcGenerate},
      {"no-weights", onOff(), "No external data is read: the plan fits any weights of its shapes (hpc-run --weights)", group::model, HpcOpt},
      {"no-code", onOff(), "No kernel is compiled: a plan to explain and to simulate (hpc-run --backend=null), made much faster, that cannot run", group::model, HpcOpt},
      {"follow-links", onOff(), "External data may be links, as in the model cache of a hub", group::model, HpcOpt | HpcTrain | HpcGenerate},
      {"inference", onOff(), "Nodes exported in training mode (Dropout) compute as in inference, also with --train", group::model, HpcOpt | HpcTrain | HpcGenerate},
      {"dtype", oneOf({"model", "bf16", "fp16"}).orElse("model"), "Type of operands of products; all else stays f32", group::model, HpcOpt | HpcTrain | HpcGenerate},
      {"weights", oneOf({"float", "int8"}).orElse("float"), "Weights of products; int8 has a scale for each output channel", group::model, HpcOpt},
      {"deterministic", onOff(), "The same bits on every layout: sums are exact, in f64, which takes time and memory", group::model, HpcOpt | HpcTrain | HpcGenerate},
      {"target", text("TARGET").offers({"host", "cuda", "host,cuda"}).orElse("host"), "Device of the plan: host, cuda or host,cuda", group::model, HpcOpt},
      {"kernel-cache", folder(), "Folder that keeps machine code of kernels for later compilations (default: $HPC_KERNEL_CACHE, else none)", group::model, HpcOpt | HpcTrain | HpcGenerate},
      {"generate", onOff(), "A plan that continues texts: the entries prefill, decode and reorder, with caches of keys and values", group::model, HpcOpt},
      {"batch", whole("N", 1, 65536), "Rows of --generate (default: 1)", group::model, HpcOpt},
      {"max-length", whole("N", 1, 1 << 30), "Positions that a row of --generate has at most, prompt and answer", group::model, HpcOpt},
      {"prefill-chunk", whole("N", 1, 1 << 30), "Most positions of a prompt in a step of --generate; a divisor of --max-length is taken (default: 256)", group::model, HpcOpt},
      {"train", onOff(), "A training step: loss, gradients, update", group::training, HpcOpt},
      {"evaluate", onOff(), "A plan that can also be run for the loss alone, without dropout: the entry evaluate", group::training, HpcOpt},
      {"loss", text("LOSS").offers({"causal-lm", "classification", "mse", "output"}),
       "Loss: causal-lm, classification, mse or output[:NAME] (default: the model's own, else by rank)", group::training, HpcOpt | HpcTrain},
      {"freeze", text("PATTERN").repeated(), "Parameters that are not trained, by name", group::training, HpcOpt | HpcTrain},
      {"dropout", real("RATE"), "Rate of all dropouts of the model; 0: none (default: the model's own)", group::training, HpcOpt | HpcTrain},
      {"optimizer", oneOf({"sgd", "adam", "adamw", "lamb"}).orElse("adamw"), "Optimizer", group::training, HpcOpt | HpcTrain},
      {"momentum", real("X").orElse("0"), "Momentum of sgd", group::training, HpcOpt | HpcTrain},
      {"nesterov", onOff(), "Nesterov's momentum of sgd", group::training, HpcOpt | HpcTrain},
      {"betas", text("X,Y").orElse("0.9,0.999"), "Decay rates of the moments of adam, adamw, lamb", group::training, HpcOpt | HpcTrain},
      {"epsilon", real("X").orElse("1e-8"), "Epsilon of adam, adamw, lamb", group::training, HpcOpt | HpcTrain},
      {"weight-decay", real("X").orElse("0"), "Weight decay of the parameters that decay", group::training, HpcOpt | HpcTrain},
      {"decay", text("WHICH").offers({"all", "matrices"}).orElse("all"), "Parameters that decay: all, matrices, or patterns of names", group::training, HpcOpt | HpcTrain},
      {"zero", whole("LEVEL", 0, 3).orElse("0"), "ZeRO level: 1 and 2 cut the optimizer's states over dp, 3 parameters too", group::training, HpcOpt | HpcTrain},
      {"recompute", oneOf({"none", "attention", "full", "auto"}).orElse("none"), "Activations computed again; auto: to fit --memory", group::training, HpcOpt | HpcTrain},
      {"clip", real("NORM"), "Largest norm over all gradients; above it they are scaled (default: no limit)", group::training, HpcOpt | HpcTrain},
      {"spec", file(), "Sidecar with your annotations, or none (default: MODEL.shard.json)", group::layout, HpcOpt | HpcTrain | HpcGenerate},
      {"onnx-configuration", text("NAME"), "ONNX device configuration of the model (default: its first)", group::layout, HpcOpt | HpcTrain | HpcGenerate},
      {"write-spec", file(), "File for the chosen layout, as a sidecar that leads to the same plan", group::layout, HpcOpt},
      {"write-onnx-annotations", file(), "File for the model with the chosen layout as ONNX device configurations", group::layout, HpcOpt},
      {"devices", whole("N", 1, dist::maxDegree), "Number of ranks (default: tp * cp * pp * dp)", group::layout, HpcOpt | HpcTrain | HpcGenerate},
      {"auto", onOff(), "The fastest plan for --devices ranks, by simulation: degrees, layout, schedule, micro-batches, ZeRO and recomputation; what you give stays", group::layout, HpcOpt | HpcTrain},
      {"rank-layouts", whole("K", 1, 1000), "Table of the K fastest plans for --devices ranks; without --auto no plan is made", group::layout, HpcOpt},
      {"tp-layout", text("WHICH").orElse("1d"), "Arrangement of tp's ranks: 1d (Megatron's), 2d, 2.5d, 3d; with sizes as 2d:XxY, 2.5d:XxYxZ", group::layout, HpcOpt | HpcTrain | HpcGenerate},
      {"sp", onOff(), "Sequence parallelism: tp's ranks share each sequence between products; with --tp-layout=1d", group::layout, HpcOpt | HpcTrain},
      {"cp-mode", oneOf({"gather", "ring", "ulysses"}).orElse("gather"), "How attention meets the keys of cp's other ranks: gathered, block by block, or by an exchange of heads", group::layout, HpcOpt | HpcTrain},
      {"cp-balance", oneOf({"zigzag", "plain"}).orElse("zigzag"), "Rows of a rank of cp: zigzag (two intervals, equal work where attention is causal) or plain", group::layout, HpcOpt | HpcTrain},
      {"panels", onOff(), "Products with gathered operands take them panel by panel: less memory, the same bytes", group::layout, HpcOpt | HpcTrain | HpcGenerate},
      {"pp-split", text("HOW").offers({"uniform", "balanced"}).orElse("balanced"), "Layers of each stage: uniform, balanced, or a list: 1,2,1", group::layout, HpcOpt | HpcTrain | HpcGenerate},
      {"pp-chunks", whole("N", 1, 65536).orElse("1"), "Number of parts of the model that a stage owns", group::layout, HpcOpt | HpcTrain},
      {"pp-schedule", file("NAME").offers({"inference", "gpipe", "1f1b", "interleaved", "zb-h1"}),
       "inference, gpipe, 1f1b, interleaved, zb-h1 or ./FILE.txt (default: 1f1b in training)", group::layout, HpcOpt | HpcTrain, "schedule"},
      {"batch-dim", text("NAME"), "The inputs' batch dim (default: batch, else batch*, else dim 0)", group::layout, HpcOpt | HpcTrain | HpcGenerate},
      {"memory", text("SIZE"), "Memory limit of a rank on its device, as 24GiB (default: no limit)", group::layout, HpcOpt | HpcTrain | HpcGenerate},
      {"machine", file("NAME|FILE").offers(cost::shippedMachines()),
       "Machine whose speed, memory and links decide: a100-40g, a100-80g, h100, h200, v100-32g, or a file (default: the ratios of docs/heuristics.md)", group::layout, HpcOpt | HpcTrain | HpcGenerate},
      {"explain", oneOf({"json", "layouts"}).optional(), "Tables of collectives with their causes, memory, schedule, other layouts; =layouts also of a large model, =json for programs", group::report, HpcOpt | HpcTrain},
      {"json", onOff(), "The table of --rank-layouts as JSON", group::report, HpcOpt},
      {"verify", file("INPUTS.npz").optional(), "Runs the model and the plan, and compares (default: on made-up inputs)", group::report, HpcOpt | HpcTrain},
      {"list-params", onOff(), "List of the parameters only: names, aliases, shape, dtype, users", group::report, HpcOpt},
      {"remarks", oneOf({"user", "all"}).orElse("user"), "user: remarks to act on; all: also those of single passes", group::report, HpcOpt | HpcTrain | HpcGenerate},
      {"export", file("FILE.onnx|FOLDER"),
       "The model with the weights of --trained, and no plan: as .onnx, all else as it is; or a folder of Hugging Face, as from_pretrained opens it", group::trained, HpcOpt},
      {"trained", file("FILE|FOLDER"), "Weights of --export: a checkpoint of hpc-run or hpc-train, or safetensors", group::trained, HpcOpt},
      {"pretrained", folder(), "Folder of Hugging Face that the training began with: its tensors' names, config.json and tokenizer for --export=FOLDER", group::trained, HpcOpt},
      {"shard-size", text("SIZE").orElse("5GB"), "Bytes of tensors in a file of --export=FOLDER; more make several with an index", group::trained, HpcOpt},
      {"compile-to", oneOf({}, "PHASE"), "Phase after which the program is printed", group::phases, HpcOpt},
      {"dump-phases", folder(), "Folder for a numbered .mlir of each phase; each leads to the same plan", group::phases, HpcOpt},

      // hpc-run
      {"plan", file("PLAN").positional(), "A plan of hpc-opt", group::general, HpcRun | HpcPlan},
      {"input", file("FILE.npz|NAME=FILE.npy").repeated(), "Arrays named as the inputs, or one input", group::arrays, HpcRun},
      {"entry", text("NAME"), "Purpose of the run, where the plan has several entries (default: its first)", group::arrays, HpcRun},
      {"output", file("FILE.npz"), "File for the outputs (default: a summary is printed)", group::arrays, HpcRun},
      {"weights", file("FILE|FOLDER"),
       "Weights in place of those that the plan names: a safetensors file or its index, an ONNX file or an .npz with tensors of the same "
       "names, or a folder with one of them, as save_pretrained writes; external data without its ONNX file only where the plan's hashes prove it",
       group::arrays, HpcRun | HpcTrain | HpcGenerate},
      {"follow-links", onOff(), "External data of --weights=FILE.onnx may be links, as in the model cache of a hub", group::arrays, HpcRun},
      {"train", onOff(), "A plan of hpc-opt --train runs step after step", group::training, HpcRun},
      {"data", file("FILE[,FILE...]"),
       "Data: text, .txt or .jsonl, also .gz or .zst, with --tokenizer; or tokens: .npy, .bin of nanoGPT or llm.c, .idx of Megatron-LM; several by commas "
       "and patterns, with weights (a.jsonl=0.7,b/*.jsonl=0.3) or without; or an .npz with an array for each input, [batches, ...shape]",
       group::training, HpcRun | HpcTrain},
      {"tokenizer", file("FOLDER|FILE"),
       "Tokenizer of text: a folder with tokenizer.json, or vocab.json and merges.txt, or SentencePiece's tokenizer.model; documents are joined by its end token",
       group::data, HpcRun | HpcTrain},
      {"text-key", text("KEY").orElse("text"), "Key of the text in each line of a .jsonl", group::data, HpcRun | HpcTrain},
      {"skip-bad-lines", onOff(), "Lines of a .jsonl that cannot be used are counted and left out", group::data, HpcRun | HpcTrain},
      {"token-cache", folder(), "Folder of the tokens of text files (default: beside the text)", group::data, HpcRun | HpcTrain},
      {"pack", onOff(), "Documents are joined and cut into rows (the default)", group::data, HpcRun | HpcTrain},
      {"pad", onOff(), "A document is a row, cut off or padded; padding is hidden by attention_mask, where the model has it, and is no label", group::data, HpcRun | HpcTrain},
      {"train-padding", onOff(), "With --pad: padding is a label like other tokens", group::data, HpcRun | HpcTrain},
      {"pad-token", whole("ID", 0, std::numeric_limits<int32_t>::max()), "Token that --pad fills rows up with (default: the tokenizer's for padding, else its end token)",
       group::data, HpcRun | HpcTrain},
      {"shuffle", onOff(), "A new order of the rows each epoch, from --seed (the default of hpc-train)", group::data, HpcRun | HpcTrain},
      {"no-shuffle", onOff(), "Rows in the order of the files (the default of hpc-run)", group::data, HpcRun | HpcTrain},
      {"drop-last", onOff(), "Rows that fill no batch at the end of an epoch are left out; by default the next epoch's first rows go with them", group::data, HpcRun | HpcTrain},
      {"split", text("N,N,N"), "Shares of --data for training, validation and test, as 969,30,1; the second is what --evaluate would name", group::data, HpcRun | HpcTrain},
      {"bin-bits", oneOf({"16", "32"}), "Bits of a token in a .bin without a header (default: its content decides)", group::data, HpcRun | HpcTrain},
      {"evaluate", file(),
       "Held-out data, as --data: the loss of the weights on them, without dropout, with a plan of hpc-opt --train --evaluate; alone, or "
       "beside --train",
       group::training, HpcRun | HpcTrain, "valid"},
      {"seed", whole("N", 0, RunState::largestSeed),
       "Seed of all random numbers (dropout), the same on every layout (default: 0; with --load: that of the file)", group::training, HpcRun | HpcTrain},
      {"loss-scale", real("X"),
       "First loss scale of a plan in fp16, a power of two (default: 65536; with --load: that of the file); it is halved when gradients "
       "overflow, doubled after 1,000 good steps",
       group::training, HpcRun | HpcTrain},
      {"metrics", file("FILE.jsonl"),
       "File with a line of JSON for every step; with --load, after the lines of the steps before it, in place of later lines", group::training, HpcRun},
      {"save", file("FILE.safetensors|FOLDER"),
       "File for the model's weights at the end, as safetensors and from_pretrained read them (a folder, or a name that ends in /: its "
       "model.safetensors), and the optimizer's states beside them (.states)",
       group::training, HpcRun},
      {"load", file("FILE.safetensors|FOLDER"),
       "Checkpoint to go on from: a file of --save, a folder of --checkpoints, of which the newest whole one is taken, or one of its steps",
       group::training, HpcRun},
      {"checkpoints", folder(), "Folder for checkpoints, one in it for each saved step; SIGTERM and SIGINT then end the run with one", group::training, HpcRun},
      {"save-every", whole("N", 1, mostSteps), "Steps from one checkpoint to the next (default: after the last step)", group::steps, HpcRun | HpcTrain},
      {"keep", whole("N", 1, mostSteps).orElse("3"), "Number of checkpoints that stay, the newest", group::steps, HpcRun | HpcTrain},
      {"keep-every", whole("N", 1, mostSteps), "Checkpoints of steps that are a multiple of N stay, too", group::steps, HpcRun | HpcTrain},
      {"save-async", onOff(), "A thread writes checkpoints; steps wait for a copy in memory only", group::steps, HpcRun | HpcTrain},
      {"shard-size", text("SIZE").orElse("5GB"), "Largest file of a checkpoint's tensors", group::steps, HpcRun | HpcTrain},
      {"gradients", file("FILE.npz"), "File for the loss and all gradients of one step, by the model's names, instead of training", group::training, HpcRun},
      {"steps", whole("N", 1, mostSteps), "Steps in all, those before --load included", group::steps, HpcRun | HpcTrain},
      {"epochs", whole("N", 1, mostSteps), "In place of --steps: times that all data are used", group::steps, HpcRun | HpcTrain},
      {"eval-every", whole("N", 1, mostSteps), "Steps from one --evaluate to the next (default: after the last step)", group::steps, HpcRun | HpcTrain},
      {"eval-steps", whole("N", 1, mostSteps), "Batches of an evaluation at most, the first of the held-out data (default: all)", group::steps, HpcRun | HpcTrain},
      {"lr", real("X"), "Learning rate after the warm-up", group::steps, HpcRun | HpcTrain},
      {"lr-schedule", oneOf({"constant", "linear", "cosine", "polynomial"}).orElse("constant"), "Curve of the learning rate, to --min-lr at the end", group::steps, HpcRun | HpcTrain},
      {"lr-steps", whole("N", 1, mostSteps), "Step at which the curve ends (default: --steps)", group::steps, HpcRun | HpcTrain},
      {"min-lr", real("X"), "Learning rate at the end of the curve and after it (default: 0)", group::steps, HpcRun | HpcTrain},
      {"lr-by", oneOf({"step", "epoch"}).orElse("step"), "epoch: the rate changes between epochs only, and --warmup and --lr-steps count epochs", group::steps, HpcRun | HpcTrain},
      {"lr-power", real("X"), "Power of polynomial (default: 2)", group::steps, HpcRun | HpcTrain},
      {"warmup", whole("N", 0, mostSteps).orElse("0"), "Steps in which the rate rises to --lr", group::steps, HpcRun | HpcTrain},
      {"new-schedule", onOff(), "In a run that goes on: the learning rate may differ from the next one of the saved curve", group::steps, HpcRun | HpcTrain, "allow-lr-jump"},
      {"max-skipped", whole("N", 1, mostSteps).orElse("100"), "Number of steps in a row without a finite gradient norm that ends the run", group::steps, HpcRun | HpcTrain},
      {"log-every", whole("N", 1, mostSteps).orElse("1"), "Steps from one printed line, and one point of TensorBoard, to the next", group::lines, HpcRun | HpcTrain},
      {"log-format", oneOf({"bar", "step", "paddlefleetx"}),
       "Lines of a run: bar: one line that is drawn again; step: a line a step; paddlefleetx: that program's log line (default: bar on a terminal, else step, of "
       "hpc-train paddlefleetx)",
       group::lines, HpcRun | HpcTrain},
      {"quiet", onOff(), "Only notes and errors are printed", group::lines, HpcRun | HpcTrain},
      {"tensorboard", folder(), "Folder for curves, as TensorBoard reads them", group::lines, HpcRun},
      {"spike", realFromZero("X", /*zeroToo=*/true).orElse("6"),
       "Standard deviations above the mean of the last 100 losses, from which on a loss is told as a spike; 0: never", group::lines, HpcRun | HpcTrain},
      {"peak-tflops", realFromZero("X", /*zeroToo=*/false),
       "Peak of a rank's device for MFU, in 10^12 flops a second (default: hpc-train measures the host; none with --backend=cuda)", group::lines, HpcRun | HpcTrain},
      {"trace", file("FILE.json"), "File for what each rank did when in the last run, or does with --machine, for Perfetto", group::measures, HpcRun},
      {"machine", file("NAME|FILE").offers(cost::shippedMachines()),
       "With --backend=null: time of a step on that machine, predicted by simulation, with its critical path; --trace is its timeline. A name of a shipped machine, or a file", group::measures, HpcRun},
      {"json", onOff(), "The prediction of --machine as JSON", group::measures, HpcRun},
      {"profile", onOff(), "Time of the last run by kind of instruction, against this machine's speed", group::measures, HpcRun},
      {"poison", onOff(), "NaN in all memory that nothing has written", group::measures, HpcRun | HpcTrain | HpcGenerate},
      {"repeat", whole("N", 1, std::numeric_limits<int>::max()),
       "Number of timed runs after 2 warm-ups (default: one run, untimed); one JSON line: min_ms, median_ms, peak_bytes_per_rank, runs", group::measures, HpcRun},
      {"backend", oneOf({"host", "cuda", "null"}).orElse("host"),
       "host: this machine's CPU; cuda: its GPUs; null: nothing runs, needs weights or inputs, and what each rank would compute, hold and move "
       "in one step is printed",
       group::host, HpcRun},
      {"threads", whole("N", 1, mostThreads),
       "Threads of each rank, for the same bits with any number (default: the cores that this process may use, shared among its ranks; twice "
       "that where stages wait for each other)",
       group::host, HpcRun | HpcTrain | HpcGenerate},
      {"no-tiles", onOff(), "No product in the tile registers (AMX); f32 then is a chain of f32 multiply-adds everywhere", group::host, HpcRun | HpcTrain | HpcGenerate},
      {"ranks-per-gpu", whole("N", 1, plan::maxRanks).orElse("1"), "Number of ranks that share a GPU", group::gpus, HpcRun | HpcTrain | HpcGenerate},
      {"tf32", onOff(), "Tensor cores may round f32 operands of products to 10 bits of mantissa", group::gpus, HpcRun | HpcTrain | HpcGenerate},
      {"no-cuda-graph", onOff(),
       "Every kernel of every step is started by itself; by default a step is captured once, after two ordinary ones, where each rank has a GPU of its own",
       group::gpus, HpcRun | HpcTrain | HpcGenerate},
      {"no-cudnn", onOff(), "The plan's own kernels for attention, also where cuDNN has it", group::gpus, HpcRun | HpcTrain | HpcGenerate},
      {"epilogues", oneOf({"none", "faithful", "all"}).orElse("faithful"),
       "Work of cuBLASLt on products before it stores them, in place of kernels: faithful: bias, and GELU by tanh in 16 bits; all: that GELU in "
       "f32 too, by a tanh of unknown error, and relu, which makes 0 of NaN there",
       group::gpus, HpcRun | HpcTrain | HpcGenerate},
      {"sync-each-op", onOff(), "A wait after each instruction, so that an error on the GPU names it", group::gpus, HpcRun | HpcTrain | HpcGenerate},
      {"launch", oneOf({"auto", "none", "mpi", "env"}).orElse("auto"),
       "Starter of this process: none (alone, all ranks), mpi (mpirun, srun --mpi=pmix), env (torchrun; RANK, WORLD_SIZE, MASTER_ADDR, "
       "MASTER_PORT by hand; or the variables of Slurm, MPICH or MVAPICH and --rendezvous), auto: the innermost that the environment names",
       group::processes, HpcRun | HpcTrain | HpcCalibrate | HpcGenerate},
      {"rendezvous", text("HOST:PORT"),
       "Place where process 0 waits for the others; beyond one machine all need the same secret in the environment variable HPC_SECRET",
       group::processes, HpcRun | HpcTrain | HpcCalibrate | HpcGenerate, "master"},
      {"processes", whole("N", 1, mostThreads), "Number of processes that this one starts on this machine and waits for, as torchrun and mpirun do", group::processes, HpcRun | HpcTrain | HpcGenerate},
      {"nnodes", whole("N", 1, mostThreads).orElse("1"), "Number of machines on each of which --processes is given", group::processes, HpcRun | HpcTrain | HpcGenerate},
      {"node-rank", whole("N", 0, mostThreads - 1).orElse("0"), "Number of this machine, from 0", group::processes, HpcRun | HpcTrain | HpcGenerate},
      {"log-dir", folder(), "Folder for the output of each of --processes, as workerlog.RANK", group::processes, HpcRun | HpcTrain | HpcGenerate},
      {"max-restarts", whole("N", 0, mostThreads).orElse("0"),
       "Number of times that all of --processes (default: 1) start again, from the newest checkpoint, after one has died", group::processes, HpcRun | HpcTrain},
      {"peer-timeout", realFromZero("SECONDS", /*zeroToo=*/true).orElse("3.5"),
       "Seconds after which a process that is not heard of counts as lost; 0: never", group::processes, HpcRun | HpcTrain | HpcCalibrate | HpcGenerate},
      {"stall-timeout", realFromZero("SECONDS", /*zeroToo=*/true).orElse("30"),
       "Seconds without progress of any rank, beyond the longest such pause so far, after which a step fails; 0: never", group::processes, HpcRun | HpcTrain | HpcGenerate},
      {"deterministic", onOff(),
       "With several processes of several ranks each, or several GPUs: sums in the order of the ranks, for the same bits as in one process",
       group::processes, HpcRun},

      // hpc-train
      {"model", file("MODEL").positional(), "An .onnx model, or a training plan of hpc-opt", group::general, HpcTrain},
      {"run", folder(), "Folder of the run, which is made (default: runs/MODEL-DATE-TIME)", group::run, HpcTrain},
      {"resume", folder(), "Run to go on with, from its newest checkpoint; flags that are given count in place of its own", group::run, HpcTrain},
      {"global-batch", whole("N", 1, dist::maxDegree), "Sequences of a step, over all ranks (default: those of the model, or --micro-batch times dp)", group::run, HpcTrain},
      {"micro-batch", whole("N", 1, dist::maxDegree), "Sequences that a rank computes at once; more are added up (default: all of its own)", group::run, HpcTrain},
      {"seq", whole("N", 1, int64_t(1) << 32), "Length of a sequence, in tokens", group::run, HpcTrain},
      {"export", oneOf({"onnx", "hf", "none"}).orElse("onnx"),
       "The trained model at the end: onnx: trained.onnx in the folder of the run; hf: its folder hf/, which from_pretrained opens", group::run, HpcTrain},
      {"print-config", onOff(), "The flags of this call as a file for --config, and nothing else", group::run, HpcTrain},
      {"backend", oneOf({"host", "cuda"}).orElse("host"), "host: this machine's CPU; cuda: its GPUs", group::host, HpcTrain | HpcGenerate},

      // hpc-plan
      {"check", onOff(), "One line that begins with 'ok:', or the error; nothing else is printed", group::output, HpcPlan},
      {"json", onOff(), "The facts as JSON; runtime/plan/README.md describes the keys", group::output, HpcPlan},
      {"kernels", onOff(), "Needs of each generated kernel: bytes over bandwidth; for a device registers and shared memory", group::output, HpcPlan},
      {"ptx", onOff(), "The code for devices, as ptxas takes it", group::output, HpcPlan},
      {"bandwidth", realFromZero("GB/s", /*zeroToo=*/false).orElse("3350"), "Bandwidth that --kernels divides bytes by; 3350 is an H100's", group::output, HpcPlan},

      // hpc-calibrate
      {"output", file("FILE.json"), "File for the machine, as --machine=FILE takes it (default: it is printed)", group::output, HpcCalibrate, "o"},
      {"target", oneOf({"host", "cuda"}).orElse("host"), "What is measured: host: this machine's CPU; cuda: its GPUs", group::measures, HpcCalibrate},
      {"ranks", whole("N", 1, mostThreads),
       "Ranks of each process that measure at the same time (default: the cores that this process may use, at least 2; in several processes its share of them; with --target=cuda 1)",
       group::measures, HpcCalibrate},
      {"quick", onOff(), "Few sizes and rounds: a second, for numbers that are rough", group::measures, HpcCalibrate},

      // all
      {"config", file("FILE.toml"), "File of flags, as tp = 2; those of the command line win (docs/flags.md)", group::general, HpcOpt | HpcRun | HpcPlan | HpcCalibrate},
      {"config", file("FILE.toml"), "File of flags, as tp = 2; those of the command line win (docs/flags.md)", group::general, HpcTrain | HpcGenerate, "c"},
      {"help", oneOf({"text", "man", "bash"}).optional(), "This text; man: the manual page; bash: completion for the shell", group::general, AllTools, "h"},
  };
  auto layouts = std::find_if(table.begin(), table.end(), [](const Flag &flag) { return flag.name == "devices"; });
  for (const dist::AxisKind &kind : dist::axisKinds()) // each before the last: tp comes first
    layouts = table.insert(layouts, {kind.flag, whole("N", 1, dist::maxDegree), kind.help, group::layout,
                             toolsOf(kind.role)});
  return table;
}

std::vector<std::string> alternativesOf(const std::string &name) {
  for (const Words &all : {Words{"steps", "epochs"}, Words{"quiet", "log-format"}, Words{"shuffle", "no-shuffle"}, Words{"pack", "pad"}, Words{"prompt", "prompts", "ids"}})
    if (std::find(all.begin(), all.end(), name) != all.end()) {
      Words others;
      std::remove_copy(all.begin(), all.end(), std::back_inserter(others), name);
      return others;
    }
  return {};
}

std::vector<Flag> flagsOf(Tool tool) {
  static const std::vector<Flag> table = makeTable();
  std::vector<Flag> flags;
  for (const Flag &flag : table)
    if (flag.tools & tool)
      flags.push_back(flag);
  return flags;
}

const std::vector<ToolText> &toolTexts() {
  static const std::vector<ToolText> texts = {
      {HpcOpt,
       "hpc-opt",
       "compiles models",
       "From a serial ONNX model to a plan for many ranks, which hpc-run runs.",
       {"hpc-opt model.onnx [flags] -o model.plan     compile", "hpc-opt phase.mlir [flags] -o model.plan     go on from a file of --dump-phases",
        "hpc-opt file.mlir --hpc-some-pass ...        run single passes, as mlir-opt does"},
       {"hpc-opt gpt2.onnx --tp=2 --pp=2 --dim batch_size=2 --dim sequence_length=16 --verify --explain -o gpt2.plan"},
       {"model = \"gpt2.onnx\"", "tp = 2", "dim = [\"batch_size=2\", \"sequence_length=16\"]", "verify = true"},
       "--help-hidden lists the single passes and the options of MLIR and LLVM, --mlir-timing among them."},
      {HpcRun,
       "hpc-run",
       "runs plans",
       "Runs a plan that hpc-opt made, its ranks as threads: alone, or as one of the processes that mpirun, srun or torchrun has started. A plan "
       "contains machine code: run only plans whose author you trust.",
       {"hpc-run model.plan [flags]"},
       {"hpc-run gpt2.plan --input=inputs.npz --output=logits.npz", "mpirun -n 4 hpc-run gpt2.plan --input=inputs.npz --output=logits.npz",
        "torchrun --nproc-per-node=4 --no-python hpc-run gpt2.plan --input=inputs.npz --output=logits.npz",
        "RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 HPC_SECRET=... hpc-run gpt2.plan ..."},
       {"plan = \"gpt2.plan\"", "train = true", "data = \"tokens.bin\"", "steps = 1000", "lr = 1e-3"},
       ""},
      {HpcTrain,
       "hpc-train",
       "trains models",
       "From a serial ONNX model and text to a trained model: compiles the step, runs it on all ranks, logs, evaluates and saves. A run is a folder.",
       {"hpc-train model.onnx --data=FILE --steps=N --lr=X [flags]     begin a run", "hpc-train --resume=RUN [flags]                               go on with it",
        "hpc-train -c run.toml [flags]                                flags from a file"},
       {"hpc-train gpt2.onnx --data=corpus.jsonl --tokenizer=gpt2/ --seq=1024 --global-batch=64 --micro-batch=4 --tp=2 --pp=2 --dp=2 --steps=1000 --lr=1.5e-4 "
        "--warmup=100 --lr-schedule=cosine --clip=1.0 --run=runs/a"},
       {"model = \"gpt2.onnx\"", "data = \"corpus.jsonl\"", "tokenizer = \"gpt2/\"", "seq = 1024", "global-batch = 64", "micro-batch = 4", "steps = 1000", "lr = 1.5e-4"},
       ""},
      {HpcGenerate,
       "hpc-generate",
       "generates text",
       "Continues prompts by a decoder: an .onnx model, which it compiles into prefill and decoding with caches of keys and values, or a plan of hpc-opt --generate. Text appears as it comes; "
       "tokens a second are told at the end. A plan contains machine code: run only plans whose author you trust.",
       {"hpc-generate model.onnx --tokenizer=FOLDER --prompt=TEXT [flags]", "hpc-generate model.onnx --tokenizer=FOLDER --prompts=FILE.jsonl --output=FILE.jsonl [flags]",
        "hpc-generate model.plan --ids [flags]                                        ids in, ids out"},
       {"hpc-generate gpt2.onnx --weights=run/checkpoints/latest --tokenizer=gpt2/ --prompt='Once upon' --top-k=50 --top-p=0.75",
        "hpc-generate gpt2.onnx --tokenizer=gpt2/ --prompts=prompts.jsonl --output=answers.jsonl --tp=2 --beams=4"},
       {"model = \"gpt2.onnx\"", "tokenizer = \"gpt2/\"", "prompts = \"prompts.jsonl\"", "output = \"answers.jsonl\"", "top-k = 50", "tp = 2"},
       ""},
      {HpcPlan, "hpc-plan", "prints and checks plans", "Prints or checks a plan that hpc-opt wrote.", {"hpc-plan model.plan [flags]"},
       {"hpc-plan gpt2.plan --check"}, {"check = true"}, ""},
      {HpcCalibrate,
       "hpc-calibrate",
       "measures machines",
       "Measures what this machine computes, moves and sends in a second, as ranks of a plan find it when all of them work: less than a minute. Between processes, too, where mpirun, srun or torchrun "
       "starts several. The file is for --machine of the other tools; nothing else should run meanwhile.",
       {"hpc-calibrate [flags] -o machine.json"},
       {"hpc-calibrate -o machine.json", "mpirun -n 2 hpc-calibrate -o machine.json", "hpc-run gpt2.plan --backend=null --machine=machine.json"},
       {"output = \"machine.json\""},
       ""},
  };
  return texts;
}

const ToolText &textOf(Tool tool) {
  return *std::find_if(toolTexts().begin(), toolTexts().end(), [&](const ToolText &text) { return text.tool == tool; });
}

std::string Flag::fullHelp() const {
  std::string choices;
  if (value.isOneOf && value.name.find('|') == std::string::npos && !value.isOptional) // the name is not the list of them
    for (const std::string &choice : value.choices)
      choices += (choices.empty() ? ": " : ", ") + choice;
  return help + choices + (value.isRepeated ? "; may be repeated" : "") + (value.fallback.empty() ? "" : " (default: " + value.fallback + ")");
}

template <typename Number> static bool reads(const std::string &text, Number &number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string FlagValue::wrong(const std::string &text) const {
  if (kind == Kind::Switch)
    return text.empty() || text == "true" || text == "1" || text == "false" || text == "0" ? "" : "is neither true nor false";
  if (isOneOf && !(isOptional && text.empty()) && std::find(choices.begin(), choices.end(), text) == choices.end())
    return "is unknown; use " + anyOf(choices, "") + (isOptional ? ", or no value" : "");
  int64_t count = 0;
  if (kind == Kind::Whole && !(reads(text, count) && count >= least && count <= most))
    return "is not a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  double number = 0;
  if (kind != Kind::Real)
    return "";
  if (!reads(text, number))
    return "is not a number";
  const bool isInside = std::isinf(above) || (std::isfinite(number) && (number > above || (withBound && number == above)));
  return isInside ? "" : withBound ? "is not a number of 0 or more" : "is not a number above 0";
}

} // namespace hpc
