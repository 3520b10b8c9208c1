// The standard has no word for "the compiler's own choice": a metadata property of ours lists the parameters whose cut is not.
#include "passes/Driver/WriteAnnotations.h"

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/Dist/WholeOutput.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/Sidecar/Cuts.h"
#include "compiler/Sidecar/ParamRules.h"
#include "compiler/Sidecar/TensorRules.h"
#include "compiler/StepPart.h"
#include "compiler/Subject.h"
#include "compiler/ValueNames.h"
#include "passes/Annotate/LayoutStrategy.h"
#include "passes/Driver/InputKind.h"
#include "runtime/base/File.h"

#include <filesystem>

namespace hpc {

static void addParameter(nn::ParameterOp parameter, bool isBinding, onnx::ChosenLayout &layout) {
  std::optional<dist::Seed> seed = dist::seedOf(parameter.getResult());
  if (!seed)
    return;
  dist::Sharding transposed = seed->sharding;
  std::reverse(transposed.dims.begin(), transposed.dims.end());
  for (const std::string &name : nn::namesOf(parameter)) { // paths of modules are names of no tensor, and found nowhere
    layout.tensors[name] = cutsOf(nn::isTransposedAlias(parameter, name) ? transposed : seed->sharding);
    if (isBinding)
      layout.binding.insert(name);
  }
}

onnx::ChosenLayout chosenLayout(ModuleOp annotated, const Options &options) {
  onnx::ChosenLayout layout{options.degrees, "", {}, {}, {}};
  if (Expected<dist::Mesh> arranged = arrangeTensorAxis(options.degrees, options.tpLayout); arranged.ok() && !(*arranged == options.degrees)) {
    layout.degrees = std::move(*arranged);
    layout.layout = StringRef(options.tpLayout).split(':').first.str();
  } else if (options.sp) {
    layout.layout = options.layout();
  }
  const int64_t rows = layout.degrees.rowRanks();
  auto function = annotated.lookupSymbol<func::FuncOp>("main");
  if (!function)
    return layout;
  Expected<std::optional<Sidecar>> sidecar = sidecarOf(annotated);
  llvm::DenseSet<Operation *> binding;
  if (sidecar.ok() && *sidecar)
    if (Expected<std::vector<ParamDecision>> decisions = decideParams(**sidecar, function); decisions.ok())
      for (const ParamDecision &decision : *decisions)
        if (decision.cut && !decision.cut->inferred)
          binding.insert(decision.parameter);
  for (nn::ParameterOp parameter : function.getOps<nn::ParameterOp>())
    addParameter(parameter, binding.contains(parameter), layout);
  auto addValue = [&](Value value, const std::vector<SidecarCut> &cuts) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      layout.tensors[nn::argumentPort(function, argument.getArgNumber()).name] = cuts;
    else
      for (const std::string &name : valueNames(value.getLoc()))
        layout.tensors[name] = cuts;
  };
  // output_replicate makes a value whole over all ranks only where data does not cut it.
  int64_t left = 0;
  for (Operation &op : function.front())
    if (!dist::wholeOutputDims(&op).empty()) {
      if (rows == 1)
        addValue(op.getResult(0), {});
      else
        ++left;
    }
  if (left)
    mlir::emitRemark(function.getLoc()) << left << " gathers of the sidecar are not written: with rows cut over " << rows
                                        << " ranks the standard's annotations cannot say \"whole over tp\"";
  if (!sidecar.ok() || !*sidecar)
    return layout;
  Expected<std::vector<TensorDecision>> decisions = decideTensors(**sidecar, function);
  if (decisions.ok())
    for (TensorDecision &decision : *decisions) {
      Expected<dist::Sharding> sharding =
          resolveCuts(decision.rule->shard, decision.shape, false, dist::meshOf(annotated), "");
      if (sharding.ok())
        addValue(decision.value, cutsOf(*sharding));
    }
  return layout;
}

void addStages(ModuleOp staged, onnx::ChosenLayout &layout) {
  std::map<std::string, std::set<int64_t>> stagesOf;
  staged.walk([&](pipe::StageOp program) {
    for (Operation &op : program.getBody().front())
      if (std::string name = nodeName(op.getLoc()); !name.empty() && !isa<nn::ParameterOp>(op) &&
                                                    stepPartOf(op.getLoc()) == StepPart::Forward)
        stagesOf[name].insert(int64_t(program.getIndex()));
  });
  for (auto &[name, stages] : stagesOf)
    if (stages.size() == 1)
      layout.stageOfNode[name] = *stages.begin();
}

/// A file beside the model that holds weights, which the copy names as the model does; "" where there is none.
static std::string externalData(ModuleOp compiled, const std::string &model) {
  std::string found;
  compiled.walk([&](nn::ParameterOp parameter) {
    if (!parameter.getFile().empty() && parameter.getFile() != model)
      found = parameter.getFile().str();
  });
  return found;
}

Status writeAnnotatedModel(const std::string &model, const std::string &output, const Options &options,
                           ModuleOp compiled, const onnx::ChosenLayout &layout) {
  std::string flag = "--write-onnx-annotations=" + output;
  if (!isInputKind(model, InputKind::Model))
    return Status::error(ErrorKind::Usage, flag + " annotates an .onnx model, and " + model + " is none");
  if (options.ppChunks > 1)
    return Status::error(ErrorKind::Usage, flag + ": the standard's annotations know stages without chunks; leave "
                                                  "--pp-chunks out, or use --write-spec");
  std::error_code error;
  auto folder = [&](const std::string &path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path), error).parent_path();
  };
  if (std::string data = externalData(compiled, model); !data.empty() && folder(model) != folder(output))
    return Status::error(ErrorKind::Usage, flag + ": the weights stand in '" + data +
                                               "', which the copy finds only in the model's own folder; write it there");
  Expected<MappedFile> file = MappedFile::open(model);
  if (!file.ok())
    return file.status();
  Expected<std::string> annotated = onnx::annotatedModel(file->text(), layout);
  if (!annotated.ok())
    return annotated.status().at(model);
  return writeFile(output, *annotated);
}

} // namespace hpc
