// The layout that the search chooses, against the other solvers and against the plan that the compiler makes of it.
#include "BruteForce.h"
#include "passes/Driver/Compilation.h"
#include "passes/Phases.h"
#include "passes/Search/Elimination.h"
#include "passes/Search/LayoutChoice.h"
#include "passes/Search/LayoutGraph.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

using namespace hpc;
using namespace hpc::search;

namespace {
struct ModelCase {
  std::string file;
  std::map<std::string, int64_t> dims;
};

TEST(LayoutChoice, Explore) {
  if (!getenv("HPC_EXPLORE"))
    return;
  std::string file = getenv("HPC_EXPLORE");
  MLIRContext context;
  DialectRegistry registry;
  registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  context.disableMultithreading();
  DiagnosticPrinter diagnostics(&context, false, [](DiagnosticSeverity, ErrorKind, const std::string &text) { std::puts(text.c_str()); });
  CompileRequest request;
  request.input = file;
  request.spec = "none";
  request.dims = {{"batch_size", 4}, {"sequence_length", 16}, {"batch", 4}};
  if (getenv("LOSS"))
    request.options.loss = getenv("LOSS");
  request.degrees = {{"tp", getenv("TP") ? atoi(getenv("TP")) : 2}};
  if (getenv("LAYOUT"))
    request.options.tpLayout = getenv("LAYOUT");
  request.options.degrees = dist::degreesOf(request.degrees);
  request.compileTo = request.options.trains() ? "train" : "raise";
  Compilation compilation(request, context, diagnostics);
  ASSERT_TRUE(compilation.load().ok());
  Status run = compilation.runPhases();
  ASSERT_TRUE(run.ok()) << run.message();
  auto start = std::chrono::steady_clock::now();
  Expected<LayoutChoice> choice = chooseLayout(*compilation.module, request.options, cost::Machine(), true);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  std::printf("%.2f s, bound %.9g, realized %.9g\n%s\n", seconds, choice->bound, choice->seconds, sidecarText(choice->sidecar).c_str());
  for (const WeightReason &reason : choice->reasons)
    std::puts(reason.text().c_str());
  for (const LayoutCollective &each : choice->collectives)
    std::printf("%d over %s %ld x %ld\n", int(each.kind), llvm::join(each.axes, ",").c_str(), long(each.bytes), long(each.times));
}
} // namespace
