// PTX for the oldest supported card; the driver compiles it for the present one. There is no libdevice: DeviceMath has
// replaced functions without an NVPTX instruction before, and any that remain are found here, since LLVM would abort.
#include "passes/Kernels/Device/DeviceCode.h"

#include "passes/Kernels/Code/LLVMPipeline.h"
#include "passes/Kernels/Code/MachineCode.h"
#include "passes/Kernels/Code/SharedObject.h"
#include "passes/Kernels/Device/DeviceLoops.h"
#include "passes/Kernels/Device/DeviceMath.h"
#include "passes/Kernels/Device/DeviceOnHost.h"

#include "compiler/Diagnostics.h"
#include "compiler/ModuleAttributes.h"

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace hpc::kernels {

namespace {
using Bytes = SmallVector<char, 0>;

InFlightDiagnostic fail(Location loc, const Twine &what) {
  return userError(loc, ErrorKind::Internal) << "device kernels: " << what;
}

std::unique_ptr<llvm::TargetMachine> makeDeviceTarget(Location loc) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    userError(loc, ErrorKind::Unsupported) << "this build of LLVM has no NVPTX back end (" << error
                                           << "); use --target=host";
    return nullptr;
  }
  // PTX ISA 8.0 came with CUDA 12.0; LLVM's default is too old for any card we support.
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, "sm_" + std::to_string(deviceCapability), "+ptx80", llvm::TargetOptions(),
                                  llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Operations for which NVPTX calls a library, or which it cannot select.
bool hasNoInstruction(const llvm::Function &function) {
  switch (function.getIntrinsicID()) {
  case llvm::Intrinsic::not_intrinsic:
  case llvm::Intrinsic::exp:
  case llvm::Intrinsic::exp2:
  case llvm::Intrinsic::log:
  case llvm::Intrinsic::log2:
  case llvm::Intrinsic::log10:
  case llvm::Intrinsic::sin:
  case llvm::Intrinsic::cos:
  case llvm::Intrinsic::tan:
  case llvm::Intrinsic::pow:
  case llvm::Intrinsic::powi:
    return true;
  default:
    return false;
  }
}

void markKernels(llvm::Module &module, ArrayRef<DeviceLaunch> launches) {
  for (const DeviceLaunch &launch : launches) {
    llvm::Function *function = module.getFunction(launch.symbol);
    function->setCallingConv(llvm::CallingConv::PTX_Kernel);
    function->addFnAttr("nvvm.reqntid", std::to_string(launch.threads));
  }
}
} // namespace

FailureOr<DeviceCode> compileDeviceKernels(ModuleOp kernels, ArrayRef<DeviceLaunch> launches, bool onHostToo,
                                           Location loc) {
  std::unique_ptr<llvm::TargetMachine> target = makeDeviceTarget(loc);
  if (!target)
    return failure();
  replaceLibm(kernels);
  if (failed(LLVMLowering(kernels.getContext()).run(kernels)))
    return fail(loc, "do not lower to LLVM");
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = translateKernels(kernels, context, *target);
  if (!module)
    return fail(loc, "no LLVM IR was made");
  markKernels(*module, launches);
  optimizeKernels(*module, *target);
  for (const llvm::Function &function : *module)
    if (function.isDeclaration() && hasNoInstruction(function))
      return fail(loc, "'" + function.getName() + "' is no instruction of a device; add it to passes/Kernels/Device/DeviceMath.cpp");

  DeviceCode code;
  if (onHostToo) {
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(*module);
    std::vector<std::string> features;
    std::unique_ptr<llvm::TargetMachine> host = makeHostTarget("host", features, loc);
    if (!host)
      return failure();
    retargetToHost(*copy, launches, *host);
    Bytes object;
    if (failed(emitFile(*copy, *host, llvm::CodeGenFileType::ObjectFile, object)))
      return fail(loc, "LLVM cannot write x86-64 objects");
    FailureOr<std::string> linked = linkSharedObject(LinkedObject{"", object}, loc);
    if (failed(linked))
      return failure();
    code.onHost = std::move(*linked);
  }
  Bytes text;
  if (failed(emitFile(*module, *target, llvm::CodeGenFileType::AssemblyFile, text)))
    return fail(loc, "LLVM cannot write PTX");
  code.ptx.assign(text.begin(), text.end());
  return code;
}

} // namespace hpc::kernels
