// hpc-plan: prints the instructions, memory and messages of every rank of a plan, or checks the plan without running
// it. The plan is checked in either case; a plan that fails is still printed, as far as it can be read at all.
#include "runtime/base/CountText.h"
#include "runtime/plan/CodeModules.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanPrinter.h"
#include "tools/ExitCode.h"
#include "tools/ShortenedFiles.h"
#include "tools/flags/Arguments.h"
#include "tools/hpc-plan/Kernels.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

using namespace hpc;
using namespace hpc::plan;

namespace {

int fail(const Status &status) { return reportError("hpc-plan", status); }

std::string summary(const Plan &plan, const PlanFacts &facts) {
  int64_t collectives = 0, transfers = 0, most = 0;
  for (const TrafficFacts &traffic : facts.collectives)
    collectives += traffic.runs;
  for (const TrafficFacts &traffic : facts.transfers)
    transfers += traffic.runs * traffic.groups;
  for (const MemoryFacts &memory : facts.memory)
    most = std::max(most, memory.total());
  char bubble[32];
  std::snprintf(bubble, sizeof(bubble), "%.1f%%", 100 * facts.timeline.bubble());
  return "ok: " + countText(plan.worldSize(), "rank") + " in " + countText(int64_t(plan.stages.size()), "stage") +
         ", " +
         (plan.entries.empty() ? countText(plan.microBatches, "micro-batch", "es") : "entries " + entryNames(plan)) + ", at most " + bytesText(most) + " a rank, " +
         countText(collectives, "collective") + " and " + countText(transfers, "transfer") + " a step, bubble " +
         bubble + "\n";
}

} // namespace

int main(int argc, char **argv) {
  reportShortenedFiles("hpc-plan");
  Arguments arguments(HpcPlan);
  if (Status status = arguments.parse(argc, argv); !status.ok())
    return fail(status);
  if (!arguments.page.empty()) {
    std::cout << arguments.page;
    return finish("hpc-plan");
  }
  if (!arguments.note.empty())
    std::cerr << "hpc-plan: note: " << arguments.note << "\n";
  const std::string path = arguments.text("plan");
  const bool check = arguments.has("check"), json = arguments.has("json"), kernels = arguments.has("kernels"), ptx = arguments.has("ptx");

  if (check + json + kernels + ptx > 1)
    return fail(Status::error(ErrorKind::Usage, "--check, --json, --kernels and --ptx print different things; give one of them"));

  if (arguments.has("bandwidth") && !kernels)
    return fail(Status::error(ErrorKind::Usage,
                              "--bandwidth is what --kernels divides bytes by; add --kernels, or leave it out"));

  Expected<Plan> plan = readPlan(path);
  if (!plan.ok())
    return fail(plan.status());
  Expected<PlanFacts> facts = analysePlan(*plan);
  Status status = facts.ok() ? Status::success() : facts.status().at(path);
  if (check && !status.ok())
    return fail(status);
  if (kernels) {
    Expected<std::string> table = kernelTable(*plan, *arguments.real("bandwidth"));
    if (!table.ok())
      return fail(table.status().at(path));
    std::cout << *table;
    return status.ok() ? finish("hpc-plan") : fail(status);
  }
  if (ptx) {
    const std::vector<const CodeModule *> modules = codeFor(*plan, "ptx");
    if (modules.empty())
      return fail(Status::error(ErrorKind::Usage, path + " has no code for devices; hpc-opt --target=host,cuda makes some"));
    for (const CodeModule *module : modules)
      std::cout << module->bytes;
    return finish("hpc-plan");
  }
  PlanFacts known = facts.ok() ? *facts : staticFacts(*plan);
  if (json)
    std::cout << printPlanJson(*plan, known);
  else if (check)
    std::cout << summary(*plan, known);
  else
    std::cout << printPlan(*plan, known);
  return status.ok() ? finish("hpc-plan") : fail(status);
}
