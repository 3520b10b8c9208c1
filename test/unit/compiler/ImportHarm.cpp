// Files that mean harm: external data that leads elsewhere, names and sizes that contradict, nesting. One error each that
// says what is wrong; nothing is opened, waited for or allocated on the way.
#include "test/unit/compiler/ImportFixture.h"
#include "test/unit/compiler/OnnxWriter.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Import/OnnxTensorScan.h"
#include "runtime/base/File.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace hpc {
namespace {

using namespace onnxwriter;
using testing::HasSubstr;
namespace fs = std::filesystem;

struct ImportHarm : testing::Test {
  TemporaryFolder folder;
  MLIRContext context;
  ImportOptions options;

  Status import(const std::string &bytes) {
    EXPECT_TRUE(writeFile(folder.file("m.onnx"), bytes).ok());
    Expected<OwningOpRef<ModuleOp>> module = importOnnx(folder.file("m.onnx"), options, &context);
    return module.ok() ? Status::success() : module.status();
  }
  void expectError(const std::string &bytes, ErrorKind kind, const std::string &text) {
    Status status = import(bytes);
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_EQ(status.kind(), kind) << status.text();
    EXPECT_THAT(status.message(), HasSubstr(text));
  }
  using Entries = std::vector<std::pair<std::string, std::string>>;
  /// y = x + w + v, [3] each; w and v outside the file.
  static Graph withExternal(const Entries &w, const Entries &v) {
    Graph model;
    model.nodes = {node("Add", {"x", "w"}, {"a"}), node("Add", {"a", "v"}, {"y"})};
    model.inputs = {value("x", f32, {"3"})};
    model.outputs = {value("y", f32, {})};
    model.initializers = {externalTensor("w", {3}, w), externalTensor("v", {3}, v)};
    return model;
  }
  void expectExternal(const std::string &location, ErrorKind kind, const std::string &text) {
    expectError(withExternal({{"location", location}}, {{"location", "w.bin"}}).model(), kind, text);
  }
};

/// External data that leads to files that the model's author may not read, or to what is no file, is not opened.
TEST_F(ImportHarm, ExternalDataThatLeadsElsewhere) {
  ASSERT_TRUE(writeFile(folder.file("w.bin"), raw<float>({1, 2, 3})).ok());
  fs::create_directories(folder.file("sub"));
  ASSERT_TRUE(writeFile(folder.file("sub/w.bin"), raw<float>({1, 2, 3})).ok());
  ASSERT_TRUE(writeFile(folder.file("twice.bin"), raw<float>({1, 2, 3})).ok());
  fs::create_symlink("w.bin", folder.file("link.bin"));
  fs::create_symlink("sub", folder.file("parent"));
  fs::create_symlink("nowhere", folder.file("dangling.bin"));
  fs::create_hard_link(folder.file("twice.bin"), folder.file("second.bin"));
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  expectExternal("../w.bin", ErrorKind::Io, "'../w.bin': leaves the folder");
  expectExternal("sub/../../w.bin", ErrorKind::Io, "leaves the folder");
  expectExternal("/etc/hostname", ErrorKind::Io, "'/etc/hostname': leaves the folder");
  expectExternal("/dev/zero", ErrorKind::Io, "leaves the folder");
  expectExternal("link.bin", ErrorKind::Io, "symbolic link");
  expectExternal("parent/w.bin", ErrorKind::Io, "symbolic link");
  expectExternal("dangling.bin", ErrorKind::Io, "symbolic link");
  expectExternal("second.bin", ErrorKind::Io, "2 names (hard links)");
  expectExternal("pipe", ErrorKind::Io, "is not a regular file");
  expectExternal("sub", ErrorKind::Io, "is not a regular file");
  expectExternal(std::string("w.bin\0.txt", 10), ErrorKind::Io, "is not a file name");
  if (::mknod(folder.file("device").c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0) // root alone may
    expectExternal("device", ErrorKind::Io, "is not a regular file");
  EXPECT_TRUE(import(withExternal({{"location", "sub/../w.bin"}}, {{"location", "sub/w.bin"}}).model()).ok());
}

/// A model cache of a hub: the model and its data are links to files elsewhere. Refused with the flag that allows it;
/// with it the name still stays beneath the folder, and what is behind it is a file.
TEST_F(ImportHarm, ModelCachesMadeOfLinks) {
  fs::create_directories(folder.file("blobs"));
  fs::create_directories(folder.file("snapshot"));
  ASSERT_TRUE(writeFile(folder.file("blobs/1"), withExternal({{"location", "w.data"}}, {{"location", "w.data"}}).model()).ok());
  ASSERT_TRUE(writeFile(folder.file("blobs/2"), raw<float>({1, 2, 3})).ok());
  fs::create_symlink("../blobs/1", folder.file("snapshot/m.onnx"));
  fs::create_symlink("../blobs/2", folder.file("snapshot/w.data"));
  std::string path = folder.file("snapshot/m.onnx");
  Expected<OwningOpRef<ModuleOp>> refused = importOnnx(path, options, &context);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("or give --follow-links if you trust"));
  options.followLinks = true;
  Expected<OwningOpRef<ModuleOp>> module = importOnnx(path, options, &context);
  ASSERT_TRUE(module.ok()) << module.status().text();
  Expected<std::vector<Tensor>> y = runImported(**module, {{"x", Array::zeros(DType::F32, {3})}}, true);
  ASSERT_TRUE(y.ok()) << y.status().text();
  EXPECT_EQ(y->front().floats, std::vector<double>({2, 4, 6}));

  ASSERT_TRUE(writeFile(folder.file("w.bin"), raw<float>({1, 2, 3})).ok());
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", folder.file("zero"));
  fs::create_symlink("pipe", folder.file("linked-pipe"));
  expectExternal("../w.bin", ErrorKind::Io, "leaves the folder");
  expectExternal("/etc/hostname", ErrorKind::Io, "leaves the folder");
  expectExternal("zero", ErrorKind::Io, "is not a regular file");
  expectExternal("linked-pipe", ErrorKind::Io, "is not a regular file");
}

/// Ranges that reach beyond the file or each other; tensors that share all their bytes are one that is stored once.
TEST_F(ImportHarm, RangesOfExternalData) {
  ASSERT_TRUE(writeFile(folder.file("w.bin"), raw<float>({1, 2, 3, 4, 5, 6})).ok());
  auto at = [](const std::string &offset) { return Entries{{"location", "w.bin"}, {"offset", offset}}; };
  EXPECT_TRUE(import(withExternal(at("0"), at("12")).model()).ok());
  EXPECT_TRUE(import(withExternal(at("12"), at("12")).model()).ok());
  for (auto [w, v] : {std::pair("0", "8"), {"8", "0"}, {"4", "12"}})
    expectError(withExternal(at(w), at(v)).model(), ErrorKind::Model, "overlaps that of tensor 'w'");
  expectError(withExternal(at("0"), at("13")).model(), ErrorKind::Model, "the file has 24");
  for (const char *offset : {"9223372036854775807", "9223372036854775800"})
    expectError(withExternal(at("0"), at(offset)).model(), ErrorKind::Model, "external data");
  expectError(withExternal(at("0"), at("9223372036854775808")).model(), ErrorKind::Model, "not a number of bytes");
  // Where the file is not there, ranges are checked all the same.
  auto absent = [](const std::string &offset) { return Entries{{"location", "none.bin"}, {"offset", offset}}; };
  EXPECT_TRUE(import(withExternal(absent("0"), absent("12")).model()).ok());
  expectError(withExternal(absent("0"), absent("8")).model(), ErrorKind::Model, "overlaps");
  expectError(withExternal(absent("0"), absent("9223372036854775800")).model(), ErrorKind::Model, "which no file reaches");
}

/// One name for two inputs. (Nodes and initializers: ImportErrors.)
TEST_F(ImportHarm, DuplicateNames) {
  Graph model;
  model.nodes = {node("Neg", {"x"}, {"y"}, {}, "n")};
  model.inputs = {value("x", f32, {"3"}), value("x", f32, {"2"})};
  model.outputs = {value("y", f32, {})};
  expectError(model.model(), ErrorKind::Model, "'x'");
}

/// What is longer than anybody needs is said in one line, before anything is done for each of its pieces.
TEST_F(ImportHarm, ListsWithoutEnd) {
  Graph model;
  model.nodes = {node("Sum", std::vector<std::string>(100'001, "x"), {"y"}, {}, "n")};
  model.inputs = {value("x", f32, {"3"})};
  model.outputs = {value("y", f32, {})};
  expectError(model.model(), ErrorKind::Unsupported, "node 'n' (Sum) has 100001 inputs and 1 outputs; at most 100000 are possible");
  model.nodes = {node("Neg", {"x"}, {"y"}, {}, "n")};
  model.inputs = {value("x", f32, std::vector<std::string>(100'000, "s"))};
  expectError(model.model(), ErrorKind::Unsupported, "input 'x': a tensor of 100000 dims; at most 24 are possible");
  model.inputs = {value("x", f32, {"3"})};
  model.initializers = {floats("w", std::vector<int64_t>(100'000, 1), {})};
  expectError(model.model(), ErrorKind::Model, "1x1... of 100000 dims needs 4");
}

/// Many operands, inputs and outputs, none of them too many: in a time that grows as they do.
TEST_F(ImportHarm, ManyOfEverything) {
  constexpr int64_t count = 3000;
  Graph model;
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) {
    names.push_back("x" + std::to_string(i));
    model.inputs.push_back(value(names.back(), f32, {"1"}));
    model.outputs.push_back(value("y" + std::to_string(i), f32, {}));
    model.nodes.push_back(node("Neg", {names.back()}, {"y" + std::to_string(i)}));
  }
  model.nodes.push_back(node("Concat", names, {"y"}, {attribute("axis", int64_t(0))}));
  model.outputs.push_back(value("y", f32, {}));
  ASSERT_TRUE(writeFile(folder.file("m.onnx"), model.model()).ok());
  Expected<OwningOpRef<ModuleOp>> module = importOnnx(folder.file("m.onnx"), options, &context);
  ASSERT_TRUE(module.ok()) << module.status().text();
  NamedArrays inputs;
  for (int64_t i = 0; i < count; ++i) {
    inputs.emplace_back(names[size_t(i)], Array::zeros(DType::F32, {1}));
    inputs.back().second.as<float>()[0] = float(i);
  }
  Expected<std::vector<Tensor>> results = runImported(**module, inputs, true);
  ASSERT_TRUE(results.ok()) << results.status().text();
  ASSERT_EQ(results->size(), size_t(count) + 1);
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_EQ((*results)[size_t(i)].floats[0], double(-i));
    EXPECT_EQ(results->back().floats[size_t(i)], double(i));
  }
}

/// Versions that nobody has published: an op may mean something else there.
TEST_F(ImportHarm, Opsets) {
  Graph model;
  model.nodes = {node("Neg", {"x"}, {"y"}, {}, "n")};
  model.inputs = {value("x", f32, {"3"})};
  model.outputs = {value("y", f32, {})};
  for (int64_t opset : {int64_t(29), int64_t(1000000000), std::numeric_limits<int64_t>::max()}) {
    model.opset = opset;
    expectError(model.model(), ErrorKind::Unsupported, "it imports opset " + std::to_string(opset) + " of ONNX");
  }
  for (int64_t opset : {int64_t(0), int64_t(-1), std::numeric_limits<int64_t>::min()}) {
    model.opset = opset;
    expectError(model.model(), ErrorKind::Unsupported, "Neg (");
  }
}

/// Sizes near 2^62, wherever a file or a flag may say one.
TEST_F(ImportHarm, HugeDims) {
  Graph model;
  model.nodes = {node("Neg", {"x"}, {"y"}, {}, "n")};
  model.outputs = {value("y", f32, {})};
  for (const std::vector<std::string> &dims : {std::vector<std::string>{"4611686018427387904"}, {"2147483648", "2147483648"}}) {
    model.inputs = {value("x", f32, dims)};
    expectError(model.model(), ErrorKind::Model, "input 'x'");
  }
  model.inputs = {value("x", f32, {"n", "4"})};
  options.dims["n"] = int64_t(1) << 62;
  expectError(model.model(), ErrorKind::Usage, "input 'x'");
}

/// Two bytes of an empty field become a struct of hundreds: refused before protobuf makes them. As many bytes of a
/// tensor are none of that.
TEST_F(ImportHarm, FieldsThatWouldFillTheMemory) {
  Graph model;
  model.nodes = {node("Add", {"x", "w"}, {"y"})};
  model.inputs = {value("x", f32, {"1500000"})};
  model.outputs = {value("y", f32, {})};
  model.initializers = {floats("w", {1500000}, std::vector<float>(1500000, 1))};
  EXPECT_TRUE(import(model.model()).ok());
  model.initializers.clear();
  for (int field : {1, 5, 13}) { // nodes, initializers, value infos
    std::string pieces;
    for (int64_t i = 0; i < (field == 13 ? 5 : 3) * 1000000; ++i)
      pieces += bytes(field, "");
    expectError(model.model() + bytes(7, pieces), ErrorKind::Model, "would become structs of about");
  }
  std::string trainings;
  for (int64_t i = 0; i < 3'000'000; ++i)
    trainings += std::string("\xa2\x01\0", 3); // field 20, empty
  expectError(model.model() + trainings, ErrorKind::Model, "would become structs of about");
  std::string names;
  for (int64_t i = 0; i < 5'000'000; ++i)
    names += bytes(1, "");
  model.nodes = {node("Neg", {"x"}, {"y"}) + names};
  expectError(model.model(), ErrorKind::Model, "would become structs of about");
  std::string longName(1 << 20, 'n');
  for (const std::string &each : {node("Neg", {"x"}, {"y"}, {}, longName), node("Neg", {longName}, {"y"}), node(longName, {"x"}, {"y"}),
                                  node("Neg", {"x"}, {"y"}, {attribute(longName, int64_t(1))})}) {
    model.nodes = {each};
    expectError(model.model(), ErrorKind::Model, "it has a name of 1048576 bytes");
  }
}

/// Elements of large tensors are not parsed, only found: protobuf would copy them, and a model be in memory twice. What
/// is said of them stays the same.
TEST_F(ImportHarm, LargeTensorsAreNotCopied) {
  Graph model;
  model.nodes = {node("Add", {"x", "w"}, {"y"})};
  model.inputs = {value("x", f32, {"1000"})};
  model.outputs = {value("y", f32, {})};
  auto with = [&](int64_t count, float last) {
    std::vector<float> elements(size_t(count), 1);
    elements.back() = last;
    model.initializers = {floats("w", {1000}, elements)};
    return model.model();
  };
  std::string file = with(1000, 5);
  std::string spared = onnx::withoutStoredBytes(reinterpret_cast<const std::byte *>(file.data()), int64_t(file.size()));
  EXPECT_EQ(spared.size() + 4000 + 3, file.size()) << "three lengths take a byte less";
  expectError(with(999, 5), ErrorKind::Model, "tensor 'w' holds 3996 bytes, but f32 1000 needs 4000");
  expectError(with(1001, 5), ErrorKind::Model, "tensor 'w' holds 4004 bytes, but f32 1000 needs 4000");
  ASSERT_TRUE(writeFile(folder.file("m.onnx"), file).ok());
  Expected<OwningOpRef<ModuleOp>> module = importOnnx(folder.file("m.onnx"), options, &context);
  ASSERT_TRUE(module.ok()) << module.status().text();
  Expected<std::vector<Tensor>> y = runImported(**module, {{"x", Array::zeros(DType::F32, {1000})}}, true);
  ASSERT_TRUE(y.ok()) << y.status().text();
  EXPECT_EQ(y->front().floats.front(), 1);
  EXPECT_EQ(y->front().floats.back(), 5);
}

/// Graphs inside graphs, functions inside functions, each a thousand deep, or in a circle: refused, without recursion
/// that ends the stack.
TEST_F(ImportHarm, Nesting) {
  std::string inner = bytes(1, node("Neg", {"x"}, {"y"}));
  for (int level = 0; level < 1000; ++level)
    inner = bytes(1, node("If", {"x"}, {"y"}, {bytes(1, "then_branch") + bytes(6, inner) + number(20, 5)}));
  Graph model;
  model.nodes = {node("If", {"x"}, {"y"}, {bytes(1, "then_branch") + bytes(6, inner) + number(20, 5)})};
  model.inputs = {value("x", f32, {"3"})};
  model.outputs = {value("y", f32, {})};
  expectError(model.model(), ErrorKind::Model, "nested more than 100 deep");

  auto function = [](const std::string &name, const std::string &called, const std::string &domain) {
    return bytes(1, name) + bytes(4, "a") + bytes(5, "b") + bytes(7, node(called, {"a"}, {"b"}, {}, "", domain)) +
           bytes(9, bytes(1, "") + number(2, 18)) + bytes(10, "local");
  };
  model.nodes = {node("F999", {"x"}, {"y"}, {}, "call", "local")};
  for (int level = 0; level < 1000; ++level)
    model.functions.push_back(function("F" + std::to_string(level), level ? "F" + std::to_string(level - 1) : "Neg",
                                       level ? "local" : ""));
  expectError(model.model(), ErrorKind::Model, "calls nest deeper than 64");
  model.functions = {function("F999", "G", "local"), function("G", "F999", "local")};
  expectError(model.model(), ErrorKind::Model, "calls itself");
}

} // namespace
} // namespace hpc
