// The machine that a module is compiled for. Its text travels in `hpc.options`, so that a dumped phase leads to the same plan.
#pragma once

#include "compiler/ModuleAttributes.h"
#include "runtime/cost/Machine.h"

namespace hpc {

constexpr const char *machineOptionName = "machine"; ///< in hpc.options: machineText (runtime/cost/MachineFile.h), or ""

/// The machine of the options of the module that `op` is or lies in; without one, the default of Machine.h. It reads the text: a pass asks once.
cost::Machine machineOf(Operation *op);

/// Whether the options of that module name a machine.
bool hasMachine(Operation *op);

/// The prices by which heuristics weigh, for products of the type that the options round operands to.
struct Prices {
  double operationsPerByte = 0;     ///< of the device's memory
  double operationsPerByteSent = 0; ///< to another rank
  int64_t bytesOfLatency = 0;       ///< that take as long to send as a collective takes to start
};
Prices pricesOf(const cost::Machine &machine, DType product);
/// The type of the operands of products, from the option dtype; f32 for that of the model.
DType productType(StringRef dtype);
/// The same of the options around `op`; a pass asks once.
Prices pricesOf(Operation *op);

/// That the options name a machine that can be read.
LogicalResult verifyMachine(Operation *module, Attribute options);

} // namespace hpc
