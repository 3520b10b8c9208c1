// Runs a function op by op on all coordinates in lock step; a serial run is the mesh of one.
// Values are freed after their last use and parameters loaded at their first, so that peak memory follows the program.
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/Interpreter/Boxes.h"
#include "compiler/Interpreter/Evaluators.h"
#include "runtime/base/CountText.h"

namespace hpc {

using namespace interpreter;

namespace {

class Run {
public:
  Run(const dist::Mesh *mesh, const RunOptions &options)
      : mesh(mesh ? *mesh : dist::Mesh()), isPartitioned(mesh != nullptr), options(options) {}

  Expected<std::vector<Tensor>> run(func::FuncOp function, ArrayRef<Tensor> inputs);

private:
  using Values = std::vector<LocalTensors>;

  Expected<Values> runBlock(Block &block, const Values &arguments);
  Expected<Values> execute(Operation *op, const Values &operands);
  Status follow(Operation *op, const Values &operands, Values &results);
  Expected<Values> evaluateEverywhere(Operation *op, const Values &operands);
  Expected<LocalTensors> load(nn::ParameterOp op);
  Expected<LocalTensors> cut(std::shared_ptr<const Tensor> global, Value value, const std::string &what);
  Expected<LocalTensors> poisoned(Value value, std::vector<std::shared_ptr<Tensor>> tensors);
  Expected<dist::Sharding> boxSharding(Type type, const std::string &what);

  Status define(Value value, LocalTensors tensors);
  Expected<LocalTensors> fetch(Value value);
  void release(Value value);

  struct Live {
    LocalTensors tensors;
    int64_t usesLeft;
  };

  dist::Mesh mesh;
  bool isPartitioned;
  const RunOptions &options;
  DenseMap<Value, Live> live;
};

std::string text(Type type) {
  std::string result;
  llvm::raw_string_ostream(result) << type;
  return result;
}

// ---- values -------------------------------------------------------------------------------------

Status Run::define(Value value, LocalTensors tensors) {
  if (options.observe)
    HPC_RETURN_IF_ERROR(options.observe(value, tensors));
  int64_t uses = std::distance(value.use_begin(), value.use_end());
  if (uses)
    live[value] = {std::move(tensors), uses};
  return Status::success();
}

Expected<LocalTensors> Run::fetch(Value value) {
  auto found = live.find(value);
  if (found != live.end())
    return found->second.tensors;
  auto parameter = value.getDefiningOp<nn::ParameterOp>();
  if (!parameter)
    return Status::error(ErrorKind::Internal, "a value is read before it is computed");
  Expected<LocalTensors> tensors = load(parameter);
  if (tensors.ok())
    HPC_RETURN_IF_ERROR(define(value, *tensors));
  return tensors;
}

void Run::release(Value value) {
  auto found = live.find(value);
  if (found != live.end() && --found->second.usesLeft == 0)
    live.erase(found);
}

/// The sharding of a local type, whose shape must be its box.
Expected<dist::Sharding> Run::boxSharding(Type type, const std::string &what) {
  auto tensor = cast<RankedTensorType>(type);
  dist::ShardingAttr attr = dist::shardingAttrOf(type);
  if (!attr)
    return dist::replicated(tensor.getShape().vec());
  if (tensor.getShape() != ArrayRef<int64_t>(dist::boxShape(attr.getValue(), mesh)))
    return Status::error(ErrorKind::Internal,
                         what + ": the shape of " + text(type) + " is not the local box of its sharding");
  return attr.getValue();
}

/// The boxes of an argument or parameter. What the program writes has poison in its padding, as after its first step.
Expected<LocalTensors> Run::cut(std::shared_ptr<const Tensor> global, Value value, const std::string &what) {
  if (!isPartitioned)
    return LocalTensors{global};
  Expected<dist::Sharding> sharding = boxSharding(value.getType(), what);
  if (!sharding.ok())
    return sharding.status();
  LocalTensors locals = cutAll(global, *sharding, mesh);
  if (!nn::isWritten(value) || !interpreter::hasPadding(*sharding, mesh))
    return locals;
  for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
    auto local = std::make_shared<Tensor>(*locals[c]);
    poison(*local, *sharding, mesh, mesh.coordinate(c));
    locals[c] = local;
  }
  return locals;
}

Expected<LocalTensors> Run::load(nn::ParameterOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  RankedTensorType global = isPartitioned ? dist::globalType(type) : type;
  Expected<Tensor> tensor = options.parameters(op, op.isPart() ? *op.getStoredShape() : global.getShape());
  if (!tensor.ok())
    return tensor.status();
  if (op.getStoredType() && !tensor->isFloat() && isFloat(dtypeOf(type)))
    tensor = interpreter::asFloats(*tensor); // bytes, exact in each of the types
  if (op.getStoredType() && tensor->isFloat()) { // a cast, and as such no rounding in double precision
    tensor->dtype = dtypeOf(type);
    if (!options.doublePrecision)
      round(*tensor);
  }
  if (op.isPart()) {
    Tensor part(tensor->dtype, global.getShape());
    SmallVector<int64_t> strides = stridesOf(tensor->shape);
    int64_t start = 0;
    for (auto [dim, at] : llvm::enumerate(*op.getPartStarts()))
      start += at * strides[dim];
    interpreter::readStrided(*tensor, start, strides, part);
    tensor = std::move(part);
  }
  return cut(std::make_shared<Tensor>(std::move(*tensor)), op.getResult(), describeOp(op));
}

/// Overwrites the padding of an op's result; a tensor that coordinates share is copied first.
Expected<LocalTensors> Run::poisoned(Value value, std::vector<std::shared_ptr<Tensor>> tensors) {
  Expected<dist::Sharding> sharding = boxSharding(value.getType(), describeOp(value.getDefiningOp()));
  if (!sharding.ok())
    return sharding.status();
  if (hasPadding(*sharding, mesh))
    for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
      if (tensors[c].use_count() > 1)
        tensors[c] = std::make_shared<Tensor>(*tensors[c]);
      poison(*tensors[c], *sharding, mesh, mesh.coordinate(c));
    }
  return LocalTensors(tensors.begin(), tensors.end());
}

// ---- ops ----------------------------------------------------------------------------------------

Expected<Run::Values> Run::evaluateEverywhere(Operation *op, const Values &operands) {
  std::vector<std::vector<std::shared_ptr<Tensor>>> results(op->getNumResults()); // [result][coordinate]
  std::map<std::vector<const Tensor *>, int64_t> computed; // coordinates that read the same share a result
  for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
    std::vector<const Tensor *> inputs;
    for (const LocalTensors &operand : operands)
      inputs.push_back(operand[c].get());
    if (auto [known, isNew] = computed.try_emplace(inputs, c); !isNew) {
      for (auto &tensors : results)
        tensors.push_back(tensors[known->second]);
      continue;
    }
    Expected<std::vector<Tensor>> outputs = evaluateOp(op, inputs, options);
    if (!outputs.ok())
      return outputs.status();
    for (size_t i = 0; i < outputs->size(); ++i)
      results[i].push_back(std::make_shared<Tensor>(std::move((*outputs)[i])));
  }
  Values values;
  for (auto [result, tensors] : llvm::zip_equal(op->getResults(), results)) {
    if (!isPartitioned) {
      values.emplace_back(tensors.begin(), tensors.end());
      continue;
    }
    Expected<LocalTensors> locals = poisoned(result, std::move(tensors));
    if (!locals.ok())
      return locals.status();
    values.push_back(std::move(*locals));
  }
  return values;
}

Expected<Run::Values> Run::execute(Operation *op, const Values &operands) {
  if (isa<nn::FusedOp, pipe::StageOp>(op))
    return runBlock(op->getRegion(0).front(), operands);
  if (isa<pipe::TransferOp>(op))
    return operands;
  if (!isa<dist::DistDialect>(op->getDialect()))
    return evaluateEverywhere(op, operands);
  if (isa<dist::ReshardOp>(op) && !isPartitioned)
    return operands;
  if (isa<dist::ReshardOp>(op) || !isPartitioned)
    return Status::error(ErrorKind::Internal, describeOp(op) + " does not belong in a " +
                                                  (isPartitioned ? "partitioned" : "serial") + " program");
  auto results = runCollective(op, operands.empty() ? LocalTensors() : operands.front(), mesh);
  if (!results.ok())
    return results.status();
  for (const std::shared_ptr<Tensor> &result : *results)
    if (!options.doublePrecision)
      round(*result);
  if (isa<dist::FillTailOp>(op)) // what it filled stays; the rest was poisoned in its operand
    return Values{LocalTensors(results->begin(), results->end())};
  Expected<LocalTensors> locals = poisoned(op->getResult(0), std::move(*results));
  if (!locals.ok())
    return locals.status();
  return Values{std::move(*locals)};
}

/// Padding of what the follower puts in is nothing that an op may read.
Status Run::follow(Operation *op, const Values &operands, Values &results) {
  const Values computed = results;
  HPC_RETURN_IF_ERROR(options.follow(op, operands, results));
  for (auto [result, before, now] : llvm::zip_equal(op->getResults(), computed, results)) {
    if (now == before || !isPartitioned)
      continue;
    Expected<dist::Sharding> sharding = boxSharding(result.getType(), describeOp(op));
    HPC_RETURN_IF_ERROR(sharding.status());
    if (!hasPadding(*sharding, mesh))
      continue;
    for (int64_t c = 0; c < mesh.numCoordinates(); ++c) {
      auto local = std::make_shared<Tensor>(*now[c]);
      poison(*local, *sharding, mesh, mesh.coordinate(c));
      now[c] = local;
    }
  }
  return Status::success();
}

Expected<Run::Values> Run::runBlock(Block &block, const Values &arguments) {
  for (auto [argument, tensors] : llvm::zip_equal(block.getArguments(), arguments))
    HPC_RETURN_IF_ERROR(define(argument, tensors));
  for (Operation &op : block) {
    if (isa<nn::ParameterOp>(op))
      continue; // at its first use
    Values operands;
    for (Value operand : op.getOperands()) {
      Expected<LocalTensors> tensors = fetch(operand);
      if (!tensors.ok())
        return tensors.status().at(describeOp(&op));
      operands.push_back(std::move(*tensors));
    }
    for (Value operand : op.getOperands())
      release(operand);
    if (op.hasTrait<OpTrait::IsTerminator>())
      return operands;
    Expected<Values> results = execute(&op, operands);
    if (!results.ok())
      return results;
    if (options.follow)
      HPC_RETURN_IF_ERROR(follow(&op, operands, *results));
    for (auto [value, tensors] : llvm::zip_equal(op.getResults(), *results))
      HPC_RETURN_IF_ERROR(define(value, std::move(tensors)));
  }
  return Status::error(ErrorKind::Internal, "a block without a terminator");
}

// ---- functions ----------------------------------------------------------------------------------

Expected<std::vector<Tensor>> Run::run(func::FuncOp function, ArrayRef<Tensor> inputs) {
  if (function.getNumArguments() != inputs.size())
    return Status::error(ErrorKind::Usage, "the program takes " + countText(function.getNumArguments(), "input") +
                                               ", " + std::to_string(inputs.size()) + " are given");
  Values arguments;
  for (auto [index, input] : llvm::enumerate(inputs)) {
    auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
    RankedTensorType global = isPartitioned ? dist::globalType(type) : type;
    std::string what = "input " + std::to_string(index);
    if (findDType(type) != input.dtype || global.getShape() != ArrayRef<int64_t>(input.shape))
      return Status::error(ErrorKind::Usage, what + " is " + name(input.dtype) + " " + shapeText(input.shape) +
                                                 ", the program takes " + text(dist::withoutSharding(global)));
    Expected<LocalTensors> locals = cut(std::make_shared<Tensor>(input), function.getArgument(unsigned(index)), what);
    if (!locals.ok())
      return locals.status();
    arguments.push_back(std::move(*locals));
  }
  Expected<Values> values = runBlock(function.getBody().front(), arguments);
  if (!values.ok())
    return values.status();
  std::vector<Tensor> outputs;
  for (auto [index, value] : llvm::enumerate(*values)) {
    if (!isPartitioned) {
      outputs.push_back(*value.front());
      continue;
    }
    std::string what = "output " + std::to_string(index);
    Expected<dist::Sharding> sharding = boxSharding(function.getResultTypes()[index], what);
    if (!sharding.ok())
      return sharding.status();
    GlobalTensor gathered = gatherGlobal(value, *sharding, mesh);
    if (const std::optional<Disagreement> &difference = gathered.disagreement)
      return Status::error(ErrorKind::Internal, what + ": element " + std::to_string(difference->index) + " is " +
                                                    std::to_string(difference->a) + " at " +
                                                    coordinateText(mesh, difference->rankA) + " and " +
                                                    std::to_string(difference->b) + " at " +
                                                    coordinateText(mesh, difference->rankB));
    outputs.push_back(std::move(gathered.tensor));
  }
  return outputs;
}

} // namespace

bool isInterpreted(OperationName name) {
  static const StringRef runOps[] = {nn::ParameterOp::getOperationName(),
                                     nn::FusedOp::getOperationName(),
                                     nn::YieldOp::getOperationName(),
                                     pipe::StageOp::getOperationName(),
                                     pipe::YieldOp::getOperationName(),
                                     pipe::TransferOp::getOperationName(),
                                     dist::ReshardOp::getOperationName(),
                                     dist::AllReduceOp::getOperationName(),
                                     dist::AccumulateOp::getOperationName(),
                                     dist::AllGatherOp::getOperationName(),
                                     dist::ReduceScatterOp::getOperationName(),
                                     dist::AllToAllOp::getOperationName(),
                                     dist::PermuteOp::getOperationName(),
                                     dist::SliceOp::getOperationName(),
                                     dist::FillTailOp::getOperationName(),
                                     dist::OffsetOp::getOperationName(),
                                     dist::RawAllGatherOp::getOperationName(),
                                     dist::RawReduceScatterOp::getOperationName(),
                                     dist::RawAllToAllOp::getOperationName(),
                                     dist::RawPermuteOp::getOperationName(),
                                     dist::RawBlockOp::getOperationName()};
  return isEvaluated(name) || llvm::is_contained(runOps, name.getStringRef());
}

Expected<std::vector<Tensor>> runFunction(func::FuncOp function, ArrayRef<Tensor> inputs, const RunOptions &options) {
  return Run(nullptr, options).run(function, inputs);
}

Expected<std::vector<Tensor>> runPartitioned(func::FuncOp function, ArrayRef<Tensor> inputs, const dist::Mesh &mesh,
                                             const RunOptions &options) {
  return Run(&mesh, options).run(function, inputs);
}

} // namespace hpc
