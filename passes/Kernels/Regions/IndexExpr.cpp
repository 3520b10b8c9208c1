// Sums are kept in normal form: terms by atom, and quotient and remainder of one division joined where both are there
// with fitting coefficients.
#include "passes/Kernels/Regions/IndexExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace hpc::kernels {

IndexExpr IndexBuilder::atom(Value value, int64_t extent) {
  if (extent <= 1)
    return 0; // an extent of 0 is never reached
  IndexExpr index;
  index.terms = {{int(atoms.size()), 1}};
  atoms.push_back({value, extent});
  return index;
}

// ---- sums ----

IndexExpr IndexBuilder::mul(const IndexExpr &a, int64_t b) {
  if (b == 0)
    return 0;
  IndexExpr product = a;
  product.constant *= b;
  for (IndexExpr::Term &term : product.terms)
    term.coefficient *= b;
  return product;
}

static IndexExpr plainSum(const IndexExpr &a, const IndexExpr &b) {
  IndexExpr sum(a.constant + b.constant);
  auto x = a.terms.begin(), y = b.terms.begin();
  while (x != a.terms.end() || y != b.terms.end())
    if (y == b.terms.end() || (x != a.terms.end() && x->atom < y->atom)) {
      sum.terms.push_back(*x++);
    } else if (x == a.terms.end() || y->atom < x->atom) {
      sum.terms.push_back(*y++);
    } else {
      if (int64_t coefficient = x->coefficient + y->coefficient)
        sum.terms.push_back({x->atom, coefficient});
      ++x, ++y;
    }
  return sum;
}

IndexExpr IndexBuilder::joinParts(IndexExpr a) const {
  auto coefficientOf = [&](int atom) {
    for (const IndexExpr::Term &term : a.terms)
      if (term.atom == atom)
        return term.coefficient;
    return int64_t(0);
  };
  // Latest first: a whole may itself be a part of one made before.
  for (const Parts &part : llvm::reverse(parts)) {
    int64_t unit = coefficientOf(part.remainder);
    if (unit == 0 || coefficientOf(part.quotient) != unit * part.divisor)
      continue;
    llvm::erase_if(a.terms, [&](const IndexExpr::Term &term) {
      return term.atom == part.remainder || term.atom == part.quotient;
    });
    a = plainSum(a, mul(part.whole, unit));
  }
  return a;
}

IndexExpr IndexBuilder::add(const IndexExpr &a, const IndexExpr &b) { return joinParts(plainSum(a, b)); }

IndexBuilder::Range IndexBuilder::range(const IndexExpr &a) const {
  Range range{a.constant, a.constant};
  for (const IndexExpr::Term &term : a.terms) {
    __int128 reach = __int128(term.coefficient) * (atoms[size_t(term.atom)].extent - 1);
    (reach < 0 ? range.min : range.max) += reach;
  }
  return range;
}

// ---- numbers that are no sum ----

static __int128 floorDiv(__int128 a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

std::pair<IndexExpr, IndexExpr> IndexBuilder::split(const IndexExpr &a, int64_t b) {
  if (b <= 1)
    return {a, 0};
  // Terms that b divides go to the quotient, with the part of the constant that leaves the rest nearest to 0.
  IndexExpr quotient, rest(a.constant);
  for (const IndexExpr::Term &term : a.terms)
    if (term.coefficient % b == 0)
      quotient.terms.push_back({term.atom, term.coefficient / b});
    else
      rest.terms.push_back(term);
  int64_t whole = int64_t(floorDiv(range(rest).min, b));
  quotient.constant += whole;
  rest.constant -= whole * b;
  if (range(rest).max < b)
    return {joinParts(quotient), rest};
  // 0 <= rest: divide it alone.
  for (const Scope &scope : llvm::reverse(scopes))
    if (auto found = scope.splits.find({rest, b}); found != scope.splits.end())
      return {add(quotient, found->second.first), found->second.second};
  Value dividend = value(rest), divisor = constant(b);
  IndexExpr high = atom(arith::DivUIOp::create(builder, loc, dividend, divisor), int64_t(range(rest).max / b) + 1);
  IndexExpr low = atom(arith::RemUIOp::create(builder, loc, dividend, divisor), b);
  parts.push_back({rest, high.terms[0].atom, low.terms[0].atom, b, scopes.size()});
  scopes.back().splits[{rest, b}] = {high, low};
  return {add(quotient, high), low};
}

IndexExpr IndexBuilder::clamp(const IndexExpr &a, int64_t size) {
  Range reach = range(a);
  if (reach.min >= 0 && reach.max < size)
    return a;
  for (const Scope &scope : llvm::reverse(scopes))
    if (auto found = scope.clamps.find({a, size}); found != scope.clamps.end())
      return found->second;
  return scopes.back().clamps[{a, size}] = clamp(value(a), size);
}
IndexExpr IndexBuilder::clamp(Value a, int64_t size) {
  if (size <= 1)
    return 0;
  Value atLeastZero = arith::MaxSIOp::create(builder, loc, a, constant(0));
  return atom(arith::MinSIOp::create(builder, loc, atLeastZero, constant(size - 1)), size);
}

Value IndexBuilder::isWithin(const IndexExpr &a, int64_t low, int64_t high) {
  Range reach = range(a);
  if (reach.min >= low && reach.max < high)
    return {};
  return isWithin(value(a), constant(low), constant(high));
}
Value IndexBuilder::isWithin(Value a, Value low, Value high) {
  Value isAbove = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, a, low);
  Value isBelow = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, high);
  return arith::AndIOp::create(builder, loc, isAbove, isBelow);
}

void IndexBuilder::leaveLoop() {
  scopes.pop_back();
  llvm::erase_if(parts, [&](const Parts &part) { return part.depth > scopes.size(); });
}

// ---- code ----

Value IndexBuilder::constant(int64_t value) {
  Value &made = constants[value];
  if (!made) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    made = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  }
  return made;
}

Value IndexBuilder::value(const IndexExpr &a) {
  if (a.isConstant())
    return constant(a.constant);
  for (const Scope &scope : llvm::reverse(scopes))
    if (auto found = scope.values.find(a); found != scope.values.end())
      return found->second;
  Value sum;
  auto add = [&](Value next) { sum = sum ? arith::AddIOp::create(builder, loc, sum, next).getResult() : next; };
  if (a.constant != 0)
    add(constant(a.constant));
  for (const IndexExpr::Term &term : a.terms) {
    Value atom = atoms[size_t(term.atom)].value;
    add(term.coefficient == 1 ? atom
                              : arith::MulIOp::create(builder, loc, atom, constant(term.coefficient)).getResult());
  }
  return scopes.back().values[a] = sum;
}

} // namespace hpc::kernels
