// A GELU is a polynomial in x and t = erf(..) or tanh(..), whose own argument is a polynomial in x. Comparing
// coefficients makes association, order, distribution and the spelling of powers irrelevant.
#include "passes/Raise/GeluMatch.h"

#include "passes/Raise/Scalars.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>

namespace hpc {

namespace {
/// Coefficients by (power of x, power of t).
using Polynomial = std::map<std::pair<int, int>, double>;

constexpr int maxPower = 4;
/// Ops that one formula may have; exporters spell a GELU in ten. It bounds every walk of this file.
constexpr size_t maxOps = 64;

/// Reads values as polynomials of x and t, each value once.
class Reader {
public:
  Reader(Value x, Value t) : x(x), t(t) {}

  /// nullopt if the value depends on anything else.
  std::optional<Polynomial> read(Value value);

private:
  std::optional<Polynomial> readOp(Operation *op);

  Value x, t;
  llvm::SmallDenseMap<Value, std::optional<Polynomial>> known;
};
} // namespace

static std::optional<Polynomial> multiply(const Polynomial &a, const Polynomial &b) {
  Polynomial product;
  for (auto [powersA, factorA] : a)
    for (auto [powersB, factorB] : b) {
      std::pair powers(powersA.first + powersB.first, powersA.second + powersB.second);
      if (powers.first > maxPower || powers.second > maxPower)
        return std::nullopt;
      product[powers] += factorA * factorB;
    }
  return product;
}

std::optional<Polynomial> Reader::read(Value value) {
  if (value == x)
    return Polynomial{{{1, 0}, 1}};
  if (value == t)
    return Polynomial{{{0, 1}, 1}};
  if (std::optional<double> number = scalarOf(value))
    return Polynomial{{{0, 0}, *number}};
  Operation *op = value.getDefiningOp();
  if (!isa_and_present<nn::AddOp, nn::SubOp, nn::MulOp, nn::DivOp, nn::PowOp, nn::NegOp>(op))
    return std::nullopt;
  if (auto found = known.find(value); found != known.end())
    return found->second;
  if (known.size() >= maxOps)
    return std::nullopt;
  known[value] = std::nullopt;
  std::optional<Polynomial> polynomial = readOp(op);
  known[value] = polynomial;
  return polynomial;
}

std::optional<Polynomial> Reader::readOp(Operation *op) {
  std::optional<Polynomial> left = read(op->getOperand(0));
  if (!left)
    return std::nullopt;
  if (isa<nn::NegOp>(op))
    return multiply(*left, {{{0, 0}, -1}});
  std::optional<double> number = scalarOf(op->getOperand(1));
  if (isa<nn::DivOp>(op))
    return number && *number != 0 ? multiply(*left, {{{0, 0}, 1 / *number}}) : std::nullopt;
  if (isa<nn::PowOp>(op)) {
    if (!number || *number < 1 || *number > maxPower || *number != std::floor(*number))
      return std::nullopt;
    std::optional<Polynomial> power = left;
    for (int i = 1; i < int(*number) && power; ++i)
      power = multiply(*power, *left);
    return power;
  }
  std::optional<Polynomial> right = read(op->getOperand(1));
  if (!right)
    return std::nullopt;
  if (isa<nn::MulOp>(op))
    return multiply(*left, *right);
  for (auto [powers, factor] : *right)
    (*left)[powers] += isa<nn::SubOp>(op) ? -factor : factor;
  return left;
}

/// Whether the coefficients are those of `expected`, and no others differ from zero.
static bool isPolynomial(const std::optional<Polynomial> &polynomial, const Polynomial &expected, Type elementType) {
  if (!polynomial)
    return false;
  for (auto [powers, factor] : *polynomial)
    if (!expected.count(powers) && factor != 0)
      return false;
  return llvm::all_of(expected, [&](const auto &term) {
    auto found = polynomial->find(term.first);
    return found != polynomial->end() && isNear(found->second, term.second, elementType);
  });
}

/// Values that arithmetic leads to `value`, nearest first.
static SmallVector<Value> arithmeticSources(Value value) {
  llvm::SetVector<Value> found;
  found.insert(value);
  for (size_t i = 0; i < found.size() && found.size() < maxOps; ++i)
    if (Operation *op = found[i].getDefiningOp();
        isa_and_present<nn::AddOp, nn::SubOp, nn::MulOp, nn::DivOp, nn::PowOp, nn::NegOp>(op))
      found.insert(op->operand_begin(), op->operand_end());
  return found.takeVector();
}

/// Ops that arithmetic leads to from `value`, nearest first; a GELU ends at most 4 ops away.
static SmallVector<Operation *> arithmeticUsers(Value value) {
  llvm::SetVector<Operation *> found;
  SmallVector<Value> front{value};
  for (int distance = 0; distance < 5; ++distance) {
    SmallVector<Value> next;
    for (Value from : front)
      for (Operation *user : from.getUsers())
        if (found.size() < maxOps && isa<nn::AddOp, nn::SubOp, nn::MulOp, nn::DivOp, nn::NegOp>(user) &&
            found.insert(user))
          next.push_back(user->getResult(0));
    front = next;
  }
  return found.takeVector();
}

std::optional<GeluMatch> matchGelu(Operation *activation) {
  bool isTanh = isa<nn::TanhOp>(activation);
  if (!isTanh && !isa<nn::ErfOp>(activation))
    return std::nullopt;
  Value argument = activation->getOperand(0), t = activation->getResult(0);
  Type type = argument.getType();
  double inner = isTanh ? std::sqrt(2 / M_PI) : std::sqrt(0.5);
  Polynomial expectedArgument{{{1, 0}, inner}};
  if (isTanh)
    expectedArgument[{3, 0}] = inner * 0.044715;
  for (Value x : arithmeticSources(argument)) {
    if (x.getType() != type || scalarOf(x) || !isPolynomial(Reader(x, Value()).read(argument), expectedArgument, type))
      continue;
    for (Operation *root : arithmeticUsers(t))
      if (root->getResult(0).getType() == type &&
          isPolynomial(Reader(x, t).read(root->getResult(0)), {{{1, 0}, 0.5}, {{1, 1}, 0.5}}, type))
        return GeluMatch{x, root, isTanh};
  }
  return std::nullopt;
}

} // namespace hpc
