// Works on the plan, where what reads and writes a buffer is one list. Each all-reduce that may move is found with the
// places between which it may stand; those places decide which go together.
#include "passes/Schedule/Rewrites.h"

#include "runtime/base/CountText.h"
#include "runtime/base/IntegerMath.h"
#include "runtime/plan/Access.h"
#include "runtime/plan/Schedule.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace hpc {

using plan::BufferAccess, plan::Collective, plan::Instruction, plan::Lifetime, plan::Program, plan::Stage;

namespace {

constexpr int64_t termAlignment = 64;

struct Position {
  size_t program = 0;
  size_t instruction = 0; ///< the first that comes behind
};

struct Term {
  size_t instruction = 0; ///< the all-reduce, in the update
  int32_t source = -1, target = -1;
  int64_t bytes = 0;
  Position post;               ///< behind the last write of the source
  plan::Part part = plan::Part::Forward; ///< of that write: sums of the loss are there, and needed, before gradients
  size_t deadline = 0;         ///< the first instruction of the update that needs the sum to be done
  std::vector<size_t> followers; ///< before the deadline: what serves outputs on request with the sum
};

struct Bucket {
  std::vector<const Term *> terms; ///< by `post`
  int64_t bytes = 0;
  size_t deadline = 0;
  std::vector<size_t> followers; ///< that come behind its wait
  const Position &post() const { return terms.back()->post; }
};

/// The uses of one buffer by a stage.
struct Use {
  size_t program, instruction;
  bool reads = false, writes = false;
};

class Buckets {
public:
  Buckets(plan::Plan &plan, Stage &stage, int64_t index, std::vector<NotedValue> &values, int64_t limit)
      : plan(plan), stage(stage), index(index), values(values), limit(limit) {}

  void run() {
    if (!findUpdate())
      return;
    listUses();
    std::vector<Term> terms = findTerms();
    std::vector<Bucket> buckets = join(terms);
    buckets.erase(std::remove_if(buckets.begin(), buckets.end(), [&](const Bucket &bucket) { return !gains(bucket); }), buckets.end());
    if (buckets.empty())
      return;
    giveFollowers(buckets);
    for (const Bucket &bucket : buckets)
      add(bucket);
    rewrite();
    renumberBuffers();
  }

private:
  bool findUpdate();
  void listUses();
  std::vector<Term> findTerms() const;
  std::optional<Term> termOf(size_t instruction) const;
  std::optional<Position> writtenBy(const std::vector<Use> &writers) const;
  void findDeadline(Term &term) const;
  std::vector<Bucket> join(const std::vector<Term> &terms) const;
  bool gains(const Bucket &bucket) const;
  static void giveFollowers(std::vector<Bucket> &buckets);
  void add(const Bucket &bucket);
  void rewrite();
  void renumberBuffers();

  const std::vector<BufferAccess> &accesses(size_t program, size_t instruction) const {
    return accessesAt[program][instruction];
  }
  const Collective &collectiveOf(const Term &term) const {
    return std::get<Collective>(stage.programs[update].instructions[term.instruction].action);
  }

  plan::Plan &plan;
  Stage &stage;
  const int64_t index;
  std::vector<NotedValue> &values;
  const int64_t limit;

  size_t update = 0;                                    ///< the program
  std::vector<std::vector<std::vector<BufferAccess>>> accessesAt; ///< by program and instruction, of bytes at all
  std::vector<std::vector<Use>> usesOf;                 ///< by buffer, in the order of programs and instructions

  // What is to be done.
  struct Inserted {
    Instruction instruction;
    std::vector<size_t> followers; ///< of the same program, which come behind it
  };
  std::map<std::pair<size_t, size_t>, std::vector<Inserted>> insertions; ///< by program and the instruction that follows
  std::set<size_t> moved;                                                ///< instructions of the update
  std::map<int32_t, plan::Ref> places;                                   ///< of buffers that are part of another now
  std::map<int32_t, int32_t> joinedIds; ///< by the id of an all-reduce, that of the wait that completes it now
};

/// The program that computes once a step; of a step without micro-batches it may be the only one.
bool Buckets::findUpdate() {
  for (size_t p = 0; p < stage.programs.size(); ++p)
    if (plan::isPerStep(stage.programs[p].kind)) {
      update = p;
      return true;
    }
  update = 0;
  return stage.programs.size() == 1 && plan.microBatches == 1;
}

void Buckets::listUses() {
  usesOf.resize(stage.buffers.size());
  for (size_t p = 0; p < stage.programs.size(); ++p) {
    accessesAt.emplace_back();
    for (size_t i = 0; i < stage.programs[p].instructions.size(); ++i) {
      std::vector<BufferAccess> list = plan::accessesOf(plan, stage.programs[p].instructions[i]);
      list.erase(std::remove_if(list.begin(), list.end(), [](const BufferAccess &access) { return access.bytes == 0; }), list.end());
      for (const BufferAccess &access : list) {
        std::vector<Use> &uses = usesOf[size_t(access.ref.buffer)];
        if (uses.empty() || uses.back().program != p || uses.back().instruction != i)
          uses.push_back({p, i});
        (access.write ? uses.back().writes : uses.back().reads) = true;
      }
      accessesAt.back().push_back(std::move(list));
    }
  }
}

std::vector<Term> Buckets::findTerms() const {
  std::vector<Term> terms;
  for (size_t i = 0; i < stage.programs[update].instructions.size(); ++i)
    if (std::optional<Term> term = termOf(i))
      terms.push_back(std::move(*term));
  std::sort(terms.begin(), terms.end(), [&](const Term &a, const Term &b) {
    auto key = [&](const Term &term) {
      return std::tuple(term.post.program == update, term.post.program, term.post.instruction, term.instruction);
    };
    return key(a) < key(b);
  });
  return terms;
}

/// Behind the last of a sum's writers, all of one program; of several programs, at the start of the update. A program
/// must come to the last micro-batch last.
std::optional<Position> Buckets::writtenBy(const std::vector<Use> &writers) const {
  if (writers.empty())
    return std::nullopt;
  Position last{writers.back().program, writers.back().instruction + 1};
  bool isOne = std::all_of(writers.begin(), writers.end(), [&](const Use &use) { return use.program == last.program; });
  if (last.program == update)
    return isOne ? last : std::optional<Position>(); // an update writes what others have added up
  auto lastRun = std::find_if(stage.schedule.rbegin(), stage.schedule.rend(),
                              [&](const plan::ScheduleStep &step) { return size_t(step.program) == last.program; });
  isOne &= lastRun == stage.schedule.rend() || lastRun->microBatch == plan.microBatches - 1;
  return isOne ? last : Position{update, 0};
}

std::optional<Term> Buckets::termOf(size_t instruction) const {
  const Instruction &at = stage.programs[update].instructions[instruction];
  const auto *collective = std::get_if<Collective>(&at.action);
  if (!collective || collective->kind != plan::CollectiveKind::AllReduce || collective->request >= 0 ||
      !plan::isEverywhere(at.when, 1))
    return std::nullopt;
  Term term{instruction, collective->src.buffer, collective->dst.buffer,
            collective->count * byteSize(collective->dtype), {}, plan::Part::Forward, 0, {}};
  const plan::Buffer &source = stage.buffers[size_t(term.source)], &target = stage.buffers[size_t(term.target)];
  auto isWhole = [&](const plan::Buffer &buffer, const plan::Ref &ref) {
    return buffer.bytes == term.bytes && ref.byteOffset == 0 && buffer.slots == 1 && buffer.space == plan::Space::Device;
  };
  const bool isInPlace = term.source == term.target;
  if (term.bytes == 0 || !isWhole(source, collective->src) || !isWhole(target, collective->dst) ||
      source.lifetime == Lifetime::Session || target.lifetime != Lifetime::Program)
    return std::nullopt;
  // The source: written before, read by whoever writes it alone. The target: the update's own, and only from here on.
  std::vector<Use> writers;
  for (const Use &use : usesOf[size_t(term.source)]) {
    bool isBefore = use.program != update || use.instruction < instruction;
    if (use.program == update && (use.instruction == instruction || (isInPlace && !isBefore)))
      continue;
    bool isMoved = std::holds_alternative<Collective>(stage.programs[use.program].instructions[use.instruction].action);
    if (!isBefore || !use.writes || isMoved) // a sum of sums: the first may move
      return std::nullopt;
    writers.push_back(use);
  }
  for (const Use &use : usesOf[size_t(term.target)])
    if (!isInPlace && (use.program != update || use.instruction < instruction))
      return std::nullopt;
  std::optional<Position> post = writtenBy(writers);
  if (!post)
    return std::nullopt;
  term.post = *post;
  term.part = stage.programs[writers.back().program].instructions[writers.back().instruction].part;
  findDeadline(term);
  // In the program of a whole step much else is summed over ranks, and needed at once.
  const std::vector<Instruction> &instructions = stage.programs[update].instructions;
  if (!plan::isPerStep(stage.programs[update].kind) && term.deadline < instructions.size() &&
      instructions[term.deadline].part != plan::Part::Update)
    return std::nullopt;
  return term;
}

/// Instructions for outputs on request may follow the sum to wherever it is done, up to what writes over its operands.
void Buckets::findDeadline(Term &term) const {
  const std::vector<Instruction> &instructions = stage.programs[update].instructions;
  std::vector<int32_t> sums{term.target}; // and what followers make of it
  std::set<size_t> followers;
  term.deadline = instructions.size();
  for (size_t next = 0; next < sums.size(); ++next)
    for (const Use &use : usesOf[size_t(sums[next])]) {
      if (use.program != update || use.instruction <= term.instruction || followers.count(use.instruction))
        continue;
      if (!instructions[use.instruction].onRequest) {
        term.deadline = std::min(term.deadline, use.instruction);
        continue;
      }
      followers.insert(use.instruction);
      for (const BufferAccess &access : accesses(update, use.instruction))
        if (access.write && std::find(sums.begin(), sums.end(), access.ref.buffer) == sums.end())
          sums.push_back(access.ref.buffer);
    }
  for (size_t follower : followers)
    for (const BufferAccess &access : accesses(update, follower))
      for (const Use &use : usesOf[size_t(access.ref.buffer)])
        if (use.writes && use.program == update && use.instruction > follower && !followers.count(use.instruction))
          term.deadline = std::min(term.deadline, use.instruction);
  for (size_t follower : followers)
    if (follower < term.deadline)
      term.followers.push_back(follower);
}

std::vector<Bucket> Buckets::join(const std::vector<Term> &terms) const {
  using Key = std::tuple<size_t, plan::Part, std::vector<std::string>, ReduceKind, DType, Lifetime>;
  std::vector<Bucket> buckets;
  std::map<Key, size_t> open;
  for (const Term &term : terms) {
    const Collective &collective = collectiveOf(term);
    Key key{term.post.program, term.part, collective.axes, collective.reduce, collective.dtype,
            stage.buffers[size_t(term.source)].lifetime};
    auto found = open.find(key);
    Bucket *bucket = found == open.end() ? nullptr : &buckets[found->second];
    bool isInTime = bucket && (term.post.program != update || term.post.instruction <= bucket->deadline);
    if (!isInTime || roundUp(bucket->bytes, termAlignment) + term.bytes > limit) {
      if (!isInTime || term.bytes <= limit) // one that fills more than a bucket leaves the open one as it is
        open[key] = buckets.size();
      bucket = &buckets.emplace_back();
      bucket->deadline = term.deadline;
    }
    bucket->terms.push_back(&term);
    bucket->bytes = roundUp(bucket->bytes, termAlignment) + term.bytes;
    bucket->deadline = std::min(bucket->deadline, term.deadline);
  }
  return buckets;
}

/// One that stays alone gains where something is computed while it runs.
bool Buckets::gains(const Bucket &bucket) const {
  if (bucket.terms.size() > 1 || bucket.post().program != update)
    return true;
  const std::vector<Instruction> &instructions = stage.programs[update].instructions;
  for (size_t i = bucket.post().instruction; i < bucket.deadline; ++i)
    if (const Instruction &one = instructions[i];
        !one.onRequest && !std::holds_alternative<Collective>(one.action) && !accesses(update, i).empty())
      return true;
  return false;
}

/// One that reads several sums comes behind the last wait; one that stands behind a wait already may stay.
void Buckets::giveFollowers(std::vector<Bucket> &buckets) {
  std::map<size_t, Bucket *> last; // by follower
  for (Bucket &bucket : buckets)
    for (const Term *term : bucket.terms)
      for (size_t follower : term->followers)
        if (Bucket *&other = last[follower];
            follower < bucket.deadline && (!other || other->deadline <= bucket.deadline))
          other = &bucket;
  for (auto &[follower, bucket] : last)
    if (bucket)
      bucket->followers.push_back(follower);
}

/// The distinct texts of the terms' reasons, in their order.
std::string distinct(const std::vector<const plan::Reason *> &reasons, std::string plan::Reason::*field) {
  std::vector<std::string> seen;
  std::string text;
  for (const plan::Reason *reason : reasons) {
    const std::string &one = reason->*field;
    if (one.empty() || std::find(seen.begin(), seen.end(), one) != seen.end())
      continue;
    seen.push_back(one);
    text += (text.empty() ? "" : "; ") + one;
  }
  return text;
}

plan::Reason joinedReason(const std::vector<const plan::Reason *> &reasons) {
  if (reasons.size() == 1)
    return *reasons.front();
  auto place = [](const plan::Reason &reason) { return reason.path.empty() ? reason.node : reason.path; };
  std::string first = place(*reasons.front()), last = place(*reasons.back());
  return {reasons.front()->node,
          first + (first == last ? "" : " to " + last) + ", " + countText(int64_t(reasons.size()), "sum") + " in one",
          distinct(reasons, &plan::Reason::cause), distinct(reasons, &plan::Reason::avoid)};
}

void Buckets::add(const Bucket &bucket) {
  const Instruction &first = stage.programs[update].instructions[bucket.terms.front()->instruction];
  Collective joined = collectiveOf(*bucket.terms.front());
  int32_t buffer = bucket.terms.front()->source;
  std::vector<const plan::Reason *> reasons;
  if (bucket.terms.size() > 1) {
    plan::Buffer whole = stage.buffers[size_t(buffer)];
    whole.name = "bucket of " + countText(int64_t(bucket.terms.size()), "sum");
    buffer = int32_t(stage.buffers.size());
    stage.buffers.push_back(std::move(whole));
  }
  Inserted wait{{plan::Wait{int32_t(stage.requests.size())}, first.node}, bucket.followers};
  wait.instruction.id = first.id;
  int64_t end = 0;
  for (const Term *term : bucket.terms) {
    plan::Ref place{buffer, roundUp(end, termAlignment)};
    end = place.byteOffset + term->bytes;
    if (term->source != buffer)
      places[term->source] = place;
    if (term->target != buffer)
      places[term->target] = place;
    reasons.push_back(&collectiveOf(*term).reason);
    moved.insert(term->instruction);
    joinedIds[stage.programs[update].instructions[term->instruction].id] = first.id;
  }
  joined.count = bucket.bytes / byteSize(joined.dtype);
  stage.buffers[size_t(buffer)].bytes = bucket.bytes;
  if (bucket.terms.size() > 1)
    stage.buffers[size_t(buffer)].box = {joined.count};
  joined.src = joined.dst = {buffer, 0};
  joined.request = int32_t(stage.requests.size());
  joined.reason = joinedReason(reasons);
  stage.requests.push_back(1);

  Inserted post{{std::move(joined), first.node}, {}};
  post.instruction.part = wait.instruction.part = first.part;
  const Position &at = bucket.post();
  if (at.program != update && plan.microBatches > 1) {
    post.instruction.when.values.assign(size_t(plan.ranksPerStage() * plan.microBatches), 0);
    std::fill_n(post.instruction.when.values.end() - plan.ranksPerStage(), plan.ranksPerStage(), 1);
  }
  insertions[{at.program, at.instruction}].push_back(std::move(post));
  moved.insert(wait.followers.begin(), wait.followers.end());
  insertions[{update, bucket.deadline}].push_back(std::move(wait));
}

/// Builds the programs anew.
void Buckets::rewrite() {
  for (size_t p = 0; p < stage.programs.size(); ++p) {
    std::vector<Instruction> old = std::move(stage.programs[p].instructions), &fresh = stage.programs[p].instructions;
    fresh.clear();
    for (size_t i = 0; i <= old.size(); ++i) {
      if (auto found = insertions.find({p, i}); found != insertions.end())
        for (Inserted &inserted : found->second) {
          fresh.push_back(std::move(inserted.instruction));
          for (size_t follower : inserted.followers)
            fresh.push_back(std::move(old[follower]));
        }
      if (i < old.size() && !(p == update && moved.count(i)))
        fresh.push_back(std::move(old[i]));
    }
  }
  for (NotedValue &value : values)
    if (auto joined = joinedIds.find(value.completedBy); value.stage == index && joined != joinedIds.end())
      value.completedBy = joined->second;
}

/// Terms lie in their buckets, and their own buffers are no more.
void Buckets::renumberBuffers() {
  std::vector<int32_t> numbers;
  std::vector<plan::Buffer> kept;
  for (size_t i = 0; i < stage.buffers.size(); ++i) {
    numbers.push_back(int32_t(kept.size()));
    if (!places.count(int32_t(i)))
      kept.push_back(std::move(stage.buffers[i]));
  }
  stage.buffers = std::move(kept);
  auto change = [&](plan::Ref &ref) {
    if (auto found = places.find(ref.buffer); found != places.end())
      ref = {found->second.buffer, found->second.byteOffset + ref.byteOffset};
    ref.buffer = numbers[size_t(ref.buffer)];
  };
  for (Program &program : stage.programs)
    for (Instruction &instruction : program.instructions)
      for (plan::Ref *place : plan::placesOf(instruction.action))
        change(*place);
  for (plan::Binding &binding : stage.bindings)
    binding.buffer = numbers[size_t(binding.buffer)];
  for (NotedValue &value : values)
    if (value.stage == index)
      change(value.place);
}

} // namespace

void bucketGradients(plan::Plan &plan, int64_t stage, std::vector<NotedValue> &values, int64_t limit) {
  Buckets(plan, plan.stages[size_t(stage)], stage, values, limit).run();
}

} // namespace hpc
