// @main while a pass of this phase adds arguments and results to it. They become part of the function's type at once, by
// write(): one by one, n of them would take memory for n^2.
#pragma once

#include "compiler/Dialect/NN/Ports.h"

namespace hpc {

class StepFunction {
public:
  struct Result {
    Value value;
    nn::ResultPort port;
    DictionaryAttr attributes; ///< the port's other attributes; null: none
  };

  explicit StepFunction(func::FuncOp function);

  /// All results, in order; a pass may change, append and erase.
  SmallVector<Result> results;

  void addResult(Value value, nn::ResultPort port) { results.push_back({value, std::move(port), {}}); }
  Value addArgument(RankedTensorType type, const nn::ArgumentPort &port, Location location);
  /// The step scalar of that name; a new argument `tensor<f64>` where there is none yet.
  Value stepScalar(StringRef name);
  /// The result of that name, or null.
  Value resultNamed(StringRef name) const;
  /// The results that are gradients, in order.
  SmallVector<Result> gradients() const;
  /// The parameter of that name, or null; of several ops that are one parameter, the first.
  Value parameter(const std::string &name) const {
    auto found = parameterValues.find(name);
    return found == parameterValues.end() ? Value() : found->second;
  }

  /// Builds before the function's return.
  OpBuilder builder() { return OpBuilder(terminator); }
  void write();

private:
  func::FuncOp function;
  Operation *terminator;
  std::map<std::string, Value> parameterValues;
  SmallVector<nn::ArgumentPort> arguments;
  SmallVector<DictionaryAttr> argumentAttributes;
};

/// Erases ops that no result depends on.
void eraseDeadOps(func::FuncOp function);

} // namespace hpc
