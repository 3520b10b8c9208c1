// Tables of a plan against the function that they tabulate, asked for every rank and micro-batch.
#include "passes/Lower/Tables.h"

#include <gtest/gtest.h>

#include <random>

using namespace hpc;
using dist::AxisRole;

namespace {

// A wrong stride shows at some coordinate of some mesh; the axis of micro-batches stands at any place.
TEST(Tables, HoldTheFunctionAtEveryCoordinate) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    dist::Mesh mesh;
    const size_t time = random() % 4, number = 1 + random() % 4;
    for (size_t axis = 0; axis < number; ++axis)
      mesh.axes.push_back({std::string(1, char('a' + axis)), int64_t(1 + random() % 3), axis == time ? AxisRole::Time : AxisRole::Tensor});
    std::vector<std::string> along;
    std::vector<int64_t> weights;
    for (const dist::Mesh::Axis &axis : mesh.axes) {
      const bool counts = random() % 2;
      weights.push_back(counts ? int64_t(random() % 3) : 0); // 0: named, though nothing depends on it
      if (counts)
        along.insert(random() % 2 ? along.begin() : along.end(), axis.name);
    }
    auto function = [&](const std::vector<int64_t> &at) {
      int64_t sum = 0;
      for (size_t axis = 0; axis < at.size(); ++axis)
        sum = 3 * sum + weights[axis] * at[axis];
      return sum;
    };
    Tables tables(mesh);
    plan::ByCoord table = tables.table(along, function);
    for (int64_t index = 0; index < mesh.numCoordinates(); ++index) {
      std::vector<int64_t> at = mesh.coordinate(index);
      int64_t rank = 0, microBatch = 0;
      for (size_t axis = 0; axis < number; ++axis)
        if (axis == time)
          microBatch = at[axis];
        else
          rank = rank * mesh.axes[axis].size + at[axis];
      ASSERT_EQ(table.at(rank, microBatch, tables.ranksPerStage()), function(at)) << "round " << round << ", coordinate " << index;
    }
  }
}

// 512 micro-batches and 48 ranks: what depends on one axis is asked for along that axis alone.
TEST(Tables, AskOnceForEachCoordinateThatMatters) {
  Tables tables({{{"mb", 512, AxisRole::Time}, {"dp", 6, AxisRole::Data}, {"tp", 8, AxisRole::Tensor}}});
  int64_t asked = 0;
  plan::ByCoord table = tables.table({"tp"}, [&](const std::vector<int64_t> &at) { return ++asked, at[2]; });
  EXPECT_EQ(asked, 8);
  EXPECT_EQ(table.values.size(), 48u);
  asked = 0;
  table = tables.table({"mb"}, [&](const std::vector<int64_t> &at) { return ++asked, at[0] != 0; });
  EXPECT_EQ(asked, 512);
  EXPECT_EQ(table.values.size(), 512u * 48);
  EXPECT_EQ(tables.table({}, [](const auto &) { return 7; }).values, std::vector<int64_t>{7});
}

} // namespace
