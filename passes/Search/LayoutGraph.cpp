// A value that several ops read is a variable of its own, so that equal reshards cost once; its strategies are the forms in which it is held.
// So all costs are of one variable or of two, and the graph stays as narrow as the program.
#include "passes/Search/LayoutGraph.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "compiler/Interfaces/Structure.h"
#include "compiler/StepPart.h"
#include "compiler/Subject.h"

namespace hpc::search {

using namespace dist;
using Number = LayoutCosts::Number;

/// The price of storing, so that of two layouts that take as long the one wins that stores less: a share of the seconds in which memory gives what is stored.
static constexpr double lessMemory = 1e-9;

static bool isParameter(Value value) { return isa_and_present<nn::ParameterOp>(value.getDefiningOp()); }

LayoutGraph::LayoutGraph(func::FuncOp propagated, LayoutCosts &costs, std::vector<std::string> free,
                         const std::map<std::string, Sharding> &fixed)
    : function(propagated), costs(costs), free(std::move(free)), dependences(nn::findDependences(propagated)),
      strategies(propagated, costs.mesh(), this->free, dependences) {
  trains = llvm::any_of(function.front(), [](Operation &op) { return stepPartOf(op.getLoc()) == StepPart::Gradient; });
  for (auto &[name, result] : nn::writtenBy(function)) {
    Value value = function.front().getTerminator()->getOperand(result);
    if (auto reshard = value.getDefiningOp<ReshardOp>())
      value = reshard.getOperand();
    auto target = llvm::find_if(function.front().getOps<nn::ParameterOp>(), [&, &name = name](nn::ParameterOp op) { return op.getName() == name; });
    if (target != function.front().getOps<nn::ParameterOp>().end())
      writes.push_back({value, (*target).getResult()});
  }
  addOps();
  addSources(fixed);
  addEdges();
  addTies();
}

int64_t LayoutGraph::bytesOf(Value value) const { return elementBytes(nn::tensorType(value).getElementType()); }

// ---- strategies ---------------------------------------------------------------------------------

static std::string textOf(const OpSharding &sharding) {
  std::vector<std::string> factors;
  for (const DimSharding &factor : sharding.factors)
    factors.push_back(toString(factor));
  return sharding.rule.text + " " + llvm::join(factors, ", ") + (sharding.passing.empty() ? "" : " passing " + llvm::join(sharding.passing, ", "));
}

void LayoutGraph::addOps() {
  for (Operation &op : function.front()) {
    if (!isa<ShardingRuleOpInterface>(op) || isa<ReshardOp>(op) || stepPartOf(op.getLoc()) != StepPart::Forward)
      continue;
    OpChoice choice{&op, 0, strategies.of(&op)};
    std::vector<LayoutProblem::Strategy> priced;
    for (const OpSharding &each : choice.strategies) {
      // A product has two products for its gradients, all else about as much again.
      double seconds = costs.compute(&op, each) * (!trains ? 1 : effortOf(&op) == Effort::Product ? 3 : 2);
      seconds += costs.inside(&op, each).seconds * (trains ? 2 : 1);
      for (OpResult result : op.getResults()) {
        Sharding has = each.result(result.getResultNumber(), costs.mesh());
        if (isReturned(result) && !isReadByOps(result))
          seconds += completing(result, costs.number(has)).seconds;
      }
      priced.push_back({textOf(each), seconds, 0});
    }
    choice.variable = layouts.addVariable(op.getName().getStringRef().str() + " of " + subjectOf(op.getResult(0)), std::move(priced));
    opNumber[&op] = opChoices.size();
    opChoices.push_back(std::move(choice));
  }
}

/// The part of a dim over some axes alone.
static DimSharding only(DimSharding dim, const std::vector<std::string> &axes, const Mesh &mesh) {
  for (SubDim &sub : dim)
    llvm::erase_if(sub.axes, [&](const std::string &axis) { return !llvm::is_contained(axes, axis); });
  return normalize(dim, mesh);
}

/// A source as a reader wants it: its own cuts stay where the reader's free axes leave them room; states that are cut over data move them to the first
/// other dim, as hpc-annotate-zero does.
static Sharding sourceSharding(const Sharding &base, const Sharding &wanted, bool isStored, const std::vector<std::string> &free, const Mesh &mesh) {
  Sharding result = base;
  std::vector<std::string> moved;
  for (auto [own, dim] : llvm::zip_equal(result.dims, wanted.dims)) {
    DimSharding cut = only(dim, free, mesh);
    if (!isCut(cut))
      continue;
    if (isStored && isCut(own)) {
      for (const SubDim &sub : own)
        moved.insert(moved.end(), sub.axes.begin(), sub.axes.end());
      own = cut;
    } else {
      own = isStored ? cut : dim;
    }
  }
  for (DimSharding &dim : result.dims)
    if (int64_t size = globalSize(dim); !moved.empty() && !isCut(dim)) {
      int64_t ranks = 1;
      for (const std::string &axis : moved)
        ranks *= mesh.size(axis);
      if (size >= ranks)
        dim = {{size, std::move(moved)}}, moved.clear();
    }
  return normalize(result, mesh);
}

void LayoutGraph::addSources(const std::map<std::string, Sharding> &fixed) {
  const Mesh &mesh = costs.mesh();
  SmallVector<Value> values;
  std::map<std::string, int64_t> states; // by parameter, whose cut they have
  for (BlockArgument argument : function.getArguments()) {
    nn::ArgumentPort port = nn::argumentPort(function, argument.getArgNumber());
    if (port.isState())
      ++states[StringRef(port.state).split('/').second.str()];
    else
      values.push_back(argument);
  }
  for (nn::ParameterOp parameter : function.front().getOps<nn::ParameterOp>())
    values.push_back(parameter.getResult());
  for (Value value : values) {
    const bool isWritten = llvm::any_of(writes, [&](const auto &write) { return write.second == value; });
    const Sharding base = shardingOf(value);
    SourceChoice choice{value, 0, {}};
    std::set<Number> known;
    auto add = [&](const Sharding &sharding) {
      if (known.insert(costs.number(sharding)).second)
        choice.strategies.push_back(sharding);
    };
    auto parameter = value.getDefiningOp<nn::ParameterOp>();
    if (auto decided = parameter ? fixed.find(parameter.getName().str()) : fixed.end(); decided != fixed.end()) {
      add(decided->second);
    } else {
      add(normalize(base, mesh));
      for (OpOperand &use : value.getUses())
        if (auto reader = opNumber.find(use.getOwner()); reader != opNumber.end())
          for (const OpSharding &each : opChoices[reader->second].strategies)
            add(sourceSharding(base, each.operand(use.getOperandNumber(), mesh), isParameter(value), free, mesh));
    }
    std::vector<LayoutProblem::Strategy> strategies;
    for (const Sharding &each : choice.strategies) {
      int64_t elements = 1;
      for (int64_t size : boxShape(each, mesh))
        elements *= size;
      // The update reads the parameter, its gradient and its states, which are cut alike, and writes it and them.
      const int64_t bytes = elements * bytesOf(value), ofStates = isWritten ? states[parameter.getName().str()] * bytes : 0;
      const double update = costs.touching(double(isWritten ? 3 * bytes + 2 * ofStates : 0));
      const int64_t stored = parameter ? bytes + ofStates : 0;
      strategies.push_back({toString(each), update + lessMemory * costs.touching(double(stored)), stored});
    }
    choice.variable = layouts.addVariable(parameter ? parameter.getName().str() : "input", std::move(strategies));
    sourceNumber[value] = sourceChoices.size();
    sourceChoices.push_back(std::move(choice));
  }
}

// ---- edges --------------------------------------------------------------------------------------

bool LayoutGraph::isReturned(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
           return isa<func::ReturnOp>(user) || (isa<ReshardOp>(user) && llvm::any_of(user->getUsers(), llvm::IsaPred<func::ReturnOp>));
         }) &&
         llvm::none_of(writes, [&](const auto &write) { return write.first == value; });
}

bool LayoutGraph::isReadByOps(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) { return isa<ShardingRuleOpInterface>(user) && !isa<ReshardOp>(user); });
}

const LayoutCosts::Move &LayoutGraph::completing(Value value, Number has) const {
  Sharding complete = costs.sharding(has);
  complete.partial.clear();
  return costs.move(has, costs.number(complete), bytesOf(value));
}

bool LayoutGraph::hasGradient(Value value) const {
  return trains && isa<FloatType>(nn::tensorType(value).getElementType()) && dependences.lookup(value).fromWeights;
}

/// The gradient of an operand is a sum over the factors that the operand lacks.
Sharding LayoutGraph::gradientOf(const OpSharding &sharding, unsigned operand) const {
  Sharding gradient = project(sharding.rule.operands[operand], sharding.factors, costs.mesh());
  for (auto [number, cut] : llvm::enumerate(sharding.factors)) {
    bool isThere = llvm::any_of(sharding.rule.operands[operand], [factor = int(number)](ArrayRef<int> dim) { return llvm::is_contained(dim, factor); });
    if (!isThere)
      gradient.partial = unite(gradient.partial, axesOf(cut));
  }
  return gradient;
}

std::optional<LayoutGraph::Producer> LayoutGraph::producerOf(Value value) const {
  Producer producer;
  if (auto source = sourceNumber.find(value); source != sourceNumber.end()) {
    const SourceChoice &choice = sourceChoices[source->second];
    producer.variable = choice.variable;
    for (const Sharding &each : choice.strategies)
      producer.has.push_back(costs.number(each));
    producer.wanted = producer.has; // updates run on the stored pieces
    return producer;
  }
  auto op = opNumber.find(value.getDefiningOp());
  if (op == opNumber.end())
    return std::nullopt; // a constant: all of it is everywhere
  const OpChoice &choice = opChoices[op->second];
  producer.variable = choice.variable;
  for (const OpSharding &each : choice.strategies) {
    Sharding has = each.result(cast<OpResult>(value).getResultNumber(), costs.mesh());
    producer.has.push_back(costs.number(has));
    has.partial.clear();
    producer.wanted.push_back(costs.number(has));
  }
  return producer;
}

std::vector<LayoutGraph::Reader> LayoutGraph::readersOf(Value value) const {
  std::vector<Reader> readers;
  for (OpOperand &use : value.getUses())
    if (auto op = opNumber.find(use.getOwner()); op != opNumber.end()) {
      const OpChoice &choice = opChoices[op->second];
      Reader reader{choice.variable, {}, {}};
      for (const OpSharding &each : choice.strategies)
        reader.wanted.push_back(costs.number(each.operand(use.getOperandNumber(), costs.mesh())));
      if (hasGradient(value) && hasGradient(use.getOwner()->getResult(0)))
        for (const OpSharding &each : choice.strategies)
          reader.gradient.push_back(costs.number(gradientOf(each, use.getOperandNumber())));
      readers.push_back(std::move(reader));
    }
  std::reverse(readers.begin(), readers.end()); // uses are listed last first
  for (auto &[written, target] : writes)
    if (written == value)
      if (std::optional<Producer> stored = producerOf(target))
        readers.push_back({stored->variable, stored->has, {}});
  return readers;
}

/// All that some reader wants, one by one and in pairs of which neither is a slice of the other.
std::vector<std::vector<Number>> LayoutGraph::formsFor(const std::vector<Reader> &readers, int64_t bytes) {
  std::vector<Number> wanted;
  for (const Reader &reader : readers)
    for (Number each : reader.wanted)
      if (!llvm::is_contained(wanted, each))
        wanted.push_back(each);
  std::vector<std::vector<Number>> forms;
  for (Number each : wanted)
    forms.push_back({each});
  for (size_t i = 0; i < wanted.size(); ++i)
    for (size_t j = i + 1; j < wanted.size(); ++j)
      if (!costs.move(wanted[i], wanted[j], bytes).isFree && !costs.move(wanted[j], wanted[i], bytes).isFree)
        forms.push_back({wanted[i], wanted[j]});
  return forms;
}

void LayoutGraph::addTable(LayoutProblem::Variable a, LayoutProblem::Variable b, std::vector<double> seconds) {
  if (llvm::any_of(seconds, [](double each) { return each != 0; }))
    layouts.addEdge(a, b, std::move(seconds));
}

void LayoutGraph::addEdges() {
  SmallVector<Value> values;
  for (const SourceChoice &source : sourceChoices)
    values.push_back(source.value);
  for (const OpChoice &op : opChoices)
    llvm::append_range(values, op.op->getResults());
  for (Value value : values) {
    std::vector<Reader> readers = readersOf(value);
    Producer producer = *producerOf(value);
    const int64_t bytes = bytesOf(value);
    const bool returned = isReturned(value);
    if (readers.empty())
      continue;
    if (readers.size() == 1 && !returned && readers.front().variable != producer.variable) {
      addDirect(value, std::move(producer), std::move(readers.front()));
      continue;
    }
    Held each{value, producer, 0, formsFor(readers, bytes), returned, readers, {}, {}};
    std::vector<LayoutProblem::Strategy> strategies;
    for (const std::vector<Number> &forms : each.forms) {
      std::vector<std::string> names;
      for (Number form : forms)
        names.push_back(toString(costs.sharding(form)));
      strategies.push_back({llvm::join(names, " and "), 0, 0});
    }
    each.variable = layouts.addVariable("readers of " + subjectOf(value), std::move(strategies));
    std::vector<double> seconds;
    for (Number has : producer.has)
      for (const std::vector<Number> &forms : each.forms)
        seconds.push_back(reading(value, has, forms) + (needsCompleting(each, has, forms) ? completing(value, has).seconds : 0));
    addTable(producer.variable, each.variable, std::move(seconds));
    for (const Reader &reader : readers) {
      std::vector<double> pairs;
      for (const std::vector<Number> &forms : each.forms)
        for (Number wanted : reader.wanted)
          pairs.push_back(llvm::any_of(forms, [&](Number form) { return costs.move(form, wanted, bytes).isFree; }) ? 0 : impossible);
      addTable(each.variable, reader.variable, std::move(pairs));
    }
    addGradients(each);
    heldNumber[value] = held.size();
    held.push_back(std::move(each));
  }
}

double LayoutGraph::reading(Value value, Number has, const std::vector<Number> &forms) const {
  const int64_t bytes = bytesOf(value);
  double seconds = 0;
  for (const LayoutCosts::Move *move : costs.movesOf(has, forms, bytes)) {
    auto isOverFree = [&](const LayoutCollective &each) {
      return llvm::any_of(each.axes, [&](const std::string &axis) { return llvm::is_contained(free, axis); });
    };
    if (dependences.lookup(value).isWeight() && llvm::any_of(move->collectives, isOverFree))
      return impossible;
    seconds += move->seconds;
  }
  return seconds;
}

void LayoutGraph::addDirect(Value value, Producer producer, Reader reader) {
  const int64_t bytes = bytesOf(value);
  std::vector<double> seconds;
  for (size_t i = 0; i < producer.has.size(); ++i)
    for (size_t j = 0; j < reader.wanted.size(); ++j)
      seconds.push_back(reading(value, producer.has[i], {reader.wanted[j]}) +
                        (reader.gradient.empty() ? 0 : costs.move(reader.gradient[j], producer.wanted[i], bytes).seconds));
  addTable(producer.variable, reader.variable, std::move(seconds));
  direct.push_back({value, std::move(producer), std::move(reader)});
}

/// The gradients that readers give are added up in one form, then moved to where the value was made.
void LayoutGraph::addGradients(Held &each) {
  const int64_t bytes = bytesOf(each.value);
  std::vector<const Reader *> givers;
  for (const Reader &reader : each.readers) {
    for (Number gradient : reader.gradient)
      if (!llvm::is_contained(each.gradients, gradient))
        each.gradients.push_back(gradient);
    if (!reader.gradient.empty())
      givers.push_back(&reader);
  }
  if (givers.empty())
    return;
  std::vector<LayoutProblem::Strategy> strategies;
  for (Number gradient : each.gradients)
    strategies.push_back({toString(costs.sharding(gradient)), 0, 0});
  each.gradientVariable = layouts.addVariable("the gradient of " + subjectOf(each.value), std::move(strategies));
  std::vector<double> seconds;
  for (Number wanted : each.producer.wanted)
    for (Number gradient : each.gradients)
      seconds.push_back(costs.move(gradient, wanted, bytes).seconds);
  addTable(each.producer.variable, *each.gradientVariable, std::move(seconds));
  for (const Reader *giver : givers) {
    std::vector<double> pairs;
    for (Number gradient : each.gradients)
      for (Number given : giver->gradient)
        pairs.push_back(costs.move(given, gradient, bytes).seconds);
    addTable(*each.gradientVariable, giver->variable, std::move(pairs));
  }
}

bool LayoutGraph::needsCompleting(const Held &each, Number has, const std::vector<Number> &forms) const {
  return each.isReturned && !costs.sharding(has).partial.empty() &&
         llvm::all_of(forms, [&](Number form) { return !costs.sharding(form).partial.empty(); });
}

void LayoutGraph::addTies() {
  LayoutTies ties(function);
  auto names = [&](LayoutProblem::Variable variable) {
    std::vector<std::string> all;
    for (const LayoutProblem::Strategy &each : layouts.strategies(variable))
      all.push_back(each.name);
    return all;
  };
  auto tie = [&](LayoutProblem::Variable a, LayoutProblem::Variable b) {
    if (a != b && names(a) == names(b))
      layouts.tie(a, b);
  };
  for (const OpChoice &choice : opChoices)
    if (auto first = opNumber.find(ties.first(choice.op)); first != opNumber.end())
      tie(opChoices[first->second].variable, choice.variable);
  for (const SourceChoice &choice : sourceChoices)
    if (auto first = sourceNumber.find(ties.first(choice.value)); first != sourceNumber.end())
      tie(sourceChoices[first->second].variable, choice.variable);
  for (const Held &each : held) {
    Value first;
    if (Operation *op = each.value.getDefiningOp(); op && ties.first(op))
      first = ties.first(op)->getResult(cast<OpResult>(each.value).getResultNumber());
    else
      first = ties.first(each.value);
    auto found = heldNumber.find(first);
    if (found == heldNumber.end())
      continue;
    const Held &other = held[found->second];
    tie(other.variable, each.variable);
    if (other.gradientVariable && each.gradientVariable)
      tie(*other.gradientVariable, *each.gradientVariable);
  }
}

std::vector<LayoutCollective> LayoutGraph::collectives(const std::vector<size_t> &chosen) const {
  std::vector<LayoutCollective> all;
  auto add = [&](const LayoutCosts::Move &move) { all.insert(all.end(), move.collectives.begin(), move.collectives.end()); };
  for (const OpChoice &op : opChoices) {
    const OpSharding &taken = op.strategies[chosen[op.variable]];
    add(costs.inside(op.op, taken));
    for (OpResult result : op.op->getResults())
      if (isReturned(result) && !isReadByOps(result))
        add(completing(result, costs.number(taken.result(result.getResultNumber(), costs.mesh()))));
  }
  for (const Direct &each : direct) {
    size_t made = chosen[each.producer.variable], read = chosen[each.reader.variable];
    add(costs.move(each.producer.has[made], each.reader.wanted[read], bytesOf(each.value)));
    if (!each.reader.gradient.empty())
      add(costs.move(each.reader.gradient[read], each.producer.wanted[made], bytesOf(each.value)));
  }
  for (const Held &each : held) {
    Number has = each.producer.has[chosen[each.producer.variable]];
    const std::vector<Number> &forms = each.forms[chosen[each.variable]];
    for (const LayoutCosts::Move *move : costs.movesOf(has, forms, bytesOf(each.value)))
      add(*move);
    if (needsCompleting(each, has, forms))
      add(completing(each.value, has));
    if (!each.gradientVariable)
      continue;
    Number sum = each.gradients[chosen[*each.gradientVariable]];
    for (const Reader &reader : each.readers)
      if (!reader.gradient.empty())
        add(costs.move(reader.gradient[chosen[reader.variable]], sum, bytesOf(each.value)));
    add(costs.move(sum, each.producer.wanted[chosen[each.producer.variable]], bytesOf(each.value)));
  }
  return all;
}

} // namespace hpc::search
