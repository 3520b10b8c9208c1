// The table from op names to what computes them, filled by one function per family; private to compiler/Interpreter.
#pragma once

#include "compiler/ElementType.h"
#include "compiler/Interpreter/Interpreter.h"

namespace hpc::interpreter {

using Results = Expected<std::vector<Tensor>>;
using Operands = ArrayRef<const Tensor *>;

class Evaluators {
public:
  using Function = std::function<Results(Operation *, Operands, const EvalOptions &)>;

  /// `evaluate` gets an Op and its operands, and the options where it takes them; results need not be rounded.
  template <typename Op, typename Evaluate> void add(Evaluate evaluate) {
    table[Op::getOperationName()] = [evaluate](Operation *op, Operands operands, const EvalOptions &options) -> Results {
      if constexpr (std::is_invocable_v<Evaluate, Op, Operands, const EvalOptions &>)
        return evaluate(cast<Op>(op), operands, options);
      else
        return evaluate(cast<Op>(op), operands);
    };
  }
  const Function *find(StringRef name) const {
    auto found = table.find(name);
    return found == table.end() ? nullptr : &found->second;
  }

private:
  llvm::StringMap<Function> table;
};

void addSources(Evaluators &evaluators);
void addElementwise(Evaluators &evaluators);
void addViews(Evaluators &evaluators);
void addIndices(Evaluators &evaluators);
void addContractions(Evaluators &evaluators);
void addReductions(Evaluators &evaluators);
void addOrders(Evaluators &evaluators);
void addRandom(Evaluators &evaluators);

/// Whether evaluateOp knows the op.
bool isEvaluated(OperationName name);

/// A composite's definition, in a block of its own whose arguments stand for the operands.
struct Definition {
  explicit Definition(Operation *composite);

  Block block;
  std::vector<Operation *> steps; ///< in order
  SmallVector<Value> results;     ///< made by steps, or arguments
};

/// Whether sums that make `result` round to f32 after every term.
inline bool sumsInSingle(const EvalOptions &options, DType result) {
  return options.ownPrecision && hpc::isFloat(result) && result != DType::F64;
}

/// A zero tensor of a value's type.
/// Integers as f32; of bytes it holds all.
Tensor asFloats(const Tensor &integers);
inline Tensor emptyLike(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return Tensor(dtypeOf(type), type.getShape());
}
inline Results one(Tensor tensor) {
  std::vector<Tensor> results;
  results.push_back(std::move(tensor));
  return results;
}

/// Strides of an operand of shape `from` read along the dims of `to` by NumPy's rules: 0 where it is broadcast.
SmallVector<int64_t> broadcastStrides(ArrayRef<int64_t> from, ArrayRef<int64_t> to);

/// Calls `visit(index, sources)` for every element of `shape` in row-major order, where sources[i] is `starts[i]` plus
/// the position along `strides[i]`.
template <size_t N, typename Visit>
void forEachElement(ArrayRef<int64_t> shape, const std::array<SmallVector<int64_t>, N> &strides,
                    std::array<int64_t, N> sources, Visit visit) {
  const int64_t count = elementCount(shape), last = int64_t(shape.size()) - 1, inner = last < 0 ? 1 : shape[last];
  SmallVector<int64_t> digits(shape.size(), 0);
  std::array<int64_t, N> step = {};
  for (size_t i = 0; i < N && last >= 0; ++i)
    step[i] = strides[i][last];
  for (int64_t index = 0; index < count;) {
    std::array<int64_t, N> at = sources;
    for (const int64_t end = index + inner; index < end; ++index) {
      visit(index, at);
      for (size_t i = 0; i < N; ++i)
        at[i] += step[i];
    }
    for (int64_t dim = last - 1; dim >= 0; --dim) {
      ++digits[dim];
      for (size_t i = 0; i < N; ++i)
        sources[i] += strides[i][dim];
      if (digits[dim] < shape[dim])
        break;
      for (size_t i = 0; i < N; ++i)
        sources[i] -= strides[i][dim] * shape[dim];
      digits[dim] = 0;
    }
  }
}

/// The elements of `source` along strides from `start`, as a tensor like `result`.
void readStrided(const Tensor &source, int64_t start, SmallVector<int64_t> strides, Tensor &result);

/// One step of a reduction. Integers are brought to what `dtype` can hold.
double combine(ReduceKind kind, double a, double b);
int64_t combine(ReduceKind kind, int64_t a, int64_t b, DType dtype);

/// What an element reads that does not exist: NaN, 0 for integers.
inline void setMissing(Tensor &tensor, int64_t index) {
  if (tensor.isFloat())
    tensor.floats[index] = std::numeric_limits<double>::quiet_NaN();
  else
    tensor.ints[index] = 0;
}

} // namespace hpc::interpreter
