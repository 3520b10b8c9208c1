// hpc-generate: from prompts to text, by a decoder that it compiles from an .onnx model, or by a plan. Process 0 has prompts, tokenizer and
// the choice of ids; the others take part in the steps.
#include "runtime/base/CountText.h"
#include "runtime/base/File.h"
#include "runtime/base/FileKind.h"
#include "runtime/base/FormattedText.h"
#include "runtime/base/Hash.h"
#include "runtime/generate/Continuations.h"
#include "runtime/generate/Loop.h"
#include "runtime/generate/PlanDecoder.h"
#include "runtime/generate/StopTexts.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/train/StopSignals.h"
#include "tools/ExitCode.h"
#include "tools/OutputFiles.h"
#include "tools/ShortenedFiles.h"
#include "tools/hpc-generate/Answers.h"
#include "tools/hpc-generate/GenerationPlan.h"
#include "tools/hpc-generate/Prompts.h"
#include "tools/hpc-generate/StrategyFlags.h"
#include "tools/running/OpenSession.h"
#include "tools/running/ParentProcess.h"
#include "tools/running/RunTogether.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>

using namespace hpc;

namespace {

struct Command {
  const Arguments &arguments;
  RunFlags flags;
  // Of process 0 alone:
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::vector<GivenPrompt> prompts;
  generate::GenerationOptions options;
  bool isClosed = false; ///< standard output, by its reader

  plan::Plan plan;

  explicit Command(const Arguments &arguments) : arguments(arguments), flags(readRunFlags(arguments)) {}

  std::string model() const { return arguments.text("model"); }
  std::string output() const { return arguments.text("output") == "-" ? "" : arguments.text("output"); }

  bool takesPlan() const {
    Expected<MappedFile> file = MappedFile::open(model());
    return file.ok() && fileKindOf(file->text()) == FileKind::Plan;
  }
  std::string planFolder() const { return takesPlan() ? folderOf(model()) : "."; }

  Status check() const {
    auto usage = [](const std::string &message) { return Status::error(ErrorKind::Usage, message); };
    HPC_RETURN_IF_ERROR(checkRunFlags(arguments, flags));
    if (arguments.has("output") && arguments.text("output").empty())
      return usage("--output= names no file; give it a name, - for standard output, or leave it out");
    if (arguments.has("ids") && arguments.has("tokenizer"))
      return usage("--ids takes and gives ids, and --tokenizer is for text; leave one of them out");
    if (!arguments.has("ids") && arguments.text("tokenizer").empty())
      return usage("there is no tokenizer; give --tokenizer=FOLDER, which save_pretrained wrote, or --ids for prompts of ids");
    const bool readsInput = arguments.text("prompts") == "-" || (arguments.has("ids") && (arguments.text("ids").empty() || arguments.text("ids") == "-"));
    if (startsProcesses(flags.start) && readsInput)
      return usage("prompts on standard input do not go with --processes, which starts processes without one; name a file");
    if (takesPlan())
      for (const Flag *flag : arguments.given())
        if (flag->group == group::layout || (flag->group == group::model && flag->name != "follow-links"))
          return usage(flag->dashed() + " shapes a plan, and " + model() + " is one already; leave it out, or give the .onnx model");
    return Status::success();
  }

  /// What is wrong before anything is computed.
  Status checkFiles() const {
    std::vector<NamedFile> read = {{"the model", model()}};
    for (const char *flag : {"prompts", "ids"})
      if (arguments.has(flag) && arguments.text(flag) != "-")
        read.push_back({std::string("--") + flag, arguments.text(flag)});
    const NamedFile written{"--output=" + output(), output()};
    HPC_RETURN_IF_ERROR(checkOutputFiles({written}, read));
    return checkDestination(written);
  }

  Status readTexts() {
    if (!arguments.has("ids")) {
      Expected<std::unique_ptr<text::Tokenizer>> opened = text::Tokenizer::open(arguments.text("tokenizer"));
      HPC_RETURN_IF_ERROR(opened.status().at("--tokenizer"));
      tokenizer = std::move(*opened);
    }
    Expected<generate::GenerationOptions> read = readStrategy(arguments, tokenizer.get());
    HPC_RETURN_IF_ERROR(read.status());
    options = std::move(*read);
    Expected<std::vector<GivenPrompt>> given = readPrompts(arguments);
    HPC_RETURN_IF_ERROR(given.status());
    prompts = std::move(*given);
    return tokenizer ? encodePrompts(*tokenizer, prompts) : Status::success();
  }

  const GivenPrompt &longest() const {
    return *std::max_element(prompts.begin(), prompts.end(), [](const GivenPrompt &a, const GivenPrompt &b) { return a.ids.size() < b.ids.size(); });
  }
  /// The last new id is computed by nobody.
  int64_t positions() const { return int64_t(longest().ids.size()) + options.maxNewTokens - 1; }

  std::string need() const {
    return longest().place + ": a prompt of " + countText(int64_t(longest().ids.size()), "token") + " and --max-new-tokens=" + std::to_string(options.maxNewTokens) +
           " need " + countText(positions(), "position");
  }

  GenerationSizes sizes() const {
    const bool isBeam = options.strategy == generate::Strategy::Beam;
    return {int64_t(prompts.size()) * options.rowsPerPrompt(), isBeam ? options.beams : 1, positions(), int64_t(longest().ids.size()), need()};
  }

  /// That prompts, answers and tokenizer fit the plan.
  Status checkShape(const generate::DecoderShape &shape) const {
    auto usage = [](const std::string &message) { return Status::error(ErrorKind::Usage, message); };
    if (tokenizer && tokenizer->size() > shape.vocabulary)
      return usage("--tokenizer=" + arguments.text("tokenizer") + " has " + countText(tokenizer->size(), "token") + ", and the model has logits of " +
                   std::to_string(shape.vocabulary) + "; give the tokenizer of this model");
    for (const GivenPrompt &prompt : prompts)
      for (int64_t id : prompt.ids)
        if (id >= shape.vocabulary)
          return usage(prompt.place + ": id " + std::to_string(id) + " is none of the model's, which are 0 to " + std::to_string(shape.vocabulary - 1) +
                       "; see whether the ids were made for another model");
    HPC_RETURN_IF_ERROR(options.check(shape.vocabulary));
    if (positions() > shape.maxLength)
      return usage(need() + ", and the plan has " + std::to_string(shape.maxLength) + "; shorten one of them, or make a plan with a larger --max-length");
    if (sizes().rowsOfOne > shape.batch)
      return usage("--beams=" + std::to_string(options.beams) + " needs as many rows, and the plan has a batch of " + std::to_string(shape.batch) +
                   "; give fewer, or make a plan with a larger --batch");
    return Status::success();
  }

  Status readPlan() {
    Expected<plan::Plan> read = plan::readPlan(model());
    HPC_RETURN_IF_ERROR(read.status());
    plan = std::move(*read);
    return Status::success();
  }

  /// Before the processes meet.
  Status before(Prepared &prepared) {
    if (takesPlan()) {
      HPC_RETURN_IF_ERROR(readPlan());
      prepared.worldSize = plan.worldSize();
    } else {
      Expected<int64_t> ranks = ranksOfGeneration(arguments);
      HPC_RETURN_IF_ERROR(ranks.status());
      prepared.worldSize = *ranks;
    }
    return Status::success();
  }

  /// Prompts and the plan: by this process, or by the first one for all.
  Status prepare(processes::Processes *processes) {
    const bool isHome = !processes || processes->process == 0;
    if (isHome) {
      HPC_RETURN_IF_ERROR(checkFiles());
      HPC_RETURN_IF_ERROR(readTexts());
    }
    if (takesPlan() && plan.stages.empty())
      HPC_RETURN_IF_ERROR(readPlan());
    if (!takesPlan()) {
      std::string bytes;
      if (isHome) {
        Expected<plan::Plan> made = makeGenerationPlan(arguments, sizes());
        if (processes && !made.ok() && made.status().message().empty()) // printed, but not by the others
          return Status::error(made.status().kind(), "the model cannot be compiled, for a reason that this process has printed");
        HPC_RETURN_IF_ERROR(made.status());
        plan = std::move(*made);
      }
      if (processes) {
        Expected<std::vector<std::string>> all = processes->control->exchange(isHome ? plan::serializePlan(plan) : "");
        HPC_RETURN_IF_ERROR(all.status());
        Expected<plan::Plan> sent = plan::parsePlan(all->front(), "the plan of process 0");
        HPC_RETURN_IF_ERROR(sent.status());
        plan = std::move(*sent);
      }
    }
    HPC_RETURN_IF_ERROR(plan::checkPlan(plan));
    Expected<generate::DecoderShape> shape = generate::PlanDecoder::shapeOf(plan);
    HPC_RETURN_IF_ERROR(shape.status().at(takesPlan() ? "'" + model() + "'" : "the plan"));
    return isHome ? checkShape(*shape) : Status::success();
  }

  generate::StopTest stopTest() const {
    if (!arguments.has("stop"))
      return {};
    auto decode = [this](const std::vector<int64_t> &ids) {
      std::string bytes;
      if (Expected<std::string> text = tokenizer->decode({ids.begin(), ids.end()}); text.ok())
        return *text;
      for (int64_t id : ids) // those of a vocabulary that is filled up name no token
        if (Expected<std::string> text = tokenizer->decode({int32_t(id)}); text.ok())
          bytes += *text;
      return bytes;
    };
    return [stops = generate::StopTexts(arguments.all("stop"), decode)](const std::vector<int64_t> &ids) { return stops.endWith(ids); };
  }

  /// The loop, in process 0.
  Status generateTexts(generate::PlanDecoder &decoder) {
    const generate::StopTest stops = stopTest();
    std::vector<generate::Task> tasks;
    std::vector<size_t> firstOf; ///< answer of each task
    for (size_t number = 0; number < prompts.size(); ++number) {
      const size_t first = number * size_t(options.returnSequences);
      std::vector<std::unique_ptr<generate::Continuation>> made = generate::makeContinuations(options, {int64_t(number), prompts[number].ids}, stops);
      for (size_t each = 0; each < made.size(); ++each) {
        tasks.push_back({prompts[number].ids, std::move(made[each])});
        firstOf.push_back(first + each);
      }
    }
    const bool asJson = arguments.has("ids") || arguments.has("output");
    Answers answers(prompts, {tokenizer.get(), arguments.all("stop"), options.eos, options.returnSequences, asJson, options.strategy == generate::Strategy::Beam,
                              output().empty()});
    Status failed;
    size_t finished = 0, partial = 0;
    generate::LoopHooks hooks;
    auto take = [&](const Status &status) {
      if (failed.ok())
        failed = status;
    };
    hooks.onId = [&](size_t task, int64_t id) { take(answers.add(firstOf[task], id)); };
    hooks.onDone = [&](size_t task) {
      size_t number = firstOf[task];
      for (const generate::Answer &answer : tasks[task].continuation->answers()) {
        take(answers.finish(number++, answer));
        ++(answer.reason == generate::FinishReason::Interrupted ? partial : finished);
      }
    };
    hooks.isInterrupted = [&] { return !failed.ok() || answers.outputError() != 0 || decoder.isInterrupted(); };
    Expected<generate::LoopTimes> times = generate::runLoop(decoder, tasks, hooks);
    const Status ended = decoder.finish();
    HPC_RETURN_IF_ERROR(times.status());
    HPC_RETURN_IF_ERROR(ended);
    HPC_RETURN_IF_ERROR(failed);
    answers.flush();
    isClosed = answers.outputError() == EPIPE;
    if (answers.outputError() != 0)
      return Status::success(); // finish() has the error of a full disk
    if (!output().empty())
      HPC_RETURN_IF_ERROR(writeFile(output(), answers.lines()));
    report(*times);
    if (int64_t ids = answers.unknownIds())
      printNote(countText(ids, "id") + " of the answers " + (ids == 1 ? "names" : "name") + " no token of --tokenizer, and " + (ids == 1 ? "has" : "have") + " no text");
    if (const size_t all = prompts.size() * size_t(options.returnSequences); finished < all && decoder.isInterrupted())
      printNote("a signal ended the run: of " + countText(int64_t(all), "answer") + ", " + std::to_string(finished) + (finished == 1 ? " is" : " are") + " whole, " +
                std::to_string(partial) + (partial == 1 ? " is" : " are") + " cut off, and the others are not there");
    return Status::success();
  }

  /// On standard error, beside the text.
  static void report(const generate::LoopTimes &times) {
    auto part = [](int64_t ids, double seconds) { return formattedText("%lld tokens in %.3g s, %.4g tokens/s", static_cast<long long>(ids), seconds, seconds > 0 ? double(ids) / seconds : 0); };
    std::fflush(stdout);
    std::fprintf(stderr, "prefill: %s\n", part(times.prefilled, times.prefillSeconds).c_str());
    if (times.decoded > 0)
      std::fprintf(stderr, "decoding: %s\n", part(times.decoded, times.decodeSeconds).c_str());
  }

  Status run(processes::Processes *processes) {
    Expected<std::unique_ptr<Session>> session = openSession(flags, plan, planFolder(), ranksOf(flags, plan, processes), /*traces=*/false, processes);
    HPC_RETURN_IF_ERROR(session.status());
    StopSignals signals;
    Expected<generate::PlanDecoder> decoder = generate::PlanDecoder::create(plan, **session, [&] { return signals.isStopRequested(); });
    HPC_RETURN_IF_ERROR(decoder.status());
    if (processes && processes->process != 0)
      return decoder->follow();
    return generateTexts(*decoder);
  }

  Status go(Status failed) {
    launch::Launch launch = launch::detectLaunch(flags.processes.launch, flags.processes.rendezvous, ::getenv);
    if (!arguments.note.empty() && launch.process == 0)
      printNote(arguments.note);
    if (failed.ok())
      failed = launch.status;
    if (launch.kind != launch::LaunchKind::None)
      return runTogether(
          launch, flags, failed, [&](int64_t, Prepared &prepared) { return before(prepared); },
          [&](processes::Processes &processes, Prepared &prepared) {
            HPC_RETURN_IF_ERROR(prepare(&processes));
            const std::string bytes = plan::serializePlan(plan);
            prepared.fingerprints.push_back({"plan", hashBytes(bytes.data(), int64_t(bytes.size())), "give all processes one file"});
            addWeightFingerprints(flags, plan, planFolder(), prepared.fingerprints);
            return Status::success();
          },
          [&](processes::Processes &processes) { return run(&processes); });
    HPC_RETURN_IF_ERROR(failed);
    HPC_RETURN_IF_ERROR(prepare(nullptr));
    return run(nullptr);
  }
};

} // namespace

int main(int argc, char **argv) {
  toolName() = "hpc-generate";
  reportShortenedFiles("hpc-generate");
  Arguments arguments(HpcGenerate);
  Status status = arguments.parse(argc, argv);
  if (!arguments.page.empty()) {
    std::fputs(arguments.page.c_str(), stdout);
    return finish("hpc-generate");
  }
  // After an error of the command line, backend and launcher still decide which processes have to receive it.
  Command command(arguments);
  if (status.ok())
    status = command.check();
  if (status.ok() && startsProcesses(command.flags.start)) {
    const std::vector<std::string> words(argv, argv + argc);
    return startProcesses({command.flags.start, words, [&]() -> Continuation { return {words, ""}; }});
  }
  // The reader of standard output may leave: then the loop ends, and with it all processes, and this one as if by the signal.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    status = command.go(status);
  } catch (const std::bad_alloc &) {
    status = outOfMemory();
  }
  if (status.ok() && command.isClosed) {
    if (hasParent()) // which would report the signal
      return 0;
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  if (!status.ok() && status.message().empty()) // it has been printed as a diagnostic
    return status.exitCode();
  return status.ok() ? finish("hpc-generate") : reportError("hpc-generate", status);
}
