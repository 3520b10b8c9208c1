// A program as a layout problem: a variable for each op, for each parameter and input, and for each value that several ops read.
// Axes that are not chosen have cut the program already; the free ones are added to what they left. Of a training step the variables are those of
// forward: the gradient of a value moves against it, in the forms that follow from the same cuts (docs/search.md).
#pragma once

#include "compiler/Dialect/NN/Dependence.h"
#include "passes/Search/LayoutCosts.h"
#include "passes/Search/LayoutProblem.h"
#include "passes/Search/LayoutStrategies.h"
#include "passes/Search/LayoutTies.h"

#include <set>

namespace hpc::search {

class LayoutGraph {
public:
  /// `propagated`: a program after phase propagate in which the axes `free` of the mesh of `costs` cut nothing. `fixed`: cuts of parameters by
  /// free axes that are decided already, by name.
  LayoutGraph(func::FuncOp propagated, LayoutCosts &costs, std::vector<std::string> free,
              const std::map<std::string, dist::Sharding> &fixed = {});

  const LayoutProblem &problem() const { return layouts; }
  /// The most bytes of parameters and states.
  void setCapacity(int64_t bytes) { layouts.setCapacity(bytes); }

  struct OpChoice {
    Operation *op;
    LayoutProblem::Variable variable;
    std::vector<dist::OpSharding> strategies;
  };
  struct SourceChoice {
    Value value;
    LayoutProblem::Variable variable;
    std::vector<dist::Sharding> strategies;
  };
  const std::vector<OpChoice> &ops() const { return opChoices; }
  const std::vector<SourceChoice> &sources() const { return sourceChoices; }
  /// The collectives of a solution, in program order.
  std::vector<LayoutCollective> collectives(const std::vector<size_t> &chosen) const;

private:
  /// A reader of a value: an op, or a parameter that it is written to.
  struct Reader {
    LayoutProblem::Variable variable;
    std::vector<LayoutCosts::Number> wanted; ///< by strategy
    std::vector<LayoutCosts::Number> gradient; ///< by strategy: as it computes the value's gradient; none: it gives none
  };
  struct Producer {
    LayoutProblem::Variable variable;
    std::vector<LayoutCosts::Number> has;    ///< by strategy
    std::vector<LayoutCosts::Number> wanted; ///< by strategy: as it takes the value's gradient
  };
  /// A value that several variables read: it is held in one or two forms.
  struct Held {
    Value value;
    Producer producer;
    LayoutProblem::Variable variable;
    std::vector<std::vector<LayoutCosts::Number>> forms; ///< by strategy
    bool isReturned = false;
    std::vector<Reader> readers;
    std::optional<LayoutProblem::Variable> gradientVariable;
    std::vector<LayoutCosts::Number> gradients; ///< by strategy of that: the form in which readers' gradients are added up
  };
  struct Direct {
    Value value;
    Producer producer;
    Reader reader;
  };

  void addOps();
  void addSources(const std::map<std::string, dist::Sharding> &fixed);
  void addEdges();
  void addDirect(Value value, Producer producer, Reader reader);
  void addGradients(Held &each);
  bool hasGradient(Value value) const;
  dist::Sharding gradientOf(const dist::OpSharding &sharding, unsigned operand) const;
  void addTies();
  std::optional<Producer> producerOf(Value value) const;
  std::vector<Reader> readersOf(Value value) const;
  std::vector<std::vector<LayoutCosts::Number>> formsFor(const std::vector<Reader> &readers, int64_t bytes);
  /// Seconds in which a reader gets a value. Weights are stored as they are used: nothing gathers them over the free axes.
  double reading(Value value, LayoutCosts::Number has, const std::vector<LayoutCosts::Number> &forms) const;
  /// An edge, unless all of it is 0.
  void addTable(LayoutProblem::Variable a, LayoutProblem::Variable b, std::vector<double> seconds);
  /// Whether the caller gets the value, which is written to nothing.
  bool isReturned(Value value) const;
  bool isReadByOps(Value value) const;
  bool needsCompleting(const Held &each, LayoutCosts::Number has, const std::vector<LayoutCosts::Number> &forms) const;
  /// A returned value is complete.
  const LayoutCosts::Move &completing(Value value, LayoutCosts::Number has) const;
  int64_t bytesOf(Value value) const;

  func::FuncOp function;
  LayoutCosts &costs;
  std::vector<std::string> free;
  LayoutProblem layouts;
  bool trains = false;
  nn::Dependences dependences;
  LayoutStrategies strategies;
  std::vector<OpChoice> opChoices;
  std::vector<SourceChoice> sourceChoices;
  llvm::DenseMap<Operation *, size_t> opNumber;
  llvm::DenseMap<Value, size_t> sourceNumber;
  std::vector<std::pair<Value, Value>> writes; ///< a value, and the parameter that it is from the next step on
  std::vector<Held> held;
  std::vector<Direct> direct;
  llvm::DenseMap<Value, size_t> heldNumber;
};

} // namespace hpc::search
