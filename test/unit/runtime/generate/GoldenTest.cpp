// Hugging Face's logits processors, greedy and beam search on the models of HashModel.h (make_golden.py).
#include "runtime/generate/Continuations.h"
#include "runtime/generate/LogitsProcessors.h"
#include "test/unit/runtime/generate/HashModel.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace hpc;
using namespace hpc::generate;

namespace {

/// The cases of a file, a line each.
std::vector<std::string> goldenLines(const char *name) {
  std::ifstream file(std::string(HPC_SOURCE_DIR "/test/unit/runtime/generate/") + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

/// A count, and as many numbers.
std::vector<int64_t> readTokens(std::istream &in) {
  size_t count = 0;
  in >> count;
  std::vector<int64_t> tokens(count);
  for (int64_t &token : tokens)
    in >> token;
  return tokens;
}

/// FNV-1a of words of 32 bits.
uint64_t hashWords(const std::vector<float> &values) {
  uint64_t hash = 0xCBF29CE484222325;
  for (float value : values) {
    uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    hash = (hash ^ word) * 0x100000001B3;
  }
  return hash;
}

// Not one bit of the scores may differ from Hugging Face's.
TEST(GoldenTest, ProcessorsAreHuggingFaces) {
  const std::vector<std::string> lines = goldenLines("processors.txt");
  ASSERT_EQ(lines.size(), 1000u);
  for (const std::string &line : lines) {
    std::istringstream in(line);
    GenerationOptions options;
    options.strategy = Strategy::Sampling;
    int64_t number, vocabulary, length, ends, kept;
    double scale;
    uint64_t hash;
    in >> number >> vocabulary >> scale >> length >> options.repetitionPenalty >> options.minLength >> ends >> options.temperature >> options.topK >> options.topP >> kept >> hash;
    ASSERT_TRUE(in) << line;
    if (ends)
      options.eos = {0, 2, vocabulary - 1};
    std::vector<int64_t> sequence(length);
    for (int64_t position = 0; position < length; ++position)
      sequence[position] = int64_t(hash_model::mix(uint64_t(number), uint64_t(position)) % uint64_t(vocabulary));
    std::vector<float> scores = hash_model::logitsAfter({number}, vocabulary, scale);
    processLogits(options, sequence, length, scores.data(), vocabulary);
    EXPECT_EQ(std::count_if(scores.begin(), scores.end(), [](float score) { return std::isfinite(score); }), kept) << line;
    EXPECT_EQ(hashWords(scores), hash) << line;
  }
}

/// The answers after a prompt, on logits of HashModel.h with `bias` added to those of end tokens.
std::vector<Answer> answersOf(const GenerationOptions &options, const std::vector<int64_t> &prompt, int64_t vocabulary, double scale, float bias) {
  const std::unique_ptr<Continuation> continuation = std::move(makeContinuations(options, {0, prompt}, {}).front());
  std::vector<std::vector<int64_t>> rows(continuation->rows(), prompt);
  std::vector<Choice> next;
  while (!continuation->isDone()) {
    std::vector<float> logits;
    for (const std::vector<int64_t> &row : rows) {
      std::vector<float> own = hash_model::logitsAfter(row, vocabulary, scale);
      for (int64_t token : options.eos)
        own[token] += bias;
      logits.insert(logits.end(), own.begin(), own.end());
    }
    const Status status = continuation->choose(logits.data(), vocabulary, next);
    EXPECT_TRUE(status.ok()) << status.text();
    if (!status.ok())
      return {};
    std::vector<std::vector<int64_t>> continued;
    for (const Choice &choice : next) {
      continued.push_back(rows[choice.from]);
      continued.back().push_back(choice.id);
    }
    rows = continued;
  }
  return continuation->answers();
}

TEST(GoldenTest, SequencesAreHuggingFaces) {
  const std::vector<std::string> lines = goldenLines("sequences.txt");
  ASSERT_EQ(lines.size(), 552u);
  for (const std::string &line : lines) {
    SCOPED_TRACE(line);
    std::istringstream in(line);
    GenerationOptions options;
    int64_t vocabulary;
    double scale, bias;
    std::string early;
    in >> vocabulary >> scale >> bias;
    options.eos = readTokens(in);
    in >> options.beams >> options.lengthPenalty >> early >> options.returnSequences >> options.maxNewTokens >> options.minLength >> options.minNewTokens >> options.repetitionPenalty;
    options.strategy = options.beams ? Strategy::Beam : Strategy::Greedy;
    options.earlyStopping = early == "true" ? EarlyStopping::Yes : early == "never" ? EarlyStopping::Never : EarlyStopping::No;
    const std::vector<int64_t> prompt = readTokens(in);
    const std::vector<Answer> answers = answersOf(options, prompt, vocabulary, scale, float(bias));
    size_t count = 0;
    in >> count;
    ASSERT_EQ(answers.size(), count);
    for (const Answer &answer : answers) {
      double score;
      in >> score;
      EXPECT_EQ(answer.ids, readTokens(in));
      EXPECT_NEAR(answer.score, score, 4e-7 * (std::abs(score) + double(answer.ids.size())));
    }
    ASSERT_TRUE(in);
  }
}

} // namespace
