// Every module of test/exec/Inputs on a grid of meshes: the partitioned program computes what the serial one computes.
#include "test/unit/passes/SerialEqualsPartitioned.h"

#include "gtest/gtest.h"

#include <filesystem>

using namespace hpc;

namespace {

/// Even and uneven cuts, more ranks than heads or rows, two axes and micro-batches. A file named meshes-*.mlir has its
/// own in `// MESH:` lines.
const char *const grid[] = {
    "mb=1:time, dp=1:data, tp=1:tensor", "mb=1:time, dp=1:data, tp=2:tensor", "mb=2:time, dp=1:data, tp=2:tensor", "mb=1:time, dp=2:data, tp=1:tensor", "mb=1:time, dp=1:data, tp=3:tensor",
    "mb=2:time, dp=2:data, tp=2:tensor", "mb=1:time, dp=3:data, tp=2:tensor", "mb=1:time, dp=1:data, tp=5:tensor", "mb=1:time, dp=4:data, tp=4:tensor",
};

std::vector<std::string> meshesOf(const std::string &module) {
  std::vector<std::string> meshes;
  std::istringstream lines(module);
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("// MESH: ", 0) == 0)
      meshes.push_back(line.substr(9));
  return meshes.empty() ? std::vector<std::string>(std::begin(grid), std::end(grid)) : meshes;
}

TEST(PartitionExec, SerialEqualsPartitioned) {
  int modules = 0;
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(HPC_SOURCE_DIR "/test/exec/Inputs"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto &file : files)
    for (const std::string &module : test::readModules(file.string())) {
      ++modules;
      for (const std::string &mesh : meshesOf(module))
        EXPECT_EQ(test::compare(module, mesh), "") << file.filename() << " on " << mesh << "\n"
                                                   << module.substr(0, module.find("module"));
    }
  EXPECT_GT(modules, 20);
}

} // namespace
