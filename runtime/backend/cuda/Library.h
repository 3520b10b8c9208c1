// A shared library that may not be there, and the table of its functions. It stays loaded for the life of the process:
// drivers and the libraries round them do not survive being unloaded.
#pragma once

#include "runtime/backend/cuda/CublasLtApi.h"
#include "runtime/backend/cuda/CudnnApi.h"
#include "runtime/backend/cuda/NcclApi.h"
#include "runtime/base/Status.h"

#include <string>

namespace hpc::cuda {

/// Each opens its library in `folder`, or by the loader's own rules if that is empty, and looks up every function. The
/// driver is initialised too. Errors name the missing library or function and the package that has it.
Expected<Driver> loadDriver(const std::string &folder);
Expected<CublasLt> loadCublasLt(const std::string &folder);
Expected<Cudnn> loadCudnn(const std::string &folder);
Expected<Nccl> loadNccl(const std::string &folder);

/// Success, or an error that begins with `what` and has the driver's own name and text of the result.
Status check(const Driver &driver, DriverResult result, const std::string &what);
Status check(const CublasLt &blas, BlasResult result, const std::string &what);
Status check(const Cudnn &dnn, DnnResult result, const std::string &what);
Status check(const Nccl &nccl, NcclResult result, const std::string &what);

} // namespace hpc::cuda
