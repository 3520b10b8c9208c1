#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/text/SplitPattern.h"

#include <pcre2.h>

namespace hpc::text {

struct SplitPattern::Code {
  pcre2_code *code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

SplitPattern::SplitPattern(std::unique_ptr<Code> code) : code(std::move(code)) {}
SplitPattern::SplitPattern(SplitPattern &&) noexcept = default;
SplitPattern &SplitPattern::operator=(SplitPattern &&) noexcept = default;
SplitPattern::~SplitPattern() = default;

static std::string messageOf(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char *>(text);
}

/// \s and \S written out, within brackets and without.
static std::string withUnicodeSpaces(const std::string &pattern) {
  const std::string spaces = R"(\p{Z}\t-\r\x{85})";
  std::string text;
  bool isWithinClass = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's')
        text += isWithinClass ? spaces : "[" + spaces + "]";
      else if (next == 'S' && !isWithinClass)
        text += "[^" + spaces + "]";
      else
        text += std::string("\\") + next;
      continue;
    }
    isWithinClass = isWithinClass ? pattern[i] != ']' : pattern[i] == '[';
    text += pattern[i];
  }
  return text;
}

Expected<SplitPattern> SplitPattern::create(const std::string &pattern) {
  const std::string text = withUnicodeSpaces(pattern);
  int error = 0;
  PCRE2_SIZE place = 0;
  auto code = std::make_unique<Code>();
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF | PCRE2_UCP, &error, &place, nullptr);
  if (!code->code)
    return Status::error(ErrorKind::Unsupported, "the pattern '" + pattern + "' cannot be compiled: " + messageOf(error));
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE); // without it the interpreter matches
  return SplitPattern(std::move(code));
}

int SplitPattern::find(std::string_view text, size_t at, size_t &first, size_t &last) const {
  struct Match {
    pcre2_match_data *data = pcre2_match_data_create(1, nullptr);
    ~Match() { pcre2_match_data_free(data); }
  };
  thread_local Match match;
  const int found = pcre2_match(code->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, match.data, nullptr);
  if (found < 0)
    return found;
  const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(match.data);
  first = ends[0], last = ends[1];
  return 0;
}

Status SplitPattern::failed(int code) const {
  return Status::error(ErrorKind::Io, "a text cannot be split into words: " + messageOf(code) + "; shorten the document");
}

} // namespace hpc::text
