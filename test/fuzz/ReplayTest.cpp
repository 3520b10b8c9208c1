// A short deterministic run of every target, in every build: its seeds, what fuzzers found (test/fuzz/findings/TARGET/),
// and mutations of both. A fuzzer with coverage finds more: Libfuzzer.cpp.
#include "test/fuzz/Targets.h"

#include "runtime/base/File.h"

#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>

namespace hpc::fuzz {

static void PrintTo(const Target &target, std::ostream *out) { *out << target.name; }

namespace {

struct Random {
  uint64_t state = 88172645463325252;
  uint64_t below(uint64_t end) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % end;
  }
};

/// One of the changes that damage and malice make: flipped bits, cuts, repetitions, extreme numbers.
std::string mutated(std::string bytes, const std::string &other, Random &random) {
  for (uint64_t changes = 1 + random.below(3); changes > 0 && !bytes.empty(); --changes) {
    size_t at = random.below(bytes.size()), length = 1 + random.below(std::min<size_t>(bytes.size() - at, 64));
    switch (random.below(7)) {
    case 0:
      bytes[at] = char(bytes[at] ^ (1 << random.below(8)));
      break;
    case 1:
      bytes[at] = char(random.below(256));
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(at, length);
      break;
    case 4:
      bytes.insert(at, bytes.substr(at, length));
      break;
    case 5: // a varint near 2^63
      bytes.replace(at, std::min<size_t>(length, 10), std::string(random.below(10), '\xff') + '\x7f');
      break;
    case 6:
      if (!other.empty())
        bytes.insert(at, other.substr(random.below(other.size()), length));
      break;
    }
  }
  return bytes;
}

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
};
/// Bytes of strangers end in success or an error: this test fails by crashing, or by a time that ends it.
TEST_P(Replay, EndsWhateverItReads) {
  std::vector<std::string> all = starts();
  for (const std::string &bytes : all)
    GetParam().run(bytes);
  Random random;
  bool isSlow = GetParam().name == std::string("compile"); // a whole compilation each
  for (int64_t round = 0, rounds = isSlow ? 400 : 4000; round < rounds; ++round)
    GetParam().run(mutated(all[random.below(all.size())], all[random.below(all.size())], random));
}

std::string nameOf(const testing::TestParamInfo<Target> &info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(File, Replay, testing::ValuesIn(fileTargets()), nameOf);
INSTANTIATE_TEST_SUITE_P(Compiler, Replay, testing::ValuesIn(compileTargets()), nameOf);

} // namespace
} // namespace hpc::fuzz
