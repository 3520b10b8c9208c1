// The oracle: what programs of the nn, dist and pipe dialects mean, in plain loops over one process.
// Serial programs run as they stand (shardings ignored, dist.reshard is the identity); partitioned ones run all
// coordinates of the mesh in lock step, where a rank sees another's data only through a collective over the axis
// between them.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Interpreter/Tensor.h"
#include "compiler/Location.h"

#include <functional>

namespace hpc {

struct EvalOptions {
  /// Floats are never rounded to their dtype. Otherwise every op's result is: + - * / sqrt are then exactly those of
  /// IEEE, reductions and matrix products accumulate in double and round once.
  bool doublePrecision = false;
  /// What an op's own formula loses in its type is lost here too, as by a loop that a compiler made of it: sums round
  /// after every term, in index order, to f32 (of f64 operands: to f64), and gelu rounds 1 + erf.
  bool ownPrecision = false;
};

/// Evaluates one nn op, the composites by their decomposition; nn.parameter and nn.fused need a run. What C++ leaves
/// open is defined: integers wrap, x / 0 and x mod 0 of integers are 0, casts saturate with NaN -> 0, an index outside
/// its dim reads NaN (integers: 0).
Expected<std::vector<Tensor>> evaluateOp(Operation *op, ArrayRef<const Tensor *> operands,
                                         const EvalOptions &options = {});

/// Whether the interpreter knows the op (of nn, dist or pipe).
bool isInterpreted(OperationName name);

/// Finds the *stored* (global) tensor of a parameter.
using ParameterLoader = std::function<Expected<Tensor>(nn::ParameterOp op, ArrayRef<int64_t> storedShape)>;

/// Reads `value`, or bytes of `file`, a path relative to `folder`. Files are mapped once and kept by the loader.
ParameterLoader parametersFromFiles(const std::string &folder);

/// The tensors of one value: one per coordinate of the mesh, row-major (serial: one).
using LocalTensors = std::vector<std::shared_ptr<const Tensor>>;

struct RunOptions : EvalOptions {
  ParameterLoader parameters = parametersFromFiles(".");
  /// Sees every value when it is produced (arguments first, parameters at their first use), inside stages and fused
  /// regions too. An error ends the run.
  std::function<Status(Value, const LocalTensors &)> observe;
  /// Sees the results of each op, of ops inside stages and regions first, beside its operands, and may put others in their place: the run
  /// goes on with those (but for their padding).
  std::function<Status(Operation *op, ArrayRef<LocalTensors> operands, MutableArrayRef<LocalTensors> results)> follow;
};

/// Runs a function on global shapes.
Expected<std::vector<Tensor>> runFunction(func::FuncOp function, ArrayRef<Tensor> inputs,
                                          const RunOptions &options = {});

/// Runs a function of local boxes on all coordinates of `mesh`. Inputs and outputs are global: arguments and parameters
/// are cut by the sharding of their type with zeros in the padding, results are put together and must agree among
/// replicas. The padding of every other value is overwritten after each op, by NaN or (integers) a large odd number,
/// except what dist.fill_tail filled.
Expected<std::vector<Tensor>> runPartitioned(func::FuncOp function, ArrayRef<Tensor> inputs, const dist::Mesh &mesh,
                                             const RunOptions &options = {});

/// The bytes of values that runFunction (null `mesh`) or runPartitioned holds at its peak. What composites need inside and
/// what `observe` keeps come on top.
int64_t peakBytesOfRun(func::FuncOp function, const dist::Mesh *mesh = nullptr);

/// Two coordinates that hold different values for one element.
struct Disagreement {
  int64_t index = 0;            ///< row-major in the global tensor
  int64_t rankA = 0, rankB = 0; ///< coordinates, row-major in the mesh
  double a = 0, b = 0;
};

struct GlobalTensor {
  Tensor tensor;
  std::optional<Disagreement> disagreement; ///< the first one
};

/// Puts a value together from its local boxes: sums over the partial axes (coordinate order), then takes each element
/// from the first coordinate that holds it and compares the others with it, exactly (NaN equals NaN).
GlobalTensor gatherGlobal(const LocalTensors &locals, const dist::Sharding &sharding, const dist::Mesh &mesh);

/// The box that `coordinate` holds of a global tensor, zeros in the padding.
Tensor cutLocal(const Tensor &global, const dist::Sharding &sharding, const dist::Mesh &mesh,
                ArrayRef<int64_t> coordinate);

/// The same for every coordinate; those that hold the same share one tensor.
LocalTensors cutAll(const std::shared_ptr<const Tensor> &global, const dist::Sharding &sharding, const dist::Mesh &mesh);

/// "tp=1, dp=0" of a row-major coordinate; axes of size 1 are left out.
std::string coordinateText(const dist::Mesh &mesh, int64_t coordinate);

} // namespace hpc
