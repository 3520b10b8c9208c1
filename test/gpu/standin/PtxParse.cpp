// Statements end with `;`, but for labels, directives and braces. Virtual registers are declared in ranges (`%r<8>`)
// or by name; each name becomes a number.
#include "test/gpu/standin/Ptx.h"

#include <cctype>
#include <cstring>
#include <set>

namespace standin::ptx {

namespace {

std::vector<std::string> tokenize(const std::string &text, std::vector<int> &lines) {
  std::vector<std::string> tokens;
  int line = 1;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\0')
      break;
    if (c == '\n')
      ++line;
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++i;
    } else if (text.compare(i, 2, "//") == 0) {
      while (i < text.size() && text[i] != '\n')
        ++i;
    } else if (text.compare(i, 2, "/*") == 0) {
      i = text.find("*/", i) + 2;
    } else if (c == '"') {
      size_t end = text.find('"', i + 1);
      i = end + 1;
    } else if (std::strchr("{}[]()<>,;:+|=@!-", c)) {
      tokens.push_back(std::string(1, c));
      lines.push_back(line);
      ++i;
    } else {
      size_t end = i;
      while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end])) &&
             !std::strchr("{}[]()<>,;:+|=@!-", text[end]))
        ++end;
      if (end == i)
        ++end;
      tokens.push_back(text.substr(i, end - i));
      lines.push_back(line);
      i = end;
    }
  }
  return tokens;
}

std::vector<std::string> splitDots(const std::string &word) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t dot; (dot = word.find('.', begin)) != std::string::npos; begin = dot + 1)
    parts.push_back(word.substr(begin, dot - begin));
  parts.push_back(word.substr(begin));
  // `ld.global.L1::evict_last` and the like say nothing about what is computed.
  std::vector<std::string> kept;
  for (std::string &part : parts)
    if (part.find("::") == std::string::npos && !part.empty())
      kept.push_back(std::move(part));
  return kept;
}

int typeBytes(const std::string &type) {
  if (type == "pred")
    return 1;
  if (type == "f16x2" || type == "bf16x2")
    return 4;
  if (type == "bf16")
    return 2;
  return type.size() > 1 ? std::atoi(type.c_str() + 1) / 8 : 0;
}

class Parser {
public:
  Parser(const std::string &text, Module &module) : module(module) { tokens = tokenize(text, lines); }

  std::string parse() {
    while (at < tokens.size() && error.empty()) {
      if (peek() == ".entry")
        parseEntry();
      else if (peek() == ".extern" || peek() == ".shared" || peek() == ".global" || peek() == ".const")
        parseVariable(moduleShared, moduleSharedBytes);
      else if (peek() == ".func")
        fail("functions beside entries are not known");
      else
        ++at; // .version 8.0, .target sm_80, .address_size 64, .visible
    }
    return error;
  }

private:
  const std::string &peek(size_t ahead = 0) const {
    static const std::string none;
    return at + ahead < tokens.size() ? tokens[at + ahead] : none;
  }
  std::string take() { return at < tokens.size() ? tokens[at++] : std::string(); }
  bool accept(const std::string &token) {
    if (peek() != token)
      return false;
    ++at;
    return true;
  }
  void expect(const std::string &token) {
    if (!accept(token))
      fail("expected '" + token + "', not '" + peek() + "'");
  }
  void fail(const std::string &text) {
    if (error.empty())
      error = "line " + std::to_string(at < lines.size() ? lines[at] : 0) + ": " + text;
    at = tokens.size();
  }

  /// .shared .align 16 .b8 name[1024]; or .extern .shared .align 16 .b8 name[];
  void parseVariable(std::map<std::string, uint64_t> &offsets, int &bytes) {
    bool isExtern = false, isShared = false;
    int align = 1, element = 1;
    while (peek()[0] == '.') {
      std::string word = take();
      isExtern |= word == ".extern";
      isShared |= word == ".shared";
      if (word == ".align")
        align = std::atoi(take().c_str());
      else if (int size = typeBytes(word.substr(1)); size > 0)
        element = size;
    }
    std::string name = take();
    int count = 1;
    if (accept("[")) {
      count = peek() == "]" ? 0 : std::atoi(take().c_str());
      expect("]");
    }
    if (!isShared)
      return parseTable(name, element, count);
    expect(";");
    if (isExtern) {
      dynamicShared.insert(name);
      return;
    }
    bytes = (bytes + align - 1) / align * align;
    offsets[name] = uint64_t(bytes);
    bytes += element * count;
  }

  /// = {0, 1, 2}: integers, or floats by their bits
  void parseTable(const std::string &name, int element, int count) {
    std::byte *table = static_cast<std::byte *>(Memory::instance().allocateHost(uint64_t(element * count)));
    module.variables[name] = table;
    std::memset(table, 0, size_t(element * count));
    if (accept("=")) {
      accept("{");
      for (int i = 0; i < count && at < tokens.size(); ++i) {
        const bool isNegative = accept("-");
        std::string word = take();
        const bool isBits = word.size() > 2 && word[0] == '0' && std::strchr("fFdD", word[1]);
        uint64_t value = std::strtoull(word.c_str() + (isBits ? 2 : 0), nullptr, isBits ? 16 : 0);
        value = isNegative ? uint64_t(-int64_t(value)) : value;
        std::memcpy(table + i * element, &value, size_t(element));
        if (!accept(","))
          break;
      }
      accept("}");
    }
    expect(";");
  }

  void parseEntry() {
    expect(".entry");
    kernel = Kernel();
    kernel.name = take();
    registers.clear();
    ranges.clear();
    labels.clear();
    jumps.clear();
    params.clear();
    constants.clear();
    locals.clear();
    shared = moduleShared;
    kernel.sharedBytes = moduleSharedBytes;
    if (accept("("))
      while (!accept(")") && at < tokens.size()) {
        int size = 0, align = 0, elements = 1;
        while (peek()[0] == '.') {
          std::string word = take();
          if (word == ".align") // of the parameter, or of what it points to
            align = std::atoi(take().c_str());
          else if (int bytes = typeBytes(word.substr(1)); bytes > 0)
            size = bytes;
        }
        std::string name = take();
        if (accept("[")) {
          elements = std::atoi(take().c_str());
          expect("]");
        } else {
          align = size;
        }
        kernel.paramBytes = (kernel.paramBytes + std::max(align, 1) - 1) / std::max(align, 1) * std::max(align, 1);
        params[name] = uint64_t(kernel.paramBytes);
        kernel.params.push_back({kernel.paramBytes, size * elements});
        kernel.paramBytes += size * elements;
        accept(",");
      }
    while (peek() != "{" && at < tokens.size())
      ++at; // .maxntid, .reqntid, .minnctapersm
    expect("{");
    for (int depth = 1; depth > 0 && at < tokens.size();) {
      if (accept("{"))
        ++depth;
      else if (accept("}"))
        --depth;
      else
        parseStatement();
    }
    for (auto &[index, label] : jumps) {
      auto found = labels.find(label);
      if (found == labels.end())
        return fail("no label '" + label + "'");
      kernel.code[size_t(index)].target = found->second;
    }
    Instruction last;
    last.flow = Flow::Return;
    kernel.code.push_back(last);
    kernel.numRegisters = next();
    module.kernels[kernel.name] = kernel;
  }

  int next() const { return int(registers.size()); }
  int numberOf(const std::string &name) { return registers.emplace(name, next()).first->second; }
  int constant(uint64_t value) {
    auto [found, isNew] = constants.emplace(value, 0);
    if (isNew) {
      found->second = numberOf("constant " + std::to_string(value));
      kernel.constants.push_back({found->second, value});
    }
    return found->second;
  }
  int special(size_t index) {
    int &number = kernel.specials[index];
    if (number < 0)
      number = numberOf("special " + std::to_string(index));
    return number;
  }

  /// A register, a special one, a number or a name of memory, as the number of a register.
  int operand() {
    bool isNegative = accept("-");
    std::string word = take();
    if (word[0] == '%') {
      static const char *const specials[] = {"%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x", "%laneid"};
      for (size_t i = 0; i < 5; ++i)
        if (word == specials[i])
          return special(i);
      if (word == "%tid.y" || word == "%tid.z" || word == "%ctaid.y" || word == "%ctaid.z")
        return constant(0);
      if (word == "%ntid.y" || word == "%ntid.z" || word == "%nctaid.y" || word == "%nctaid.z")
        return constant(1);
      if (!declared(word)) {
        fail("register '" + word + "' is not declared");
        return 0;
      }
      return numberOf(word);
    }
    if (word == "_")
      return numberOf("nothing");
    if (word.compare(0, 2, "0f") == 0 || word.compare(0, 2, "0F") == 0 || word.compare(0, 2, "0d") == 0 ||
        word.compare(0, 2, "0D") == 0)
      return constant(std::strtoull(word.c_str() + 2, nullptr, 16));
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      uint64_t value = std::strtoull(word.c_str(), nullptr, 0);
      return constant(isNegative ? uint64_t(-int64_t(value)) : value);
    }
    if (auto found = shared.find(word); found != shared.end())
      return constant(found->second);
    if (auto found = locals.find(word); found != locals.end())
      return constant(found->second);
    if (auto found = params.find(word); found != params.end())
      return constant(found->second);
    if (auto found = module.variables.find(word); found != module.variables.end())
      return constant(uint64_t(reinterpret_cast<uintptr_t>(found->second)));
    if (dynamicShared.count(word))
      return special(5);
    if (word == "true" || word == "false")
      return constant(word == "true");
    fail("'" + word + "' is not known");
    return 0;
  }
  bool declared(const std::string &name) const {
    if (ranges.count(name))
      return true;
    size_t digits = name.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1])))
      --digits;
    return digits < name.size() && ranges.count(name.substr(0, digits));
  }

  void parseRegisters() {
    ++at; // .reg
    while (peek()[0] == '.')
      ++at;
    do {
      ranges.insert(take());
      if (accept("<")) {
        ++at;
        expect(">");
      }
    } while (accept(","));
    expect(";");
  }

  void parseStatement() {
    if (peek() == ".reg")
      return parseRegisters();
    if (peek() == ".shared")
      return parseVariable(shared, kernel.sharedBytes);
    if (peek() == ".local") { // the stack
      while (peek()[0] == '.')
        take() == ".align" ? void(take()) : void();
      std::string name = take();
      expect("[");
      locals[name] = uint64_t(kernel.localBytes);
      kernel.localBytes += std::atoi(take().c_str());
      expect("]");
      return expect(";");
    }
    if (peek() == ".pragma" || peek() == ".loc" || peek() == ".branchtargets") {
      while (!accept(";") && at < tokens.size())
        ++at;
      return;
    }
    if (peek(1) == ":") {
      labels[take()] = int(kernel.code.size());
      ++at;
      return;
    }
    Instruction instruction;
    instruction.line = lines[at];
    if (accept("@")) {
      instruction.guardIsNegated = accept("!");
      instruction.guard = operand();
    }
    std::vector<std::string> opcode = splitDots(take());
    parseOperands(opcode, instruction);
    expect(";");
    if (error.empty())
      kernel.code.push_back(std::move(instruction));
  }

  void parseOperands(std::vector<std::string> opcode, Instruction &instruction) {
    const std::string name = opcode[0], type = opcode.back();
    auto has = [&](const char *part) {
      for (const std::string &one : opcode)
        if (one == part)
          return true;
      return false;
    };
    if (name == "bra") {
      instruction.flow = Flow::Branch;
      jumps.push_back({int(kernel.code.size()), take()});
      return;
    }
    if (name == "ret" || name == "exit" || name == "trap") {
      instruction.flow = name == "trap" ? Flow::Trap : Flow::Return;
      return;
    }
    if ((name == "bar" || name == "barrier") && (has("sync") || has("arrive")) && !has("warp")) {
      instruction.flow = Flow::Barrier;
      while (peek() != ";" && at < tokens.size())
        ++at; // one barrier, all threads
      return;
    }
    if (name == "bar" || name == "membar" || name == "fence" || name == "griddepcontrol") {
      instruction.handler = [](Frame &, const Instruction &) {};
      while (peek() != ";" && at < tokens.size())
        ++at;
      return;
    }
    if (name == "ld" || name == "st" || name == "ldu") {
      instruction.space = has("param")                    ? Space::Param
                          : has("shared")                 ? Space::Shared
                          : has("local")                  ? Space::Local
                          : has("global") || has("const") ? Space::Global
                                                          : Space::Generic;
      instruction.bytes = uint8_t(typeBytes(type));
    }
    if (name == "shfl") {
      instruction.flow = Flow::Shuffle;
      instruction.mode = has("bfly") ? 'b' : has("up") ? 'u' : has("down") ? 'd' : 'i';
    }
    if (peek() != ";")
      do {
        if (accept("{")) {
          do
            instruction.args.push_back(operand());
          while (accept(","));
          expect("}");
          if (name == "mov")
            opcode.insert(opcode.begin() + 1, instruction.args.size() == 2 && tokens[at] == "," ? "unpack" : "pack");
        } else if (accept("[")) {
          instruction.args.push_back(operand());
          if (accept("+")) {
            const bool isNegative = accept("-");
            instruction.offset = std::strtoll(take().c_str(), nullptr, 0) * (isNegative ? -1 : 1);
          }
          expect("]");
        } else {
          instruction.args.push_back(operand());
          if (accept("|"))
            instruction.args.push_back(operand());
          else if (name == "shfl" && instruction.args.size() == 1)
            instruction.args.push_back(numberOf("nothing"));
        }
      } while (accept(","));
    if (name == "shfl")
      return;
    if (!decode(opcode, instruction)) {
      std::string text;
      for (const std::string &part : opcode)
        text += (text.empty() ? "" : ".") + part;
      fail("the stand-in does not know '" + text + "'");
    }
  }

  Module &module;
  std::vector<std::string> tokens;
  std::vector<int> lines;
  size_t at = 0;
  std::string error;
  std::set<std::string> dynamicShared;
  std::map<std::string, uint64_t> moduleShared, shared, locals, params;
  int moduleSharedBytes = 0;
  Kernel kernel;
  std::map<std::string, int> registers, labels;
  std::set<std::string> ranges;
  std::map<uint64_t, int> constants;
  std::vector<std::pair<int, std::string>> jumps;
};

} // namespace

Module::~Module() {
  for (auto &[name, address] : variables)
    Memory::instance().free(uint64_t(reinterpret_cast<uintptr_t>(address)), true);
}

std::string parse(const std::string &text, Module &module) { return Parser(text, module).parse(); }

} // namespace standin::ptx
