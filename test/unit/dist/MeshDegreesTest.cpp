// Degrees: what flags and a sidecar give, and what is left of the devices.
#include "compiler/Dialect/Dist/MeshDegrees.h"

#include "gtest/gtest.h"

namespace hpc::dist {
namespace {

std::string resolved(const GivenSizes &flags, std::optional<int64_t> devices, const GivenSizes &sidecar) {
  Expected<Mesh> degrees = resolveDegrees(flags, devices, sidecar, 64);
  return degrees.ok() ? toString(*degrees) : degrees.status().message();
}

TEST(MeshDegrees, AxesHaveSizeOneWhereNobodyGivesOne) {
  EXPECT_EQ(resolved({}, std::nullopt, {}), "mb=1:time, dp=1:data, pp=1:pipeline, cp=1:sequence, tp=1:tensor");
}
TEST(MeshDegrees, FlagsWinOverASidecar) {
  EXPECT_EQ(resolved({{"tp", 3}}, std::nullopt, {{"tp", 2}, {"pp", 4}}), "mb=1:time, dp=1:data, pp=4:pipeline, cp=1:sequence, tp=3:tensor");
}
TEST(MeshDegrees, DataTakesWhatIsLeftOfTheDevices) {
  EXPECT_EQ(resolved({{"tp", 2}, {"mb", 5}}, 12, {{"dp", 7}, {"pp", 3}}), "mb=5:time, dp=2:data, pp=3:pipeline, cp=1:sequence, tp=2:tensor");
}
TEST(MeshDegrees, DegreesHaveToMultiplyToTheDevices) {
  EXPECT_EQ(resolved({{"tp", 2}}, 9, {{"pp", 3}}), "--devices=9 is no multiple of tp * cp * pp = 6; use a multiple, or other degrees");
  EXPECT_EQ(resolved({{"tp", 2}, {"dp", 2}}, 6, {}), "tp * cp * pp * dp = 2 * 1 * 1 * 2 = 4 ranks, but --devices=6; leave out --dp or --devices");
}
TEST(MeshDegrees, APlanHasSoManyRanksAtMost) {
  EXPECT_EQ(resolved({{"tp", 65}}, std::nullopt, {}), "tp * cp * pp * dp = 65 * 1 * 1 * 1 = 65 ranks; a plan has at most 64");
}
TEST(MeshDegrees, TimeHasNoRanks) { EXPECT_EQ(ranksOf(degreesOf({{"mb", 8}, {"dp", 2}, {"pp", 3}, {"tp", 5}})), 30); }

} // namespace
} // namespace hpc::dist
