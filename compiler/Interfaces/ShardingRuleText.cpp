// Builds a ShardingRule from its text. The dims of every value are matched against the term's tokens; letters get their
// size from the dims that they stand in, and one letter of a group may be inferred from the group's dim.
#include "compiler/Interfaces/ShardingRule.h"

namespace hpc {

namespace {
/// One dim of a term: its letters, major to minor; "." for each dim that `...` stands for.
using Token = std::string;

struct Term {
  SmallVector<Token> tokens;
};

Term parseTerm(StringRef text) {
  Term term;
  while (!text.empty()) {
    if (text.consume_front("...")) {
      term.tokens.push_back("...");
    } else if (text.consume_front("(")) {
      auto [letters, rest] = text.split(')');
      term.tokens.push_back(letters.str());
      text = rest;
    } else {
      term.tokens.push_back(text.take_front().str());
      text = text.drop_front();
    }
  }
  return term;
}

/// The state of building one rule.
struct Builder {
  ShardingRule rule;
  std::map<char, int> letters;     ///< letter -> factor
  SmallVector<int> leadingFactors; ///< factors of `...`, counted from the right

  int letterFactor(char letter) {
    auto [found, isNew] = letters.try_emplace(letter, int(rule.factors.size()));
    if (isNew) {
      rule.factors.emplace_back();
      rule.factors.back().canCut = !isupper(letter);
    }
    return found->second;
  }

  int leadingFactor(size_t fromRight) {
    while (leadingFactors.size() <= fromRight) {
      leadingFactors.push_back(int(rule.factors.size()));
      rule.factors.emplace_back();
    }
    return leadingFactors[fromRight];
  }

  void growTo(int factor, int64_t size) {
    int64_t &known = rule.factors[factor].size;
    assert((known == 1 || size == 1 || known == size) && "a letter stands for two sizes");
    if (size != 1)
      known = size;
  }

  /// Calls `visit(token, dim)` for every dim of a value, `...` expanded to ("." , dim, index from the right of its
  /// run).
  template <typename Visit> void forEachDim(const Term &term, ArrayRef<int64_t> shape, Visit visit) {
    size_t run = shape.size() - (term.tokens.size() - llvm::count(term.tokens, "..."));
    size_t dim = 0;
    for (const Token &token : term.tokens) {
      if (token != "...") {
        visit(token, dim++, 0);
        continue;
      }
      for (size_t i = 0; i < run; ++i)
        visit(".", dim++, run - 1 - i);
    }
    assert(dim == shape.size() && "the rule's term does not fit the rank");
  }

  void learnSizes(const Term &term, ArrayRef<int64_t> shape) {
    forEachDim(term, shape, [&](StringRef token, size_t dim, size_t fromRight) {
      if (token == ".")
        growTo(leadingFactor(fromRight), shape[dim]);
      else if (token.size() == 1)
        growTo(letterFactor(token[0]), shape[dim]);
      else
        for (char letter : token)
          letterFactor(letter);
    });
  }

  /// A group's dim gives the size of the one letter that stands alone nowhere.
  void inferGroups(const Term &term, ArrayRef<int64_t> shape) {
    forEachDim(term, shape, [&](StringRef token, size_t dim, size_t) {
      if (token == "." || token.size() == 1 || shape[dim] == 1)
        return;
      int64_t known = 1;
      for (char letter : token)
        known *= rule.factors[letters[letter]].size;
      if (known == shape[dim])
        return;
      for (char letter : llvm::reverse(token))
        if (int64_t &size = rule.factors[letters[letter]].size; size == 1) {
          size = shape[dim] / known;
          break;
        }
    });
  }

  SmallVector<ShardingRule::DimFactors> dimFactors(const Term &term, ArrayRef<int64_t> shape) {
    SmallVector<ShardingRule::DimFactors> dims(shape.size());
    forEachDim(term, shape, [&](StringRef token, size_t dim, size_t fromRight) {
      if (shape[dim] == 1)
        return;
      if (token == ".") {
        dims[dim].push_back(leadingFactor(fromRight));
        return;
      }
      for (char letter : token)
        if (rule.factors[letters[letter]].size != 1)
          dims[dim].push_back(letters[letter]);
    });
    return dims;
  }

  static void readNumbers(StringRef text, SmallVectorImpl<int> &numbers) {
    SmallVector<StringRef> parts;
    text.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (StringRef part : parts) {
      if (part.trim().empty())
        continue;
      int number = 0;
      bool failed = part.trim().getAsInteger(10, number);
      assert(!failed && "linear takes numbers of operands and results");
      (void)failed;
      numbers.push_back(number);
    }
  }

  void applyClause(StringRef clause) {
    auto parts = clause.trim().split(' ');
    StringRef word = parts.first, rest = parts.second.trim();
    auto eachLetter = [&](auto apply) {
      for (char letter : rest)
        if (letter != ' ' && letter != ',')
          apply(rule.factors[letterFactor(letter)]);
    };
    if (std::optional<ReduceKind> kind = reduceKindNamed(std::string_view(word)))
      eachLetter([&](ShardingFactor &factor) { factor.reduction = kind; });
    else if (word == "index")
      eachLetter([](ShardingFactor &factor) { factor.isIndex = true; });
    else if (word == "lookup")
      eachLetter([](ShardingFactor &factor) { factor.isIndex = factor.isLookup = true; });
    else if (word == "internal")
      eachLetter([](ShardingFactor &factor) { factor.isInternal = true; });
    else if (word == "sequence")
      eachLetter([](ShardingFactor &factor) { factor.isSequence = true; });
    else if (word == "linear") {
      rule.linear.kind = rest.consume_front("all") ? LinearClause::Sum : LinearClause::Product;
      auto [operands, results] = rest.split("->");
      readNumbers(operands, rule.linear.operands);
      readNumbers(results, rule.linear.results);
    } else {
      assert(false && "unknown clause of a sharding rule");
    }
  }
};
} // namespace

ShardingRule buildRule(StringRef text, ArrayRef<ArrayRef<int64_t>> operands, ArrayRef<ArrayRef<int64_t>> results) {
  SmallVector<StringRef> clauses;
  text.split(clauses, ';');
  auto [left, right] = clauses[0].trim().split("->");
  SmallVector<StringRef> operandTexts, resultTexts;
  left.split(operandTexts, ',');
  right.split(resultTexts, ',');
  assert(operandTexts.size() == operands.size() && resultTexts.size() == results.size() && "a term per value");

  SmallVector<Term> operandTerms = llvm::map_to_vector(operandTexts, parseTerm);
  SmallVector<Term> resultTerms = llvm::map_to_vector(resultTexts, parseTerm);

  Builder builder;
  auto everyValue = [&](auto visit) {
    for (auto [term, shape] : llvm::zip_equal(operandTerms, operands))
      visit(term, shape);
    for (auto [term, shape] : llvm::zip_equal(resultTerms, results))
      visit(term, shape);
  };
  everyValue([&](const Term &term, ArrayRef<int64_t> shape) { builder.learnSizes(term, shape); });
  everyValue([&](const Term &term, ArrayRef<int64_t> shape) { builder.inferGroups(term, shape); });
  for (auto [term, shape] : llvm::zip_equal(operandTerms, operands))
    builder.rule.operands.push_back(builder.dimFactors(term, shape));
  for (auto [term, shape] : llvm::zip_equal(resultTerms, results))
    builder.rule.results.push_back(builder.dimFactors(term, shape));

  // A letter that no result has is summed over, unless a clause says otherwise.
  for (const auto &entry : builder.letters)
    if (llvm::none_of(resultTexts, [&](StringRef term) { return term.contains(entry.first); }))
      builder.rule.factors[entry.second].reduction = ReduceKind::Sum;
  for (StringRef clause : ArrayRef(clauses).drop_front())
    builder.applyClause(clause);
  builder.rule.text = text.str();
  return builder.rule;
}

ShardingRule buildRule(StringRef text, Operation *op) {
  auto shapes = [](TypeRange types) {
    return llvm::map_to_vector(types, [](Type type) { return cast<RankedTensorType>(type).getShape(); });
  };
  return buildRule(text, shapes(op->getOperandTypes()), shapes(op->getResultTypes()));
}

} // namespace hpc
