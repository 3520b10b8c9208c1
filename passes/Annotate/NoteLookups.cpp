// Notes the range of rows that an input certainly looks up, so that a run can check its inputs.
// Lookups that may not read all of the input are left out: elements that nothing reads may have any value.
#include "passes/Annotate/Passes.h"

#include "compiler/Dialect/NN/Ports.h"

namespace hpc {

#define GEN_PASS_DEF_NOTELOOKUPS
#include "passes/Annotate/Passes.h.inc"

namespace {
struct NoteLookups : impl::NoteLookupsBase<NoteLookups> {
  void runOnOperation() override {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<nn::ArgumentPort> ports;
      for (BlockArgument argument : function.getArguments()) {
        nn::ArgumentPort &port = ports.emplace_back(nn::argumentPort(function, argument.getArgNumber()));
        if (port.isState())
          continue; // the caller does not provide it
        port.lookups = nn::findLookups(argument);
        llvm::erase_if(port.lookups, [](const nn::Lookup &lookup) { return !lookup.isWhole; });
      }
      nn::setArgumentPorts(function, ports);
    }
  }
};
} // namespace

} // namespace hpc
