// The products of the layers show where layers begin (passes/Stage/Blocks.h). Two of them are compared op by op, from the values that
// they read to those that they make.
#include "passes/Driver/RepeatedBlocks.h"

#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Sidecar/ModuleSidecar.h"
#include "compiler/Sidecar/ParamRules.h"
#include "compiler/Sidecar/TensorRules.h"
#include "passes/Phases.h"
#include "passes/Stage/Blocks.h"

#include "mlir/IR/Diagnostics.h"

namespace hpc {

/// Models whose blocks repeat in groups of more layers (attention over all positions in every sixth) are their own profile.
constexpr size_t maxGroup = 8;

namespace {
// ---- what the user says about a value -----------------------------------------------------------

class Rules {
public:
  /// An error is left to the compilation in earnest, which prints it.
  static Expected<Rules> of(ModuleOp module, func::FuncOp function, const Options &options) {
    Rules rules;
    StringRef(options.freeze).split(rules.freeze, ',', -1, /*KeepEmpty=*/false);
    Expected<std::optional<Sidecar>> sidecar = sidecarOf(module);
    HPC_RETURN_IF_ERROR(sidecar.status());
    if (!*sidecar)
      return rules;
    Expected<std::vector<ParamDecision>> params = decideParams(**sidecar, function);
    HPC_RETURN_IF_ERROR(params.status());
    Expected<std::vector<TensorDecision>> tensors = decideTensors(**sidecar, function);
    HPC_RETURN_IF_ERROR(tensors.status());
    for (const ParamDecision &decision : *params)
      for (const ParamRule *rule : {decision.cut, decision.trainable})
        rules.texts[nn::ParameterOp(decision.parameter).getResult()] += (decision.isTransposed ? "transposed " : "") + textOf(rule, &Sidecar::params);
    for (const TensorDecision &decision : *tensors)
      rules.texts[decision.value] += textOf(decision.rule, &Sidecar::tensors);
    return rules;
  }

  bool areEqual(Value first, Value second) const {
    return texts.lookup(first) == texts.lookup(second) && isFrozen(first) == isFrozen(second);
  }

private:
  /// Rules of different names that say the same have one text.
  template <class Rule> static std::string textOf(const Rule *rule, std::vector<Rule> Sidecar::*list) {
    if (!rule)
      return "none";
    Sidecar alone;
    (alone.*list).push_back(*rule);
    (alone.*list).front().match = "*";
    return sidecarText(alone);
  }
  bool isFrozen(Value value) const {
    auto parameter = value.getDefiningOp<nn::ParameterOp>();
    return parameter && llvm::any_of(freeze, [&](StringRef pattern) { return matchesName(pattern.trim().str(), parameter.getName().str()); });
  }

  SmallVector<StringRef> freeze; ///< of the options, which outlive this
  llvm::DenseMap<Value, std::string> texts;
};

// ---- which layer an op is of --------------------------------------------------------------------

/// Layers, numbered through all runs, with the ops between runs beside them.
struct Layers {
  /// The first and the last layer that reads an op's results; of a trunk op the one that it is in.
  llvm::DenseMap<Operation *, std::pair<size_t, size_t>> span;
  std::vector<SmallVector<Operation *>> ops; ///< of one layer alone, in program order: those that follow from inputs
  std::vector<std::pair<size_t, size_t>> runs; ///< layers [first, second) are of one run

  bool isWithin(Operation *op, size_t first, size_t end) const {
    auto found = span.find(op);
    return found != span.end() && found->second.first >= first && found->second.second < end;
  }
};

Layers findLayers(func::FuncOp function) {
  const Blocks blocks = findBlocks(function, 1);
  std::set<size_t> cuts{0};
  for (const LayerRun &run : blocks.layers) {
    cuts.insert(run.firstOp.begin(), run.firstOp.end());
    cuts.insert(run.endOp);
  }
  auto layerAt = [&](size_t op) { return size_t(std::distance(cuts.begin(), cuts.upper_bound(op))) - 1; };
  Layers layers;
  for (const LayerRun &run : blocks.layers)
    layers.runs.push_back({layerAt(run.firstOp.front()), layerAt(run.firstOp.back()) + 1});
  for (auto [index, op] : llvm::enumerate(blocks.trunk.ops))
    layers.span[op] = {layerAt(index), layerAt(index)};
  const size_t outside = cuts.size();
  for (Operation &op : llvm::reverse(function.getBody().front())) {
    auto [place, isNew] = layers.span.try_emplace(&op, outside, outside);
    if (!isNew || op.use_empty())
      continue;
    std::pair<size_t, size_t> span{outside, 0};
    for (Operation *user : op.getUsers()) {
      auto [first, last] = layers.span.lookup(function.getBody().front().findAncestorOpInBlock(*user));
      span = {std::min(span.first, first), std::max(span.second, last)};
    }
    layers.span[&op] = span;
  }
  layers.ops.resize(cuts.size() + 1);
  nn::Dependences dependences = nn::findDependences(function);
  for (Operation &op : function.getBody().front().without_terminator())
    if (auto [first, last] = layers.span.lookup(&op); first == last && op.getNumResults() && dependences.lookup(op.getResult(0)).fromInputs)
      layers.ops[first].push_back(&op);
  return layers;
}

// ---- whether two blocks are equal ---------------------------------------------------------------

/// A block while it is looked for: some layers that follow each other, without what is before the first block or after the last.
struct Piece {
  size_t firstLayer = 0, endLayer = 0;
  ArrayRef<Operation *> ops;
};

bool haveEqualAttributes(Operation *first, Operation *second) {
  if (auto parameter = dyn_cast<nn::ParameterOp>(first)) {
    auto other = cast<nn::ParameterOp>(second);
    return parameter.storedElementType() == other.storedElementType() && parameter.getIsStatistic() == other.getIsStatistic() &&
           parameter.getIsExporters() == other.getIsExporters() && parameter.getIsMade() == other.getIsMade();
  }
  auto counted = [](Operation *op) {
    return llvm::make_filter_range(op->getAttrs(), [](NamedAttribute attribute) { return !attribute.getName().strref().contains('.'); });
  };
  return llvm::equal(counted(first), counted(second));
}

class Match {
public:
  Match(const Layers &layers, const Rules &rules, func::FuncOp function, const Piece &first, const Piece &second)
      : layers(layers), rules(rules), function(function), first(first), second(second), made(first.ops.begin(), first.ops.end()), madeBySecond(second.ops.begin(), second.ops.end()) {}

  bool run() {
    return first.ops.size() == second.ops.size() &&
           llvm::all_of(llvm::zip(first.ops, second.ops), [&](auto pair) { return matchOps(std::get<0>(pair), std::get<1>(pair)); });
  }
  /// The values that the second block reads of the first, by what the first reads in its place.
  bool follows(const Match *before) const {
    return llvm::all_of(carried, [&](auto pair) {
      return made.contains(pair.second.getDefiningOp()) && (!before || before->counterpart.lookup(pair.first) == pair.second);
    });
  }

  SmallVector<std::pair<Operation *, Operation *>> ops;
  SmallVector<std::pair<unsigned, unsigned>> arguments;

private:
  bool matchOps(Operation *one, Operation *other) {
    if (one->getName() != other->getName() || one->getResultTypes() != other->getResultTypes() ||
        one->getNumOperands() != other->getNumOperands() || one->getNumRegions() != other->getNumRegions() || !haveEqualAttributes(one, other))
      return false;
    for (auto [region, otherRegion] : llvm::zip(one->getRegions(), other->getRegions()))
      if (!OperationEquivalence::isRegionEquivalentTo(&region, &otherRegion, OperationEquivalence::IgnoreLocations))
        return false;
    for (auto [value, otherValue] : llvm::zip(one->getOperands(), other->getOperands()))
      if (!matchValues(value, otherValue))
        return false;
    for (auto [value, otherValue] : llvm::zip(one->getResults(), other->getResults())) {
      if (!rules.areEqual(value, otherValue))
        return false;
      counterpart[value] = otherValue;
    }
    ops.push_back({one, other});
    return true;
  }

  bool matchValues(Value one, Value other) {
    if (auto known = counterpart.find(one); known != counterpart.end())
      return known->second == other;
    if (one == other)
      return true;
    if (one.getType() != other.getType())
      return false;
    Operation *maker = one.getDefiningOp(), *otherMaker = other.getDefiningOp();
    if (!maker && !otherMaker)
      return matchArguments(cast<BlockArgument>(one), cast<BlockArgument>(other));
    if (maker && otherMaker && layers.isWithin(maker, first.firstLayer, first.endLayer) && !made.contains(maker) &&
        layers.isWithin(otherMaker, second.firstLayer, second.endLayer) && !madeBySecond.contains(otherMaker))
      return matchOps(maker, otherMaker); // made of weights alone
    counterpart[one] = other;
    carried.push_back({one, other});
    return true;
  }

  /// Inputs that one block alone reads: a cache of keys.
  bool matchArguments(BlockArgument one, BlockArgument other) {
    auto isOwn = [&](BlockArgument argument, const Piece &piece) {
      return llvm::all_of(argument.getUsers(), [&](Operation *user) { return layers.isWithin(user, piece.firstLayer, piece.endLayer); });
    };
    auto portOf = [&](BlockArgument argument) {
      NamedAttrList port(function.getArgAttrDict(argument.getArgNumber()));
      port.erase("nn.name");
      return port.getDictionary(function.getContext());
    };
    if (!isOwn(one, first) || !isOwn(other, second) || portOf(one) != portOf(other) || !rules.areEqual(one, other))
      return false;
    counterpart[one] = other;
    arguments.push_back({one.getArgNumber(), other.getArgNumber()});
    return true;
  }

  const Layers &layers;
  const Rules &rules;
  func::FuncOp function;
  Piece first, second;
  llvm::DenseSet<Operation *> made, madeBySecond;
  llvm::DenseMap<Value, Value> counterpart;
  SmallVector<std::pair<Value, Value>> carried;
};

// ---- chains -------------------------------------------------------------------------------------

/// Groups of `size` layers of [begin, end). The first and the last group lose what the ones beside them do not have.
class Pieces {
public:
  Pieces(const Layers &layers, size_t begin, size_t end, size_t size) {
    for (size_t first = begin; first + size <= end; first += size) {
      SmallVector<Operation *> &all = ops.emplace_back();
      for (size_t layer = first; layer < first + size; ++layer)
        llvm::append_range(all, layers.ops[layer]);
      pieces.push_back({first, first + size, {}});
    }
    for (auto [piece, all] : llvm::zip(pieces, ops))
      piece.ops = all;
    if (pieces.size() < 2)
      return;
    if (const size_t whole = pieces[1].ops.size(); pieces.size() > 2 && pieces[0].ops.size() > whole)
      pieces[0].ops = pieces[0].ops.take_back(whole);
    if (const size_t whole = pieces[pieces.size() - 2].ops.size(); pieces.back().ops.size() > whole)
      pieces.back().ops = pieces.back().ops.take_front(whole);
  }
  ArrayRef<Piece> all() const { return pieces; }

private:
  std::vector<SmallVector<Operation *>> ops;
  std::vector<Piece> pieces;
};

/// The most groups that follow each other and are equal.
BlockChain longestChain(const Layers &layers, const Rules &rules, func::FuncOp function, ArrayRef<Piece> pieces) {
  std::vector<Match> matches; // of a piece and the next
  size_t begin = 0, bestBegin = 0, bestEnd = 0; // of matches that follow each other
  for (size_t next = 0; next + 1 < pieces.size(); ++next) {
    Match &match = matches.emplace_back(layers, rules, function, pieces[next], pieces[next + 1]);
    const bool isEqual = match.run() && match.follows(nullptr);
    if (!isEqual)
      begin = next + 1;
    else if (begin < next && (!match.follows(&matches[next - 1]) || match.ops.size() != matches[next - 1].ops.size()))
      begin = next;
    if (next + 1 - begin > bestEnd - bestBegin) {
      bestBegin = begin;
      bestEnd = next + 1;
    }
  }
  BlockChain chain;
  auto add = [&](const Match &match, auto side) {
    for (auto &pair : match.ops)
      chain.blocks.back().push_back(side(pair));
    for (auto &pair : match.arguments)
      chain.arguments.back().push_back(side(pair));
  };
  auto beginBlock = [&] {
    chain.blocks.emplace_back();
    chain.arguments.emplace_back();
  };
  for (const Match &match : ArrayRef(matches).slice(bestBegin, bestEnd - bestBegin)) {
    if (chain.blocks.empty()) {
      beginBlock();
      add(match, [](auto &pair) { return pair.first; });
    }
    beginBlock();
    add(match, [](auto &pair) { return pair.second; });
  }
  return chain;
}

void dropBlock(BlockChain &chain, size_t block) {
  const bool isInFront = block * 2 < chain.size();
  auto drop = [&](auto &list) { isInFront ? list.erase(list.begin(), list.begin() + block + 1) : list.erase(list.begin() + block, list.end()); };
  drop(chain.blocks);
  drop(chain.arguments);
}

/// The first block whose values are read where a block's may not be: by others than the next one, or, what is made of weights
/// alone, by any other.
std::optional<size_t> findLeak(const BlockChain &chain, const nn::Dependences &dependences) {
  llvm::DenseMap<Operation *, size_t> blockOf;
  for (auto [block, ops] : llvm::enumerate(chain.blocks))
    for (Operation *op : ops)
      blockOf[op] = block;
  for (auto [block, ops] : llvm::enumerate(chain.blocks))
    for (Operation *op : ops)
      for (Operation *user : op->getUsers()) {
        auto found = blockOf.find(user);
        const bool isOwn = found != blockOf.end() && found->second == block;
        const bool isActivation = dependences.lookup(op->getResult(0)).fromInputs;
        const bool isNext = found != blockOf.end() ? found->second == block + 1 : block + 1 == chain.size() || isa<func::ReturnOp>(user);
        if (!isOwn && !(isActivation && isNext))
          return block;
      }
  return std::nullopt;
}

/// Fills in the results that each block returns of its own. False where some blocks return what others do not.
bool findResults(BlockChain &chain) {
  chain.results.assign(chain.size(), {});
  for (size_t position = 0; position < chain.blocks.front().size(); ++position)
    for (unsigned result = 0; result < chain.blocks.front()[position]->getNumResults(); ++result) {
      std::vector<SmallVector<unsigned>> returned(chain.size());
      for (size_t block = 0; block < chain.size(); ++block)
        for (OpOperand &use : chain.blocks[block][position]->getResult(result).getUses())
          if (isa<func::ReturnOp>(use.getOwner()))
            returned[block].push_back(use.getOperandNumber());
      auto isEqual = [&](const SmallVector<unsigned> &one) { return one.size() == returned.front().size(); };
      if (llvm::all_of(returned, isEqual)) {
        for (auto [all, one] : llvm::zip(chain.results, returned))
          all.append(llvm::to_vector(llvm::reverse(one))); // uses are listed from the last
      } else if (!returned.front().empty() || !llvm::all_of(ArrayRef(returned).drop_back(), isEqual)) {
        return false;
      }
    }
  return true;
}
} // namespace

std::vector<BlockChain> findRepeatedBlocks(ModuleOp raised, const Options &options) {
  auto function = raised.lookupSymbol<func::FuncOp>("main");
  if (!function || !function.getBody().hasOneBlock() || phasesDone(raised) != phasesUpTo("raise"))
    return {};
  ScopedDiagnosticHandler quiet(raised.getContext(), [](Diagnostic &) { return success(); });
  Expected<Rules> rules = Rules::of(raised, function, options);
  if (!rules.ok())
    return {};
  const Layers layers = findLayers(function);
  const nn::Dependences dependences = nn::findDependences(function);
  std::vector<BlockChain> chains;
  for (auto [begin, end] : layers.runs) {
    BlockChain best;
    size_t covered = 0;
    for (size_t size = 1; size <= maxGroup && 2 * size <= end - begin && 4 * covered < 3 * (end - begin); ++size)
      for (size_t offset = 0; offset < size; ++offset) {
        const Pieces pieces(layers, begin + offset, end, size);
        BlockChain chain = longestChain(layers, *rules, function, pieces.all());
        for (std::optional<size_t> leak; chain.size() > 1 && (leak = findLeak(chain, dependences));)
          dropBlock(chain, *leak);
        if (chain.size() > 1 && chain.size() * size > covered && findResults(chain)) {
          covered = chain.size() * size;
          best = std::move(chain);
        }
      }
    if (best.size() > 1)
      chains.push_back(std::move(best));
  }
  return chains;
}

// ---- fewer of them ------------------------------------------------------------------------------

/// A rule may name what is no longer there.
static void loosenSidecar(ModuleOp module) {
  Expected<std::optional<Sidecar>> sidecar = sidecarOf(module);
  if (!sidecar.ok() || !*sidecar)
    return;
  for (ParamRule &rule : (*sidecar)->params)
    rule.optional = true;
  for (TensorRule &rule : (*sidecar)->tensors)
    rule.optional = true;
  (*sidecar)->stages.clear();
  setSidecar(module, (*sidecar)->file, sidecarText(**sidecar));
}

ShortenedModel shortened(ModuleOp raised, ArrayRef<BlockChain> chains, ArrayRef<int64_t> counts) {
  IRMapping mapping;
  std::vector<std::vector<SmallVector<Operation *>>> kept;
  OwningOpRef<ModuleOp> module = cast<ModuleOp>(raised->clone(mapping));
  auto function = module->lookupSymbol<func::FuncOp>("main");
  Operation *terminator = function.getBody().front().getTerminator();
  llvm::BitVector arguments(function.getNumArguments()), results(function.getNumResults());
  llvm::SetVector<Operation *> gone;
  for (auto [chain, count] : llvm::zip_equal(chains, counts)) {
    const size_t left = std::min(size_t(std::max<int64_t>(count, 1)), chain.size());
    std::vector<SmallVector<Operation *>> &blocks = kept.emplace_back();
    for (size_t block = 0; block < left; ++block)
      blocks.push_back(llvm::map_to_vector(chain.blocks[block], [&](Operation *op) { return mapping.lookup(op); }));
    if (left == chain.size())
      continue;
    for (size_t block = left; block < chain.size(); ++block) {
      for (Operation *op : chain.blocks[block])
        gone.insert(mapping.lookup(op));
      for (unsigned argument : chain.arguments[block])
        arguments.set(argument);
      for (unsigned result : chain.results[block])
        results.set(result);
    }
    for (auto [last, kept] : llvm::zip_equal(chain.blocks.back(), chain.blocks[left - 1]))
      for (auto [value, other] : llvm::zip(mapping.lookup(last)->getResults(), mapping.lookup(kept)->getResults()))
        value.replaceUsesWithIf(other, [&](OpOperand &use) {
          return !gone.contains(use.getOwner()) && !(use.getOwner() == terminator && results.test(use.getOperandNumber()));
        });
  }
  terminator->eraseOperands(results);
  for (Operation *op : gone)
    op->dropAllUses();
  for (Operation *op : gone)
    op->erase();
  (void)function.eraseResults(results);
  (void)function.eraseArguments(arguments);
  loosenSidecar(*module);
  return {std::move(module), std::move(kept)};
}

std::map<std::string, std::string> shortenedNames(ArrayRef<BlockChain> chains, ArrayRef<int64_t> counts) {
  std::map<std::string, std::string> names;
  for (auto [chain, count] : llvm::zip_equal(chains, counts)) {
    const size_t left = std::min(size_t(std::max<int64_t>(count, 1)), chain.size());
    for (size_t block = 0; block < chain.size(); ++block) {
      const size_t counterpart = block + 1 == chain.size() ? left - 1 : std::min(block, left < 3 ? left - 1 : left - 2);
      for (auto [op, other] : llvm::zip_equal(chain.blocks[block], chain.blocks[counterpart]))
        if (auto parameter = dyn_cast<nn::ParameterOp>(op))
          names[parameter.getName().str()] = cast<nn::ParameterOp>(other).getName().str();
    }
  }
  return names;
}

} // namespace hpc
