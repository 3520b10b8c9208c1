// Runs on the stand-in: every test begins with a fresh one and ends with nothing left behind, no race and no misuse.
#pragma once

#include "runtime/backend/cuda/CudaBackend.h"
#include "runtime/core/Session.h"
#include "test/gpu/standin/Control.h"
#include "test/unit/runtime/core/TinyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpc {

inline cuda::CudaOptions onStandIn(int ranksPerGpu = 4) {
  cuda::CudaOptions options;
  options.ranksPerGpu = ranksPerGpu;
  options.libraryFolder = HPC_STANDIN_FOLDER;
  return options;
}

class Gpu : public testing::Test {
protected:
  void SetUp() override { standin::configure({}); }
  void TearDown() override { expectClean("at the end"); }

  static void expectClean(const std::string &when) {
    EXPECT_THAT(standin::races(), testing::IsEmpty()) << when;
    EXPECT_THAT(standin::misuses(), testing::IsEmpty()) << when;
    EXPECT_EQ(standin::leaks(), "") << when;
  }
};

/// The hand-built plan with code for a GPU: `max(x, 0)` and `y += bias`, a block a row.
struct GpuPlan : TinyPlan {
  SessionOptions options;

  GpuPlan() {
    options.planFolder = folder.path;
    plan.modules = {{"ptx", {}, 80, kernels(), {"test_relu", "test_add_bias"}}};
    setLaunch(std::get<plan::Kernel>(plan.stages[0].programs[0].instructions[2].action));
    setLaunch(std::get<plan::Kernel>(plan.stages[1].programs[1].instructions[2].action));
  }
  static void setLaunch(plan::Kernel &kernel) { kernel.launch = {kernel.rows, 32, 0}; }
  Expected<std::unique_ptr<Session>> create(const cuda::CudaOptions &cudaOptions = onStandIn()) {
    return Session::create(plan, cuda::createCudaBackend(cudaOptions), options);
  }
  static Array input(int64_t seed) {
    Array x = Array::zeros(DType::F32, {4, 6});
    std::vector<float> list = values(24, seed);
    std::copy(list.begin(), list.end(), x.as<float>());
    return x;
  }
  void expectRight(const std::vector<Array> &outputs, int64_t seed) const {
    std::vector<float> wanted = expected(values(24, seed));
    ASSERT_EQ(outputs.size(), 1u);
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(outputs[0].as<float>()[i], wanted[i]) << i;
  }
  void expectRight(Session &session, int64_t seed) const {
    Expected<std::vector<Array>> outputs = session.run({input(seed)});
    ASSERT_TRUE(outputs.ok()) << outputs.status().text();
    expectRight(*outputs, seed);
  }

  /// Both walk a row of %width elements, thread by thread; r0 is the element of the row, x0 its offset in bytes.
  static std::string kernels() {
    auto walk = [](const std::string &name, const std::string &params, const std::string &width,
                   const std::string &body) {
      return ".visible .entry " + name + "(" + params +
             ")\n{\n.reg .pred %p<2>;\n.reg .b32 %r<4>;\n.reg .f32 %f<3>;\n"
             ".reg .b64 %x<8>;\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nld.param.u64 %x1, [" +
             width +
             "];\n"
             "cvt.u32.u64 %r2, %x1;\nNEXT:\nsetp.ge.u32 %p0, %r0, %r2;\n@%p0 bra DONE;\n"
             "mad.lo.s32 %r3, %r1, %r2, %r0;\nmul.wide.u32 %x0, %r3, 4;\n" +
             body + "add.s32 %r0, %r0, 32;\nbra.uni NEXT;\nDONE:\nret;\n}\n";
    };
    return ".version 8.0\n.target sm_80\n.address_size 64\n" +
           walk("test_relu", ".param .u64 relu_x, .param .u64 relu_y, .param .u64 relu_w", "relu_w",
                "ld.param.u64 %x2, [relu_x];\nadd.s64 %x2, %x2, %x0;\nld.global.f32 %f0, [%x2];\n"
                "setp.lt.f32 %p1, %f0, 0f00000000;\nselp.f32 %f0, 0f00000000, %f0, %p1;\n"
                "ld.param.u64 %x3, [relu_y];\nadd.s64 %x3, %x3, %x0;\nst.global.f32 [%x3], %f0;\n") +
           walk("test_add_bias", ".param .u64 bias_y, .param .u64 bias_b, .param .u64 bias_w", "bias_w",
                "ld.param.u64 %x2, [bias_y];\nadd.s64 %x2, %x2, %x0;\nld.global.f32 %f0, [%x2];\n"
                "ld.param.u64 %x3, [bias_b];\nmul.wide.u32 %x4, %r0, 4;\nadd.s64 %x3, %x3, %x4;\n"
                "ld.global.nc.f32 %f1, [%x3];\nadd.rn.f32 %f0, %f0, %f1;\nst.global.f32 [%x2], %f0;\n");
  }
};

} // namespace hpc
