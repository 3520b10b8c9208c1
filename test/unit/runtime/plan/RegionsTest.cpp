// Which bytes of a buffer belong together, as the instructions use them.
#include "runtime/plan/Regions.h"

#include <gtest/gtest.h>

using namespace hpc::plan;

namespace {

Instruction copy(int32_t buffer, int64_t offset, int64_t bytes) {
  return {Copy{{9, 0}, {buffer, offset}, bytes}, "node"};
}
Instruction allReduce(int32_t buffer, int64_t offset, int64_t count, int32_t request) {
  Collective collective;
  collective.axes = {"tp"};
  collective.src = collective.dst = {buffer, offset};
  collective.count = count;
  collective.request = request;
  return {collective, "node"};
}
Regions regionsOf(const std::vector<Instruction> &instructions) {
  Plan plan;
  plan.axes = {{"tp", 2}};
  Regions regions;
  for (const Instruction &one : instructions)
    regions.add(one, accessesOf(plan, one));
  regions.finish();
  return regions;
}
std::string text(const Regions &regions) {
  std::string text;
  for (const Region &region : regions.all())
    if (region.buffer != 9) // what is copied from
      text += (text.empty() ? "" : " ") + std::to_string(region.buffer) + ":" + std::to_string(region.begin) + "-" +
              std::to_string(region.end);
  return text;
}

} // namespace

// Overlap makes one region, touching does not; buffers never mix.
TEST(Regions, OverlapsAreOne) {
  EXPECT_EQ(text(regionsOf({copy(0, 0, 8), copy(0, 8, 8), copy(1, 0, 16), copy(1, 4, 4), copy(1, 12, 8)})),
            "0:0-8 0:8-16 1:0-20");
  EXPECT_EQ(text(regionsOf({copy(0, 0, 0)})), "");
}

// A posted all-reduce in place takes its terms as they are; one that is not posted, or alone, is a use like others.
TEST(Regions, BucketsJoinNothing) {
  Regions regions = regionsOf({copy(0, 0, 12), copy(0, 64, 8), allReduce(0, 0, 18, 3)});
  EXPECT_EQ(text(regions), "0:0-12 0:64-72");
  EXPECT_EQ(text(regionsOf({copy(0, 0, 12), copy(0, 64, 8), allReduce(0, 0, 18, -1)})), "0:0-72");
  EXPECT_EQ(text(regionsOf({allReduce(0, 0, 18, 3), copy(1, 0, 4)})), "0:0-72 1:0-4");
  auto touched = [&](int64_t offset, int64_t bytes) {
    auto [first, last] = regions.of({{0, offset}, bytes});
    return std::to_string(first) + " " + std::to_string(last);
  };
  EXPECT_EQ(touched(0, 72), "0 2");
  EXPECT_EQ(touched(0, 12), "0 1");
  EXPECT_EQ(touched(64, 4), "1 2");
  EXPECT_EQ(touched(12, 52), "1 1"); // between
  EXPECT_EQ(touched(0, 0), "0 0");
}
