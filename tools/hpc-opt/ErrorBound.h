// How far results may be from the truth, and where two tensors first differ by more.
//
// A sum of n rounded terms in f32 is off by about sqrt(n) half units in the last place when errors are independent
// (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 2.8 and 4.2); along a path of ops the
// lengths of all reductions add up. The bound of a value is 2 * eps * sqrt(total length of reductions on the longest
// path to it) times its largest magnitude. Sums are f32 or wider, but f16 and bf16 values are rounded once more where an
// op ends: 2 * sqrt(sum of squares) of those roundings comes on top.
#pragma once

#include "compiler/Interpreter/Interpreter.h"

namespace hpc {

constexpr double singleEpsilon = 1.0 / (1 << 23);

/// What --verify compares with: the serial values in double, by hpc.id. Parameters are not kept but read again: they are
/// most of a model.
struct Reference {
  std::map<int64_t, std::shared_ptr<const Tensor>> values;
  std::map<int64_t, nn::ParameterOp> parameters; ///< of the serial program
  std::map<int64_t, double> relativeBound;       ///< by hpc.id: relative to the value's largest magnitude
  std::vector<double> outputBound;         ///< the same for the outputs
  std::vector<Tensor> outputs;
};

struct Difference {
  std::string index; ///< "0, 3, 17"
  std::string rank;  ///< "tp=1", "" when it is nobody's
  double found = 0, expected = 0, bound = 0;
  int64_t flatIndex = 0;
};

/// Fills the bounds from the rules of the ops of a serial function.
void findErrorBounds(func::FuncOp function, Reference &reference);

/// Numbers from here on are masks (exporters add the lowest f32): they say nothing of the size of a tensor's values,
/// and agree relative to themselves.
constexpr double maskMagnitude = 1e30;

/// Of the finite elements that are no masks.
double largestMagnitude(const Tensor &tensor);
std::string indexText(const std::vector<int64_t> &shape, int64_t flat);

/// "is 1.5, should be 1.25 (off by 0.25, bound 1e-06)"
std::string differenceText(double found, double expected, double bound);

/// Whether two numbers agree within a bound; NaN agrees with NaN, an infinity with itself, a mask with what is near it.
bool agree(double found, double expected, double bound);
/// The first element that differs by more than `bound` (integers: at all). `worst` grows to the largest difference
/// relative to the largest magnitude.
std::optional<Difference> firstDifference(const Tensor &found, const Tensor &expected, double bound, double &worst);

} // namespace hpc
