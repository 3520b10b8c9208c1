// hpc-run from the outside: what it prints, what it writes, and its errors with their exit codes.
#include "runtime/base/Npz.h"
#include "runtime/plan/PlanFile.h"
#include "test/unit/runtime/core/TinyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

using namespace hpc;
using testing::AllOf;
using testing::HasSubstr;

namespace {

struct HpcRun : testing::Test {
  TinyPlan tiny;
  std::string output, errors;

  HpcRun() { EXPECT_TRUE(plan::writePlan(tiny.plan, file("tiny.plan")).ok()); }
  std::string file(const std::string &name) const { return tiny.folder / name; }
  static Array input(DType dtype = DType::F32, std::vector<int64_t> shape = {4, 6}) {
    Array x = Array::zeros(dtype, std::move(shape));
    std::vector<float> list = TinyPlan::values(24, 0);
    if (dtype == DType::F32)
      std::copy(list.begin(), list.begin() + x.elements(), x.as<float>());
    return x;
  }
  /// The exit code of `hpc-run tiny.plan FLAGS`, run in the plan's folder.
  int run(const std::string &flags) {
    std::string command =
        "cd '" + tiny.folder.path + "' && '" HPC_BINARY_DIR "/bin/hpc-run' tiny.plan " + flags + " >out 2>err";
    int status = std::system(command.c_str());
    output = TemporaryFolder::read(file("out"));
    errors = TemporaryFolder::read(file("err"));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
  }
  void expectRightOutput(const std::string &name) {
    Expected<NamedArrays> arrays = readNpz(file(name));
    ASSERT_TRUE(arrays.ok()) << arrays.status().text();
    ASSERT_EQ(arrays->size(), 1u);
    EXPECT_EQ((*arrays)[0].first, "y");
    std::vector<float> expected = tiny.expected(TinyPlan::values(24, 0));
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ((*arrays)[0].second.as<float>()[i], expected[i]);
  }
};

} // namespace

TEST_F(HpcRun, WritesOutputsAndNotesWhatItIgnores) {
  ASSERT_TRUE(writeNpz(file("in.npz"), {{"mask", Array::zeros(DType::I64, {2})}, {"x", input()}}).ok());
  ASSERT_EQ(run("--input=in.npz --output=y.npz --poison --trace=t.json"), 0) << errors;
  EXPECT_EQ(output, "");
  EXPECT_EQ(errors, "note: array 'mask' of 'in.npz' is ignored: the plan has no such input\n");
  expectRightOutput("y.npz");
  EXPECT_TRUE(nlohmann::json::parse(TemporaryFolder::read(file("t.json")))["traceEvents"].is_array());
}

// The content says what an input is.
TEST_F(HpcRun, TakesArraysUnderAnyName) {
  ASSERT_TRUE(writeNpy(file("array.npz"), input()).ok());
  ASSERT_TRUE(writeNpz(file("archive.npy"), {{"x", input()}}).ok());
  ASSERT_TRUE(writeNpz(file("x=y"), {{"x", input()}}).ok());
  for (const char *flags : {"--input=x=array.npz", "--input=archive.npy", "--input=x=y"}) {
    ASSERT_EQ(run(std::string(flags) + " --output=y.npz"), 0) << errors;
    expectRightOutput("y.npz");
  }
}

TEST_F(HpcRun, TakesNamedArraysAndSummarises) {
  ASSERT_TRUE(writeNpy(file("x.npy"), input()).ok());
  ASSERT_EQ(run("--input=x=x.npy"), 0) << errors;
  EXPECT_THAT(output, AllOf(HasSubstr("y: 4x7 of f32, min "), HasSubstr(", first ")));
  // A named array wins over an .npz.
  ASSERT_TRUE(writeNpz(file("zero.npz"), {{"x", Array::zeros(DType::F32, {4, 6})}}).ok());
  ASSERT_EQ(run("--input=x=x.npy --input=zero.npz --output=y.npz"), 0) << errors;
  expectRightOutput("y.npz");
}

TEST_F(HpcRun, RepeatPrintsOneJsonLine) {
  ASSERT_TRUE(writeNpy(file("x.npy"), input()).ok());
  ASSERT_EQ(run("--input=x=x.npy --repeat=3 --output=y.npz"), 0) << errors;
  EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1);
  nlohmann::json line = nlohmann::json::parse(output);
  EXPECT_LE(line["min_ms"].get<double>(), line["median_ms"].get<double>());
  EXPECT_GT(line["peak_bytes_per_rank"].get<int64_t>(), 0);
  EXPECT_EQ(line["runs"], 3);
  expectRightOutput("y.npz");
}

TEST_F(HpcRun, TakesWeightsFromElsewhere) {
  ASSERT_TRUE(writeNpy(file("x.npy"), input()).ok());
  std::filesystem::rename(file("weights.bin"), file("moved.bin"));
  EXPECT_EQ(run("--input=x=x.npy"), 1);
  EXPECT_THAT(errors, AllOf(HasSubstr("error[io]"), HasSubstr("weights.bin"), HasSubstr("--weights=FILE")));
  ASSERT_EQ(run("--input=x=x.npy --weights=moved.bin --output=y.npz"), 0) << errors;
  expectRightOutput("y.npz");
}

TEST_F(HpcRun, RunsAPlanThatWasCompiledWithoutWeights) {
  ASSERT_TRUE(writeNpy(file("x.npy"), input()).ok());
  for (plan::Weight &weight : tiny.plan.weights)
    weight.hashes.clear();
  ASSERT_TRUE(plan::writePlan(tiny.plan, file("tiny.plan")).ok());
  EXPECT_EQ(run("--input=x=x.npy"), 1);
  EXPECT_THAT(errors, HasSubstr("error[usage]: the plan was compiled without weights"));
  EXPECT_EQ(run("--input=x=x.npy --weights=weights.bin --output=y.npz"), 1);
  EXPECT_THAT(errors, HasSubstr("error[usage]: --weights=weights.bin: 'weights.bin' has no tensors with names"));
  NamedArrays arrays;
  for (const plan::Weight &weight : tiny.plan.weights) {
    Array array = Array::zeros(weight.dtype, weight.shape);
    std::memcpy(array.data.data(), tiny.file.data() + weight.offset, array.data.size());
    arrays.emplace_back(weight.name, std::move(array));
  }
  ASSERT_TRUE(writeNpz(file("weights.bin"), arrays).ok()); // whatever it is called
  ASSERT_EQ(run("--input=x=x.npy --weights=weights.bin --output=y.npz"), 0) << errors;
  expectRightOutput("y.npz");
  ASSERT_EQ(run("--backend=null"), 0) << errors;
}

// A scalar is an array of no dims, in .npy, in .npz and printed.
TEST_F(HpcRun, ScalarsInAndOut) {
  tiny.plan.inputs.push_back({"lr", DType::F32, {}, false});
  tiny.plan.outputs.push_back({"same", DType::F32, {}, false});
  plan::Stage &stage = tiny.plan.stages[0];
  plan::Slice scalar; // of no dims
  int32_t buffer = TinyPlan::addBuffer(stage, "lr", {}, plan::Lifetime::Program);
  std::vector<plan::Instruction> &list = stage.programs[0].instructions;
  list.push_back({plan::LoadInput{1, {buffer, 0}, scalar}, "lr"});
  list.push_back({plan::StoreOutput{1, {buffer, 0}, scalar, TinyPlan::byRank(1, 0)}, "lr"});
  list.back().when.values = {1, 1, 0, 0}; // [microBatch][coordinate]: once
  ASSERT_TRUE(plan::writePlan(tiny.plan, file("tiny.plan")).ok());
  Array lr = Array::zeros(DType::F32, {});
  lr.as<float>()[0] = 0.25f;
  ASSERT_TRUE(writeNpy(file("lr.npy"), lr).ok());
  ASSERT_TRUE(writeNpz(file("in.npz"), {{"x", input()}, {"lr", lr}}).ok());
  ASSERT_EQ(run("--input=in.npz"), 0) << errors;
  EXPECT_THAT(output, HasSubstr("same: scalar of f32, min 0.25, max 0.25, mean 0.25, first 0.25"));
  ASSERT_EQ(run("--input=in.npz --input=lr=lr.npy --output=y.npz"), 0) << errors;
  Expected<NamedArrays> arrays = readNpz(file("y.npz"));
  ASSERT_TRUE(arrays.ok()) << arrays.status().text();
  EXPECT_TRUE((*arrays)[1].second.shape.empty());
  EXPECT_EQ((*arrays)[1].second.as<float>()[0], 0.25f);
}

TEST_F(HpcRun, ErrorsNameValuePlaceAndRemedy) {
  ASSERT_TRUE(writeNpz(file("in.npz"), {{"x", input()}}).ok());
  ASSERT_TRUE(writeNpz(file("int.npz"), {{"x", Array::zeros(DType::I32, {4, 6})}}).ok());
  ASSERT_TRUE(writeNpz(file("shape.npz"), {{"x", Array::zeros(DType::F32, {4, 5})}}).ok());
  ASSERT_TRUE(writeNpy(file("x.npy"), input()).ok());
  tiny.folder.write("broken.npz", "no zip at all, but long enough");
  struct Case {
    const char *flags, *message;
  };
  for (auto [flags, message] : std::vector<Case>{
           {"", "error[usage]: input 'x' (4x6 of f32) is missing; give it by --input=FILE.npz or --input=x=FILE.npy"},
           {"--input=int.npz",
            "error[usage]: input 'x' of --input=int.npz is i32, the plan takes f32; convert it: a.astype('float32')"},
           {"--input=shape.npz", "has shape 4x5, the plan was compiled for 4x6"},
           {"--input=z=x.npy",
            "error[usage]: --input=z=x.npy: the plan has no input 'z'; its inputs are: 'x' (4x6 of f32)"},
           {"--input=x.npy", "error[usage]: --input=x.npy: is one array, an .npy: say of which input, --input=NAME=x.npy"},
           {"--input=x=in.npz", "error[usage]: --input=x=in.npz: an .npz has names of its own; give --input=in.npz"},
           {"--input=tiny.plan", "error[usage]: --input=tiny.plan: 'tiny.plan' is a plan of hpc-opt, neither an .npz nor an .npy"},
           {"--input=x=none.npy", "error[io]: 'none.npy': cannot open"},
           {"--input=broken.npz", "error[usage]: --input=broken.npz: 'broken.npz' is a text, neither an .npz nor an .npy"},
           {"--input=in.npz --input=in.npz", "input 'x' is given twice"},
           {"--input=in.npz --output=no/such/y.npz",
            "error[io]: --output=no/such/y.npz cannot be written: the folder 'no/such' is not there"},
           {"--input=in.npz --no-such-flag", "error[usage]"},
           {"--input=in.npz --repeat=0", "error[usage]"},
           {"--input=in.npz --weights=none.onnx", "error[io]: 'none.onnx'"}}) {
    EXPECT_EQ(run(flags), 1) << flags;
    EXPECT_THAT(errors, HasSubstr(message)) << flags;
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    EXPECT_EQ(output, "") << flags;
  }
  tiny.folder.write("tiny.plan", "not a plan");
  EXPECT_EQ(run("--input=in.npz"), 1);
  EXPECT_THAT(errors, HasSubstr("error[plan]"));
}

TEST_F(HpcRun, RefusesAPlanThatFailsItsCheck) {
  ASSERT_TRUE(writeNpz(file("in.npz"), {{"x", input()}}).ok());
  // Nobody sends what stage 1 receives.
  tiny.plan.stages[0].programs[0].instructions.pop_back();
  ASSERT_TRUE(plan::writePlan(tiny.plan, file("tiny.plan")).ok());
  EXPECT_EQ(run("--input=in.npz"), 1);
  EXPECT_THAT(errors, HasSubstr("error[plan]"));
}
