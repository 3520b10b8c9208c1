// A value that several ops read is a variable of its own, so that equal reshards cost once; its strategies are the forms in which it is held.
// So all costs are of one variable or of two, and the graph stays as narrow as the program.
#include "passes/Search/LayoutGraph.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"

namespace hpc::search {

using namespace dist;
using Number = LayoutCosts::Number;

static constexpr size_t mostPieces = 6; // of one dim

static bool isKept(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return nn::argumentPort(cast<func::FuncOp>(argument.getOwner()->getParentOp()), argument.getArgNumber()).isState();
  return isa<nn::ParameterOp>(value.getDefiningOp());
}

LayoutGraph::LayoutGraph(func::FuncOp propagated, LayoutCosts &costs, std::vector<std::string> free,
                         const std::map<std::string, Sharding> &fixed)
    : function(propagated), costs(costs), free(std::move(free)) {
  for (auto &[name, result] : nn::writtenBy(function)) {
    Value value = function.front().getTerminator()->getOperand(result);
    if (auto reshard = value.getDefiningOp<ReshardOp>())
      value = reshard.getOperand();
    auto target = llvm::find_if(function.front().getOps<nn::ParameterOp>(), [&, &name = name](nn::ParameterOp op) { return op.getName() == name; });
    if (target != function.front().getOps<nn::ParameterOp>().end())
      writes.push_back({value, (*target).getResult()});
    for (BlockArgument argument : function.getArguments())
      if (nn::argumentPort(function, argument.getArgNumber()).state == name)
        writes.push_back({value, argument});
  }
  findPieces();
  addOps();
  addSources(fixed);
  addEdges();
  addTies();
}

int64_t LayoutGraph::bytesOf(Value value) const { return elementBytes(nn::tensorType(value).getElementType()); }

// ---- where dims can be cut ----------------------------------------------------------------------

/// Calls `visit` with each dim of an op's operands and results, and its factors.
static void eachDim(Operation *op, const ShardingRule &rule, llvm::function_ref<void(Value, size_t, ArrayRef<int>)> visit) {
  for (auto [value, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
    for (auto [dim, factors] : llvm::enumerate(dims))
      visit(value, dim, factors);
  for (auto [value, dims] : llvm::zip_equal(op->getResults(), rule.results))
    for (auto [dim, factors] : llvm::enumerate(dims))
      visit(value, dim, factors);
}

std::vector<LayoutGraph::Pieces> LayoutGraph::piecesOf(Operation *op, const ShardingRule &rule) {
  std::vector<Pieces> found(rule.factors.size());
  eachDim(op, rule, [&](Value value, size_t dim, ArrayRef<int> factors) {
    std::vector<Pieces> &known = pieces[value];
    known.resize(nn::shapeOf(value).size());
    int64_t stride = 1;
    for (int factor : llvm::reverse(factors)) {
      int64_t size = rule.factors[factor].size;
      found[factor].insert({1, size});
      for (auto [inner, length] : known[dim])
        if (inner % stride == 0 && size % (inner / stride * length) == 0 && found[factor].size() < mostPieces)
          found[factor].insert({inner / stride, length});
      stride *= size;
    }
  });
  return found;
}

void LayoutGraph::findPieces() {
  std::vector<std::pair<Operation *, ShardingRule>> rules;
  for (Operation &op : function.front())
    if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
      rules.push_back({&op, ruled.getShardingRule()});
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    auto visit = [&](Operation *op, const ShardingRule &rule) {
      std::vector<Pieces> found = piecesOf(op, rule);
      eachDim(op, rule, [&](Value value, size_t dim, ArrayRef<int> factors) {
        int64_t stride = 1;
        for (int factor : llvm::reverse(factors)) {
          for (auto [inner, length] : found[factor])
            if (length > 1 && pieces[value][dim].size() < mostPieces)
              isChanged |= pieces[value][dim].insert({inner * stride, length}).second;
          stride *= rule.factors[factor].size;
        }
      });
    };
    for (auto &[op, rule] : rules)
      visit(op, rule);
    for (auto &[op, rule] : llvm::reverse(rules))
      visit(op, rule);
  }
}

// ---- strategies ---------------------------------------------------------------------------------

/// A dim whose piece (inner, size) is cut over `axis` inside of all else that cuts it; nullopt where it is no one sub-dim, or too short.
static std::optional<DimSharding> cutFurther(const DimSharding &cut, int64_t size, std::pair<int64_t, int64_t> piece, const std::string &axis,
                                             const Mesh &mesh) {
  auto [inner, length] = piece;
  std::vector<int64_t> sizes;
  for (int64_t each : {size / (inner * length), length, inner})
    if (each > 1)
      sizes.push_back(each);
  size_t place = size / (inner * length) > 1;
  std::vector<DimSharding> groups = {cut};
  if (sizes.size() > 1 && !splitAt(cut, sizes, mesh, groups))
    return std::nullopt;
  DimSharding &group = groups[place];
  if (group.size() != 1)
    return std::nullopt;
  SubDim further = group.front();
  further.axes.push_back(axis);
  if (boxSize(group.front(), mesh) < mesh.size(axis))
    return std::nullopt;
  group = {further};
  DimSharding result;
  for (const DimSharding &each : groups)
    result.insert(result.end(), each.begin(), each.end());
  return normalize(result, mesh);
}

std::vector<OpSharding> LayoutGraph::strategiesOf(Operation *op) {
  const Mesh &mesh = costs.mesh();
  OpSharding base{cast<ShardingRuleOpInterface>(op).getShardingRule(), *factorsOf(op), {}, -1};
  base.setPassing(op);
  std::vector<OpSharding> all = {base};
  if (op->getNumOperands() == 0)
    return all;
  std::vector<Pieces> found = piecesOf(op, base.rule);
  const LinearClause &linear = base.rule.linear;
  for (const std::string &axis : free) {
    std::vector<OpSharding> more = all; // the axis does nothing
    for (const OpSharding &each : all) {
      for (auto [number, factor] : llvm::enumerate(base.rule.factors))
        for (auto piece : found[number]) {
          std::optional<DimSharding> cut = factor.size > 1 ? cutFurther(each.factors[number], factor.size, piece, axis, mesh) : std::nullopt;
          if (!cut || !mayCut(factor, *cut))
            continue;
          more.push_back(each);
          more.back().factors[number] = *cut;
        }
      auto mayBePartial = [&](int operand) { return partial[op->getOperand(unsigned(operand))].count(axis) != 0; };
      if (linear.kind == LinearClause::Sum && !linear.operands.empty() && llvm::all_of(linear.operands, mayBePartial)) {
        more.push_back(each);
        more.back().passing = unite(each.passing, {axis});
      }
      if (linear.kind == LinearClause::Product)
        for (int operand : linear.operands)
          if (mayBePartial(operand) && (each.carrier < 0 || each.carrier == operand)) {
            more.push_back(each);
            more.back().passing = unite(each.passing, {axis});
            more.back().carrier = operand;
          }
    }
    all = std::move(more);
  }
  // Cuts that hold the same are one.
  std::set<std::string> known;
  llvm::erase_if(all, [&](const OpSharding &each) {
    std::string text = llvm::join(each.passing, ",") + std::to_string(each.carrier);
    for (const DimSharding &factor : each.factors)
      text += "|" + toString(normalize(factor, mesh));
    return !known.insert(text).second;
  });
  return all;
}

static std::string textOf(const OpSharding &sharding) {
  std::vector<std::string> factors;
  for (const DimSharding &factor : sharding.factors)
    factors.push_back(toString(factor));
  return sharding.rule.text + " " + llvm::join(factors, ", ") + (sharding.passing.empty() ? "" : " passing " + llvm::join(sharding.passing, ", "));
}

void LayoutGraph::addOps() {
  for (Operation &op : function.front()) {
    if (!isa<ShardingRuleOpInterface>(op) || isa<ReshardOp>(op))
      continue;
    OpChoice choice{&op, 0, strategiesOf(&op)};
    std::vector<LayoutProblem::Strategy> strategies;
    for (const OpSharding &each : choice.strategies) {
      double seconds = costs.compute(&op, each) + costs.inside(&op, each).seconds;
      for (OpResult result : op.getResults()) {
        Sharding has = each.result(result.getResultNumber(), costs.mesh());
        partial[result].insert(has.partial.begin(), has.partial.end());
        if (isReturned(result) && !isReadByOps(result))
          seconds += completing(result, costs.number(has)).seconds;
      }
      strategies.push_back({textOf(each), seconds, 0});
    }
    choice.variable = layouts.addVariable(op.getName().getStringRef().str(), std::move(strategies));
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
static Sharding sourceSharding(const Sharding &base, const Sharding &wanted, bool isKept, const std::vector<std::string> &free, const Mesh &mesh) {
  Sharding result = base;
  std::vector<std::string> moved;
  for (auto [own, dim] : llvm::zip_equal(result.dims, wanted.dims)) {
    DimSharding cut = only(dim, free, mesh);
    if (!isCut(cut))
      continue;
    if (isKept && isCut(own)) {
      for (const SubDim &sub : own)
        moved.insert(moved.end(), sub.axes.begin(), sub.axes.end());
      own = cut;
    } else {
      own = isKept ? cut : dim;
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
  SmallVector<Value> values(function.getArguments());
  for (nn::ParameterOp parameter : function.front().getOps<nn::ParameterOp>())
    values.push_back(parameter.getResult());
  for (Value value : values) {
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
            add(sourceSharding(base, each.operand(use.getOperandNumber(), mesh), isKept(value), free, mesh));
    }
    std::vector<LayoutProblem::Strategy> strategies;
    for (const Sharding &each : choice.strategies) {
      int64_t elements = 1;
      for (int64_t size : boxShape(each, mesh))
        elements *= size;
      strategies.push_back({toString(each), 0, isKept(value) ? elements * bytesOf(value) : 0});
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

std::optional<LayoutGraph::Producer> LayoutGraph::producerOf(Value value) const {
  Producer producer;
  if (auto source = sourceNumber.find(value); source != sourceNumber.end()) {
    const SourceChoice &choice = sourceChoices[source->second];
    producer.variable = choice.variable;
    for (const Sharding &each : choice.strategies)
      producer.has.push_back(costs.number(each));
    return producer;
  }
  auto op = opNumber.find(value.getDefiningOp());
  if (op == opNumber.end())
    return std::nullopt; // a constant: all of it is everywhere
  const OpChoice &choice = opChoices[op->second];
  producer.variable = choice.variable;
  for (const OpSharding &each : choice.strategies)
    producer.has.push_back(costs.number(each.result(cast<OpResult>(value).getResultNumber(), costs.mesh())));
  return producer;
}

std::vector<LayoutGraph::Reader> LayoutGraph::readersOf(Value value) const {
  std::vector<Reader> readers;
  for (OpOperand &use : value.getUses())
    if (auto op = opNumber.find(use.getOwner()); op != opNumber.end()) {
      const OpChoice &choice = opChoices[op->second];
      Reader reader{choice.variable, {}};
      for (const OpSharding &each : choice.strategies)
        reader.wanted.push_back(costs.number(each.operand(use.getOperandNumber(), costs.mesh())));
      readers.push_back(std::move(reader));
    }
  std::reverse(readers.begin(), readers.end()); // uses are listed last first
  for (auto &[written, target] : writes)
    if (written == value)
      if (std::optional<Producer> stored = producerOf(target))
        readers.push_back({stored->variable, stored->has});
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
      std::vector<double> seconds;
      for (Number has : producer.has)
        for (Number wanted : readers.front().wanted)
          seconds.push_back(costs.move(has, wanted, bytes).seconds);
      addTable(producer.variable, readers.front().variable, std::move(seconds));
      direct.push_back({value, std::move(producer), std::move(readers.front())});
      continue;
    }
    Held each{value, producer, 0, formsFor(readers, bytes), returned, readers};
    std::vector<LayoutProblem::Strategy> strategies;
    for (const std::vector<Number> &forms : each.forms) {
      std::vector<std::string> names;
      for (Number form : forms)
        names.push_back(toString(costs.sharding(form)));
      strategies.push_back({llvm::join(names, " and "), 0, 0});
    }
    each.variable = layouts.addVariable("a value", std::move(strategies));
    std::vector<double> seconds;
    for (Number has : producer.has)
      for (const std::vector<Number> &forms : each.forms)
        seconds.push_back(costs.makeAll(has, forms, bytes) + (needsCompleting(each, has, forms) ? completing(value, has).seconds : 0));
    addTable(producer.variable, each.variable, std::move(seconds));
    for (const Reader &reader : readers) {
      std::vector<double> pairs;
      for (const std::vector<Number> &forms : each.forms)
        for (Number wanted : reader.wanted)
          pairs.push_back(llvm::any_of(forms, [&](Number form) { return costs.move(form, wanted, bytes).isFree; }) ? 0 : impossible);
      addTable(each.variable, reader.variable, std::move(pairs));
    }
    heldNumber[value] = held.size();
    held.push_back(std::move(each));
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
    if (auto found = heldNumber.find(first); found != heldNumber.end())
      tie(held[found->second].variable, each.variable);
  }
}

void LayoutGraph::chooseForms(std::vector<size_t> &chosen) const {
  for (const Held &each : held) {
    const int64_t bytes = bytesOf(each.value);
    Number has = each.producer.has[chosen[each.producer.variable]];
    double least = impossible;
    for (auto [number, forms] : llvm::enumerate(each.forms)) {
      bool areAll = llvm::all_of(each.readers, [&, &forms = forms](const Reader &reader) {
        return llvm::any_of(forms, [&](Number form) { return costs.move(form, reader.wanted[chosen[reader.variable]], bytes).isFree; });
      });
      double seconds = costs.makeAll(has, forms, bytes) + (needsCompleting(each, has, forms) ? completing(each.value, has).seconds : 0);
      if (!areAll || seconds >= least)
        continue;
      least = seconds;
      chosen[each.variable] = number;
    }
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
  for (const Direct &each : direct)
    add(costs.move(each.producer.has[chosen[each.producer.variable]], each.reader.wanted[chosen[each.reader.variable]], bytesOf(each.value)));
  for (const Held &each : held) {
    Number has = each.producer.has[chosen[each.producer.variable]];
    const std::vector<Number> &forms = each.forms[chosen[each.variable]];
    for (const LayoutCosts::Move *move : costs.movesOf(has, forms, bytesOf(each.value)))
      add(*move);
    if (needsCompleting(each, has, forms))
      add(completing(each.value, has));
  }
  return all;
}

} // namespace hpc::search
