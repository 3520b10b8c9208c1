// Options, chance and ends of sequences, beside what GoldenTest.cpp compares with Hugging Face.
#include "runtime/generate/Continuations.h"
#include "runtime/generate/LogitsProcessors.h"
#include "runtime/generate/Loop.h"
#include "runtime/generate/StopTexts.h"
#include "runtime/generate/TokenChoice.h"
#include "test/unit/runtime/generate/HashModel.h"

#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

using namespace hpc;
using namespace hpc::generate;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr float minusInfinity = -std::numeric_limits<float>::infinity();

GenerationOptions sampling(uint64_t seed = 0) {
  GenerationOptions options;
  options.strategy = Strategy::Sampling;
  options.seed = seed;
  return options;
}

/// The first answer of each continuation on logits that never change, in every row.
std::vector<Answer> answersOn(const std::vector<float> &logits, const GenerationOptions &options, const Prompt &prompt, const StopTest &stops = {}) {
  std::vector<Answer> answers;
  for (const std::unique_ptr<Continuation> &continuation : makeContinuations(options, prompt, stops)) {
    std::vector<Choice> next;
    while (!continuation->isDone()) {
      std::vector<float> rows;
      for (int64_t row = 0; row < continuation->rows(); ++row)
        rows.insert(rows.end(), logits.begin(), logits.end());
      const Status status = continuation->choose(rows.data(), int64_t(logits.size()), next);
      EXPECT_TRUE(status.ok()) << status.text();
    }
    answers.push_back(continuation->answers().front());
  }
  return answers;
}

// Each value out of range is named, with what to do; an option that the strategy does not read is no silent mistake.
TEST(GenerationOptionsTest, ErrorsNameValueAndRemedy) {
  const std::pair<const char *, std::function<void(GenerationOptions &)>> cases[] = {
      {"--max-new-tokens=0: must be at least 1", [](auto &o) { o.maxNewTokens = 0; }},
      {"--min-length=-1: must be at least 0", [](auto &o) { o.minLength = -1; }},
      {"--min-new-tokens=-1: must be at least 0", [](auto &o) { o.minNewTokens = -1; }},
      {"--top-k=-1: must be at least 0", [](auto &o) { o.topK = -1; }},
      {"--beams=1: must be at least 2", [](auto &o) { o.beams = 1; }},
      {"--num-return-sequences=0: must be at least 1", [](auto &o) { o.returnSequences = 0; }},
      {"--repetition-penalty=0: must be above 0", [](auto &o) { o.repetitionPenalty = 0; }},
      {"--temperature=0: must be above 0; --strategy=greedy takes the most likely token", [](auto &o) { o.temperature = 0; }},
      {"--temperature=nan: must be above 0", [](auto &o) { o.temperature = std::nan(""); }},
      {"--temperature=1e-50: must be above 0", [](auto &o) { o.temperature = 1e-50; }},
      {"--top-p=0: must be above 0 and at most 1", [](auto &o) { o.topP = 0; }},
      {"--top-p=1.5: must be above 0 and at most 1", [](auto &o) { o.topP = 1.5; }},
      {"--length-penalty=inf: must be a finite number", [](auto &o) { o.lengthPenalty = INFINITY; }},
      {"--min-new-tokens=30: exceeds --max-new-tokens=20", [](auto &o) { o.minNewTokens = 30; }},
      {"--min-length: delays end tokens, and there are none", [](auto &o) { o.minLength = 3; }},
      {"--min-new-tokens: delays end tokens, and there are none", [](auto &o) { o.minNewTokens = 3; }},
      {"--min-length=2: --min-new-tokens=1 stands for it", [](auto &o) { o.minLength = 2, o.minNewTokens = 1, o.eos = {1}; }},
      {"--temperature: --strategy=greedy does not read it; choose --strategy=sampling", [](auto &o) { o.temperature = 0.5; }},
      {"--top-k: --strategy=beam does not read it", [](auto &o) { o.topK = 5, o.strategy = Strategy::Beam; }},
      {"--top-p: --strategy=greedy does not read it", [](auto &o) { o.topP = 0.5; }},
      {"--length-penalty: --strategy=sampling does not read it; choose --strategy=beam", [](auto &o) { o.lengthPenalty = 2, o.strategy = Strategy::Sampling; }},
      {"--early-stopping: --strategy=greedy does not read it", [](auto &o) { o.earlyStopping = EarlyStopping::Never; }},
      {"--num-return-sequences=2: --strategy=greedy has one answer", [](auto &o) { o.returnSequences = 2; }},
      {"--num-return-sequences=5: a search with --beams=4 has at most as many", [](auto &o) { o.returnSequences = 5, o.strategy = Strategy::Beam; }},
      {"end token 10: the model's vocabulary is 0 to 9", [](auto &o) { o.eos = {10}; }},
      {"end token 3: is named twice", [](auto &o) { o.eos = {3, 3}; }},
      {"--strategy=beam: a vocabulary of 10 tokens, 10 of which end a sequence", [](auto &o) { o.eos = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, o.strategy = Strategy::Beam; }},
  };
  for (const auto &[message, change] : cases) {
    GenerationOptions options;
    change(options);
    const Status status = options.check(10);
    ASSERT_FALSE(status.ok()) << message;
    EXPECT_THAT(status.text(), HasSubstr(std::string("error[usage]: ") + message));
  }
  for (Strategy strategy : {Strategy::Greedy, Strategy::Sampling, Strategy::Beam}) {
    GenerationOptions options;
    options.strategy = *parseStrategy(name(strategy));
    EXPECT_EQ(options.strategy, strategy);
    EXPECT_TRUE(options.check(10).ok());
  }
  EXPECT_FALSE(parseStrategy("beams"));
  EXPECT_EQ(parseEarlyStopping("never"), EarlyStopping::Never);
}

// Of equal logits the first is taken, wherever the loops over a vocabulary put it.
TEST(TokenChoiceTest, TakesTheFirstOfTheLargest) {
  for (int64_t vocabulary : {1, 2, 15, 16, 17, 50})
    for (int64_t place = 0; place < vocabulary; ++place) {
      std::vector<float> logits(vocabulary, -3);
      std::fill(logits.begin() + place, logits.end(), -1.5f);
      EXPECT_EQ(largestToken(logits.data(), vocabulary), place);
    }
}

TEST(TokenChoiceTest, NamesLogitsThatAreNotFinite) {
  std::vector<float> logits(20, 1);
  EXPECT_TRUE(checkLogits(logits.data(), 20).ok());
  logits[3] = minusInfinity;
  EXPECT_TRUE(checkLogits(logits.data(), 20).ok());
  logits[17] = NAN;
  EXPECT_THAT(checkLogits(logits.data(), 20).text(), HasSubstr("the logit of token 17 is nan"));
  logits[17] = INFINITY;
  EXPECT_THAT(checkLogits(logits.data(), 20).text(), HasSubstr("the logit of token 17 is inf"));
  logits.assign(20, minusInfinity);
  EXPECT_THAT(checkLogits(logits.data(), 20).text(), HasSubstr("all tokens are -inf"));
}

// A token's share of the unit interval is its probability, also at the ends of the interval.
TEST(TokenChoiceTest, DrawsByTheSumOfProbabilities) {
  const std::vector<float> scores = {minusInfinity, std::log(1.f), std::log(2.f), minusInfinity, std::log(1.f), minusInfinity};
  const std::pair<double, int64_t> draws[] = {{0, 1}, {0.2499, 1}, {0.2501, 2}, {0.7499, 2}, {0.7501, 4}, {1 - 0x1p-53, 4}};
  for (const auto &[uniform, token] : draws)
    EXPECT_EQ(drawnToken(scores.data(), int64_t(scores.size()), uniform), token) << uniform;
}

// Sums that equal 1 - p rule out, and of equal scores the last stays; the same with what top-k has ruled out already.
TEST(LogitsProcessorsTest, TopPAtItsBorder) {
  std::vector<float> scores(4, 3);
  keepTopP(0.5, scores.data(), 4);
  EXPECT_THAT(scores, ElementsAre(minusInfinity, minusInfinity, 3, 3));
  scores = {minusInfinity, 3, 3, minusInfinity, 3, 3};
  keepTopP(0.25, scores.data(), 6);
  EXPECT_THAT(scores, ElementsAre(minusInfinity, minusInfinity, minusInfinity, minusInfinity, minusInfinity, 3));
}

/// Chi-square of counts against shares that sum to 1.
double chiSquare(const std::vector<int64_t> &counts, const std::vector<double> &shares) {
  int64_t total = 0;
  for (int64_t count : counts)
    total += count;
  double result = 0;
  for (size_t i = 0; i < counts.size(); ++i)
    result += shares[i] == 0 ? (counts[i] == 0 ? 0 : INFINITY) : std::pow(double(counts[i]) - double(total) * shares[i], 2) / (double(total) * shares[i]);
  return result;
}

// Over positions of one sequence, over sequences, and over seeds, tokens are as frequent as the filtered probabilities say; what
// follows a token does not depend on it.
TEST(SamplingTest, FrequenciesAreTheProbabilities) {
  const std::vector<float> logits = {0.5f, -1, 2, 1.5f, -3, 0, 1, -0.5f};
  GenerationOptions options = sampling();
  options.temperature = 0.8;
  options.topK = 5;
  options.topP = 0.95;
  // By hand: top-k keeps 2, 3, 6, 0, 5, whose probabilities are then 0.4861, 0.2602, 0.1393, 0.0745, 0.0399. The first four sum to 0.9601,
  // three to 0.8856: top-p keeps four. Chi-square with 3 degrees of freedom exceeds 21.1 once in 10,000.
  std::vector<double> shares(8);
  double sum = 0;
  for (size_t token : {2, 3, 6, 0})
    sum += shares[token] = std::exp(logits[token] / 0.8);
  for (double &share : shares)
    share /= sum;

  constexpr int64_t draws = 10000;
  std::vector<int64_t> byPosition(8), bySequence(8), bySeed(8);
  options.maxNewTokens = draws;
  const std::vector<int64_t> ids = answersOn(logits, options, {0, {1}}).front().ids;
  std::vector<std::vector<int64_t>> pairs(8, std::vector<int64_t>(8));
  for (size_t i = 0; i < ids.size(); ++i) {
    ++byPosition[ids[i]];
    if (i > 0)
      ++pairs[ids[i - 1]][ids[i]];
  }
  options.maxNewTokens = 1;
  for (int64_t draw = 0; draw < draws; ++draw) {
    ++bySequence[answersOn(logits, options, {draw, {1}}).front().ids.front()];
    options.seed = uint64_t(draw) << 20;
    ++bySeed[answersOn(logits, options, {0, {1}}).front().ids.front()];
    options.seed = 0;
  }
  EXPECT_LT(chiSquare(byPosition, shares), 21.1);
  EXPECT_LT(chiSquare(bySequence, shares), 21.1);
  EXPECT_LT(chiSquare(bySeed, shares), 21.1);
  for (size_t token : {2, 3, 6, 0})
    EXPECT_LT(chiSquare(pairs[token], shares), 21.1) << "after token " << token;
}

// What is drawn depends on the seed, the sequence's number in the run and its position alone.
TEST(SamplingTest, SeedSequenceAndPositionDecide) {
  const std::vector<float> logits(100, 0);
  GenerationOptions options = sampling(7);
  options.returnSequences = 3;
  const std::vector<Answer> answers = answersOn(logits, options, {4, {1, 2}});
  ASSERT_EQ(answers.size(), 3u);
  options.returnSequences = 1;
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(answersOn(logits, options, {12 + i, {1, 2}}).front().ids, answers[i].ids);
  EXPECT_NE(answers[0].ids, answers[1].ids);
  EXPECT_NE(answersOn(logits, sampling(8), {12, {1, 2}}).front().ids, answers[0].ids);
  // A prompt that is one token longer begins at the next position.
  std::vector<int64_t> later = answersOn(logits, options, {12, {1, 2, 3}}).front().ids;
  later.pop_back();
  EXPECT_TRUE(std::equal(later.begin(), later.end(), answers[0].ids.begin() + 1));
  // Numbers that must not change from release to release, so that a seed keeps its text.
  EXPECT_THAT(std::vector<int64_t>(answers[0].ids.begin(), answers[0].ids.begin() + 6), ElementsAre(86, 34, 44, 18, 34, 72));
}

// Why a sequence ends, and that an end token comes before a text, and a text before the length.
TEST(ContinuationsTest, EndsForItsReason) {
  const std::vector<float> logits = {0, 1, 3, 2};
  GenerationOptions options;
  options.maxNewTokens = 3;
  Answer answer = answersOn(logits, options, {0, {1}}).front();
  EXPECT_THAT(answer.ids, ElementsAre(2, 2, 2));
  EXPECT_EQ(answer.reason, FinishReason::Length);
  answer = answersOn(logits, options, {0, {1}}, [](const std::vector<int64_t> &tokens) { return tokens.size() == 3; }).front();
  EXPECT_EQ(answer.reason, FinishReason::StopText);
  options.eos = {0, 2};
  answer = answersOn(logits, options, {0, {1}}, [](const std::vector<int64_t> &) { return true; }).front();
  EXPECT_THAT(answer.ids, ElementsAre(2));
  EXPECT_EQ(answer.reason, FinishReason::EndToken);
  options.minNewTokens = 2;
  EXPECT_THAT(answersOn(logits, options, {0, {1}}).front().ids, ElementsAre(3, 3, 2));
  options.minNewTokens = 0, options.minLength = 2;
  EXPECT_THAT(answersOn(logits, options, {0, {1}}).front().ids, ElementsAre(3, 2));

  const std::unique_ptr<Continuation> one = std::move(makeContinuations(options, {0, {1}}, {}).front());
  std::vector<float> ends = {1, minusInfinity, 1, minusInfinity};
  std::vector<Choice> next;
  EXPECT_THAT(one->choose(ends.data(), 4, next).text(), HasSubstr("only end tokens have logits above -inf"));
}

// Of equal scores the first beam's first tokens come first, so that a result does not depend on how a heap is ordered.
TEST(BeamSearchTest, TakesTheFirstOfEqualScores) {
  GenerationOptions options;
  options.strategy = Strategy::Beam;
  options.beams = 3;
  const std::unique_ptr<Continuation> search = std::move(makeContinuations(options, {0, {1}}, {}).front());
  for (int step = 0; step < 2; ++step) {
    std::vector<float> rows(3 * 9, 1);
    std::vector<Choice> next;
    ASSERT_TRUE(search->choose(rows.data(), 9, next).ok());
    for (int64_t beam = 0; beam < 3; ++beam) {
      EXPECT_EQ(next[beam].from, 0);
      EXPECT_EQ(next[beam].id, beam);
    }
  }
}

// A beam that holds a stop text ends as one with an end token does; interrupted, the running beams are the answers.
TEST(BeamSearchTest, StopsAndInterruptions) {
  const std::vector<float> logits = {0, 1, 3, 2.5f};
  GenerationOptions options;
  options.strategy = Strategy::Beam;
  options.beams = 2;
  options.returnSequences = 2;
  options.lengthPenalty = 0;
  const auto stops = [](const std::vector<int64_t> &tokens) { return tokens == std::vector<int64_t>{2, 3} || tokens == std::vector<int64_t>{3}; };
  std::unique_ptr<Continuation> search = std::move(makeContinuations(options, {0, {1}}, stops).front());
  const auto step = [&] {
    std::vector<float> rows = logits;
    rows.insert(rows.end(), logits.begin(), logits.end());
    std::vector<Choice> next;
    EXPECT_TRUE(search->choose(rows.data(), 4, next).ok());
    return next;
  };
  std::vector<Choice> next = step(); // 2 runs on, 3 ends, and 1 takes its place
  EXPECT_EQ(next[0].id, 2);
  EXPECT_EQ(next[1].id, 1);
  EXPECT_EQ(next[1].from, 0);
  search->end(FinishReason::Interrupted);
  ASSERT_TRUE(search->isDone());
  std::vector<Answer> answers = search->answers();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_THAT(answers[0].ids, ElementsAre(2));
  EXPECT_EQ(answers[0].reason, FinishReason::Interrupted);
  EXPECT_THAT(answers[1].ids, ElementsAre(3));
  EXPECT_EQ(answers[1].reason, FinishReason::StopText);

  search = std::move(makeContinuations(options, {0, {1}}, stops).front());
  while (!search->isDone())
    step();
  answers = search->answers();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_THAT(answers[0].ids, ElementsAre(3));
  EXPECT_THAT(answers[1].ids, ElementsAre(2, 3));

  search = std::move(makeContinuations(options, {0, {1}}, stops).front());
  search->end(FinishReason::Interrupted);
  EXPECT_EQ(search->answers().size(), 1u) << "the prompt alone, once";
}

// Texts are found across tokens, inside one, and not twice; tokens without bytes hide nothing.
TEST(StopTextsTest, SearchesBytesNotTokens) {
  const std::vector<std::string> pieces = {"", "a", "STO", "P", "xSTOPy", "\xC3", "\xA9", "ST"};
  const auto decode = [&](const std::vector<int64_t> &tokens) {
    std::string text;
    for (int64_t token : tokens)
      text += pieces[token];
    return text;
  };
  const StopTexts stops({"STOP", "\xC3\xA9"}, decode);
  EXPECT_TRUE(stops.endWith({1, 2, 3}));
  EXPECT_TRUE(stops.endWith({2, 0, 0, 0, 0, 0, 3}));
  EXPECT_TRUE(stops.endWith({4}));
  EXPECT_TRUE(stops.endWith({5, 6}));
  EXPECT_TRUE(stops.endWith({7, 2, 3}));
  EXPECT_FALSE(stops.endWith({}));
  EXPECT_FALSE(stops.endWith({1, 2}));
  EXPECT_FALSE(stops.endWith({2, 3, 1}));
  EXPECT_FALSE(stops.endWith({2, 3, 0}));
  EXPECT_FALSE(stops.endWith({3}));
  EXPECT_FALSE(StopTexts({}, decode).endWith({4}));
  EXPECT_EQ(stops.cut("aSTOPy"), "a");
  EXPECT_EQ(stops.cut("a\xC3\xA9STOP"), "a");
  EXPECT_EQ(stops.cut("aSTO"), "aSTO");
}

/// The model of HashModel.h: a row's cache is its ids.
class CachedHashModel : public Decoder {
public:
  explicit CachedHashModel(int64_t batch) : given{batch, 2, 64, 40}, caches(batch, std::vector<int64_t>(64)) {}
  DecoderShape shape() const override { return given; }
  Status prefill(const std::vector<int64_t> &ids, int64_t position, int64_t row, std::vector<float> &logits) override {
    for (int64_t at = 0; at < given.batch; ++at)
      std::copy_n(ids.begin() + at * given.chunk, given.chunk, caches[at].begin() + position);
    return read(position + row, logits);
  }
  Status decode(const std::vector<int64_t> &ids, int64_t position, std::vector<float> &logits) override {
    for (int64_t at = 0; at < given.batch; ++at)
      caches[at][position] = ids[at];
    return read(position, logits);
  }
  Status reorder(const std::vector<int64_t> &rows) override {
    const std::vector<std::vector<int64_t>> before = caches;
    for (int64_t at = 0; at < given.batch; ++at)
      caches[at] = before[rows[at]];
    return Status::success();
  }

private:
  Status read(int64_t last, std::vector<float> &logits) const {
    logits.clear();
    for (const std::vector<int64_t> &cache : caches) {
      const std::vector<float> own = hash_model::logitsAfter({cache.begin(), cache.begin() + last + 1}, given.vocabulary, 0x1p-14);
      logits.insert(logits.end(), own.begin(), own.end());
    }
    return Status::success();
  }

  const DecoderShape given;
  std::vector<std::vector<int64_t>> caches;
};

// A prompt gets the same answers alone and in any batch, among others of unlike length: by seed, and as the beams of the caches say.
TEST(ContinuationsTest, BatchesChangeNoAnswer) {
  GenerationOptions beam, drawn = sampling(3);
  beam.strategy = Strategy::Beam;
  beam.beams = beam.returnSequences = 3;
  beam.eos = drawn.eos = {5, 9};
  drawn.topK = 8;
  drawn.returnSequences = 2;
  const auto tasksOf = [&](const std::vector<int64_t> &numbers) {
    std::vector<Task> tasks;
    for (int64_t number : numbers) {
      std::vector<int64_t> prompt;
      for (int64_t position = 0; position < 1 + number * 5 % 7; ++position)
        prompt.push_back((number * 3 + position * position) % 40);
      for (std::unique_ptr<Continuation> &continuation : makeContinuations(number % 2 ? beam : drawn, {number, prompt}, {}))
        tasks.push_back({prompt, std::move(continuation)});
    }
    return tasks;
  };
  const auto run = [&](int64_t batch, std::vector<Task> tasks) {
    CachedHashModel decoder(batch);
    const Expected<LoopTimes> times = runLoop(decoder, tasks);
    EXPECT_TRUE(times.ok()) << times.status().text();
    std::vector<std::vector<int64_t>> ids;
    for (const Task &task : tasks)
      for (const Answer &answer : task.continuation->answers())
        ids.push_back(answer.ids);
    return ids;
  };
  std::vector<std::vector<int64_t>> alone;
  for (int64_t number = 0; number < 6; ++number)
    for (const std::vector<int64_t> &ids : run(3, tasksOf({number})))
      alone.push_back(ids);
  ASSERT_EQ(alone.size(), 15u);
  for (int64_t batch : {3, 5, 8, 20})
    EXPECT_EQ(run(batch, tasksOf({0, 1, 2, 3, 4, 5})), alone) << batch;
}

} // namespace
