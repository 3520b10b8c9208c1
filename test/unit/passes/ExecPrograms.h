// What the tests over the programs of test/exec share: finding, parsing, numbers, phases, comparison.
// A program is a serial @main with seeds; `exec.meshes` lists the meshes it is cut over, `exec.pipelines` the pipelines on
// each of them ("pp=2 schedule=gpipe"; left out: one stage), `exec.steps` says how often it runs, each step on what the one
// before wrote.
#pragma once

#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Interpreter/Steps.h"
#include "passes/Phases.h"

#include "gtest/gtest.h"

namespace hpc::test {

/// Files of test/exec whose text has `word`, sorted.
std::vector<std::string> execPrograms(StringRef word = "");
/// Their names as GoogleTest allows them.
std::string execProgramName(const testing::TestParamInfo<std::string> &file);

/// Numbers in [-1, 1], integers in [-5, 5] (as ids: negative ones too), the same for the same name.
Tensor draw(StringRef name, DType dtype, ArrayRef<int64_t> shape);

/// Where tensors differ by more than `tolerance` of 1 plus the expected element; "" where they do not.
std::string difference(const Tensor &expected, const Tensor &actual, double tolerance);

/// A mesh of `exec.meshes` with a pipeline of `exec.pipelines`.
struct Layout {
  std::string text;
  dist::Mesh mesh;
  Options options;
};

/// The parameter is a file of test/exec.
struct ExecProgramTest : testing::TestWithParam<std::string> {
  ExecProgramTest();

  /// The program, behind the passes that `exec.passes` names, if any.
  OwningOpRef<ModuleOp> parse();
  /// Every mesh with every pipeline; of more than 20 one of eight parts (0 to 7), each of which has all meshes and all pipelines,
  /// unless HPC_TEST_ALL is set.
  static std::vector<Layout> layoutsOf(ModuleOp module, size_t part);
  /// Per step one tensor for each argument that is no state.
  static std::vector<std::vector<Tensor>> drawInputs(ModuleOp module);
  /// Sets the mesh and runs all phases but raise, train, generate and annotate (the programs are seeded by hand) up to kernels. `after`
  /// sees the program after each; false ends it.
  void runPhases(ModuleOp module, const Layout &layout, llvm::function_ref<bool(StringRef phase)> after);

  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
};

} // namespace hpc::test
