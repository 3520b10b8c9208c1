// libFuzzer's entry: `hpc-fuzz TARGET [libFuzzer's options] [folder]`. Built only with -fsanitize=fuzzer, twice:
// hpc-fuzz with HPC_FUZZ_TARGETS = fileTargets, hpc-fuzz-compile with compileTargets.
#ifdef HPC_FUZZ_TARGETS
#include "test/fuzz/Targets.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace hpc::fuzz;

static const Target *chosen;

// The packaged LLVM is not instrumented: containers that it and our code share are marked by one side only.
extern "C" const char *__asan_default_options() {
  return "detect_container_overflow=0:allow_user_poisoning=0:detect_leaks=0";
}

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv) {
  for (const Target &target : HPC_FUZZ_TARGETS())
    if (*argc > 1 && !std::strcmp((*argv)[1], target.name))
      chosen = &target;
  if (!chosen) {
    std::fprintf(stderr, "usage: %s TARGET [options of libFuzzer] [folder of findings]; targets:", **argv);
    for (const Target &target : HPC_FUZZ_TARGETS())
      std::fprintf(stderr, " %s", target.name);
    std::fprintf(stderr, "\n");
    std::exit(1);
  }
  (*argv)[1] = (*argv)[0];
  ++*argv;
  --*argc;
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// Starts from a seed now and then, above all where there is nothing yet. Every second change is one of what the bytes say.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned number) {
  static const std::vector<std::string> seeds = [] {
    std::vector<std::string> all = chosen->seeds();
    if (chosen->more)
      for (std::string &each : chosen->more())
        all.push_back(std::move(each));
    return all;
  }();
  Random random = {(uint64_t(number) << 1 | 1) * 0x9e3779b97f4a7c15};
  random.below(1);
  const std::string &seed = seeds[random.below(seeds.size())];
  if ((size < 4 || random.below(64) == 0) && seed.size() <= maxSize)
    std::memcpy(data, seed.data(), size = seed.size());
  if (random.below(2))
    return LLVMFuzzerMutate(data, size, maxSize);
  auto byFuzzer = [&](std::string &bytes) { // it knows what the program compares with
    size_t before = bytes.size();
    bytes.resize(before + 32);
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(bytes.data()), before, bytes.size()));
  };
  Mutation mutation{random, seed, byFuzzer};
  std::string changed = mutated({reinterpret_cast<const char *>(data), size}, chosen->format, mutation);
  if (changed.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  chosen->run({reinterpret_cast<const char *>(data), size});
  return 0;
}
#endif
