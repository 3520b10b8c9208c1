// The loop on a decoder without a plan: its caches are the ids that were written, its logits a hash of those that a row sees. So a wrong
// position, a stale id or a row in another's place gives other logits.
#include "runtime/generate/Loop.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::generate;
using testing::ElementsAre;

namespace {

constexpr int64_t words = 50;

uint64_t mix(uint64_t state, uint64_t value) {
  state = (state ^ value) * 0x9E3779B97F4A7C15ull;
  return state ^ state >> 29;
}

/// Logits after a sequence of ids.
std::vector<float> logitsAfter(const std::vector<int64_t> &ids) {
  uint64_t state = 1;
  for (int64_t id : ids)
    state = mix(state, uint64_t(id) + 7);
  std::vector<float> logits;
  for (int64_t id = 0; id < words; ++id)
    logits.push_back(float(mix(state, uint64_t(id)) >> 40) / float(1 << 24));
  return logits;
}

class HashDecoder : public Decoder {
public:
  explicit HashDecoder(DecoderShape given) : given(given), caches(size_t(given.batch), std::vector<int64_t>(size_t(given.maxLength), -1)) {}

  DecoderShape shape() const override { return given; }
  Status prefill(const std::vector<int64_t> &ids, int64_t position, int64_t row, std::vector<float> &logits) override {
    EXPECT_EQ(int64_t(ids.size()), given.batch * given.chunk);
    EXPECT_EQ(position % given.chunk, 0);
    EXPECT_LT(row, given.chunk);
    for (int64_t at = 0; at < given.batch; ++at)
      std::copy_n(ids.begin() + at * given.chunk, given.chunk, caches[size_t(at)].begin() + position);
    ++prefills;
    return read(position + row, logits);
  }
  Status decode(const std::vector<int64_t> &ids, int64_t position, std::vector<float> &logits) override {
    EXPECT_EQ(int64_t(ids.size()), given.batch);
    EXPECT_LT(position, given.maxLength);
    for (int64_t at = 0; at < given.batch; ++at)
      caches[size_t(at)][size_t(position)] = ids[size_t(at)];
    ++decodes;
    return read(position, logits);
  }
  Status reorder(const std::vector<int64_t> &rows) override {
    std::vector<std::vector<int64_t>> next;
    for (int64_t row : rows)
      next.push_back(caches[size_t(row)]);
    caches = next;
    ++reorders;
    return Status::success();
  }

  int prefills = 0, decodes = 0, reorders = 0;

private:
  Status read(int64_t last, std::vector<float> &logits) const {
    logits.clear();
    for (const std::vector<int64_t> &cache : caches) {
      EXPECT_EQ(std::count(cache.begin(), cache.begin() + last + 1, -1), 0) << "a position was never written";
      const std::vector<float> own = logitsAfter({cache.begin(), cache.begin() + last + 1});
      logits.insert(logits.end(), own.begin(), own.end());
    }
    return Status::success();
  }

  const DecoderShape given;
  std::vector<std::vector<int64_t>> caches;
};

/// One row, always the largest logit.
class Largest : public Continuation {
public:
  explicit Largest(size_t count, int64_t endId = -1) : count(count), endId(endId) {}
  int64_t rows() const override { return 1; }
  Status choose(float *logits, int64_t vocabulary, std::vector<Choice> &next) override {
    next[0] = {0, std::max_element(logits, logits + vocabulary) - logits};
    answer.ids.push_back(next[0].id);
    if (next[0].id == endId)
      end(FinishReason::EndToken);
    else if (answer.ids.size() == count)
      end(FinishReason::Length);
    return Status::success();
  }
  bool isDone() const override { return done; }
  void end(FinishReason reason) override {
    answer.reason = reason;
    done = true;
  }
  std::vector<Answer> answers() const override { return {answer}; }

private:
  const size_t count;
  const int64_t endId;
  Answer answer;
  bool done = false;
};

/// Rows that change places in each step: row r continues row (r + 1) % n with the largest logit of that row but for r.
class Turning : public Continuation {
public:
  Turning(std::vector<int64_t> prompt, int64_t rowCount, size_t count) : count(count), sequences(size_t(rowCount), prompt) {}
  int64_t rows() const override { return int64_t(sequences.size()); }
  Status choose(float *logits, int64_t vocabulary, std::vector<Choice> &next) override {
    std::vector<std::vector<int64_t>> turned;
    for (int64_t row = 0; row < rows(); ++row) {
      const int64_t from = (row + 1) % rows();
      const std::vector<float> own(logits + from * vocabulary, logits + (from + 1) * vocabulary);
      EXPECT_EQ(own, logitsAfter(sequences[size_t(from)])) << "row " << from << " has caches of another sequence";
      next[size_t(row)] = {from, (std::max_element(own.begin(), own.end()) - own.begin() + row) % vocabulary};
      turned.push_back(sequences[size_t(from)]);
      turned.back().push_back(next[size_t(row)].id);
    }
    sequences = turned;
    done = ++steps == count;
    return Status::success();
  }
  bool isDone() const override { return done; }
  void end(FinishReason) override { done = true; }
  std::vector<Answer> answers() const override { return {}; }

private:
  const size_t count;
  std::vector<std::vector<int64_t>> sequences;
  size_t steps = 0;
  bool done = false;
};

std::vector<int64_t> promptOf(int64_t length, int64_t seed) {
  std::vector<int64_t> ids;
  for (int64_t at = 0; at < length; ++at)
    ids.push_back(int64_t(mix(uint64_t(seed), uint64_t(at)) % words));
  return ids;
}

/// The new ids without caches, batches or a loop.
std::vector<int64_t> alone(std::vector<int64_t> ids, size_t count) {
  const size_t begin = ids.size();
  while (ids.size() < begin + count) {
    const std::vector<float> logits = logitsAfter(ids);
    ids.push_back(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  return {ids.begin() + std::ptrdiff_t(begin), ids.end()};
}

Task largest(const std::vector<int64_t> &prompt, size_t count, int64_t endId = -1) { return {prompt, std::make_unique<Largest>(count, endId)}; }
Answer answerOf(const Task &task) { return task.continuation->answers().front(); }

} // namespace

// A prompt in a batch with others would get another answer than alone.
TEST(GenerateLoop, RowsOfABatchGetWhatEachGetsAlone) {
  const int64_t lengths[] = {5, 1, 9, 4, 4, 13, 8};
  for (int64_t chunk : {1, 3, 4})
    for (int64_t batch : {1, 2, 3, 8}) {
      HashDecoder decoder({batch, chunk, 24, words});
      std::vector<Task> tasks;
      for (int64_t length : lengths)
        tasks.push_back(largest(promptOf(length, length), size_t(3 + length % 4)));
      size_t done = 0;
      LoopHooks hooks;
      hooks.onDone = [&](size_t) { ++done; };
      ASSERT_TRUE(runLoop(decoder, tasks, hooks).ok());
      EXPECT_EQ(done, tasks.size());
      for (const Task &task : tasks) {
        EXPECT_EQ(answerOf(task).ids, alone(task.prompt, answerOf(task).ids.size())) << "batch " << batch << ", chunk " << chunk;
        EXPECT_EQ(answerOf(task).ids.size(), 3 + task.prompt.size() % 4);
      }
      EXPECT_EQ(decoder.reorders, 0);
    }
}

// The caches of beams would stay where they are, or rows of another prompt would move with them.
TEST(GenerateLoop, CachesFollowBeams) {
  for (int64_t chunk : {1, 4}) {
    HashDecoder decoder({6, chunk, 16, words});
    std::vector<Task> tasks;
    for (int64_t length : {6, 3, 5})
      tasks.push_back({promptOf(length, length), std::make_unique<Turning>(promptOf(length, length), length == 5 ? 3 : 2, 5)});
    ASSERT_TRUE(runLoop(decoder, tasks).ok());
    EXPECT_GT(decoder.reorders, 0);
  }
}

// Prompts would be computed in more steps than they need.
TEST(GenerateLoop, PrefillTakesWholeChunksOfTheShortestPrompt) {
  HashDecoder decoder({2, 4, 16, words});
  std::vector<Task> tasks;
  tasks.push_back(largest(promptOf(9, 1), 2));
  tasks.push_back(largest(promptOf(6, 2), 2));
  Expected<LoopTimes> times = runLoop(decoder, tasks);
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(decoder.prefills, 2);
  EXPECT_EQ(decoder.decodes, 4); // positions 6 to 9; the last new id is never computed
  EXPECT_EQ(times->prefilled, 12);
  EXPECT_EQ(times->decoded, 5); // the short one is done after position 6
}

// A batch would mix short and long prompts, or answers of equal length would change places.
TEST(GenerateLoop, BatchesHaveLikeLengths) {
  std::vector<Task> tasks;
  for (int64_t length : {7, 2, 7, 3, 2})
    tasks.push_back(largest(promptOf(length, 1), 1));
  EXPECT_THAT(batchesOf(tasks, 2), ElementsAre(ElementsAre(1, 4), ElementsAre(3, 0), ElementsAre(2)));
  tasks.push_back({promptOf(1, 1), std::make_unique<Turning>(promptOf(1, 1), 3, 1)});
  EXPECT_THAT(batchesOf(tasks, 4), ElementsAre(ElementsAre(5, 1), ElementsAre(4, 3, 0, 2)));
}

// An answer would go on after its end, or the others would end with it; ids would be told late, or of another answer.
TEST(GenerateLoop, AnswersEndEachByItself) {
  const std::vector<int64_t> prompt = promptOf(4, 3), expected = alone(prompt, 12);
  HashDecoder decoder({4, 2, 16, words});
  std::vector<Task> tasks;
  tasks.push_back(largest(prompt, 12, expected[2]));
  tasks.push_back(largest(prompt, 12));
  tasks.push_back(largest(prompt, 3));
  tasks.push_back(largest(prompt, 100));
  LoopHooks hooks;
  size_t seen = 0;
  hooks.onId = [&](size_t task, int64_t id) {
    if (task == 1)
      EXPECT_EQ(id, expected[seen++]);
  };
  ASSERT_TRUE(runLoop(decoder, tasks, hooks).ok());
  EXPECT_EQ(seen, 12u);
  const std::pair<size_t, FinishReason> wanted[] = {{3, FinishReason::EndToken}, {12, FinishReason::Length}, {3, FinishReason::Length}, {13, FinishReason::Length}};
  for (size_t task = 0; task < 4; ++task) {
    EXPECT_EQ(answerOf(tasks[task]).ids.size(), wanted[task].first); // the last: the caches are full
    EXPECT_EQ(answerOf(tasks[task]).reason, wanted[task].second);
  }
}

// A signal would lose what was there, or an answer that never began would be written.
TEST(GenerateLoop, InterruptedAnswersKeepWhatTheyHave) {
  HashDecoder decoder({1, 4, 32, words});
  std::vector<Task> tasks;
  tasks.push_back(largest(promptOf(3, 1), 20));
  tasks.push_back(largest(promptOf(6, 1), 20));
  LoopHooks hooks;
  int asked = 0;
  std::vector<size_t> done;
  hooks.isInterrupted = [&] { return ++asked == 5; };
  hooks.onDone = [&](size_t task) { done.push_back(task); };
  ASSERT_TRUE(runLoop(decoder, tasks, hooks).ok());
  EXPECT_EQ(answerOf(tasks[0]).ids, alone(tasks[0].prompt, 4));
  EXPECT_EQ(answerOf(tasks[0]).reason, FinishReason::Interrupted);
  EXPECT_FALSE(tasks[1].continuation->isDone());
  EXPECT_THAT(done, ElementsAre(0));
}
