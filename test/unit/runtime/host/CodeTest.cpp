// Loading a plan's code from memory, and the errors for code that does not fit.
#include "runtime/backend/host/Code.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using testing::HasSubstr;

TEST(Code, CallsWhatItLoaded) {
  std::string library = TemporaryFolder::read(HPC_TEST_KERNELS);
  // Several at once, and again after one is gone: each is its own library.
  for (int round = 0; round < 2; ++round) {
    Expected<host::Code> first = host::Code::load(library), second = host::Code::load(library);
    ASSERT_TRUE(first.ok()) << first.status().text();
    ASSERT_TRUE(second.ok()) << second.status().text();
    Expected<host::KernelFunction> relu = first->find("test_relu"), other = second->find("test_relu");
    ASSERT_TRUE(relu.ok() && other.ok());
    EXPECT_NE(*relu, *other);
    float x[4] = {-1, 2, -3, 4}, y[4] = {9, 9, 9, 9};
    void *args[] = {x, y};
    int64_t width = 2;
    (*relu)(args, &width, 1, 2);
    EXPECT_EQ(y[0], 9);
    EXPECT_EQ(y[2], 0);
    EXPECT_EQ(y[3], 4);
  }
}

TEST(Code, WrongCodeIsAnError) {
  EXPECT_THAT(host::Code::load("not an ELF file").status().text(),
              HasSubstr("error[plan]: the plan's code cannot be loaded"));
  std::string library = TemporaryFolder::read(HPC_TEST_KERNELS);
  EXPECT_FALSE(host::Code::load(library.substr(0, 100)).ok());
  Expected<host::Code> code = host::Code::load(library);
  ASSERT_TRUE(code.ok());
  EXPECT_THAT(code->find("no_such_kernel").status().message(), HasSubstr("no function 'no_such_kernel'"));
  Expected<host::Code> empty = host::Code::load("");
  ASSERT_TRUE(empty.ok());
  EXPECT_FALSE(empty->find("test_relu").ok());
}

TEST(Code, NamesMissingCpuFeatures) {
  TemporaryFolder folder;
  std::string info = folder.write("cpuinfo", "processor\t: 0\nflags\t\t: fpu sse2 avx2 fma\nbugs\t\t: none\n");
  EXPECT_TRUE(host::checkCpuFeatures({"avx2", "fma"}, info).ok());
  EXPECT_TRUE(host::checkCpuFeatures({}, folder / "none").ok());
  EXPECT_THAT(host::checkCpuFeatures({"avx2", "avx512f", "none"}, info).message(), HasSubstr("lacks: avx512f, none"));
  EXPECT_THAT(host::checkCpuFeatures({"avx2"}, folder / "none").message(), HasSubstr("no CPU flags"));
  EXPECT_TRUE(host::checkCpuFeatures({"sse2"}).ok());
}
