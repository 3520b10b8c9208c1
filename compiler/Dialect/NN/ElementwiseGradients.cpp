// Derivatives of elementwise ops, a line each where that is enough. They are written with the result where that saves
// work: a tanh is not computed again.
#include "compiler/Dialect/NN/GradientBuilder.h"

#include <cmath>

namespace hpc::nn {

// ---- one operand --------------------------------------------------------------------------------

/// The gradient of OP's operand, of x, y = OP(x) and g, the gradient of y.
#define HPC_DERIVATIVE(OP, EXPRESSION)                                                                                 \
  void OP::buildGradients(GradientBuilder &b) {                                                                        \
    [[maybe_unused]] Value x = getOperand(), y = getResult(), g = b.cotangent();                                       \
    b.give(0, EXPRESSION);                                                                                             \
  }

HPC_DERIVATIVE(NegOp, b.unary<NegOp>(g))
HPC_DERIVATIVE(AbsOp, b.mul(g, b.unary<SignOp>(x)))
HPC_DERIVATIVE(ExpOp, b.mul(g, y))
HPC_DERIVATIVE(LogOp, b.div(g, x))
HPC_DERIVATIVE(SqrtOp, b.div(b.scaled(g, 0.5), y))
HPC_DERIVATIVE(ReciprocalOp, b.unary<NegOp>(b.mul(g, b.square(y))))
HPC_DERIVATIVE(TanhOp, b.mul(g, b.complement(b.square(y))))
HPC_DERIVATIVE(ErfOp, b.mul(g, b.scaled(b.unary<ExpOp>(b.unary<NegOp>(b.square(x))), 2 / std::sqrt(M_PI))))
HPC_DERIVATIVE(SinOp, b.mul(g, b.unary<CosOp>(x)))
HPC_DERIVATIVE(CosOp, b.unary<NegOp>(b.mul(g, b.unary<SinOp>(x))))
HPC_DERIVATIVE(TanOp, b.mul(g, b.shifted(b.square(y), 1)))
HPC_DERIVATIVE(AsinOp, b.div(g, b.unary<SqrtOp>(b.complement(b.square(x)))))
HPC_DERIVATIVE(AcosOp, b.unary<NegOp>(b.div(g, b.unary<SqrtOp>(b.complement(b.square(x))))))
HPC_DERIVATIVE(AtanOp, b.div(g, b.shifted(b.square(x), 1)))
HPC_DERIVATIVE(SinhOp, b.mul(g, b.unary<CoshOp>(x)))
HPC_DERIVATIVE(CoshOp, b.mul(g, b.unary<SinhOp>(x)))
HPC_DERIVATIVE(AsinhOp, b.div(g, b.unary<SqrtOp>(b.shifted(b.square(x), 1))))
HPC_DERIVATIVE(AcoshOp, b.div(g, b.unary<SqrtOp>(b.shifted(b.square(x), -1))))
HPC_DERIVATIVE(AtanhOp, b.div(g, b.complement(b.square(x))))
HPC_DERIVATIVE(SigmoidOp, b.mul(g, b.mul(y, b.complement(y))))
HPC_DERIVATIVE(ReluOp, b.select(b.compare(ComparePredicate::gt, y, b.zero(y)), g, b.zero(g)))
// Steps: their derivative is 0 wherever there is one.
HPC_DERIVATIVE(FloorOp, Value())
HPC_DERIVATIVE(CeilOp, Value())
HPC_DERIVATIVE(RoundOp, Value())
HPC_DERIVATIVE(SignOp, Value())
HPC_DERIVATIVE(DetachOp, Value())
HPC_DERIVATIVE(CastOp, g)

#undef HPC_DERIVATIVE

/// x Phi(x): Phi(x) + x phi(x), or that of the tanh approximation x s, s = sigmoid(2u), u = c (x + a x^3).
void GeluOp::buildGradients(GradientBuilder &b) {
  Value x = getOperand(), slope;
  if (getTanhApproximation()) {
    const double c = 2 * std::sqrt(2 / M_PI), a = 0.044715;
    Value square = b.square(x);
    Value s = b.unary<SigmoidOp>(b.mul(x, b.shifted(b.scaled(square, c * a), c)));
    Value inner = b.shifted(b.scaled(square, 3 * c * a), c);
    slope = b.add(s, b.mul(b.mul(b.mul(x, s), b.complement(s)), inner));
  } else {
    Value cumulative = b.scaled(b.shifted(b.unary<ErfOp>(b.scaled(x, std::sqrt(0.5))), 1), 0.5);
    Value density = b.scaled(b.unary<ExpOp>(b.scaled(b.square(x), -0.5)), 1 / std::sqrt(2 * M_PI));
    slope = b.add(cumulative, b.mul(x, density));
  }
  b.give(0, b.mul(b.cotangent(), slope));
}

// ---- two operands -------------------------------------------------------------------------------

void AddOp::buildGradients(GradientBuilder &b) {
  b.give(0, b.cotangent());
  b.give(1, b.cotangent());
}

void SubOp::buildGradients(GradientBuilder &b) {
  b.give(0, b.cotangent());
  if (b.wants(1))
    b.give(1, b.unary<NegOp>(b.cotangent()));
}

void MulOp::buildGradients(GradientBuilder &b) {
  if (b.wants(0))
    b.give(0, b.mul(b.cotangent(), getRhs()));
  if (b.wants(1))
    b.give(1, b.mul(b.cotangent(), getLhs()));
}

void DivOp::buildGradients(GradientBuilder &b) {
  Value ratio = b.div(b.cotangent(), getRhs());
  b.give(0, ratio);
  if (b.wants(1))
    b.give(1, b.unary<NegOp>(b.mul(ratio, getResult())));
}

/// a - b floor(a / b).
void ModOp::buildGradients(GradientBuilder &b) {
  b.give(0, b.cotangent());
  if (b.wants(1))
    b.give(1, b.unary<NegOp>(b.mul(b.cotangent(), b.unary<FloorOp>(b.div(getLhs(), getRhs())))));
}

/// a - b trunc(a / b): the quotient of a - fmod(a, b), which b divides, by b.
void FmodOp::buildGradients(GradientBuilder &b) {
  b.give(0, b.cotangent());
  if (b.wants(1)) {
    Value quotient = b.unary<RoundOp>(b.div(b.sub(getLhs(), getResult()), getRhs()));
    b.give(1, b.unary<NegOp>(b.mul(b.cotangent(), quotient)));
  }
}

/// n x^(n - 1), 0 where n is; x^n log(x), 0 where x^n is 0 for n >= 0.
void PowOp::buildGradients(GradientBuilder &b) {
  Value base = getLhs(), exponent = b.cast(getRhs(), tensorType(getLhs()).getElementType()), zero = b.zero(base);
  if (b.wants(0)) {
    Value slope = b.mul(exponent, PowOp::create(b.builder, b.loc, base, b.shifted(exponent, -1)));
    Value isFlat = b.compare(ComparePredicate::eq, exponent, zero);
    b.give(0, b.select(isFlat, zero, b.mul(b.cotangent(), slope)));
  }
  if (b.wants(1)) {
    Value slope = b.mul(getResult(), b.unary<LogOp>(base));
    Value isFlat = AndOp::create(b.builder, b.loc, b.compare(ComparePredicate::eq, base, zero),
                                 b.compare(ComparePredicate::ge, exponent, zero));
    b.give(1, b.select(isFlat, zero, b.mul(b.cotangent(), slope)));
  }
}

/// All to the operand that is chosen; equal ones share.
static void giveToChosen(GradientBuilder &b, Value lhs, Value rhs, ComparePredicate isChosen) {
  Value g = b.cotangent(), none = b.zero(g);
  Value shared = b.select(b.compare(ComparePredicate::eq, lhs, rhs), b.scaled(g, 0.5), none);
  if (b.wants(0))
    b.give(0, b.select(b.compare(isChosen, lhs, rhs), g, shared));
  if (b.wants(1))
    b.give(1, b.select(b.compare(isChosen, rhs, lhs), g, shared));
}
void MaxOp::buildGradients(GradientBuilder &b) { giveToChosen(b, getLhs(), getRhs(), ComparePredicate::gt); }
void MinOp::buildGradients(GradientBuilder &b) { giveToChosen(b, getLhs(), getRhs(), ComparePredicate::lt); }

void SelectOp::buildGradients(GradientBuilder &b) {
  Value g = b.cotangent(), none = b.zero(g);
  if (b.wants(1))
    b.give(1, b.select(getCondition(), g, none));
  if (b.wants(2))
    b.give(2, b.select(getCondition(), none, g));
}

} // namespace hpc::nn
