// Sizes that a model's inputs give as an expression over names.
// Text that does not parse as an expression is one name: exporters also print names with spaces or dots.
#include "compiler/Import/SymbolicDims.h"

#include <algorithm>
#include <cctype>
#include <functional>

namespace hpc::onnx {
namespace {

/// Recursive descent; values come from `lookup`, and `failed` is set by anything that is not an expression.
class Parser {
public:
  Parser(const std::string &text, std::function<int64_t(const std::string &)> lookup)
      : text(text), lookup(std::move(lookup)) {}

  int64_t run() {
    int64_t value = sum();
    skipSpace();
    failed |= at != text.size();
    return value;
  }
  bool failed = false;

private:
  void skipSpace() {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
      ++at;
  }
  bool take(const char *token) {
    skipSpace();
    size_t length = std::char_traits<char>::length(token);
    if (text.compare(at, length, token))
      return false;
    at += length;
    return true;
  }
  int64_t checked(bool overflow, int64_t value) {
    failed |= overflow;
    return value;
  }

  int64_t sum() {
    int64_t value = product();
    for (;;) {
      int64_t result = 0;
      if (take("+"))
        value = checked(__builtin_add_overflow(value, product(), &result), result);
      else if (take("-"))
        value = checked(__builtin_sub_overflow(value, product(), &result), result);
      else
        return value;
    }
  }

  int64_t product() {
    int64_t value = atom();
    for (;;) {
      int64_t result = 0;
      if (take("//") || take("/")) {
        int64_t divisor = atom();
        failed |= divisor <= 0 || value < 0;
        value = divisor > 0 ? value / divisor : 0;
      } else if (take("%")) {
        int64_t divisor = atom();
        failed |= divisor <= 0 || value < 0;
        value = divisor > 0 ? value % divisor : 0;
      } else if (take("*")) {
        value = checked(__builtin_mul_overflow(value, atom(), &result), result);
      } else {
        return value;
      }
    }
  }

  int64_t atom() {
    skipSpace();
    if (++depth > 100) {
      failed = true;
      return 0;
    }
    int64_t value = 0;
    if (take("(")) {
      value = sum();
      failed |= !take(")");
    } else if (take("-")) {
      value = -atom();
    } else if (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
      while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
        failed |= value > (int64_t(1) << 50);
        value = failed ? 0 : value * 10 + (text[at] - '0');
        ++at;
      }
    } else {
      value = named();
    }
    --depth;
    return value;
  }

  int64_t named() {
    size_t begin = at;
    while (at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_' || text[at] == '.'))
      ++at;
    std::string name = text.substr(begin, at - begin);
    if (name.empty()) {
      failed = true;
      return 0;
    }
    if (name != "Min" && name != "Max" && name != "min" && name != "max")
      return lookup(name);
    failed |= !take("(");
    int64_t value = sum();
    while (!failed && take(","))
      value = std::tolower(name[1]) == 'i' ? std::min(value, sum()) : std::max(value, sum());
    failed |= !take(")");
    return value;
  }

  const std::string &text;
  std::function<int64_t(const std::string &)> lookup;
  size_t at = 0;
  int depth = 0;
};

} // namespace

std::vector<std::string> namesIn(const std::string &expression) {
  std::vector<std::string> names;
  Parser parser(expression, [&](const std::string &name) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
    return int64_t(1);
  });
  parser.run();
  // With 1 for each name, arithmetic may fail although the real sizes are fine, e.g. a // (b - 1); so a failure only
  // counts in a text without operators.
  bool isName = expression.find_first_of("+-*/%(") == std::string::npos;
  return names.empty() || (parser.failed && isName) ? std::vector<std::string>{expression} : names;
}

Expected<int64_t> evaluateDim(const std::string &expression, const std::map<std::string, int64_t> &dims) {
  if (auto found = dims.find(expression); found != dims.end())
    return found->second;
  std::string missing;
  Parser parser(expression, [&](const std::string &name) {
    auto found = dims.find(name);
    if (found == dims.end())
      missing = name;
    return found == dims.end() ? 0 : found->second;
  });
  int64_t value = parser.run();
  if (!missing.empty())
    return Status::error(ErrorKind::Usage, "the size '" + expression + "' needs --dim " + missing + "=N");
  if (parser.failed)
    return Status::error(ErrorKind::Model, "the size '" + expression + "' is no expression of names and whole numbers, or has no value of 63 bits");
  return value;
}

} // namespace hpc::onnx
