// Boxes, extents, normal form and views against explicit lists of elements, for all small cases.
// The worked example's table is here by name; everything else is enumerated.
#include "BruteForce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

using namespace hpc;
using namespace hpc::dist;
using brute::Box;

static DimSharding parseDim(const std::string &text) { return parseSharding("[" + text + "]")->dims[0]; }

static const std::vector<std::vector<int64_t>> smallMeshes = {{1}, {2}, {3}, {4}, {1, 2}, {2, 2}, {2, 3}, {3, 2}};

TEST(LocalBox, MatchesElementLists) {
  for (const auto &sizes : smallMeshes) {
    Mesh mesh = brute::mesh(sizes);
    for (int count = 0; count <= 3; ++count)
      brute::forEachDim(count, count == 3 ? 1 : 0, count == 3 && sizes.size() == 2 ? 5 : 7, mesh,
                        [&](const DimSharding &dim) {
                          bool padding = false;
                          for (int64_t rank = 0; rank < mesh.numCoordinates(); ++rank) {
                            std::vector<int64_t> c = mesh.coordinate(rank);
                            Box box = brute::box(dim, mesh, c);
                            ASSERT_EQ(boxSize(dim, mesh), int64_t(box.size())) << toString(dim);
                            for (const SubDim &sub : dim) {
                              Box slots = brute::slots(sub, mesh, c);
                              Range held = heldDigits(sub, mesh, c);
                              ASSERT_EQ(held.extent, int64_t(slots.size()) - std::count(slots.begin(), slots.end(), -1))
                                  << toString(dim);
                              for (int64_t i = 0; i < held.extent; ++i)
                                ASSERT_EQ(held.start + i, slots[i]) << toString(dim);
                            }
                            Box local(globalSize(dim), -1);
                            for (size_t i = 0; i < box.size(); ++i) {
                              ASSERT_EQ(globalIndex(dim, mesh, c, i), box[i]) << toString(dim);
                              padding |= box[i] < 0;
                              if (box[i] >= 0)
                                local[box[i]] = i;
                            }
                            for (size_t i = 0; i < local.size(); ++i)
                              ASSERT_EQ(localIndex(dim, mesh, c, i), local[i]) << toString(dim);
                          }
                          ASSERT_EQ(hasPadding(dim, mesh), padding) << toString(dim);
                        });
  }
}

TEST(LocalBox, WorkedExample) {
  Mesh tp = *parseMesh("tp=2:tensor"), grid = *parseMesh("tp.row=2:tensor, tp.col=2:tensor"), both = *parseMesh("dp=2:data, tp=2:tensor");
  EXPECT_EQ(boxSize(parseDim("503@tp"), tp), 252);
  EXPECT_EQ(heldDigits({503, {"tp"}}, tp, {1}).extent, 251);
  EXPECT_EQ(boxSize(parseDim("(5@tp, 8)"), tp), 24);
  EXPECT_EQ(boxSize(parseDim("(3, 5@tp, 8)"), tp), 72);
  EXPECT_EQ(globalIndex(parseDim("(3, 5@tp, 8)"), tp, {1}, 24), 64);
  EXPECT_EQ(globalIndex(parseDim("(3, 5@tp, 8)"), tp, {1}, 23), -1);
  EXPECT_EQ(heldDigits({5, {"tp.row", "tp.col"}}, grid, {0, 1}).start, 2);
  EXPECT_EQ(heldDigits({5, {"tp.row", "tp.col"}}, grid, {0, 1}).extent, 1);
  EXPECT_EQ(heldDigits({5, {"tp.row", "tp.col"}}, grid, {1, 1}).extent, 0);
  EXPECT_EQ(localIndex(parseDim("(4@dp, 5@tp)"), both, {0, 1}, 8), 3); // (1,3): row 1 of a box 2 x 3
  EXPECT_EQ(boxShape(*parseSharding("[4@dp, 33, (3, 5@tp, 8)]"), both), (std::vector<int64_t>{2, 33, 72}));
}

/// Two lists have one normal form exactly when all coordinates hold the same elements at the same places.
static void checkCanonical(const Mesh &mesh, int most, int mostOfThree) {
  std::map<std::vector<Box>, std::string> formOf;
  std::map<std::string, DimSharding> firstOf;
  for (int count = 0; count <= 3; ++count)
    brute::forEachDim(count, count == 3 ? 1 : 0, count == 3 ? mostOfThree : most, mesh, [&](const DimSharding &dim) {
      DimSharding normal = normalize(dim, mesh);
      std::string text = toString(normal);
      std::vector<Box> meaning = brute::meaning(dim, mesh);
      ASSERT_EQ(brute::meaning(normal, mesh), meaning) << toString(dim) << " became " << text;
      auto [known, isNew] = formOf.try_emplace(meaning, text);
      ASSERT_EQ(known->second, text) << "two normal forms of one meaning, from " << toString(dim);
      if (isNew) {
        ASSERT_TRUE(firstOf.try_emplace(text, dim).second) << text << " stands for two meanings";
        ASSERT_EQ(toString(normalize(normal, mesh)), text) << "not idempotent, from " << toString(dim);
      }
    });
}

TEST(NormalForm, IsCanonical) {
  for (const auto &sizes : smallMeshes)
    checkCanonical(brute::mesh(sizes), 7, sizes.size() == 2 ? 6 : 7);
}
TEST(NormalForm, IsCanonicalOverThreeAxes) {
  checkCanonical(brute::mesh({2, 2, 2}), 9, 4);
  checkCanonical(brute::mesh({4, 3, 2}), 9, 4);
}

TEST(NormalForm, Examples) {
  Mesh mesh = *parseMesh("mb=2:time, dp=2:data, tp=2:tensor, q=4:tensor, one=1:tensor");
  for (auto [text, normal] : std::vector<std::pair<const char *, const char *>>{{"(3, 4, 2)", "24"},
                                                                                {"(4@tp, 10)", "40@tp"},
                                                                                {"(5@tp, 8)", "(5@tp, 8)"},
                                                                                {"(3, 5@tp, 8)", "(3, 5@tp, 8)"},
                                                                                {"(2@dp, 2@tp)", "4@(dp, tp)"},
                                                                                {"(4@dp, 5@tp)", "(4@dp, 5@tp)"},
                                                                                {"(3, 1@tp, 8)", "(1@tp, 24)"},
                                                                                {"2@(mb, dp)", "2@(mb, dp)"},
                                                                                {"(2@(mb, dp), 33)", "(1@dp, 66@mb)"},
                                                                                {"(4@(mb, dp), 33)", "132@(mb, dp)"},
                                                                                {"8@one", "8"},
                                                                                {"(1, 1@one)", "1"},
                                                                                {"(3@q, 3)", "9@q"},
                                                                                {"(9@q, 2)", "(3@q, 6)"},
                                                                                {"(3@q, 5@tp)", "(3@q, 5@tp)"}})
    EXPECT_EQ(toString(normalize(parseDim(text), mesh)), normal) << text;
  EXPECT_EQ(toString(normalize(*parseSharding("[(2, 3)] partial{one, tp}"), mesh)), "[6] partial{tp}");
}

/// splitAt finds groups exactly when there are some, and they mean what the dim means.
static void checkSplits(const Mesh &mesh, int64_t most) {
  // What pairs of groups of given sizes can mean. Three sub-dims a group: one may hold nothing but pinned axes.
  std::map<int64_t, std::vector<DimSharding>> dimsOf;
  for (int count = 0; count <= 3; ++count)
    brute::forEachDim(count, 1, most, mesh, [&](const DimSharding &dim) {
      if (int64_t size = globalSize(dim); size <= most && normalize(dim, mesh) == dim)
        dimsOf[size].push_back(dim);
    });
  std::map<std::pair<int64_t, int64_t>, std::map<std::vector<Box>, bool>> possible;
  for (auto &[size0, dims0] : dimsOf)
    for (auto &[size1, dims1] : dimsOf)
      if (size0 * size1 <= most)
        for (const DimSharding &major : dims0)
          for (const DimSharding &minor : dims1) {
            Sharding both{{major, minor}, {}};
            if (!verify(both, {size0, size1}, mesh).ok())
              continue;
            DimSharding dim = major;
            dim.insert(dim.end(), minor.begin(), minor.end());
            possible[{size0, size1}][brute::meaning(dim, mesh)] = true;
          }
  int found = 0, refused = 0;
  for (auto &[size, dims] : dimsOf)
    for (const DimSharding &dim : dims)
      for (int64_t size0 = 1; size0 <= size; ++size0) {
        if (size % size0 != 0)
          continue;
        std::vector<DimSharding> groups;
        bool split = splitAt(dim, {size0, size / size0}, mesh, groups);
        bool exists = possible[{size0, size / size0}].count(brute::meaning(dim, mesh)) == 1;
        ASSERT_EQ(split, exists) << toString(dim) << " at " << size0;
        ++(split ? found : refused);
        if (!split)
          continue;
        ASSERT_EQ(groups.size(), 2u);
        ASSERT_EQ(globalSize(groups[0]), size0) << toString(dim);
        ASSERT_EQ(globalSize(groups[1]), size / size0) << toString(dim);
        groups[0].insert(groups[0].end(), groups[1].begin(), groups[1].end());
        ASSERT_EQ(toString(normalize(groups[0], mesh)), toString(dim)) << toString(groups[0]);
      }
  EXPECT_GT(found, 0);
  EXPECT_GT(refused, 0);
}

TEST(View, SplitsWheneverGroupsExist) {
  checkSplits(brute::mesh({2}), 24);
  checkSplits(brute::mesh({3}), 24);
  checkSplits(brute::mesh({4}), 24);
  checkSplits(brute::mesh({2, 2}), 18);
  checkSplits(brute::mesh({2, 3}), 18);
  checkSplits(brute::mesh({4, 2}), 12);
}

TEST(View, Examples) {
  Mesh mesh = *parseMesh("mb=2:time, dp=2:data, tp=2:tensor");
  auto split = [&](const char *dim, std::vector<int64_t> sizes) -> std::string {
    std::vector<DimSharding> groups;
    if (!splitAt(parseDim(dim), sizes, mesh, groups))
      return "no";
    return toString(Sharding{groups, {}});
  };
  EXPECT_EQ(split("(5@tp, 8)", {5, 8}), "[5@tp, 8]");
  EXPECT_EQ(split("40@tp", {4, 10}), "[4@tp, 10]");
  EXPECT_EQ(split("40@tp", {5, 8}), "no");
  EXPECT_EQ(split("(3, 5@tp, 8)", {3, 40}), "[3, (5@tp, 8)]");
  EXPECT_EQ(split("(3, 5@tp, 8)", {3, 5, 8}), "[3, 5@tp, 8]");
  EXPECT_EQ(split("120@tp", {3, 40}), "no");
  EXPECT_EQ(split("48@(dp, tp)", {4, 12}), "[4@(dp, tp), 12]");
  EXPECT_EQ(split("48@(dp, tp)", {2, 24}), "[2@dp, 24@tp]");
  EXPECT_EQ(split("(4@dp, 5@tp, 7)", {4, 5, 7}), "[4@dp, 5@tp, 7]");
  EXPECT_EQ(split("(2@(mb, dp), 33)", {2, 33}), "[2@(mb, dp), 33]");
  EXPECT_EQ(split("(1@dp, 33)", {1, 33}), "[1@dp, 33]");      // a batch of one
  EXPECT_EQ(split("(3, 1@tp, 8)", {3, 8}), "[3, (1@tp, 8)]"); // one head: the parts q, k, v stay whole
  EXPECT_EQ(split("(1@tp, 8)", {1, 8}), "[1@tp, 8]");
  EXPECT_EQ(split("6", {2, 2}), "no");
  EXPECT_EQ(split("0@tp", {0, 5}), "[0, 5]");
  EXPECT_EQ(split("1", {}), "[]");
  EXPECT_EQ(split("1@tp", {}), "no");
}
