// What a cache of kernels does where its folder or the compiler's own files fail it: a compilation ends as it would without.
#include "passes/Kernels/Code/CompilerIdentity.h"
#include "passes/Kernels/Code/MachineCode.h"
#include "passes/Kernels/Host/RegionEmitter.h"
#include "test/unit/passes/KernelsHarness.h"

#include "gmock/gmock.h"

#include <csignal>
#include <filesystem>
#include <sys/resource.h>

namespace hpc::test {

namespace {
/// A fresh folder that goes away.
struct Folder {
  std::string path = testing::TempDir() + "/kernel-cache-" + std::to_string(getpid());
  Folder() { std::filesystem::remove_all(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

/// While it lives, no file grows beyond `bytes`, as on a full disk.
class FullDisk {
public:
  explicit FullDisk(rlim_t bytes) : handler(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit now{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
  }

private:
  rlimit before = {};
  void (*handler)(int);
};

const char *const twoRegions = R"(
  func.func @main(%x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
    %0 = nn.fused "exp_0" (%x) : (tensor<8x16xf32>) -> tensor<8x16xf32> {
    ^bb0(%a: tensor<8x16xf32>):
      %1 = nn.exp %a : tensor<8x16xf32> -> tensor<8x16xf32>
      nn.yield %1 : tensor<8x16xf32>
    }
    %2 = nn.fused "add_0" (%x, %0) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32> {
    ^bb0(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>):
      %1 = nn.add %a, %b : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
      nn.yield %1 : tensor<8x16xf32>
    }
    return %0, %2 : tensor<8x16xf32>, tensor<8x16xf32>
  })";

struct KernelCacheTest : KernelTest {
  Folder folder;

  KernelCacheTest() {
    DialectRegistry registry;
    createEmitKernels()->getDependentDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The machine code of the module's regions; `before` runs after the last was added. Empty where there is none.
  std::string compile(const kernels::KernelCache *cache, function_ref<void()> before = [] {}) {
    kernels::HostKernels made(&context, "x86-64-v3", cache, module->getLoc());
    module->walk([&](nn::FusedOp region) {
      OwningOpRef<ModuleOp> kernel = ModuleOp::create(UnknownLoc::get(&context));
      EXPECT_TRUE(succeeded(kernels::emitRegion(region, *kernel, kernels::vectorUnitOf("x86-64-v3"))));
      EXPECT_TRUE(succeeded(made.add(region.getSymbol(), std::move(kernel))));
    });
    before();
    FailureOr<kernels::MachineCode> code = made.finish();
    return succeeded(code) ? code->bytes : "";
  }
};
} // namespace

// A folder that goes away, or fills up, while kernels are made must not cost the plan that they are made for: it is one
// warning, however many kernels there are.
TEST_F(KernelCacheTest, AFolderThatCannotBeWrittenToIsAWarning) {
  parse(twoRegions);
  const std::string wanted = compile(nullptr);
  ASSERT_FALSE(wanted.empty());
  Expected<kernels::KernelCache> cache = kernels::KernelCache::open(folder.path, "a compiler");
  ASSERT_TRUE(cache.ok()) << cache.status().text();
  std::vector<std::string> warnings;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    EXPECT_EQ(diagnostic.getSeverity(), DiagnosticSeverity::Warning);
    warnings.push_back(diagnostic.str());
    return success();
  });
  EXPECT_EQ(compile(&*cache, [&] { std::filesystem::remove_all(folder.path); }), wanted);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], testing::HasSubstr("--kernel-cache=" + folder.path + " cannot be written to: No such file"));
}

// What a full disk cuts short must neither be found nor stay.
TEST_F(KernelCacheTest, AFullDiskLeavesNothing) {
  Expected<kernels::KernelCache> cache = kernels::KernelCache::open(folder.path, "a compiler");
  ASSERT_TRUE(cache.ok()) << cache.status().text();
  const kernels::KernelCache::Key key = cache->keyOf({"a kernel"});
  const std::vector<char> code(4096, 'x');
  {
    FullDisk full(1024);
    Status status = cache->keep(key, code);
    EXPECT_EQ(status.kind(), ErrorKind::Io);
    EXPECT_THAT(status.message(), testing::HasSubstr("cannot be written to: File too large"));
  }
  EXPECT_FALSE(cache->find(key));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
  EXPECT_TRUE(cache->keep(key, code).ok());
  ASSERT_TRUE(cache->find(key));
  EXPECT_TRUE(ArrayRef<char>(*cache->find(key)) == ArrayRef<char>(code));
}

// Code of one compiler must not be found by another, nor may texts that only join to the same one share an entry.
TEST_F(KernelCacheTest, KeysTellCompilersAndTextsApart) {
  Expected<kernels::KernelCache> one = kernels::KernelCache::open(folder.path, "one"),
                                 other = kernels::KernelCache::open(folder.path, "other");
  ASSERT_TRUE(one.ok() && other.ok());
  const std::vector<kernels::KernelCache::Key> keys = {one->keyOf({"ab", "c"}), one->keyOf({"a", "bc"}), one->keyOf({"abc"}),
                                                       other->keyOf({"ab", "c"})};
  for (size_t i = 0; i < keys.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      EXPECT_NE(keys[i], keys[j]) << i << " and " << j;
}

// A library that cannot be identified must not be taken for every other of its name: its code might differ.
TEST_F(KernelCacheTest, ALibraryWithoutBuildIdOrFileIsNoCompiler) {
  Expected<std::string> before = kernels::identifyCompiler();
  ASSERT_TRUE(before.ok()) << before.status().text();
  parse(twoRegions);
  const std::string code = compile(nullptr);
  const std::string path = testing::TempDir() + "/no-build-id-" + std::to_string(getpid()) + ".so";
  std::ofstream(path, std::ios::binary) << code;
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  Expected<std::string> hashed = kernels::identifyCompiler();
  std::filesystem::remove(path);
  Expected<std::string> unknown = kernels::identifyCompiler();
  dlclose(library);
  ASSERT_TRUE(hashed.ok()) << hashed.status().text();
  EXPECT_NE(*hashed, *before);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().kind(), ErrorKind::Io);
  EXPECT_THAT(unknown.status().message(), testing::HasSubstr("'" + path + "' has no build id and cannot be read"));
}

} // namespace hpc::test
