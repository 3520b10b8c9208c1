// Parses small programs for the interpreter's tests and compares tensors.
#pragma once

#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/Interpreter/Interpreter.h"

#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpc {

struct InterpreterTest : testing::Test {
  MLIRContext context;
  std::vector<OwningOpRef<ModuleOp>> modules;

  InterpreterTest() { context.loadDialect<nn::NNDialect, dist::DistDialect, pipe::PipeDialect, func::FuncDialect>(); }

  /// @main of a module.
  func::FuncOp parse(const std::string &text) {
    modules.push_back(parseSourceString<ModuleOp>(text, &context));
    if (!modules.back()) {
      ADD_FAILURE() << "does not parse:\n" << text;
      return {};
    }
    return modules.back()->lookupSymbol<func::FuncOp>("main");
  }

  /// The value %r, of type `type`, of a straight-line program without arguments.
  Tensor evaluate(const std::string &body, const std::string &type, const RunOptions &options = {}) {
    func::FuncOp main = parse("func.func @main() -> " + type + " {\n" + body + "\n  return %r : " + type + "\n}");
    if (!main)
      return {};
    Expected<std::vector<Tensor>> results = runFunction(main, {}, options);
    if (!results.ok()) {
      ADD_FAILURE() << results.status().text();
      return {};
    }
    return results->front();
  }

  static std::string typeOf(const std::string &constant) { return constant.substr(constant.rfind(" : ") + 3); }
  /// "%a = nn.constant ...": the value has a type, and the result.
  static std::string constant(const std::string &name, const std::string &value) {
    return "  " + name + " = nn.constant " + value + " : " + typeOf(value) + "\n";
  }

  /// `op` applied to %a, and %b where there is one; the operands as "dense<...> : type".
  Tensor apply(const std::string &op, const std::string &type, const std::string &a, const std::string &b = "") {
    std::string body = constant("%a", a);
    if (!b.empty())
      body += constant("%b", b);
    std::string types = typeOf(a) + (b.empty() ? "" : ", " + typeOf(b));
    return evaluate(body + "  %r = " + op + " : " + types + " -> " + type, type);
  }
};

/// All elements as doubles.
inline std::vector<double> numbers(const Tensor &tensor) {
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.size(); ++i)
    result.push_back(tensor.number(i));
  return result;
}

inline Tensor floatTensor(ArrayRef<int64_t> shape, std::vector<double> values) {
  Tensor tensor(DType::F32, shape);
  tensor.floats = std::move(values);
  return tensor;
}
inline Tensor integerTensor(ArrayRef<int64_t> shape, std::vector<int64_t> values) {
  Tensor tensor(DType::I64, shape);
  tensor.ints = std::move(values);
  return tensor;
}
/// 1, 2, 3, ...
inline Tensor counting(ArrayRef<int64_t> shape) {
  Tensor tensor(DType::F32, shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.floats[i] = double(i + 1);
  return tensor;
}

} // namespace hpc
