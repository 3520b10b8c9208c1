// Locations are attributes in MLIR: what is written is what passes read.
#include "passes/Driver/ProgramText.h"

#include "compiler/Location.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace hpc {

/// The arguments of the op's blocks.
static SmallVector<BlockArgument> argumentsOf(Operation *op) {
  SmallVector<BlockArgument> arguments;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      llvm::append_range(arguments, block.getArguments());
  return arguments;
}

static void giveLocations(ModuleOp module) {
  auto isKnown = [](Location location) { return findNameLoc(location) != nullptr; };
  module.walk([&](Operation *op) {
    if (isKnown(op->getLoc()))
      op->setDiscardableAttr(locationAttrName, LocationAttr(op->getLoc()));
    SmallVector<Attribute> ofArguments;
    for (BlockArgument argument : argumentsOf(op))
      ofArguments.push_back(LocationAttr(isKnown(argument.getLoc()) ? argument.getLoc() : UnknownLoc::get(op->getContext())));
    if (!llvm::all_of(ofArguments, llvm::IsaPred<UnknownLoc>))
      op->setDiscardableAttr(argumentLocationsAttrName, ArrayAttr::get(op->getContext(), ofArguments));
  });
}

std::string programText(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  giveLocations(*copy);
  std::string text;
  llvm::raw_string_ostream out(text);
  copy->print(out);
  return text + "\n";
}

/// `found`: there was one.
static LogicalResult takeLocations(ModuleOp module, bool &found) {
  return failure(module.walk([&](Operation *op) -> WalkResult {
    if (Attribute own = op->removeDiscardableAttr(locationAttrName)) {
      found = true;
      if (!isa<LocationAttr>(own))
        return op->emitError() << "'" << locationAttrName << "' has to be a location, loc(...), and is " << own;
      op->setLoc(cast<LocationAttr>(own));
    }
    if (Attribute all = op->removeDiscardableAttr(argumentLocationsAttrName)) {
      found = true;
      SmallVector<BlockArgument> arguments = argumentsOf(op);
      auto locations = dyn_cast<ArrayAttr>(all);
      if (!locations || locations.size() != arguments.size() || !llvm::all_of(locations, llvm::IsaPred<LocationAttr>))
        return op->emitError() << "'" << argumentLocationsAttrName << "' has to be a list of " << arguments.size()
                               << " locations, one for each argument of its blocks, and is " << all;
      for (auto [argument, location] : llvm::zip(arguments, locations))
        argument.setLoc(cast<LocationAttr>(location));
    }
    return success();
  }).wasInterrupted());
}

LogicalResult takeLocations(ModuleOp module) {
  bool found = false;
  return takeLocations(module, found);
}

namespace {
struct TakeLocations : PassWrapper<TakeLocations, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TakeLocations)
  StringRef getArgument() const override { return "hpc-take-locations"; }
  void runOnOperation() override {
    bool found = false;
    if (failed(takeLocations(getOperation(), found)))
      signalPassFailure();
    else if (found)
      getOperation()->setAttr(hadLocationsAttrName, UnitAttr::get(&getContext()));
  }
};

struct GiveLocations : PassWrapper<GiveLocations, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GiveLocations)
  StringRef getArgument() const override { return "hpc-give-locations"; }
  void runOnOperation() override {
    if (getOperation()->removeAttr(hadLocationsAttrName))
      giveLocations(getOperation());
  }
};
} // namespace

LogicalResult addWithLocations(PassManager &manager, llvm::function_ref<LogicalResult()> addPasses) {
  manager.addPass(std::make_unique<TakeLocations>());
  if (failed(addPasses()))
    return failure();
  manager.addPass(std::make_unique<GiveLocations>());
  return success();
}

} // namespace hpc
