// Seconds of collectives, worked out by hand from the formulas of Thakur et al. 2005 and of NCCL's src/graph/tuning.cc.
#include "runtime/cost/CollectiveTime.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace hpc;
using namespace hpc::cost;
using plan::CollectiveKind;

static std::vector<int64_t> firstRanks(int64_t count) {
  std::vector<int64_t> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Hosts of 8 A100 with a NIC of 200 Gb/s each; the numbers of NCCL: Simple, LL128, LL.
static Machine a100() {
  Machine machine;
  machine.ranksPerHost = 8;
  machine.links = {{8, 3.4e-6, 240e9, 8.4e-6, 4.0e-6, {{1.9e-6, 220.8e9, 14e-6, 1.25e-6}, {0.6e-6, 87.7e9, 6.6e-6}}},
                   {0, 14e-6, 23.5e9, 8.4e-6, 0, {{4e-6, 21.62e9, 14e-6, 8.5e-6}, {2.7e-6, 11.75e9, 6.6e-6, 5e-6}}}};
  return machine;
}

/// One protocol, without a start: a step takes a second, a byte inside of a host too, and one between hosts ten.
static Machine plain(int64_t ranksPerHost) {
  Machine machine;
  machine.ranksPerHost = ranksPerHost;
  machine.links = {{ranksPerHost, 1, 1}, {0, 1, 0.1}};
  return machine;
}

static double secondsOf(const Machine &machine, const std::vector<int64_t> &ranks, CollectiveKind kind, double bytes) {
  return collectiveSeconds(machine, shapeOf(machine, ranks), kind, bytes);
}

// ---- where a group lies -------------------------------------------------------------------------

static std::string textOf(const GroupShape &shape) {
  std::string text = std::to_string(shape.ranks) + ":";
  for (const GroupShape::Level &level : shape.levels)
    text += " link " + std::to_string(level.link) + " joins " + std::to_string(level.blocks) + " of " + std::to_string(level.width) + ", " + std::to_string(level.hops) + " hops;";
  return text;
}

TEST(CollectiveTime, TheShapeOfAGroup) {
  const Machine machine = a100();
  EXPECT_EQ(textOf(shapeOf(machine, firstRanks(8))), "8: link 0 joins 8 of 1, 7 hops;");
  EXPECT_EQ(textOf(shapeOf(machine, firstRanks(32))), "32: link 0 joins 8 of 1, 28 hops; link 1 joins 4 of 8, 3 hops;");
  EXPECT_EQ(textOf(shapeOf(machine, {0, 8, 16})), "3: link 1 joins 3 of 1, 2 hops;");
  EXPECT_EQ(textOf(shapeOf(machine, {6, 7, 8})), "3: link 0 joins 2 of 1, 1 hops; link 1 joins 2 of 1, 1 hops;");
  EXPECT_EQ(textOf(shapeOf(machine, {5})), "1:");
}

// dp * tp = 4 * 2 ranks of a stage that begins at rank 8, on hosts of 4: dp's group of coordinate 1 has ranks 9, 11 and 13, 15.
TEST(CollectiveTime, TheShapeOfAGroupOfAMesh) {
  Machine machine = plain(4);
  const std::vector<plan::Axis> axes = {{"dp", 4}, {"tp", 2}};
  EXPECT_EQ(textOf(shapeOf(machine, axes, {"dp"}, 1, 8)), textOf(shapeOf(machine, {9, 11, 13, 15})));
  EXPECT_EQ(textOf(shapeOf(machine, axes, {"dp"}, 1, 8)), "4: link 0 joins 2 of 1, 2 hops; link 1 joins 2 of 2, 1 hops;");
  EXPECT_EQ(textOf(shapeOf(machine, axes, {"tp"}, 5, 8)), "2: link 0 joins 2 of 1, 1 hops;");
  EXPECT_EQ(textOf(shapeOf(machine, axes, {"tp"}, 5, 3)), "2: link 1 joins 2 of 1, 1 hops;"); // coordinates 4 and 5 are ranks 7 and 8
}

// Three levels: pairs, hosts of 4, all.
TEST(CollectiveTime, LinksWithinAHost) {
  Machine machine = plain(4);
  machine.links = {{2, 1, 1}, {4, 1, 1}, {0, 1, 1}};
  EXPECT_EQ(textOf(shapeOf(machine, firstRanks(8))), "8: link 0 joins 2 of 1, 4 hops; link 1 joins 2 of 2, 2 hops; link 2 joins 2 of 4, 1 hops;");
}

// ---- NCCL's rows --------------------------------------------------------------------------------

// Ring, LL: base 6.6, 2 (n - 1) steps of 0.6, bytes over 87.7 * n / (2 (n - 1)).
TEST(CollectiveTime, NcclSmallInAHost) {
  EXPECT_DOUBLE_EQ(secondsOf(a100(), firstRanks(8), CollectiveKind::AllReduce, 1000), 6.6e-6 + 14 * 0.6e-6 + 1000 * 14.0 / 8 / 87.7e9);
}

// Ring, Simple: base 8.4, 14 steps of 3.4.
TEST(CollectiveTime, NcclLargeInAHost) {
  EXPECT_DOUBLE_EQ(secondsOf(a100(), firstRanks(8), CollectiveKind::AllReduce, 1e9), 8.4e-6 + 14 * 3.4e-6 + 1e9 * 14 / 8 / 240e9);
  EXPECT_DOUBLE_EQ(secondsOf(a100(), firstRanks(8), CollectiveKind::AllGather, 1e9), 8.4e-6 + 7 * 3.4e-6 + 1e9 * 7 / 8 / 240e9);
}

// Sixteen hosts, 10 MB. Tree, LL128: base 14, 2 (7 * 1.25 + log2(16) * 8.5), half of the bandwidth, which is that of 8 NICs. A ring takes
// 2 * 127 steps, of which 30 are on the network: 560 us before the first byte.
TEST(CollectiveTime, NcclTreeBetweenHosts) {
  EXPECT_DOUBLE_EQ(secondsOf(a100(), firstRanks(128), CollectiveKind::AllReduce, 1e7), 14e-6 + 2 * (7 * 1.25e-6 + 4 * 8.5e-6) + 2 * 1e7 / (8 * 21.62e9));
}

// 4 GB over four hosts: ring, Simple, 2 * 31 steps, of which 6 are on the network.
TEST(CollectiveTime, NcclRingBetweenHosts) {
  EXPECT_DOUBLE_EQ(secondsOf(a100(), firstRanks(32), CollectiveKind::AllReduce, 4e9), 8.4e-6 + 56 * 3.4e-6 + 6 * 14e-6 + 4e9 * 62 / 32 / (8 * 23.5e9));
  EXPECT_DOUBLE_EQ(secondsOf(a100(), firstRanks(32), CollectiveKind::ReduceScatter, 4e9), 8.4e-6 + 28 * 3.4e-6 + 3 * 14e-6 + 4e9 * 31 / 32 / (8 * 23.5e9));
}

// ---- what groups share --------------------------------------------------------------------------

// Data parallelism over four hosts beside tensor parallelism in them: each of the 8 groups has one NIC of a host.
TEST(CollectiveTime, GroupsSideBySideHaveTheirShareOfTheNetwork) {
  EXPECT_DOUBLE_EQ(secondsOf(a100(), {3, 11, 19, 27}, CollectiveKind::AllReduce, 4e9), 8.4e-6 + 6 * 14e-6 + 4e9 * 6 / 4 / 23.5e9);
}

// Two ranks in one host and one in another: the ring leaves the fuller host over the links of two, enters the other over one.
TEST(CollectiveTime, UnevenGroups) {
  EXPECT_DOUBLE_EQ(secondsOf(plain(2), {0, 1, 2}, CollectiveKind::AllGather, 30), 2 + 30 * 2.0 / 3 / 0.1);
}

// ---- algorithms ---------------------------------------------------------------------------------

// Four hosts of 4. 16 bytes. By a ring 30 steps; by a tree 2 (3 + 2) steps and 2 * 16 bytes over the NICs of 4 ranks. Scattered in hosts
// first: 2 * 3 steps, 2 * 16 * 3/4 bytes in them, then a tree of 2 * 2 steps and 2 * 4 bytes over a rank's NIC.
TEST(CollectiveTime, AllReduceTakesTheFastest) {
  const double ring = 30 + 2 * 16 * 15.0 / 16 / 0.4, tree = 10 + 2 * 16 / 0.4, hosts = 6 + 24 + 4 + 2 * 4 / 0.1, hostsByRing = 6 + 24 + 6 + 2 * 4 * 0.75 / 0.1;
  EXPECT_DOUBLE_EQ(std::min({ring, tree, hosts, hostsByRing}), tree);
  EXPECT_DOUBLE_EQ(secondsOf(plain(4), firstRanks(16), CollectiveKind::AllReduce, 16), tree);
}

// A network ten times as fast as what joins the ranks of a host (PCIe): these send three quarters of the bytes twice, each its part to the
// other hosts. A ring sends 15/16 of them twice, a tree all, through the slow links.
TEST(CollectiveTime, AllReduceScattersInHostsFirst) {
  Machine machine = plain(4);
  machine.links = {{4, 0.1, 1}, {0, 0.1, 10}};
  const double ring = 30 * 0.1 + 2 * 1000 * 15.0 / 16, tree = 2 * (0.3 + 0.2) + 2 * 1000, hosts = 2 * (0.3 + 750) + 2 * (0.3 + 250 * 0.75 / 10);
  EXPECT_LT(hosts, std::min(ring, tree));
  EXPECT_DOUBLE_EQ(secondsOf(machine, firstRanks(16), CollectiveKind::AllReduce, 1000), hosts);
}

// A gather of 1.6 kB over 16 hosts of 16: one after the other takes 15 + 15 steps where the ring takes 255.
TEST(CollectiveTime, GathersOneLevelAfterTheOther) {
  Machine machine = plain(16);
  machine.links = {{16, 1, 1e3}, {0, 1, 1e3}};
  const double bytes = 1600, ring = 255 + bytes * 255 / 256 / 1e3, levels = 15 + bytes * 15 / 16 / 1e3 + 15 + bytes / 16 * 15 / 16 / 1e3;
  EXPECT_LT(levels, ring);
  EXPECT_DOUBLE_EQ(secondsOf(machine, firstRanks(256), CollectiveKind::AllGather, bytes), levels);
  EXPECT_DOUBLE_EQ(secondsOf(machine, firstRanks(256), CollectiveKind::ReduceScatter, bytes), levels);
}

// Eight ranks. Pairwise 7 steps and 7/8 of the bytes; Bruck 3 steps and 3/2 of them (Thakur et al., section 4.3).
TEST(CollectiveTime, AllToAllByPairsOrByBruck) {
  EXPECT_DOUBLE_EQ(secondsOf(plain(8), firstRanks(8), CollectiveKind::AllToAll, 800), 7 + 700);
  EXPECT_DOUBLE_EQ(secondsOf(plain(8), firstRanks(8), CollectiveKind::AllToAll, 2), 3 + 3);
}

// Two hosts of 4: what goes to the other host takes longest, four of eight parts over the rank's own NIC.
TEST(CollectiveTime, AllToAllBetweenHosts) {
  EXPECT_DOUBLE_EQ(secondsOf(plain(4), firstRanks(8), CollectiveKind::AllToAll, 800), 3 + 4 + 400 / 0.1);
}

TEST(CollectiveTime, MessagesTakeTheLinkThatJoins) {
  EXPECT_DOUBLE_EQ(messageSeconds(plain(4), 1, 3, 5), 6);
  EXPECT_DOUBLE_EQ(messageSeconds(plain(4), 3, 4, 5), 51);
  EXPECT_DOUBLE_EQ(messageSeconds(a100(), 0, 8, 1e3), 6.6e-6 + 2.7e-6 + 1e3 / 11.75e9);
  EXPECT_DOUBLE_EQ(secondsOf(plain(4), {0, 4}, CollectiveKind::Permute, 5), 51);
  EXPECT_EQ(messageSeconds(plain(4), 2, 2, 5), 0);
}

TEST(CollectiveTime, OneRankTakesNothing) {
  for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllToAll, CollectiveKind::Permute}) {
    EXPECT_EQ(secondsOf(a100(), {3}, kind, 1e6), 0);
    EXPECT_EQ(secondsOf(a100(), firstRanks(8), kind, 0), 0);
  }
}

// More bytes, or the same over a slower network, never take less; more than all ranks have of both links is impossible.
TEST(CollectiveTime, GrowsWithBytesAndSlowerLinks) {
  Machine slower = a100();
  slower.links[1].bytesPerSecond /= 2;
  for (Protocol &other : slower.links[1].others)
    other.bytesPerSecond /= 2;
  for (int64_t ranks : {2, 3, 8, 12, 16, 64, 1024})
    for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllToAll, CollectiveKind::Permute}) {
      double before = 0;
      for (double bytes = 1; bytes < 1e11; bytes *= 3) {
        const double seconds = secondsOf(a100(), firstRanks(ranks), kind, bytes);
        EXPECT_GT(seconds, before);
        EXPECT_GE(secondsOf(slower, firstRanks(ranks), kind, bytes), seconds);
        if (kind == CollectiveKind::AllGather) {
          EXPECT_GE(seconds, bytes * double(ranks - 1) / double(ranks) / 240e9);
        }
        before = seconds;
      }
    }
}
