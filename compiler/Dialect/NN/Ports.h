// What the arguments and results of @main are: inputs and outputs of the graph, states, written values, step scalars.
// What lives across steps is an argument and a result here, so every op stays pure; lower gives both one buffer.
#pragma once

#include "compiler/Dialect/NN/Lookups.h"
#include "compiler/Dialect/NN/NN.h"
#include "runtime/plan/GenerationPorts.h"

namespace hpc::nn {

/// An argument: an input of the graph, or a state, or a step scalar.
struct ArgumentPort {
  std::string name;              ///< `nn.name`: of the graph's input
  std::vector<std::string> dims; ///< `nn.dims`: symbol or number of every dim, ["batch_size", "16"]; may be empty
  std::string state;             ///< `nn.state`: "adam.m/wte.weight", or "" when it is none
  double initial = 0;            ///< `nn.initial`: what every element of a state is before the first step
  std::string stepScalar;        ///< `nn.step_scalar`: "lr"; rank 0, never cut, filled by the loop; or ""
  /// `nn.default_input`: the input, of the same type, whose data stand for this one's where none are given; or "".
  std::string defaultInput;
  /// `nn.whole_of`: the input of the same type whose data this is, all of them in every micro-batch and on every rank; or "".
  std::string wholeOf;
  std::vector<Lookup> lookups; ///< `nn.lookups`: what is certainly looked up by it, so that bad ids are found beforehand
  /// `nn.largest`, of a step scalar of i64: a run gives 0 to this (plan::Port::largest). A position in a state needs it.
  std::optional<int64_t> largest = {};
  bool isState() const { return !state.empty(); }
  /// A state with keys or values of each row of the batch: a micro-batch reads and writes those of its own rows alone.
  bool isCache() const { return StringRef(state).starts_with(plan::cachePrefix); }
  /// Neither a state nor another argument's data once more: what a run is given.
  bool isGiven() const { return state.empty() && wholeOf.empty(); }
};
/// A result: an output of the graph, or the gradient or next value of a parameter, or the next value of a state.
struct ResultPort {
  std::string name;   ///< `nn.name`
  std::string writes; ///< `nn.writes`: the parameter or state that is this value from the next step on, or ""
  /// `nn.gradient`: the parameter whose complete gradient, over the whole step, this is, or "". Nobody asks for it in an
  /// ordinary step (`hpc-run --gradients` does).
  std::string gradient;
};

/// The names of the attributes.
namespace ports {
constexpr const char *name = "nn.name", *dims = "nn.dims", *state = "nn.state", *initial = "nn.initial", *stepScalar = "nn.step_scalar",
                     *defaultInput = "nn.default_input", *wholeOf = "nn.whole_of", *lookups = "nn.lookups", *largest = "nn.largest", *writes = "nn.writes", *gradient = "nn.gradient";
} // namespace ports

ArgumentPort argumentPort(func::FuncOp function, unsigned index);
ResultPort resultPort(func::FuncOp function, unsigned index);
/// Fields that say nothing take the attribute away.
void setArgumentPort(func::FuncOp function, unsigned index, const ArgumentPort &port);
void setResultPort(func::FuncOp function, unsigned index, const ResultPort &port);
/// Of all at once. One by one, n of them take memory for n^2, since the context keeps every list of attributes.
void setArgumentPorts(func::FuncOp function, ArrayRef<ArgumentPort> ports);
void setResultPorts(func::FuncOp function, ArrayRef<ResultPort> ports);

/// The parameters and states that a function writes, by name, and the number of the result that does: the first, where
/// several stages hold one and each writes its own.
std::map<std::string, unsigned> writtenBy(func::FuncOp function);
/// Whether a value is a parameter or state that its function writes: after the first step its padding is what the
/// update left there.
bool isWritten(Value value);

/// Names of states are unique and no parameter's; every written name is a parameter or state of the result's type and
/// is written once; step scalars have rank 0, and with a range i64; what is whole of an input has the
/// input's type.
LogicalResult verifyPorts(func::FuncOp function);
/// The lookups of an argument that has some are of the form that setArgumentPort writes.
LogicalResult verifyLookups(func::FuncOp function, unsigned index);

} // namespace hpc::nn
