// Every distinct region becomes a function; all functions become one piece of code for each of the module's targets.
// Regions with one symbol are equal (by hpc-fuse-regions; checked here), so only the first one is used.
#include "passes/Kernels/Code/CompilerIdentity.h"
#include "passes/Kernels/Code/MachineCode.h"
#include "passes/Kernels/Device/DeviceCode.h"
#include "passes/Kernels/Elements/RegionBody.h"
#include "passes/Kernels/Elements/RegionShape.h"
#include "passes/Kernels/Host/RegionEmitter.h"
#include "passes/Kernels/Passes.h"
#include "passes/Kernels/Regions/AttentionRegion.h"
#include "passes/Kernels/Regions/EpilogueRegion.h"
#include "passes/Kernels/Regions/KernelScalars.h"

#include "compiler/Diagnostics.h"
#include "compiler/ElementType.h"
#include "compiler/LibraryKernel.h"
#include "compiler/ModuleAttributes.h"
#include "llvm/Support/FileSystem.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace hpc {
#define GEN_PASS_DEF_EMITKERNELS
#include "passes/Kernels/Passes.h.inc"

namespace {
plan::AttentionTensor describe(const kernels::AttentionTensor &tensor, unsigned firstArgument) {
  return {int32_t(firstArgument + tensor.buffer), dtypeOf(tensor.elementType), tensor.offset, tensor.strides};
}
/// Libraries only support positive strides.
bool runsBackwards(const plan::AttentionTensor &tensor) {
  return llvm::any_of(tensor.stride, [](int64_t stride) { return stride < 0; });
}
/// The description by which a library may compute a kernel. nullopt where no library can: a bias that the region computes, which
/// is in no buffer; scores that a mask replaces; keys in several parts or read through casts; a diagonal that begins after the first query or that moves;
/// a tensor that is read from its end; this dropout's masks.
std::optional<plan::Attention> describeAttention(nn::FusedOp region) {
  std::optional<kernels::AttentionRegion> found = kernels::findAttentionRegion(region);
  if (found && found->isPart())
    return std::nullopt; // no library takes a result so far
  if (!found || found->dropout || found->visible || (found->bias && !found->biasTensor) || found->moves() ||
      found->causalOffset.value_or(0) < 0)
    return std::nullopt;
  const kernels::AttentionKeys &keys = found->parts.front();
  if (found->parts.size() > 1 || !keys.key.casts.empty() || !keys.value.casts.empty())
    return std::nullopt;
  plan::Attention attention;
  attention.kind = found->isGradient() ? plan::AttentionKind::Backward : plan::AttentionKind::Forward;
  attention.batch = found->batch;
  attention.heads = found->heads();
  attention.groups = found->groups;
  attention.queries = found->queries;
  attention.keys = found->keys;
  attention.depth = found->depth;
  attention.width = found->width;
  attention.query = describe(found->query, 0);
  attention.key = describe(keys.key, 0);
  attention.value = describe(keys.value, 0);
  if (found->biasTensor)
    attention.bias = describe(*found->biasTensor, 0);
  if (found->gradient)
    attention.gradient = describe(*found->gradient, 0);
  for (const kernels::AttentionTensor &result : found->results)
    attention.results.push_back(describe(result, region.getNumOperands()));
  attention.scale = found->scale;
  attention.causal = found->causalOffset.has_value();
  attention.causalOffset = found->causalOffset.value_or(0);
  attention.guarded = found->guarded;
  const plan::AttentionTensor *operands[] = {&attention.query, &attention.key, &attention.value, &attention.bias,
                                             &attention.gradient};
  if (llvm::any_of(operands, [](auto *tensor) { return runsBackwards(*tensor); }) ||
      llvm::any_of(attention.results, runsBackwards))
    return std::nullopt;
  return attention;
}

/// `rows` and `scalars`, which lower reads.
void describe(nn::FusedOp region) {
  Builder b(region.getContext());
  SmallVector<Attribute> scalars;
  for (const kernels::KernelScalar &scalar : kernels::collectScalars(region))
    scalars.push_back(scalar.toAttribute(region.getContext()));
  region.removeAttentionAttr();
  region.removeEpilogueAttr();
  region.setRows(kernels::countItems(region));
  region.setScalarsAttr(b.getArrayAttr(scalars));
}

struct EmitKernelsPass : impl::EmitKernelsBase<EmitKernelsPass> {
  using EmitKernelsBase::EmitKernelsBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, math::MathDialect, scf::SCFDialect, cf::ControlFlowDialect, LLVM::LLVMDialect,
                    func::FuncDialect>();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // 1. The first region of every symbol.
    llvm::MapVector<StringRef, nn::FusedOp> distinct;
    WalkResult consistent = module.walk([&](nn::FusedOp region) {
      auto [first, isNew] = distinct.insert({region.getSymbol(), region});
      if (!isNew && !kernels::areEqual(first->second, region)) {
        userError(region, ErrorKind::Internal) << "two different regions are called '" << region.getSymbol() << "'";
        return WalkResult::interrupt();
      }
      describe(region);
      return WalkResult::advance();
    });
    if (consistent.wasInterrupted())
      return signalPassFailure();
    removeGeneratedCode(module);
    if (distinct.empty() || withoutCode)
      return;
    for (StringRef target : splitTargets(targetOf(module)))
      if (target != hostTarget && target != deviceTarget) {
        userError(module.getLoc(), ErrorKind::Unsupported)
            << targetAttrName << " = '" << targetOf(module) << "' has no code generator for '" << target << "'; use '"
            << hostTarget << "', '" << deviceTarget << "' or '" << hostTarget << "," << deviceTarget << "'";
        return signalPassFailure();
      }
    // 2. Code for each target.
    SmallVector<nn::FusedOp> regions;
    for (auto &[symbol, region] : distinct)
      regions.push_back(region);
    if ((hasTarget(module, hostTarget) && failed(emitForHost(module, regions))) ||
        (hasTarget(module, deviceTarget) && failed(emitForDevice(module, regions))))
      signalPassFailure();
  }

  /// nullopt if the code depends on flags that no key can contain.
  FailureOr<std::optional<kernels::KernelCache>> openCache(Location loc) {
    if (kernelCache.empty())
      return std::optional<kernels::KernelCache>();
    auto leaveOut = [&](const std::string &why) {
      mlir::emitRemark(loc) << "--kernel-cache=" << kernelCache << " is not used: " << why;
      return std::optional<kernels::KernelCache>();
    };
    if (std::string flags = kernels::givenFlagsOfLLVM(); !flags.empty())
      return leaveOut("code follows from LLVM's own flags too (" + flags + "), which its keys do not know");
    Expected<std::string> compiler = kernels::identifyCompiler();
    if (!compiler.ok())
      return leaveOut("this build of hpc-opt cannot be told from others: " + compiler.status().message());
    Expected<kernels::KernelCache> opened = kernels::KernelCache::open(kernelCache, *compiler);
    if (!opened.ok())
      return userError(loc, opened.status().kind()) << opened.status().message();
    return std::optional(std::move(*opened));
  }

  /// A module each, and the machine code of all.
  LogicalResult emitForHost(ModuleOp module, ArrayRef<nn::FusedOp> regions) {
    FailureOr<std::optional<kernels::KernelCache>> cache = openCache(module.getLoc());
    if (failed(cache))
      return failure();
    kernels::HostKernels kernels(&getContext(), cpu, *cache ? &**cache : nullptr, module.getLoc());
    const kernels::VectorUnit unit = kernels::vectorUnitOf(cpu); // once: asking the CPU is slow on a virtual machine
    for (nn::FusedOp region : regions) {
      OwningOpRef<ModuleOp> kernel = ModuleOp::create(UnknownLoc::get(&getContext()));
      if (failed(kernels::emitRegion(region, *kernel, unit)))
        return failure();
      if (printKernels)
        llvm::errs() << *kernel << "\n";
      if (failed(kernels.add(region.getSymbol(), std::move(kernel))))
        return failure();
    }
    FailureOr<kernels::MachineCode> code = kernels.finish();
    if (failed(code))
      return failure();
    setGeneratedCode(module, {ArrayRef<char>(code->bytes.data(), code->bytes.size()),
                              {code->cpuFeatures.begin(), code->cpuFeatures.end()}});
    return success();
  }

  LogicalResult emitForDevice(ModuleOp module, ArrayRef<nn::FusedOp> regions) {
    OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(&getContext()));
    SmallVector<kernels::DeviceLaunch> launches;
    llvm::StringMap<size_t> numbers;
    for (nn::FusedOp region : regions) {
      FailureOr<kernels::DeviceLaunch> launch = kernels::emitDeviceRegion(region, *kernels);
      if (failed(launch))
        return failure();
      numbers[region.getSymbol()] = launches.size();
      launches.push_back(*launch);
    }
    if (printKernels)
      llvm::errs() << *kernels << "\n";
    FailureOr<kernels::DeviceCode> code =
        kernels::compileDeviceKernels(*kernels, launches, !deviceCodeOnHost.empty(), module.getLoc());
    if (failed(code))
      return failure();
    setDeviceCode(module, code->ptx);
    module.walk([&](nn::FusedOp region) {
      const kernels::DeviceLaunch &launch = launches[numbers.lookup(region.getSymbol())];
      region.setLaunch(ArrayRef<int64_t>{launch.blocks, launch.threads, launch.sharedBytes});
      if (std::optional<plan::Attention> attention = describeAttention(region))
        region.setAttentionAttr(toAttribute(&getContext(), *attention));
      if (std::optional<plan::Epilogue> epilogue = kernels::findEpilogue(region))
        region.setEpilogueAttr(toAttribute(&getContext(), *epilogue));
    });
    return deviceCodeOnHost.empty() ? success() : writeOnHost(code->onHost);
  }

  LogicalResult writeOnHost(const std::string &object) {
    std::error_code error;
    llvm::raw_fd_ostream file(deviceCodeOnHost, error);
    file << object;
    file.close();
    if (error || file.has_error()) {
      std::error_code cause = error ? error : file.error();
      file.clear_error();
      return userError(getOperation(), ErrorKind::Io) << deviceCodeOnHost << ": cannot be written: " << cause.message();
    }
    return success();
  }
};
} // namespace
} // namespace hpc
