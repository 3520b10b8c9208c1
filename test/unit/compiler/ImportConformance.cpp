// The ONNX project's own node tests (test/conformance/make.py) and ops of ONNX Runtime (make_fused.py), imported and run in
// the interpreter. Expected values come from the ONNX project's reference implementation and from ONNX Runtime, mostly in float32.
#include "test/unit/compiler/ImportFixture.h"

#include "runtime/base/File.h"

namespace hpc {
namespace {

struct ConformanceCase {
  std::string name;
  const Array *model = nullptr;
  NamedArrays inputs, outputs;
};

const char *const archiveFiles[] = {"test/conformance/cases.npz", "test/conformance/cases-images.npz",
                                    "test/conformance/attention.npz", "test/conformance/fused.npz",
                                    "test/conformance/sequences.npz"};

std::vector<ConformanceCase> conformanceCases() {
  const char *other = std::getenv("HPC_CONFORMANCE_CASES"); // an archive of the same form, e.g. of random graphs
  static const std::vector<Expected<NamedArrays>> archives = [&] {
    std::vector<Expected<NamedArrays>> read;
    if (other)
      read.push_back(readNpz(other));
    for (const char *file : archiveFiles)
      if (!other)
        read.push_back(readNpz(sourcePath(file)));
    return read;
  }();
  std::map<std::string, ConformanceCase> cases;
  for (const Expected<NamedArrays> &archive : archives) {
    if (!archive.ok())
      continue; // ConformanceArchives says so
    for (const auto &[path, array] : *archive) {
      auto [name, rest] = StringRef(path).split('/');
      ConformanceCase &test = cases[name.str()];
      test.name = name.str();
      if (rest == "model")
        test.model = &array;
      else if (rest.consume_front("input/"))
        test.inputs.emplace_back(rest.str(), array);
      else if (rest.consume_front("output/"))
        test.outputs.emplace_back(rest.str(), array);
    }
  }
  std::vector<ConformanceCase> list;
  for (auto &[name, test] : cases)
    list.push_back(std::move(test));
  return list;
}

// An archive that is not found would be no case, and every case would pass.
TEST(ConformanceArchives, AreThere) {
  if (!std::getenv("HPC_CONFORMANCE_CASES")) {
    EXPECT_GT(conformanceCases().size(), 700u);
  }
}

/// Whether a file of test/conformance lists the case. unsupported.txt: the import must refuse it; rounded.txt: its expected
/// values have four digits; deviations.txt: see the README there.
bool isListed(const std::string &list, const std::string &name) {
  Expected<MappedFile> file = MappedFile::open(sourcePath("test/conformance/" + list));
  return file.ok() && ("\n" + std::string(file->text())).find("\n" + name + "\n") != std::string::npos;
}

double tolerance(DType type) {
  switch (type) {
  case DType::F64:
    return 1e-7; // expected values of some cases went through float32
  case DType::F32:
    return 1e-5;
  case DType::F16:
    return 2e-3;
  case DType::BF16:
    return 2e-2;
  default:
    return 0;
  }
}

/// Equal infinities and NaNs, otherwise close.
bool agrees(double actual, double expected, double bound) {
  if (std::isnan(expected) || std::isinf(expected))
    return std::isnan(expected) ? std::isnan(actual) : actual == expected;
  return std::fabs(actual - expected) <= bound * std::max(1.0, std::fabs(expected));
}

class Conformance : public testing::TestWithParam<ConformanceCase> {};

TEST_P(Conformance, EqualsExpected) {
  const ConformanceCase &test = GetParam();
  TemporaryFolder folder;
  ASSERT_TRUE(test.model);
  ASSERT_TRUE(writeFile(folder.file("model.onnx"), {test.model->as<char>(), test.model->data.size()}).ok());
  MLIRContext context;
  Expected<OwningOpRef<ModuleOp>> module = importOnnx(folder.file("model.onnx"), {}, &context);
  if (isListed("unsupported.txt", test.name)) {
    ASSERT_FALSE(module.ok()) << "works now: take it out of unsupported.txt";
    ASSERT_EQ(module.status().kind(), ErrorKind::Unsupported) << module.status().text();
    return;
  }
  ASSERT_TRUE(module.ok()) << module.status().text();
  Expected<std::vector<Tensor>> results = runImported(**module, test.inputs, /*doublePrecision=*/false);
  ASSERT_TRUE(results.ok()) << results.status().text();
  if (isListed("deviations.txt", test.name))
    GTEST_SKIP() << "deviates on purpose";
  double written = isListed("rounded.txt", test.name) ? 1e-4 : 0;
  for (size_t i = 0; i < results->size(); ++i) {
    std::string name = nn::resultPort(mainOf(**module), unsigned(i)).name;
    const Array *array = findArray(test.outputs, name);
    ASSERT_TRUE(array) << name;
    Tensor expected = tensorFromArray(*array);
    const Tensor &actual = (*results)[i];
    ASSERT_EQ(actual.shape, expected.shape);
    ASSERT_EQ(actual.dtype, expected.dtype);
    for (int64_t at = 0; at < expected.size(); ++at)
      ASSERT_TRUE(agrees(actual.number(at), expected.number(at), std::max(tolerance(expected.dtype), written)))
          << name << " at " << at << ": " << actual.number(at) << ", expected " << expected.number(at);
  }
}

// An archive that cannot be read would be no cases, and no failure.
TEST(ConformanceArchives, CanBeRead) {
  for (const char *file : archiveFiles) {
    Expected<NamedArrays> archive = readNpz(sourcePath(file));
    ASSERT_TRUE(archive.ok()) << archive.status().text();
    EXPECT_FALSE(archive->empty()) << file;
  }
}

std::string caseName(const testing::TestParamInfo<ConformanceCase> &info) { return info.param.name; }
void PrintTo(const ConformanceCase &test, std::ostream *stream) { *stream << test.name; }
INSTANTIATE_TEST_SUITE_P(Node, Conformance, testing::ValuesIn(conformanceCases()), caseName);

} // namespace
} // namespace hpc
