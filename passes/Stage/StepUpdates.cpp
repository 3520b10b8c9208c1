// Needs are followed from written and returned values; rounds are counted along the program; programs are built round
// by round, so that each transfer stands after the op that makes its value and before the op that reads it.
#include "passes/Stage/StepUpdates.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Location.h"
#include "compiler/Scaling.h"
#include "passes/Stage/ProgramBody.h"

namespace hpc {

StepUpdates::StepUpdates(func::FuncOp function, const StepParts &parts, llvm::DenseMap<Operation *, Homes> homes,
                         const std::map<std::string, std::set<unsigned>> &reads)
    : function(function), parts(parts), homes(std::move(homes)), resultOfName(nn::writtenBy(function)),
      holders(reads) {
  if (!parts.hasUpdates())
    return;
  // What each micro-batch has of its own, the program that makes it writes.
  const dist::Mesh mesh = dist::meshOf(function);
  for (auto each = resultOfName.begin(); each != resultOfName.end();) {
    const Value value = function.getBody().front().getTerminator()->getOperand(each->second);
    const bool isOwn = dist::shardingAttrOf(value) && dist::isPerMicroBatch(dist::shardingOf(value), mesh);
    each = isOwn ? resultOfName.erase(each) : std::next(each);
  }
  findNeeds();
  findRounds();
}

// ---- needs --------------------------------------------------------------------------------------

void StepUpdates::need(Value value, unsigned stage) {
  if (seen.insert({value, stage}).second)
    pending.push_back({value, stage});
}

/// A stage that holds a parameter or state needs its next value.
void StepUpdates::hold(const std::string &name, unsigned stage) {
  holders[name].insert(stage);
  if (auto written = resultOfName.find(name); written != resultOfName.end()) {
    returnedFrom[written->second].insert(stage);
    need(function.getBody().front().getTerminator()->getOperand(written->second), stage);
  }
}

void StepUpdates::findNeeds() {
  for (const auto &[name, stages] : std::map(holders))
    for (unsigned stage : stages)
      hold(name, stage);
  auto firstHome = [&](Value value) -> unsigned {
    if (std::optional<StepParts::Program> program = parts.programOf(value))
      return unsigned(parts.stageOf(*program));
    auto home = homes.find(value.getDefiningOp());
    return home == homes.end() ? 0 : unsigned(home->second.find_first());
  };
  for (OpOperand &returned : function.getBody().front().getTerminator()->getOpOperands()) {
    unsigned number = returned.getOperandNumber();
    Operation *producer = returned.get().getDefiningOp();
    bool isLate = producer && (parts.isOnceAStep(producer) || parts.isTotal(returned.get()));
    if (isLate && nn::resultPort(function, number).writes.empty()) {
      unsigned stage = firstHome(returned.get());
      returnedFrom[number].insert(stage);
      need(returned.get(), stage);
    }
  }
  followNeeds();
  for (const auto &[name, number] : resultOfName)
    if (holders[name].empty()) // nobody reads it
      hold(name, firstHome(function.getBody().front().getTerminator()->getOperand(number)));
  followNeeds();
}

void StepUpdates::followNeeds() {
  while (!pending.empty()) {
    auto [value, stage] = pending.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op) {
      if (std::string state = nn::argumentPort(function, cast<BlockArgument>(value).getArgNumber()).state;
          !state.empty())
        hold(state, stage);
      continue;
    }
    auto home = homes.find(op);
    std::optional<StepParts::Program> program = parts.programOf(op);
    unsigned from = stage;
    if (home != homes.end() && !home->second.test(stage))
      from = unsigned(home->second.find_first());
    else if (program)
      from = unsigned(parts.stageOf(*program));
    if (from != stage) {
      imports.insert({{value, stage}, from});
      need(value, from);
      continue;
    }
    if (program || parts.isTotal(value))
      ofPrograms.insert({value, stage});
    if (home != homes.end())
      computedIn.try_emplace(op, unsigned(parts.numStages())).first->second.set(stage);
    if (auto parameter = dyn_cast<nn::ParameterOp>(op))
      hold(parameter.getName().str(), stage);
    if (!program)
      for (Value operand : op->getOperands())
        need(operand, stage);
  }
}

SmallVector<Value> StepUpdates::wantedOf(StepParts::Program program) {
  SmallVector<Value> values;
  auto take = [&](Value value) {
    bool isMade = parts.programOf(value) ? parts.programOf(value) == program
                                         : program < parts.numStages(); // forward of the stage's first part
    if (isMade && ofPrograms.contains({value, unsigned(parts.stageOf(program))}))
      values.push_back(value);
  };
  for (Operation &op : function.getBody().front())
    llvm::for_each(op.getResults(), take);
  return values;
}

// ---- rounds -------------------------------------------------------------------------------------

unsigned StepUpdates::roundOf(Value value, unsigned stage) const {
  if (auto imported = imports.find({value, stage}); imported != imports.end())
    return roundOf(value, imported->second) + 1; // that stage computes the value, or one of its programs gives it
  Operation *op = value.getDefiningOp();
  return op ? rounds.lookup({op, stage}) : 0;
}

void StepUpdates::findRounds() {
  for (Operation &op : function.getBody().front()) {
    auto found = computedIn.find(&op);
    if (found == computedIn.end())
      continue;
    for (unsigned stage : found->second.set_bits()) {
      unsigned round = 0;
      for (Value operand : op.getOperands())
        round = std::max(round, roundOf(operand, stage));
      rounds[{&op, stage}] = round;
      opsOf[{round, stage}].push_back(&op);
    }
  }
  for (const auto &[known, from] : imports)
    lastRound = std::max(lastRound, roundOf(known.first, known.second));
  for (const auto &[op, round] : rounds)
    lastRound = std::max(lastRound, round);
}

bool StepUpdates::isRepeated(Operation *op) const {
  Value scaled = scaledBy(op);
  return scaled && !computedIn.count(scaled.getDefiningOp());
}

bool StepUpdates::isGiven(Value value, unsigned stage) const {
  auto computed = computedIn.find(value.getDefiningOp());
  if (imports.count({value, stage}))
    return true;
  if (value.getDefiningOp() && computed != computedIn.end() && isRepeated(value.getDefiningOp()))
    return false;
  return ofPrograms.contains({value, stage}) ||
         (computed != computedIn.end() && computed->second.test(stage));
}

bool StepUpdates::isReadAfter(Value value, unsigned round, unsigned stage) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    auto computed = computedIn.find(user);
    if (computed == computedIn.end() || !computed->second.test(stage))
      return false;
    return rounds.lookup({user, stage}) > round || (isRepeated(user) && isReadAfter(user->getResult(0), round, stage));
  });
}

/// A number that stages exchange once a step.
static Value transfer(OpBuilder &builder, Value value, Value result, unsigned from, unsigned to) {
  std::string cause = "the update of pipeline stage " + std::to_string(to) + " reads what stage " +
                      std::to_string(from) + " computes";
  auto transfer =
      pipe::TransferOp::create(builder, value.getLoc(), value.getType(), result, from, to,
                               builder.getStringAttr(cause), builder.getStringAttr("fewer stages (--pp)"));
  setValueIds(transfer, {{}, valueIdsOf(value.getDefiningOp()).held()});
  return transfer;
}

void StepUpdates::buildRound(OpBuilder &builder, unsigned round, unsigned stage,
                             llvm::DenseMap<Known, Value> &known) {
  // 1. Its ops, and the values that leave it: for other stages, later rounds, the function.
  ArrayRef<Operation *> own = opsOf[{round, stage}];
  llvm::SetVector<Value> leaving;
  auto leave = [&](Value value) {
    if (roundOf(value, stage) == round)
      leaving.insert(value);
  };
  for (const auto &[import, from] : imports) {
    if (from == stage)
      leave(import.first);
    if (import.second == stage && isReadAfter(import.first, round, stage))
      leave(import.first); // it arrives once
  }
  for (Operation *op : own)
    for (Value result : op->getResults())
      if (!isRepeated(op) && isReadAfter(result, round, stage))
        leave(result);
  Operation *terminator = function.getBody().front().getTerminator();
  for (const auto &[number, stages] : returnedFrom)
    if (stages.count(stage))
      leave(terminator->getOperand(number));
  if (own.empty() && leaving.empty())
    return;
  // 2. The program.
  ProgramBody body = findBody(own, leaving.getArrayRef(), [&](Value value) { return isGiven(value, stage); });
  SmallVector<Value> operands;
  for (Value value : body.outside)
    operands.push_back(isa<BlockArgument>(value) ? value : known.lookup({value, stage}));
  Location place = own.empty() ? leaving.front().getLoc() : own.front()->getLoc();
  pipe::StageOp program = createProgram(builder, place, stage, /*chunk=*/0, pipe::ProgramKind::update, body, operands,
                                        leaving.getArrayRef());
  // 3. Record where readers find the values that leave it.
  for (auto [value, result] : llvm::zip(leaving, program.getResults())) {
    known[{value, stage}] = result;
    for (const auto &[import, from] : imports)
      if (import.first == value && from == stage)
        known[import] = transfer(builder, value, result, stage, import.second);
  }
}

LogicalResult StepUpdates::build(OpBuilder &builder, llvm::DenseMap<Known, Value> &known) {
  if (!parts.hasUpdates())
    return success();
  for (unsigned round = 0; round <= lastRound; ++round)
    for (unsigned stage = 0; stage < parts.numStages(); ++stage)
      buildRound(builder, round, stage, known);
  return setReturned(known);
}

LogicalResult StepUpdates::setReturned(llvm::DenseMap<Known, Value> &known) {
  Operation *terminator = function.getBody().front().getTerminator();
  SmallVector<Value> more;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> ports;
  for (const auto &[number, stages] : returnedFrom) {
    Value value = terminator->getOperand(number);
    terminator->setOperand(number, known.lookup({value, *stages.begin()}));
    for (unsigned stage : llvm::drop_begin(stages)) {
      more.push_back(known.lookup({value, stage}));
      types.push_back(value.getType());
      ports.push_back(function.getResultAttrDict(number));
    }
  }
  terminator->insertOperands(terminator->getNumOperands(), more);
  SmallVector<unsigned> at(more.size(), function.getNumResults());
  return function.insertResults(at, types, ports);
}

} // namespace hpc
