// Runs kernels of a device on the CPU: their LLVM IR compiled for x86-64 (hpc-emit-kernels=device-code-on-host=FILE), a block
// at a time, its threads as fibers that switch where they wait for each other. A C ABI, so that a stand-in for a driver can
// use it.
//
// A thread runs until it waits (barrier, shuffle) or ends, and only then another one does: in the order of the threads, in the
// reverse order, or in random ones. So where a barrier is missing, threads are as far apart as can be. Shared memory starts
// as NaN in every block and ends at an unmapped page. Thread-safe: each call has a block of its own.
#ifndef HPC_TEST_GPU_BLOCK_RUNNER_H
#define HPC_TEST_GPU_BLOCK_RUNNER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What device code calls instead of NVPTX's intrinsics. passes/Kernels/Device/DeviceOnHost.cpp knows the order.
struct HpcBlockTable {
  uint32_t (*thread)(void); ///< its number in the block
  uint32_t (*block)(void);  ///< its block's number
  void (*barrier)(void);    ///< of the whole block
  uint32_t (*shuffleXor)(uint32_t value, uint32_t distance); ///< the value of the lane whose number is ours ^ distance
  void *(*shared)(void);    ///< the block's shared memory
};

/// For kernels that are written by hand, as C or C++: they call the same.
const struct HpcBlockTable *hpcBlocksTable(void);

enum HpcBlockOrder { HPC_BLOCKS_FORWARD, HPC_BLOCKS_REVERSE, HPC_BLOCKS_RANDOM };

struct HpcBlockLaunch {
  int64_t blocks, threads, sharedBytes; ///< threads: 1..1024
  enum HpcBlockOrder order;             ///< of blocks, and of the threads in each
  uint64_t seed;                        ///< of HPC_BLOCKS_RANDOM
};

typedef struct HpcBlockModule HpcBlockModule;
/// void kernel(void *const *params): params[i] points to parameter i, as cuLaunchKernel takes them.
typedef void (*HpcBlockKernel)(void *const *params);

/// Loads the bytes of a shared object. Null with a text in `error` where that fails.
HpcBlockModule *hpcBlocksLoad(const void *object, size_t bytes, char *error, size_t errorBytes);
/// Null where it defines no such kernel.
HpcBlockKernel hpcBlocksFind(HpcBlockModule *module, const char *symbol);
void hpcBlocksUnload(HpcBlockModule *module);

/// Runs a launch to its end. 0, or 1 with a text in `error` where threads wait for each other in vain: one ended while
/// others stand at a barrier, or the lanes of a warp wait for different things.
int hpcBlocksRun(HpcBlockKernel kernel, const struct HpcBlockLaunch *launch, void *const *params, char *error,
                 size_t errorBytes);

#ifdef __cplusplus
}
#endif
#endif
