// Einsum, as diagonals, sums and a chain of matrix products. A letter that neither later operands nor the output have
// is summed as early as possible; without a contraction, or for integers, a product is elementwise.
#include "compiler/Import/OnnxOps/Dims.h"
#include "runtime/base/CountText.h"

namespace hpc::onnx {
namespace {

/// An operand or intermediate: one letter per dim. The dims of an ellipsis are the letters '0', '1', ... from the
/// right.
struct Term {
  Value value;
  std::string letters;
};

struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

/// Letters of one operand or of the output; the ellipsis becomes `numDots` digits.
bool expandLetters(const std::string &text, int64_t numDots, std::string &letters) {
  bool hasDots = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "...") == 0 && !hasDots) {
      for (int64_t dot = numDots - 1; dot >= 0; --dot)
        letters += char('0' + dot);
      hasDots = true;
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      letters += text[i];
    } else {
      return false;
    }
  }
  return true;
}

/// Nothing, with an error, where the equation does not fit its operands.
std::optional<Equation> parse(NodeImport &n, ArrayRef<Value> operands) {
  std::string text = n.text("equation", ""), left, right;
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  auto wrong = [&](const std::string &why) {
    n.b.fail("its equation '" + text + "' " + why);
    return std::nullopt;
  };
  size_t arrow = text.find("->");
  left = text.substr(0, arrow);
  SmallVector<StringRef> parts;
  StringRef(left).split(parts, ',');
  if (parts.size() != operands.size())
    return wrong("has " + countText(parts.size(), "operand") + ", the node " + std::to_string(operands.size()));
  Equation equation;
  int64_t mostDots = 0;
  for (auto [part, operand] : llvm::zip_equal(parts, operands)) {
    int64_t numDots = 0;
    if (part.contains("..."))
      numDots = n.b.rank(operand) - int64_t(part.size() - 3);
    std::string letters;
    if (numDots < 0 || numDots > 10 || !expandLetters(part.str(), numDots, letters) ||
        int64_t(letters.size()) != n.b.rank(operand))
      return wrong("does not fit operand '" + part.str() + "' of " + countText(n.b.rank(operand), "dim"));
    mostDots = std::max(mostDots, numDots);
    equation.operands.push_back(letters);
  }
  if (arrow != std::string::npos) {
    if (!expandLetters(text.substr(arrow + 2), mostDots, equation.result))
      return wrong("has an output that is no list of letters");
  } else { // the ellipsis, then letters that occur once, sorted
    expandLetters("...", mostDots, equation.result);
    std::map<char, int> counts;
    for (const std::string &letters : equation.operands)
      for (char letter : letters)
        ++counts[letter];
    for (auto [letter, count] : counts)
      if (count == 1 && std::isalpha(static_cast<unsigned char>(letter)))
        equation.result += letter;
  }
  for (char letter : equation.result)
    if (std::count(equation.result.begin(), equation.result.end(), letter) > 1 ||
        llvm::none_of(equation.operands, [&](const std::string &each) { return each.find(letter) != each.npos; }))
      return wrong(std::string("has '") + letter + "' in its output twice, or in no operand");
  return equation;
}

/// Whether there are more steps than one sum or one product: then results between steps are not rounded to 16 bits.
bool takesSteps(const Equation &equation) {
  if (equation.operands.size() != 2)
    return equation.operands.size() > 2;
  auto isSummedAlone = [&](const std::string &letters, const std::string &others) {
    return llvm::any_of(letters, [&](char letter) {
      return others.find(letter) == others.npos && equation.result.find(letter) == equation.result.npos;
    });
  };
  return isSummedAlone(equation.operands[0], equation.operands[1]) ||
         isSummedAlone(equation.operands[1], equation.operands[0]);
}

class Contraction {
public:
  Contraction(NodeImport &n, const Equation &equation) : n(n), equation(equation) {}

  Value run(ArrayRef<Value> operands) {
    std::vector<Term> terms;
    for (auto [value, letters] : llvm::zip_equal(operands, equation.operands))
      terms.push_back({value, letters});
    for (Term &term : terms)
      takeDiagonals(term);
    if (!findSizes(terms))
      return operands[0];
    Term product = summed(terms[0], after(0));
    for (size_t i = 1; i < terms.size() && n.b.status().ok(); ++i)
      product = multiplied(product, summed(terms[i], product.letters + after(i)), after(i));
    if (!n.b.status().ok())
      return operands[0];
    return arranged(broadcastTo(product, equation.result), equation.result);
  }

private:
  /// The letters that operands after `index` and the output have.
  std::string after(size_t index) const {
    std::string letters = equation.result;
    for (size_t i = index + 1; i < equation.operands.size(); ++i)
      letters += equation.operands[i];
    return letters;
  }

  /// A letter that comes twice: [.., n, n] is [.., n * n] in steps of n + 1.
  void takeDiagonals(Term &term) {
    for (size_t i = 0; i < term.letters.size() && n.b.status().ok(); ++i)
      for (size_t j = term.letters.find(term.letters[i], i + 1); j != std::string::npos;
           j = term.letters.find(term.letters[i], i + 1)) {
        int64_t size = n.b.shape(term.value)[i];
        if (n.b.shape(term.value)[j] != size) {
          n.b.fail(std::string("'") + term.letters[i] + "' has two sizes in one operand");
          return;
        }
        char letter = term.letters[i];
        Value square = moveToLast(n, moveToLast(n, term.value, int64_t(i)), int64_t(j) - 1);
        SmallVector<int64_t> shape = n.b.shape(square);
        shape.resize(shape.size() - 2);
        SmallVector<int64_t> starts(shape.size() + 1, 0), steps(shape.size() + 1, 1), flat = shape, sizes = shape;
        flat.push_back(size * size);
        sizes.push_back(size);
        steps.back() = size > 1 ? size + 1 : 1;
        term.value = n.b.slice(n.b.reshape(square, flat), starts, steps, sizes);
        term.letters.erase(j, 1);
        term.letters.erase(i, 1);
        term.letters += letter;
        --i; // another letter is there now
        break;
      }
  }

  /// Sizes of letters: those of an ellipsis broadcast.
  bool findSizes(ArrayRef<Term> terms) {
    for (const Term &term : terms)
      for (auto [letter, size] : llvm::zip_equal(term.letters, n.b.shape(term.value))) {
        auto [known, isNew] = sizes.try_emplace(letter, size);
        bool mayBroadcast = std::isdigit(static_cast<unsigned char>(letter));
        if (isNew || known->second == size || (mayBroadcast && size == 1))
          continue;
        if (!mayBroadcast || known->second != 1) {
          n.b.fail(std::string("its operands give '") + (mayBroadcast ? '.' : letter) + "' the sizes " +
                   std::to_string(known->second) + " and " + std::to_string(size));
          return false;
        }
        known->second = size;
      }
    return n.b.status().ok();
  }

  /// Sums over the letters that are not in `wanted`.
  Term summed(Term term, const std::string &wanted) {
    SmallVector<int64_t> axes, shape;
    std::string letters;
    for (auto [dim, letter] : llvm::enumerate(term.letters)) {
      if (wanted.find(letter) == std::string::npos) {
        axes.push_back(int64_t(dim));
      } else {
        letters += letter;
        shape.push_back(n.b.shape(term.value)[dim]);
      }
    }
    return {n.b.reshape(n.b.reduce(ReduceKind::Sum, term.value, axes), shape), letters};
  }

  /// Dims in the order of `letters`, which are the term's.
  Value arranged(const Term &term, const std::string &letters) {
    SmallVector<int64_t> permutation;
    for (char letter : letters)
      permutation.push_back(int64_t(term.letters.find(letter)));
    return n.b.transpose(term.value, permutation);
  }

  /// Broadcasts dims of size 1 of an ellipsis to their size.
  Term broadcastTo(const Term &term, const std::string &letters) {
    SmallVector<int64_t> shape;
    for (char letter : term.letters)
      shape.push_back(letters.find(letter) == std::string::npos ? n.b.shape(term.value)[shape.size()] : sizes[letter]);
    return {n.b.broadcast(term.value, shape), term.letters};
  }

  /// The term's own sizes: dims of an ellipsis may be 1 until another operand meets them.
  SmallVector<int64_t> sizesOf(const Term &term, const std::string &letters) {
    SmallVector<int64_t> result;
    for (char letter : letters)
      result.push_back(n.b.shape(term.value)[term.letters.find(letter)]);
    return result;
  }

  Term multiplied(Term a, Term b, const std::string &wanted) {
    std::string batch, rows, columns, summedOver;
    for (char letter : a.letters) {
      bool isShared = b.letters.find(letter) != std::string::npos, isWanted = wanted.find(letter) != std::string::npos;
      (isShared ? (isWanted ? batch : summedOver) : rows) += letter;
    }
    for (char letter : b.letters)
      if (a.letters.find(letter) == std::string::npos)
        columns += letter;
    bool isProduct = !summedOver.empty() && isFloat(n.b.dtype(a.value));
    if (!isProduct) { // [batch, rows, columns, summed] elementwise, then summed
      std::string all = batch + rows + columns + summedOver;
      auto spread = [&](const Term &term) {
        std::string own, missing;
        SmallVector<int64_t> shape;
        for (char letter : all)
          if (size_t dim = term.letters.find(letter); dim != std::string::npos) {
            own += letter;
            shape.push_back(n.b.shape(term.value)[dim]);
          } else {
            shape.push_back(1);
          }
        return n.b.reshape(arranged(term, own), shape);
      };
      return summed({n.b.mul(spread(a), spread(b)), all}, wanted);
    }
    a = broadcastTo(a, batch + summedOver);
    b = broadcastTo(b, batch + summedOver);
    auto matrix = [&](const Term &term, const std::string &first, const std::string &second) {
      SmallVector<int64_t> shape = sizesOf(term, batch);
      shape.push_back(elementCount(sizesOf(term, first)));
      shape.push_back(elementCount(sizesOf(term, second)));
      return n.b.reshape(arranged(term, batch + first + second), shape);
    };
    SmallVector<int64_t> shape = sizesOf(a, batch + rows);
    llvm::append_range(shape, sizesOf(b, columns));
    Value product = n.b.matmul(matrix(a, rows, summedOver), matrix(b, summedOver, columns));
    return {n.b.reshape(product, shape), batch + rows + columns};
  }

  NodeImport &n;
  const Equation &equation;
  std::map<char, int64_t> sizes;
};

Results einsum(NodeImport &n) {
  SmallVector<Value> operands;
  for (size_t i = 0; i < n.numInputs(); ++i)
    operands.push_back(n.in(i));
  if (operands.empty())
    return {n.b.fail("nothing to multiply")};
  for (Value operand : operands)
    if (n.b.dtype(operand) != n.b.dtype(operands[0]))
      return {n.b.fail("its operands must have one element type")};
  std::optional<Equation> equation = parse(n, operands);
  if (!equation)
    return {operands[0]};
  DType own = n.b.dtype(operands[0]);
  if (takesSteps(*equation))
    for (Value &operand : operands)
      operand = n.b.widened(operand);
  return {n.b.cast(Contraction(n, *equation).run(operands), own)};
}

const OnnxOp einsumTable[] = {{"Einsum", 12, einsum}};

} // namespace

ArrayRef<OnnxOp> einsumOps() { return einsumTable; }

} // namespace hpc::onnx
