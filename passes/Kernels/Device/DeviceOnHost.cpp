// The table's order is that of struct HpcBlockTable in test/gpu/BlockRunner.h.
#include "passes/Kernels/Device/DeviceOnHost.h"

#include "passes/Kernels/Device/DeviceLoops.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/ReplaceConstant.h"

namespace hpc::kernels {

namespace {
enum class Entry : unsigned { Thread, Block, Barrier, ShuffleXor, Shared };

struct Retarget {
  llvm::Module &module;
  llvm::Type *i32 = llvm::Type::getInt32Ty(module.getContext());
  llvm::PointerType *pointer = llvm::PointerType::get(module.getContext(), 0);
  llvm::GlobalVariable *table = new llvm::GlobalVariable(module, pointer, /*isConstant=*/false,
                                                         llvm::GlobalValue::ExternalLinkage,
                                                         llvm::ConstantPointerNull::get(pointer), "hpc_block_runner");

  llvm::Value *call(llvm::IRBuilder<> &builder, Entry entry, llvm::Type *result, ArrayRef<llvm::Value *> arguments) {
    llvm::Value *entries = builder.CreateLoad(pointer, table);
    llvm::Value *place = builder.CreateConstGEP1_64(pointer, entries, unsigned(entry));
    SmallVector<llvm::Type *> types;
    for (llvm::Value *argument : arguments)
      types.push_back(argument->getType());
    return builder.CreateCall(llvm::FunctionType::get(result, types, false), builder.CreateLoad(pointer, place), arguments);
  }

  void replaceIntrinsic(llvm::CallInst *use) {
    llvm::IRBuilder<> builder(use);
    llvm::Value *result = nullptr;
    switch (use->getIntrinsicID()) {
    case llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x:
      result = call(builder, Entry::Thread, i32, {});
      break;
    case llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
      result = call(builder, Entry::Block, i32, {});
      break;
    case llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all:
      call(builder, Entry::Barrier, builder.getVoidTy(), {});
      break;
    case llvm::Intrinsic::nvvm_shfl_sync_bfly_i32: // mask, value, lanes, clamp: we exchange within whole warps alone
      result = call(builder, Entry::ShuffleXor, i32, {use->getArgOperand(1), use->getArgOperand(2)});
      break;
    default:
      return;
    }
    if (result)
      use->replaceAllUsesWith(result);
    use->eraseFromParent();
  }

  /// Requests the block's shared memory at the start of each kernel.
  void replaceShared() {
    llvm::GlobalVariable *shared = module.getGlobalVariable(sharedMemoryName);
    if (!shared)
      return;
    llvm::convertUsersOfConstantsToInstructions({shared});
    llvm::DenseMap<llvm::Function *, llvm::Value *> starts;
    for (llvm::Use &use : llvm::make_early_inc_range(shared->uses())) {
      llvm::Function *function = cast<llvm::Instruction>(use.getUser())->getFunction();
      llvm::Value *&start = starts[function];
      if (!start) {
        llvm::IRBuilder<> builder(&*function->getEntryBlock().getFirstInsertionPt());
        start = builder.CreateAddrSpaceCast(call(builder, Entry::Shared, pointer, {}), shared->getType());
      }
      use.set(start);
    }
    shared->eraseFromParent();
  }

  void wrap(const DeviceLaunch &launch) {
    llvm::Function *kernel = module.getFunction(launch.symbol);
    kernel->setCallingConv(llvm::CallingConv::C);
    kernel->setName(launch.symbol + ".thread");
    kernel->setLinkage(llvm::GlobalValue::InternalLinkage);
    auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), {pointer}, false);
    auto *outer = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, launch.symbol, module);
    outer->addFnAttr(llvm::Attribute::NoUnwind);
    llvm::IRBuilder<> builder(llvm::BasicBlock::Create(module.getContext(), "", outer));
    SmallVector<llvm::Value *> arguments;
    for (llvm::Argument &argument : kernel->args()) {
      llvm::Value *place = builder.CreateConstGEP1_64(pointer, outer->getArg(0), argument.getArgNo());
      arguments.push_back(builder.CreateLoad(argument.getType(), builder.CreateLoad(pointer, place)));
    }
    builder.CreateCall(kernel, arguments);
    builder.CreateRetVoid();
  }
};
} // namespace

void retargetToHost(llvm::Module &module, ArrayRef<DeviceLaunch> launches, const llvm::TargetMachine &host) {
  module.setTargetTriple(host.getTargetTriple());
  module.setDataLayout(host.createDataLayout());
  Retarget retarget{module};
  SmallVector<llvm::CallInst *> uses;
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (auto *use = dyn_cast<llvm::CallInst>(&instruction); use && use->getIntrinsicID())
          uses.push_back(use);
  for (llvm::CallInst *use : uses)
    retarget.replaceIntrinsic(use);
  for (llvm::Function &function : llvm::make_early_inc_range(module))
    if (function.isDeclaration() && function.use_empty())
      function.eraseFromParent();
  retarget.replaceShared();
  for (const DeviceLaunch &launch : launches)
    retarget.wrap(launch);
}

} // namespace hpc::kernels
