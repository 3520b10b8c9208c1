#include "compiler/ModuleMachine.h"

#include "runtime/cost/MachineFile.h"

namespace hpc {

static StringRef optionOf(Attribute options, StringRef name) {
  auto fields = dyn_cast_if_present<DictionaryAttr>(options);
  auto text = fields ? fields.getAs<StringAttr>(name) : StringAttr();
  return text ? text.getValue() : StringRef();
}

static Attribute optionsAround(Operation *op) {
  while (Operation *parent = op->getParentOp())
    op = parent;
  return op->getAttr(optionsAttrName);
}

static Expected<cost::Machine> readOption(Attribute options) {
  StringRef text = optionOf(options, machineOptionName);
  return text.empty() ? Expected<cost::Machine>(cost::Machine()) : cost::parseMachine({text.data(), text.size()}, optionsAttrName);
}

cost::Machine machineOf(Operation *op) {
  Expected<cost::Machine> machine = readOption(optionsAround(op));
  assert(machine.ok() && "the module has been verified");
  return *machine;
}

bool hasMachine(Operation *op) { return !optionOf(optionsAround(op), machineOptionName).empty(); }

Prices pricesOf(const cost::Machine &machine, DType product) {
  return {machine.operationsPerByte(product), machine.operationsPerByteSent(product), machine.bytesOfLatency()};
}

DType productType(StringRef dtype) { return dtype == "bf16" ? DType::BF16 : dtype == "fp16" ? DType::F16 : DType::F32; }

Prices pricesOf(Operation *op) { return pricesOf(machineOf(op), productType(optionOf(optionsAround(op), "dtype"))); }

LogicalResult verifyMachine(Operation *module, Attribute options) {
  Expected<cost::Machine> machine = readOption(options);
  return machine.ok() ? success() : mlir::emitError(module->getLoc()) << machine.status().message(); // without the module's text
}

} // namespace hpc
