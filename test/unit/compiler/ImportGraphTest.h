// Tests that write a small graph, import it, and run it or read why it was refused.
#pragma once

#include "runtime/base/File.h"
#include "test/unit/compiler/ImportFixture.h"
#include "test/unit/compiler/OnnxWriter.h"

#include <gmock/gmock.h>

namespace hpc {

/// Imports graphs of an input x [2, 3].
struct ImportGraphTest : testing::Test {
  using Numbers = std::vector<double>;

  TemporaryFolder folder;
  MLIRContext context;
  ImportOptions options;

  Expected<OwningOpRef<ModuleOp>> import(const onnxwriter::Graph &model) {
    EXPECT_TRUE(writeFile(folder.file("m.onnx"), model.model()).ok());
    return importOnnx(folder.file("m.onnx"), options, &context);
  }
  /// The first output for x = 1 ... 6 of [2, 3], and further inputs.
  Numbers run(const onnxwriter::Graph &model, NamedArrays more = {}) {
    Expected<OwningOpRef<ModuleOp>> module = import(model);
    EXPECT_TRUE(module.ok()) << module.status().text();
    if (!module.ok())
      return {};
    Tensor x(DType::F32, {2, 3});
    for (size_t i = 0; i < 6; ++i)
      x.floats[i] = double(i + 1);
    more.emplace_back("x", tensorToArray(x));
    Expected<std::vector<Tensor>> results = runImported(**module, more, false);
    EXPECT_TRUE(results.ok()) << results.status().text();
    return results.ok() ? results->front().floats : Numbers{};
  }
  void refuse(const onnxwriter::Graph &model, ErrorKind kind, const std::string &text) {
    Expected<OwningOpRef<ModuleOp>> module = import(model);
    ASSERT_FALSE(module.ok());
    EXPECT_EQ(module.status().kind(), kind) << module.status().text();
    EXPECT_THAT(module.status().message(), testing::HasSubstr(text));
  }
};

} // namespace hpc
