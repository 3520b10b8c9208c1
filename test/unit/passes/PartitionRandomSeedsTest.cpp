// Random seeds on random values of the modules of test/exec/Inputs: whatever the seeds, the partitioned program
// computes what the serial one does. Conflicts, cuts that do not nest, uneven and empty shards and internal cuts of
// composites all come up; a failure prints the seeds.
#include "test/unit/passes/SerialEqualsPartitioned.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "gtest/gtest.h"

#include <filesystem>
#include <random>

using namespace hpc;

namespace {

struct RandomSeeds {
  std::mt19937 random;
  dist::Mesh mesh;

  int64_t below(int64_t n) { return int64_t(random() % uint64_t(n)); }

  /// A dim as up to three sub-dims with one of them cut.
  dist::DimSharding cut(int64_t size, const std::string &axis) {
    auto divisor = [&](int64_t n) {
      int64_t d = 1 + below(n);
      while (n % d)
        --d;
      return d;
    };
    int64_t major = below(2) ? 1 : divisor(size), middle = below(2) ? size / major : divisor(size / major);
    dist::DimSharding dim = {{major, {}}, {middle, {axis}}, {size / major / middle, {}}};
    return dist::normalize(dim, mesh);
  }

  dist::Sharding sharding(ArrayRef<int64_t> shape) {
    dist::Sharding result = dist::replicated(shape.vec());
    for (const dist::Mesh::Axis &axis : mesh.axes)
      if (!shape.empty() && below(2)) {
        int64_t dim = below(int64_t(shape.size()));
        if (!dist::isCut(result.dims[dim]) && shape[dim] > 1)
          result.dims[dim] = cut(shape[dim], axis.name);
      }
    return result;
  }

  /// Open and closed dims, any priority.
  dist::Seed seed(ArrayRef<int64_t> shape, int64_t priority) {
    dist::Seed seed = dist::layoutSeed(sharding(shape));
    for (size_t dim = 0; dim < seed.open.size(); ++dim)
      seed.open[dim] = !dist::isCut(seed.sharding.dims[dim]) && below(3) != 0;
    seed.priority = priority;
    return seed;
  }

  void replaceSeeds(func::FuncOp function) {
    dist::removeSeeds(function);
    for (BlockArgument argument : function.getArguments()) {
      if (below(3) == 0)
        dist::setSeed(argument, seed(nn::shapeOf(argument), 1));
    }
    for (Operation &op : function.front()) {
      if (op.getNumResults() != 1 || isa<nn::ConstantOp>(op) || below(4) != 0)
        continue;
      dist::setSeed(op.getResult(0), seed(nn::shapeOf(op.getResult(0)), below(4) - 2));
    }
  }
};

TEST(PartitionRandomSeeds, SerialEqualsPartitioned) {
  const int rounds = std::getenv("HPC_ROUNDS") ? std::atoi(std::getenv("HPC_ROUNDS")) : 6;
  const char *const meshes[] = {"mb=1:time, dp=2:data, tp=2:tensor", "mb=1:time, dp=1:data, tp=3:tensor", "mb=1:time, dp=2:data, tp=3:tensor", "dp=2:data, tp.row=2:tensor, tp.col=2:tensor"};
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(HPC_SOURCE_DIR "/test/exec/Inputs"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  unsigned number = 0;
  for (const auto &file : files)
    for (const std::string &text : test::readModules(file.string()))
      for (int round = 0; round < rounds; ++round) {
        test::Compiler compiler;
        OwningOpRef<ModuleOp> module = compiler.parse(text);
        ASSERT_TRUE(module) << compiler.diagnostics;
        RandomSeeds seeds{std::mt19937(++number), *dist::parseMesh(meshes[round % 4])};
        (*module)->removeAttr(dist::meshAttrName);
        seeds.replaceSeeds(module->lookupSymbol<func::FuncOp>("main"));
        std::string seeded;
        llvm::raw_string_ostream(seeded) << *module;
        EXPECT_EQ(test::compare(seeded, meshes[round % 4]), "")
            << file.filename() << " " << number << " on " << meshes[round % 4] << "\n"
            << seeded;
      }
}

} // namespace
