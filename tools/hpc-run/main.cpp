// hpc-run: runs a plan on this machine, one thread per rank.
// A plan contains machine code: run only plans whose author you trust.
#include "runtime/backend/host/HostBackend.h"
#include "runtime/backend/null/Counts.h"
#include "runtime/base/File.h"
#include "runtime/base/Npz.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFile.h"
#include "tools/Arguments.h"
#include "tools/ShortenedFiles.h"
#include "tools/hpc-run/CountReport.h"
#include "tools/hpc-run/Inputs.h"
#include "tools/hpc-run/Report.h"

#include <chrono>
#include <cstdio>
#include <new>

using namespace hpc;

namespace {

struct Flags {
  std::string plan, output, weights, trace, backend = "host";
  std::vector<std::string> inputs;
  bool poison = false;
  int repeat = 0;
};

Status repeatRuns(Session &session, const std::vector<Array> &inputs, std::vector<Array> &outputs, int runs) {
  constexpr int warmUps = 2;
  std::vector<double> milliseconds;
  for (int i = -warmUps; i < runs; ++i) {
    auto start = std::chrono::steady_clock::now();
    HPC_RETURN_IF_ERROR(session.run(inputs, outputs));
    if (i >= 0)
      milliseconds.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::printf("%s\n", timingLine(std::move(milliseconds), session.peakBytesPerRank()).c_str());
  return Status::success();
}

Status writeOutputs(const Flags &flags, const plan::Plan &plan, std::vector<Array> outputs) {
  if (flags.output.empty()) {
    for (size_t i = 0; i < outputs.size() && flags.repeat == 0; ++i)
      std::printf("%s\n", describeOutput(plan.outputs[i].name, outputs[i]).c_str());
    return Status::success();
  }
  NamedArrays named;
  for (size_t i = 0; i < outputs.size(); ++i)
    named.emplace_back(plan.outputs[i].name, std::move(outputs[i]));
  return writeNpz(flags.output, named);
}

/// --backend=null: counts what one step does.
Status countPlan(const Flags &flags, const plan::Plan &plan) {
  if (!flags.inputs.empty() || !flags.output.empty() || !flags.weights.empty() || !flags.trace.empty() ||
      flags.poison || flags.repeat > 0)
    return Status::error(ErrorKind::Usage, "--backend=null counts one step without doing it: leave out --input, "
                                           "--output, --weights, --trace, --poison and --repeat");
  Expected<std::vector<null::Counts>> counts = null::countRanks(plan);
  if (!counts.ok())
    return counts.status();
  std::fputs(describeCounts(plan, *counts).c_str(), stdout);
  return Status::success();
}

Status runPlan(const Flags &flags) {
  Expected<plan::Plan> plan = plan::readPlan(flags.plan);
  if (!plan.ok())
    return plan.status();
  HPC_RETURN_IF_ERROR(plan::checkPlan(*plan));
  if (flags.backend == "null")
    return countPlan(flags, *plan);
  std::vector<std::string> notes;
  Expected<std::vector<Array>> inputs = readInputs(*plan, flags.inputs, notes);
  for (const std::string &note : notes)
    std::fprintf(stderr, "%s\n", note.c_str());
  if (!inputs.ok())
    return inputs.status();

  SessionOptions options;
  options.planFolder = folderOf(flags.plan);
  options.weightsReplacement = flags.weights;
  options.poison = flags.poison;
  options.trace = !flags.trace.empty();
  Expected<std::unique_ptr<Session>> session = Session::create(*plan, host::createHostBackend(), options);
  if (!session.ok())
    return session.status();

  std::vector<Array> outputs;
  HPC_RETURN_IF_ERROR(flags.repeat > 0 ? repeatRuns(**session, *inputs, outputs, flags.repeat)
                                       : (*session)->run(*inputs, outputs));
  if (!flags.trace.empty())
    HPC_RETURN_IF_ERROR(writeFile(flags.trace, (*session)->trace()->json()));
  return writeOutputs(flags, *plan, std::move(outputs));
}

} // namespace

int main(int argc, char **argv) {
  reportShortenedFiles("hpc-run");
  Flags flags;
  CLI::App app("Runs a plan that hpc-opt made, with one thread per rank. A plan contains machine code: run only plans\n"
               "whose author you trust.",
               "hpc-run");
  app.footer("For example\n  hpc-run gpt2.plan --input=inputs.npz --output=logits.npz");
  app.get_formatter()->column_width(38);
  app.add_option("plan", flags.plan, "the plan")->required()->type_name("FILE");
  app.add_option("--input", flags.inputs, "arrays named as the inputs, or one input; may be repeated")
      ->type_name("FILE.npz|NAME=FILE.npy")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--output", flags.output, "write the outputs to this .npz (default: print a summary)")
      ->type_name("FILE.npz");
  app.add_option("--weights", flags.weights,
                 "take the weights from here (default: from where the plan says): a .safetensors file with the same\n"
                 "tensors by name, or the ONNX file or external data (a file, or the folder of all) wherever it lies now")
      ->type_name("FILE|FOLDER");
  app.add_option("--trace", flags.trace, "write what each rank did when in the last run, for Perfetto")
      ->type_name("FILE.json");
  app.add_flag("--poison", flags.poison, "fill all memory that nothing has written with NaN");
  app.add_option("--repeat", flags.repeat,
                 "time N runs after 2 warm-ups (default: run once); prints one JSON line: min_ms,\n"
                 "median_ms, peak_bytes_per_rank, runs")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  app.add_option("--backend", flags.backend,
                 "host: this machine's CPU (the default); null: run nothing, need no weights and no inputs,\n"
                 "and print what each rank would compute, hold and move in one step")
      ->type_name("NAME")
      ->check(CLI::IsMember({"host", "null"}));
  if (std::optional<int> done = parseArguments(app, argc, argv))
    return *done;

  Status status;
  try {
    status = runPlan(flags);
  } catch (const std::bad_alloc &) {
    status = Status::error(ErrorKind::Capacity, "out of memory");
  }
  return status.ok() ? 0 : reportError("hpc-run", status);
}
