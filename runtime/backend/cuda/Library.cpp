// One table of names for each library, made from the lists that declare its functions.
#include "runtime/backend/cuda/Library.h"

#include "runtime/base/AvailableMemory.h"

#include <dlfcn.h>
#include <vector>

namespace hpc::cuda {

namespace {

Expected<void *> openFirst(const std::string &folder, const std::vector<std::string> &names,
                           const std::string &remedy) {
  std::string reasons;
  for (const std::string &name : names) {
    std::string path = folder.empty() ? name : folder + "/" + name;
    if (void *handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
      return handle;
    const char *reason = ::dlerror();
    reasons += (reasons.empty() ? "" : "; ") + std::string(reason ? reason : path);
  }
  return Status::error(ErrorKind::Unsupported, reasons + "; " + remedy);
}

/// A function of a table, seen as an address.
struct Entry {
  const char *symbol;
  void **address;
};

Status lookUp(void *handle, const std::vector<Entry> &entries, const std::string &library,
              const std::string &needed = "CUDA 12.2 or later") {
  for (const Entry &entry : entries) {
    *entry.address = ::dlsym(handle, entry.symbol);
    if (!*entry.address)
      return Status::error(ErrorKind::Unsupported,
                           library + " has no function " + entry.symbol + ": it is too old; " + needed + " is needed");
  }
  return Status::success();
}

#define HPC_ENTRY(result, member, symbol, arguments) {#symbol, reinterpret_cast<void **>(&table.member)},

ErrorKind kindOf(DriverResult result) {
  switch (result) {
  case driverOutOfMemory:
    return ErrorKind::Capacity;
  case driverNoDevice:
  case driverInvalidImage:
  case driverNoBinary:
  case driverInvalidPtx:
  case driverUnsupportedPtx:
    return ErrorKind::Unsupported;
  case driverInvalidValue:
  case driverInvalidContext:
  case driverInvalidHandle:
  case driverNotFound:
  case driverIllegalAddress:
  case driverOutOfResources:
  case driverLaunchFailed:
  case driverCaptureUnsupported:
  case driverCaptureInvalidated:
  case driverCaptureMerge:
  case driverCaptureUnmatched:
  case driverCaptureUnjoined:
  case driverCaptureIsolation:
  case driverCapturedEvent:
  case driverCaptureWrongThread:
    return ErrorKind::Internal;
  default: // the card, the driver, the machine
    return ErrorKind::Io;
  }
}

} // namespace

Expected<Driver> loadDriver(const std::string &folder) {
  Expected<void *> handle =
      openFirst(folder, {"libcuda.so.1"}, "--backend=cuda needs NVIDIA's driver; use --backend=host on this machine");
  if (!handle.ok())
    return handle.status();
  Driver table;
  HPC_RETURN_IF_ERROR(lookUp(*handle, {HPC_DRIVER_FUNCTIONS(HPC_ENTRY)}, "libcuda.so.1"));
  HPC_RETURN_IF_ERROR(check(table, table.init(0), "starting the GPU's driver"));
  return table;
}

Expected<CublasLt> loadCublasLt(const std::string &folder) {
  Expected<void *> handle = openFirst(folder, {"libcublasLt.so.13", "libcublasLt.so.12"},
                                      "matrix products need cuBLASLt: the CUDA toolkit has it, and so has the wheel "
                                      "nvidia-cublas of PyPI (LD_LIBRARY_PATH names its folder)");
  if (!handle.ok())
    return handle.status();
  CublasLt table;
  HPC_RETURN_IF_ERROR(lookUp(*handle, {HPC_BLAS_FUNCTIONS(HPC_ENTRY)}, "cuBLASLt"));
  return table;
}

Expected<Cudnn> loadCudnn(const std::string &folder) {
  Expected<void *> handle = openFirst(folder, {"libcudnn.so.9"},
                                      "NVIDIA's packages have cuDNN 9, and so has the wheel nvidia-cudnn-cu13 of PyPI "
                                      "(LD_LIBRARY_PATH names its folder)");
  if (!handle.ok())
    return handle.status();
  Cudnn table;
  HPC_RETURN_IF_ERROR(lookUp(*handle, {HPC_DNN_FUNCTIONS(HPC_ENTRY)}, "libcudnn.so.9", "cuDNN 9"));
  return table;
}

Expected<Nccl> loadNccl(const std::string &folder) {
  Expected<void *> handle = openFirst(folder, {"libnccl.so.2"},
                                      "ranks on several GPUs need NCCL: NVIDIA's packages have it, and so has the "
                                      "wheel nvidia-nccl of PyPI (LD_LIBRARY_PATH names its folder)");
  if (!handle.ok())
    return handle.status();
  Nccl table;
  HPC_RETURN_IF_ERROR(lookUp(*handle, {HPC_NCCL_FUNCTIONS(HPC_ENTRY)}, "libnccl.so.2", "NCCL 2.14 or later"));
  return table;
}

/// Errors of a kernel while it runs: any later call may be the one that finds it.
static bool isOfSomethingEarlier(DriverResult result) {
  return result == driverIllegalAddress || result == driverLaunchTimeout || result == driverAssert ||
         (result >= driverHardwareStackError && result <= driverLaunchFailed);
}

Status check(const Driver &driver, DriverResult result, const std::string &what) {
  if (result == driverSuccess)
    return Status::success();
  const char *name = nullptr, *text = nullptr;
  driver.getErrorName(result, &name);
  driver.getErrorString(result, &text);
  return Status::error(kindOf(result), what + ": " + (text ? text : "an error without a text") + " (" +
                                           (name ? name : "CUresult " + std::to_string(result)) + ")" +
                                           (isOfSomethingEarlier(result) ? "; with --sync-each-op it is found at the "
                                                                           "instruction that did it"
                                                                         : ""));
}

Status check(const CublasLt &blas, BlasResult result, const std::string &what) {
  if (result == blasSuccess)
    return Status::success();
  const char *name = blas.statusName(result);
  ErrorKind kind = result == blasNotSupported  ? ErrorKind::Unsupported
                   : result == blasAllocFailed ? ErrorKind::Capacity
                                               : ErrorKind::Io;
  return Status::error(kind, what + ": " + (name ? name : "cublasStatus " + std::to_string(result)));
}

Status check(const Cudnn &dnn, DnnResult result, const std::string &what) {
  if (result == dnnSuccess)
    return Status::success();
  const char *text = dnn.errorString(result);
  char detail[512] = "";
  dnn.lastError(detail, sizeof(detail));
  const int kind = result / 1000 * 1000;
  return Status::error(kind == dnnNotSupported   ? ErrorKind::Unsupported
                       : kind == dnnBadParameter ? ErrorKind::Internal
                                                 : ErrorKind::Io,
                       what + ": cuDNN: " + (text ? text : "cudnnStatus " + std::to_string(result)) +
                           (detail[0] ? std::string(" (") + detail + ")" : ""));
}

Status check(const Nccl &nccl, NcclResult result, const std::string &what) {
  if (result == ncclSuccess)
    return Status::success();
  const char *text = nccl.errorString(result);
  const bool isOurs = result == ncclInvalidArgument || result == ncclInternalError;
  return Status::error(isOurs ? ErrorKind::Internal : ErrorKind::Io,
                       what + ": NCCL: " + (text ? text : "ncclResult " + std::to_string(result)) +
                           (result == ncclSystemError ? "; " + sharedMemory().text() + ", which NCCL needs some of" : "") +
                           "; NCCL_DEBUG=WARN in the environment makes it say more");
}

} // namespace hpc::cuda
