// A short deterministic run of every target, in every build: its seeds, what fuzzers found (test/fuzz/findings/TARGET/),
// and mutations of both. A fuzzer with coverage finds more: Libfuzzer.cpp.
#include "test/fuzz/Targets.h"

#include "runtime/base/File.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>

namespace hpc::fuzz {

static void PrintTo(const Target &target, std::ostream *out) { *out << target.name; }

namespace {

struct Replay : testing::TestWithParam<Target> {
  std::vector<std::string> starts() const {
    std::vector<std::string> all = GetParam().seeds();
    for (const std::string &seed : all)
      EXPECT_TRUE(GetParam().run(seed)) << "a seed that leads nowhere";
    std::filesystem::path folder = std::string(HPC_SOURCE_DIR "/test/fuzz/findings/") + GetParam().name;
    if (std::filesystem::exists(folder)) {
      std::vector<std::filesystem::path> files(std::filesystem::directory_iterator(folder), {});
      std::sort(files.begin(), files.end());
      for (const std::filesystem::path &path : files)
        if (Expected<MappedFile> file = MappedFile::open(path); file.ok())
          all.emplace_back(file->text());
    }
    return all;
  }
  std::vector<std::string> others() const {
    return GetParam().more ? GetParam().more() : std::vector<std::string>();
  }
};
/// Bytes of strangers end in success or an error: this test fails by crashing, or by a time that ends it.
TEST_P(Replay, EndsWhateverItReads) {
  std::vector<std::string> all = starts();
  for (const std::string &bytes : all)
    GetParam().run(bytes);
  for (std::string &bytes : others())
    all.push_back(std::move(bytes));
  Random random;
  bool isSlow = GetParam().name == std::string("compile"); // a whole compilation each
  for (int64_t round = 0, rounds = isSlow ? 600 : 6000; round < rounds; ++round) {
    const std::string &other = all[random.below(all.size())];
    Mutation mutation{random, other, [&](std::string &bytes) { changeBytes(bytes, other, random); }};
    GetParam().run(mutated(all[random.below(all.size())], GetParam().format, mutation));
  }
}

std::string nameOf(const testing::TestParamInfo<Target> &info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(File, Replay, testing::ValuesIn(fileTargets()), nameOf);
INSTANTIATE_TEST_SUITE_P(Compiler, Replay, testing::ValuesIn(compileTargets()), nameOf);

} // namespace
} // namespace hpc::fuzz
