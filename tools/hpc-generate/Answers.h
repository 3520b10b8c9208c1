// The answers of a call on their way out: as text that appears while it comes, or as JSON lines. Answers come in the order of the prompts,
// so those of later prompts wait for the first.
#pragma once

#include "runtime/generate/Continuation.h"
#include "runtime/generate/TextStream.h"
#include "tools/hpc-generate/Prompts.h"

#include <optional>

namespace hpc {

struct AnswerOptions {
  const text::Tokenizer *tokenizer = nullptr; ///< null: ids in, ids out
  std::vector<std::string> stops;
  std::vector<int64_t> endTokens; ///< which are no text
  int64_t perPrompt = 1;
  bool asJson = false, hasScores = false;
  bool isPrinted = true; ///< on standard output, as they come
};

class Answers {
public:
  /// `prompts` outlive them. Answer a of prompt p is number p * perPrompt + a.
  Answers(const std::vector<GivenPrompt> &prompts, AnswerOptions options);

  /// A new id of an answer that comes id by id.
  Status add(size_t number, int64_t id);
  /// The whole answer, whose ids add() may have had.
  Status finish(size_t number, const generate::Answer &answer);
  /// After an interruption: prints those that were held back for others before them.
  void flush();

  /// All that are finished, as JSON lines.
  std::string lines() const;
  /// The errno with which standard output refused a text, after which nothing is printed; 0: none.
  int outputError() const { return refused; }
  /// Ids that name no token of the tokenizer.
  int64_t unknownIds() const { return unknown; }

private:
  struct Slot {
    std::optional<generate::TextStream> stream;
    std::string text;  ///< to be printed and not yet
    std::string line;  ///< JSON
    bool hasBegun = false, isFinished = false;
  };
  Slot &slotOf(size_t number);
  const GivenPrompt &promptOf(size_t number) const { return prompts[number / size_t(options.perPrompt)]; }
  void print();
  void write(std::string_view text);

  const std::vector<GivenPrompt> &prompts;
  const AnswerOptions options;
  std::vector<Slot> slots;
  size_t next = 0; ///< the answer that is being printed
  int refused = 0;
  int64_t unknown = 0;
};

} // namespace hpc
