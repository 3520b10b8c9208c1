#!/usr/bin/env bash
# Whether cuDNN's own library has engines for the backend's graphs of attention, on an A100 and an H100: it compiles for a card that it is told of, so none is
# needed, only the toolkit. Of the driver it wants no more than that compiled code can be loaded: a library made here from the names in the toolkit's stub says so.
# By hand; a minute.
#
#   test/gpu/engines/cudnn-engines.sh [TOOLKIT]      # default /usr/local/cuda, with libcudnn.so.9 and stubs/libcuda.so below lib or lib64
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
toolkit=${1:-/usr/local/cuda}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stub=$(ls "$toolkit"/lib*/stubs/libcuda.so | head -1)
{
  echo '#include <dlfcn.h>'
  # Everything fails as without a driver, but for loading code.
  nm -D --defined-only "$stub" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort -u | while read -r name; do
    case "$name" in
    cuGetProcAddress*) ;;
    cuLibraryLoadData | cuLibraryGetKernel | cuLibraryGetModule | cuKernelGetFunction) echo "int $name(void **handle) { *handle = (void *)64; return 0; }" ;;
    cuDriverGetVersion) echo "int $name(int *version) { *version = 13000; return 0; }" ;;
    cuLibrary* | cuKernel* | cuFunc* | cuModule*) echo "int $name() { return 0; }" ;;
    *) echo "int $name() { return 34; }" ;;
    esac
  done
  echo 'int cuGetProcAddress_v2(const char *name, void **entry, int version, unsigned long flags, int *state) {'
  echo '  void *self = dlopen("libcuda.so.1", RTLD_LAZY); *entry = dlsym(self, name); if (state) *state = *entry ? 0 : 1; return *entry ? 0 : 500; }'
  echo 'int cuGetProcAddress(const char *name, void **entry, int version, unsigned long flags) { return cuGetProcAddress_v2(name, entry, version, flags, 0); }'
} >"$work/driver.c"
gcc -w -shared -fPIC "$work/driver.c" -o "$work/libcuda.so.1" -ldl
clang++-22 -std=c++20 -O1 -I"$root" "$root"/test/gpu/engines/CudnnEngines.cpp "$root"/runtime/backend/cuda/{AttentionGraph,CudnnGraph,Library}.cpp \
  "$root"/runtime/base/{Status,DType,AvailableMemory}.cpp "$(grep -l '^std::string messageText' "$root"/runtime/base/*.cpp)" -ldl -o "$work/engines"
card() { # name, compute capability, multiprocessors, shared bytes of a block
  echo "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"multiProcessorCount\":$3,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":$4,\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":8,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":80000000000,\"smClockRateKHz\":1400000,\"memClockRateKHz\":1600000,\"l2CacheSize\":41943040,\"cudaDeviceId\":0,\"deviceVer\":$2,\"driverVer\":13000,\"deviceName\":\"$1\"}"
}
export LD_LIBRARY_PATH=$work:$toolkit/lib:$toolkit/lib64:${LD_LIBRARY_PATH:-}
for one in "$(card "NVIDIA H100 80GB HBM3" 900 132 232448)" "$(card "NVIDIA A100-SXM4-80GB" 800 108 166912)"; do
  "$work/engines" "$one"
done
