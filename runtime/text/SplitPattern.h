// A regular expression that splits text into the pieces within which byte pairs are merged, by PCRE2's compiled matcher.
#pragma once

#include "runtime/base/Status.h"

#include <memory>
#include <string>
#include <string_view>

namespace hpc::text {

class SplitPattern {
public:
  /// `pattern` as tokenizer.json has it (Oniguruma's syntax). White space is Unicode's, as there and in Rust, which differs from
  /// PCRE2's by U+180E. Errors (Unsupported): a pattern that PCRE2 cannot compile.
  static Expected<SplitPattern> create(const std::string &pattern);
  SplitPattern(SplitPattern &&) noexcept;
  SplitPattern &operator=(SplitPattern &&) noexcept;
  ~SplitPattern();

  /// Calls visit(piece) for every match and for every non-empty text between matches, in order: the pieces joined are `text`.
  /// `text`: valid UTF-8. Error: the match takes more steps than PCRE2's limits allow.
  template <typename Visit> Status split(std::string_view text, const Visit &visit) const {
    size_t at = 0;
    while (at < text.size()) {
      size_t first = 0, last = 0;
      if (const int code = find(text, at, first, last); code < 0)
        return code == noMatch ? (visit(text.substr(at)), Status::success()) : failed(code);
      if (first > at)
        visit(text.substr(at, first - at));
      if (last > first)
        visit(text.substr(first, last - first));
      at = last;
    }
    return Status::success();
  }

private:
  static constexpr int noMatch = -1; // PCRE2_ERROR_NOMATCH
  struct Code;
  explicit SplitPattern(std::unique_ptr<Code> code);
  int find(std::string_view text, size_t at, size_t &first, size_t &last) const;
  Status failed(int code) const;

  std::unique_ptr<Code> code;
};

} // namespace hpc::text
