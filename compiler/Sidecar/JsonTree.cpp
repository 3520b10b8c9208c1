// The library's lexer reads a character ahead of a number but not of a bracket or a quote, so lines are noted at brackets
// and keys. It neither recurses nor throws here, however the text is made.
#include "compiler/Sidecar/JsonTree.h"

#include "runtime/base/Footprint.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace hpc {

const JsonTree *JsonTree::find(std::string_view key) const {
  auto found = std::find_if(members.begin(), members.end(), [&](const auto &member) { return member.first == key; });
  return found == members.end() ? nullptr : &found->second;
}

const char *JsonTree::kindName() const {
  static const char *names[] = {"null",     "true or false", "a whole number", "a number that is not whole or too large",
                                "a string", "a list",        "an object"};
  return names[kind];
}

namespace {

constexpr size_t maxDepth = 16;

/// Reads characters and counts the lines that are behind it.
struct LineCounter {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  const char *at;
  int *line;

  reference operator*() const { return *at; }
  LineCounter &operator++() {
    *line += *at == '\n';
    ++at;
    return *this;
  }
  LineCounter operator++(int) {
    LineCounter before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LineCounter &other) const { return at == other.at; }
  bool operator!=(const LineCounter &other) const { return at != other.at; }
};

/// The events of the library's parser; false stops it.
class Builder : public nlohmann::json_sax<nlohmann::json> {
public:
  Builder(const std::string &file, const int &line, int64_t mostValues) : file(file), line(line), mostValues(mostValues) {}

  bool null() override { return put({}); }
  bool boolean(bool value) override {
    JsonTree tree;
    tree.kind = JsonTree::Bool;
    tree.boolean = value;
    return put(tree);
  }
  bool number_integer(int64_t value) override {
    JsonTree tree;
    tree.kind = JsonTree::Integer;
    tree.integer = value;
    return put(tree);
  }
  bool number_unsigned(uint64_t value) override {
    return value > uint64_t(INT64_MAX) ? real(std::to_string(value)) : number_integer(int64_t(value));
  }
  bool number_float(double value, const std::string &text) override { // 2.0 is whole, as JSON schemas have it
    bool isExact = std::abs(value) < 9007199254740992.0 && value == std::trunc(value);
    return isExact ? number_integer(int64_t(value)) : real(text);
  }
  bool string(std::string &value) override {
    JsonTree tree;
    tree.kind = JsonTree::String;
    tree.text = value;
    return put(tree);
  }
  bool binary(binary_t &) override { return false; }
  bool start_object(size_t) override { return open(JsonTree::Object); }
  bool start_array(size_t) override { return open(JsonTree::Array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string &name) override {
    constexpr size_t mostKeys = 64;
    if (path.back()->members.size() == mostKeys)
      return fail("an object of more than " + std::to_string(mostKeys) + " keys; no sidecar needs that");
    if (path.back()->find(name))
      return fail("the key " + jsonQuoted(name) + " is given twice in one object; leave one out");
    path.back()->members.emplace_back(name, JsonTree());
    path.back()->members.back().second.line = line;
    return count();
  }
  bool parse_error(size_t, const std::string &, const nlohmann::json::exception &error) override {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error while parsing value - ..."
    std::string text = error.what();
    if (size_t comma = text.find(", column "); comma != std::string::npos)
      text = text.substr(comma + 2);
    if (size_t end = text.find("] "); text[0] == '[' && end != std::string::npos)
      text = text.substr(end + 2);
    return fail("this is no JSON, " + text);
  }

  JsonTree root;
  Status failure;

private:
  bool fail(const std::string &what) {
    failure = Status::error(ErrorKind::Sidecar, what).at(file + ":" + std::to_string(line));
    return false;
  }
  bool count() {
    return ++numValues <= mostValues ||
           fail("more than " + std::to_string(mostValues) + " values so far, nearly all of them empty; no sidecar needs that");
  }
  bool real(const std::string &text) {
    JsonTree tree;
    tree.kind = JsonTree::Real;
    tree.text = text;
    return put(tree);
  }
  /// Where the next value goes; a member exists since its key, with the line of that.
  JsonTree &place() {
    if (path.empty())
      return root;
    if (path.back()->kind == JsonTree::Object)
      return path.back()->members.back().second;
    path.back()->items.emplace_back();
    path.back()->items.back().line = line;
    return path.back()->items.back();
  }
  bool put(JsonTree tree) {
    if (!count())
      return false;
    JsonTree &target = place();
    tree.line = target.line;
    target = std::move(tree);
    return true;
  }
  bool open(JsonTree::Kind kind) {
    if (path.size() == maxDepth)
      return fail("lists and objects are nested more than " + std::to_string(maxDepth) + " deep; no sidecar needs that");
    if (!count())
      return false;
    JsonTree &target = place();
    target.kind = kind;
    path.push_back(&target); // stays where it is: its parent grows again only when it is closed
    return true;
  }
  bool close() {
    path.pop_back();
    return true;
  }

  std::string file;
  const int &line;
  int64_t mostValues, numValues = 0;
  std::vector<JsonTree *> path;
};

} // namespace

Expected<JsonTree> parseJson(std::string_view text, const std::string &file) {
  int line = 1;
  // A list that grows has its values twice for a moment.
  Builder builder(file, line, allowedFootprint(int64_t(text.size())) / int64_t(3 * sizeof(JsonTree)));
  LineCounter begin{text.data(), &line}, end{text.data() + text.size(), &line};
  if (!nlohmann::json::sax_parse(begin, end, &builder))
    return builder.failure;
  return std::move(builder.root);
}

std::string jsonQuoted(const std::string &text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace hpc
