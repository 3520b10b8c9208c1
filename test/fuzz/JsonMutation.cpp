// Tokens of JSON, and values from bracket to bracket: taken out, doubled, exchanged. What comes out is mostly JSON again.
#include "test/fuzz/Mutation.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace hpc::fuzz {
namespace {

std::vector<std::string> tokensOf(const std::string &text) {
  std::vector<std::string> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '"') {
      while (end < text.size() && text[end] != '"')
        end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (!std::strchr("{}[],: \t\r\n", text[at])) {
      end = std::min(text.find_first_of("{}[],: \t\r\n\"", at), text.size());
    }
    if (!std::strchr(" \t\r\n", text[at]) || text[at] == 0)
      tokens.push_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

/// Where the value that begins at a token ends.
size_t endOfValue(const std::vector<std::string> &tokens, size_t at) {
  int64_t depth = 0;
  for (; at < tokens.size(); ++at) {
    depth += tokens[at] == "{" || tokens[at] == "[";
    depth -= tokens[at] == "}" || tokens[at] == "]";
    if (depth <= 0)
      return at + 1;
  }
  return at;
}

bool isValue(const std::string &token) { return token.size() != 1 || !std::strchr("}],:", token[0]); }

void change(std::vector<std::string> &tokens, const std::vector<std::string> &others, Mutation &mutation) {
  static const char *const numbers[] = {"0",   "1",  "-1",  "2",   "64",  "9223372036854775807", "-9223372036854775808", "1e400",
                                        "0.5", "[]", "{}",  "null", "true", "\"\"",              "\"*\"",                "18446744073709551615"};
  if (tokens.empty())
    return;
  size_t at = mutation.random.below(tokens.size()), end = endOfValue(tokens, at);
  auto begin = tokens.begin();
  std::vector<std::string> value(begin + std::ptrdiff_t(at), begin + std::ptrdiff_t(end));
  switch (mutation.random.below(6)) {
  case 0: // with the comma behind it
    tokens.erase(begin + std::ptrdiff_t(at), begin + std::ptrdiff_t(std::min(end + mutation.random.below(2), tokens.size())));
    return;
  case 1:
    value.push_back(",");
    tokens.insert(begin + std::ptrdiff_t(at), value.begin(), value.end());
    return;
  case 2:
    if (isValue(tokens[at]))
      tokens[at] = numbers[mutation.random.below(std::size(numbers))];
    return;
  case 3:
    if (tokens[at].size() > 2 && tokens[at][0] == '"') {
      std::string inside = tokens[at].substr(1, tokens[at].size() - 2);
      mutation.changeBytes(inside);
      tokens[at] = '"' + inside + '"';
    }
    return;
  default: { // a value of elsewhere
    const std::vector<std::string> &source = mutation.chance(2) && !others.empty() ? others : tokens;
    size_t from = mutation.random.below(source.size());
    if (!isValue(source[from]) || !isValue(tokens[at]))
      return;
    std::vector<std::string> piece(source.begin() + std::ptrdiff_t(from), source.begin() + std::ptrdiff_t(endOfValue(source, from)));
    tokens.erase(begin + std::ptrdiff_t(at), begin + std::ptrdiff_t(end));
    tokens.insert(tokens.begin() + std::ptrdiff_t(at), piece.begin(), piece.end());
  }
  }
}

} // namespace

bool mutateJson(std::string &text, Mutation &mutation) {
  std::vector<std::string> tokens = tokensOf(text), others = tokensOf(mutation.other);
  for (uint64_t count = 1 + mutation.random.below(4); count > 0; --count)
    change(tokens, others, mutation);
  text.clear();
  for (const std::string &token : tokens)
    text += token + (mutation.chance(16) ? "\n" : "");
  return !tokens.empty();
}

bool mutateSafeTensors(std::string &bytes, Mutation &mutation) {
  uint64_t length;
  if (bytes.size() < 8)
    return false;
  std::memcpy(&length, bytes.data(), 8);
  if (length > bytes.size() - 8)
    return false;
  std::string header = bytes.substr(8, length), rest = bytes.substr(8 + length);
  if (!mutateJson(header, mutation))
    return false;
  length = header.size();
  bytes.replace(0, bytes.size(), reinterpret_cast<const char *>(&length), 8);
  bytes += header + rest;
  return true;
}

} // namespace hpc::fuzz
