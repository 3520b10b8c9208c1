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

/// Starts from a seed now and then, above all where there is nothing yet.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned random) {
  static const std::vector<std::string> seeds = chosen->seeds();
  const std::string &seed = seeds[random / 64 % seeds.size()];
  if ((size < 4 || random % 64 == 0) && seed.size() <= maxSize)
    std::memcpy(data, seed.data(), size = seed.size());
  return LLVMFuzzerMutate(data, size, maxSize);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  chosen->run({reinterpret_cast<const char *>(data), size});
  return 0;
}
#endif
