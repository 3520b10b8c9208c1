// A plan that somebody forged behind its hash, all the way through a run. Its machine code is left out: whoever may
// change that may do anything.
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFile.h"
#include "test/unit/runtime/core/TinyPlan.h"

#include <gtest/gtest.h>

using namespace hpc;

namespace {

enum Outcome { Refused, Failed, Ran };

Outcome outcomeOf(const std::string &body, const std::string &folder, const std::vector<Array> &inputs) {
  Expected<plan::Plan> plan = plan::parsePlan(plan::sealEnvelope(body), "forged.plan");
  if (!plan.ok())
    return plan.status().kind() == ErrorKind::Plan ? Refused : throw std::runtime_error(plan.status().text());
  if (Status checked = plan::checkPlan(*plan); !checked.ok())
    return Refused;
  SessionOptions options;
  options.planFolder = folder;
  Expected<std::unique_ptr<Session>> session = Session::create(*plan, host::createHostBackend(), options);
  Status status = session.status();
  if (session.ok()) {
    Expected<std::vector<Array>> outputs = (*session)->run(inputs);
    if (outputs.ok())
      return Ran;
    status = outputs.status();
  }
  if (status.kind() == ErrorKind::Internal)
    throw std::runtime_error(status.text());
  return Failed;
}

/// Every byte changed once: the reader or the check refuses it, or the run ends, in success or an error that blames the
/// plan, its files or its inputs. No crash, no deadlock, no write outside a buffer (the address sanitizer sees that).
TEST(ForgedPlan, EveryFlippedByteIsRefusedOrRunsToAnEnd) {
  TinyPlan tiny;
  tiny.plan.modules.clear();
  for (plan::Stage &stage : tiny.plan.stages)
    for (plan::Program &program : stage.programs)
      program.instructions.erase(std::remove_if(program.instructions.begin(), program.instructions.end(),
                                                [](const plan::Instruction &instruction) {
                                                  return std::holds_alternative<plan::Kernel>(instruction.action);
                                                }),
                                 program.instructions.end());
  Expected<std::string> body = plan::openEnvelope(plan::serializePlan(tiny.plan), "tiny.plan");
  ASSERT_TRUE(body.ok());
  std::vector<Array> inputs = {Array::zeros(DType::F32, {4, 6})};
  ASSERT_EQ(outcomeOf(*body, tiny.folder.path, inputs), Ran);
  int counts[3] = {};
  for (size_t at = 0; at < body->size(); ++at) {
    SCOPED_TRACE("byte " + std::to_string(at));
    std::string forged = *body;
    constexpr int flips[] = {0x01, 0x02, 0x04, 0x10, 0x40, 0x80, 0xff};
    forged[at] = char(forged[at] ^ flips[at % std::size(flips)]);
    ++counts[outcomeOf(forged, tiny.folder.path, inputs)];
  }
  // All three happen: a size contradicts another, a file's name is no file's, a name means nothing.
  EXPECT_GT(counts[Refused], 100);
  EXPECT_GT(counts[Failed], 0);
  EXPECT_GT(counts[Ran], 10);
}

} // namespace
