// Options to attribute and back: one list of fields.
#include "passes/Options.h"

#include "runtime/cost/MachineFile.h"

#include "llvm/ADT/StringSet.h"

namespace hpc {

/// Visits every field with its name; the only place to extend.
template <typename Opts, typename Number, typename Text, typename Real, typename Switch>
static void forEachField(Opts &options, Number number, Text text, Real real, Switch onOff) {
  for (auto [kind, axis] : llvm::zip_equal(dist::axisKinds(), options.degrees.axes)) {
    std::string name = kind.flag;
    std::replace(name.begin(), name.end(), '-', '_');
    number(name, axis.size, 1);
  }
  text("batch_dim", options.batchDim);
  text("tp_layout", options.tpLayout);
  onOff("sp", options.sp);
  text("cp_mode", options.cpMode);
  text("cp_balance", options.cpBalance);
  onOff("panels", options.panels);
  text("pp_split", options.ppSplit);
  number("pp_chunks", options.ppChunks, 1);
  text("pp_schedule", options.ppSchedule);
  text("loss", options.loss);
  number("max_length", options.maxLength, 0);
  number("step_rows", options.stepRows, 1);
  number("chunk_rows", options.chunkRows, 1);
  text("freeze", options.freeze);
  text("optimizer", options.optimizer);
  text("decay", options.decay);
  real("momentum", options.momentum);
  onOff("nesterov", options.nesterov);
  real("beta1", options.beta1);
  real("beta2", options.beta2);
  real("epsilon", options.epsilon);
  real("weight_decay", options.weightDecay);
  real("clip", options.clip);
  number("zero", options.zero, 0);
  text("recompute", options.recompute);
  number("memory", options.memory, 0);
  text(machineOptionName, options.machine);
  text("dtype", options.dtype);
  text("weights", options.weights);
  onOff("deterministic", options.deterministic);
  text("target", options.target);
}

DictionaryAttr Options::toAttribute(MLIRContext *context) const {
  Builder builder(context);
  NamedAttrList fields;
  forEachField(
      *this, [&](StringRef name, int64_t value, int64_t) { fields.set(name, builder.getI64IntegerAttr(value)); },
      [&](StringRef name, const std::string &value) { fields.set(name, builder.getStringAttr(value)); },
      [&](StringRef name, double value) { fields.set(name, builder.getF64FloatAttr(value)); },
      [&](StringRef name, bool value) { fields.set(name, builder.getBoolAttr(value)); });
  return fields.getDictionary(context);
}

Expected<Options> Options::fromAttribute(DictionaryAttr attribute) {
  Options options;
  Status status;
  llvm::StringSet<> known;
  auto wrong = [&](StringRef name, const char *wanted) {
    status = Status::error(ErrorKind::Model, std::string(optionsAttrName) + ": " + name.str() + " must be " + wanted +
                                                 "; leave the attribute as hpc-opt --dump-phases wrote it");
  };
  forEachField(
      options,
      [&](StringRef name, int64_t &value, int64_t least) {
        known.insert(name);
        Attribute field = attribute.get(name);
        auto number = dyn_cast_if_present<IntegerAttr>(field);
        if (number && number.getType().isInteger(64) && number.getInt() >= least)
          value = number.getInt();
        else if (field)
          wrong(name, least ? "an i64 of at least 1" : "an i64 of at least 0");
      },
      [&](StringRef name, std::string &value) {
        known.insert(name);
        Attribute field = attribute.get(name);
        if (auto text = dyn_cast_if_present<StringAttr>(field))
          value = text.str();
        else if (field)
          wrong(name, "a string");
      },
      [&](StringRef name, double &value) {
        known.insert(name);
        Attribute field = attribute.get(name);
        if (auto number = dyn_cast_if_present<FloatAttr>(field); number && number.getType().isF64())
          value = number.getValueAsDouble();
        else if (field)
          wrong(name, "an f64");
      },
      [&](StringRef name, bool &value) {
        known.insert(name);
        Attribute field = attribute.get(name);
        if (auto flag = dyn_cast_if_present<BoolAttr>(field))
          value = flag.getValue();
        else if (field)
          wrong(name, "true or false");
      });
  for (NamedAttribute field : attribute)
    if (!known.contains(field.getName().getValue()))
      wrong(field.getName().getValue(), "left out: there is no such option");
  HPC_RETURN_IF_ERROR(status);
  if (!options.machine.empty())
    HPC_RETURN_IF_ERROR(cost::parseMachine(options.machine, optionsAttrName).status());
  return options;
}

cost::Machine machineOf(const Options &options) {
  if (options.machine.empty())
    return {};
  Expected<cost::Machine> machine = cost::parseMachine(options.machine, "the machine of the options");
  assert(machine.ok() && "it is the text of a machine");
  return *machine;
}

Expected<std::string> kernelTargets(const std::string &target) {
  bool host = false, device = false;
  for (StringRef one : splitTargets(target)) {
    bool *flag = one == "host" ? &host : one == "cuda" ? &device : nullptr;
    if (!flag || *flag)
      return Status::error(ErrorKind::Usage, "target '" + target + "' has '" + one.str() + "', which is " +
                                                 (flag ? "there twice" : "unknown") + "; use host, cuda or host,cuda");
    *flag = true;
  }
  return std::string(host ? hostTarget : "") + (host && device ? "," : "") + (device ? deviceTarget : "");
}

} // namespace hpc
