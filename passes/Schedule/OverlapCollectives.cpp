// Works on the plan, where what an instruction touches is one list. Collectives are taken in their order; each moves
// among instructions that have nothing to do with it, within what memory allows.
#include "passes/Schedule/Rewrites.h"

#include "runtime/plan/Access.h"
#include "runtime/plan/Liveness.h"

#include <algorithm>
#include <map>
#include <optional>

namespace hpc {

using plan::BufferAccess, plan::Collective, plan::Instruction, plan::Lifetime, plan::Program, plan::Stage;

namespace {

/// So many collectives of a kind may be under way in a group of ranks, beside the one that is waited for.
constexpr int mostUnderWay = 2;

using Lane = std::pair<std::vector<std::string>, plan::CollectiveKind>;

enum class Role {
  Whole, ///< as it was
  Post,  ///< of a collective that has been taken apart
  Wait
};

/// An instruction of the program as it becomes.
struct Item {
  Instruction instruction;
  std::vector<BufferAccess> accesses; ///< of bytes at all; of a wait: of what it completes
  int64_t live = 0;             ///< bytes of the program's own buffers while it runs, at most
  Role role = Role::Whole;
  std::optional<Lane> lane; ///< of collectives that may move
  size_t pair = 0;          ///< of a post and its wait: the same number
};

bool meet(const BufferAccess &a, const BufferAccess &b) {
  return a.ref.buffer == b.ref.buffer && (a.write || b.write) && a.ref.byteOffset < b.ref.byteOffset + b.bytes &&
         b.ref.byteOffset < a.ref.byteOffset + a.bytes;
}

/// Whether two instructions must keep their order.
bool meet(const std::vector<BufferAccess> &some, const std::vector<BufferAccess> &others) {
  return std::any_of(some.begin(), some.end(), [&](const BufferAccess &a) {
    return std::any_of(others.begin(), others.end(), [&](const BufferAccess &b) { return meet(a, b); });
  });
}

/// Instructions that run on every rank, in every step.
bool isUnconditional(const Instruction &instruction) {
  return !instruction.onRequest && plan::isEverywhere(instruction.when, 1);
}

bool computes(const Item &item) {
  const plan::Action &action = item.instruction.action;
  return !item.instruction.onRequest && !item.accesses.empty() &&
         (std::holds_alternative<plan::Gemm>(action) || std::holds_alternative<plan::Kernel>(action));
}

/// A group does one collective after the other: what is posted ahead of one that is needed at once only delays it.
bool holdsUp(const Item &before, const Collective &collective) {
  const auto *other = std::get_if<Collective>(&before.instruction.action);
  return other && other->request < 0 && before.role == Role::Whole && other->axes == collective.axes;
}

class Overlap {
public:
  Overlap(plan::Plan &plan, int64_t index) : plan(plan), stage(plan.stages[size_t(index)]), index(index) {}

  void run() {
    if (!measure())
      return;
    listRequests();
    const size_t requests = stage.requests.size();
    for (size_t p = 0; p < stage.programs.size(); ++p)
      if (take(p))
        rewrite(p, int32_t(requests));
  }

private:
  bool measure();
  void listRequests();
  std::vector<BufferAccess> touchedBy(const Instruction &instruction) const;
  bool take(size_t program);
  bool overlap(size_t at);
  bool mayMove(const Item &item) const;
  bool putsAway(const Instruction &instruction) const;
  size_t earliest(size_t at) const;
  struct Way {
    size_t end;                     ///< what the wait comes before
    std::optional<size_t> follower; ///< what puts the result away, and comes along
  };
  Way latest(size_t at) const;
  void rewrite(size_t program, int32_t firstRequest);

  const plan::Buffer &bufferOf(const plan::Ref &ref) const { return stage.buffers[size_t(ref.buffer)]; }
  /// Bytes that count while the buffer lives.
  int64_t ownBytes(const plan::Ref &ref) const {
    return bufferOf(ref).lifetime == Lifetime::Program ? bufferOf(ref).bytes : 0;
  }

  /// Those that live on while a posted collective reads them, its result apart.
  int64_t operandBytes(const Collective &collective) const {
    return collective.src.buffer == collective.dst.buffer ? 0 : ownBytes(collective.src);
  }
  /// The last item at or after the collective that touches its operand: until then that lives anyway.
  size_t endOfOperand(size_t at) const;

  plan::Plan &plan;
  Stage &stage;
  const int64_t index;

  std::vector<std::vector<int64_t>> liveAt;        ///< by program and instruction
  int64_t most = 0;                                ///< of `liveAt`: what the stage has memory for
  std::map<int32_t, std::vector<BufferAccess>> inFlight; ///< by request, of all that post it

  // Of the program that is taken.
  std::vector<Item> items;
  size_t pairs = 0;
};

/// Lifetimes of all buffers. False where the programs cannot be placed; place reports that.
bool Overlap::measure() {
  for (size_t p = 0; p < stage.programs.size(); ++p) {
    Expected<std::vector<plan::LiveRange>> ranges = plan::liveRanges(plan, index, int64_t(p));
    if (!ranges.ok())
      return false;
    std::vector<int64_t> changes(stage.programs[p].instructions.size() + 1);
    for (const plan::LiveRange &range : *ranges) {
      changes[size_t(range.first)] += stage.buffers[size_t(range.buffer)].bytes;
      changes[size_t(range.last) + 1] -= stage.buffers[size_t(range.buffer)].bytes;
    }
    std::vector<int64_t> &live = liveAt.emplace_back();
    int64_t bytes = 0;
    for (int64_t change : changes) {
      live.push_back(bytes += change);
      most = std::max(most, bytes);
    }
  }
  return true;
}

void Overlap::listRequests() {
  for (const Program &program : stage.programs)
    for (const Instruction &instruction : program.instructions) {
      int32_t request = plan::postedRequest(instruction.action);
      if (request < 0)
        continue;
      for (const BufferAccess &access : plan::accessesOf(plan, instruction))
        inFlight[request].push_back(access);
    }
}

std::vector<BufferAccess> Overlap::touchedBy(const Instruction &instruction) const {
  const auto *wait = std::get_if<plan::Wait>(&instruction.action);
  auto found = wait ? inFlight.find(wait->request) : inFlight.end();
  std::vector<BufferAccess> accesses = found == inFlight.end() ? plan::accessesOf(plan, instruction) : found->second;
  accesses.erase(std::remove_if(accesses.begin(), accesses.end(), [](const BufferAccess &access) { return access.bytes == 0; }),
                 accesses.end());
  return accesses;
}

bool Overlap::mayMove(const Item &item) const {
  const auto *collective = std::get_if<Collective>(&item.instruction.action);
  if (!collective || collective->request >= 0 || item.accesses.empty() || !isUnconditional(item.instruction))
    return false;
  // One in place that is no all-reduce would be copied.
  return collective->kind == plan::CollectiveKind::AllReduce || collective->src.buffer != collective->dst.buffer;
}

/// Whether it only puts a result where it belongs: a gradient into its sum, a weight into its place.
bool Overlap::putsAway(const Instruction &instruction) const {
  const auto *sum = std::get_if<plan::Accumulate>(&instruction.action);
  const auto *copy = std::get_if<plan::Copy>(&instruction.action);
  return (sum || copy) && bufferOf(sum ? sum->dst : copy->dst).lifetime != Lifetime::Program &&
         isUnconditional(instruction);
}

/// Builds `items`. False where nothing moves.
bool Overlap::take(size_t program) {
  items.clear();
  pairs = 0;
  std::vector<Instruction> &instructions = stage.programs[program].instructions;
  for (size_t i = 0; i < instructions.size(); ++i) {
    Item &item = items.emplace_back();
    item.instruction = instructions[i];
    item.accesses = touchedBy(instructions[i]);
    item.live = liveAt[program][i];
    if (mayMove(item)) {
      const auto &collective = std::get<Collective>(item.instruction.action);
      item.lane = {collective.axes, collective.kind};
    }
  }
  bool isMoved = false;
  for (size_t at = 0; at < items.size(); ++at)
    if (items[at].lane && items[at].role == Role::Whole)
      isMoved |= overlap(at);
  return isMoved;
}

/// The place to which the collective at `at` may go up: behind what it has to do with, what has no room for its result,
/// or what its group should do first.
size_t Overlap::earliest(size_t at) const {
  const Item &item = items[at];
  const auto &collective = std::get<Collective>(item.instruction.action);
  const bool isInPlace = collective.src.buffer == collective.dst.buffer;
  if (bufferOf(collective.dst).lifetime != Lifetime::Program && !isInPlace)
    return at;
  const int64_t result = isInPlace ? 0 : ownBytes(collective.dst);
  int ended = 0;
  for (; at > 0; --at) {
    const Item &before = items[at - 1];
    if (meet(before.accesses, item.accesses) || before.live + result > most || holdsUp(before, collective) ||
        (before.lane == item.lane && (before.role == Role::Post || ++ended == mostUnderWay)))
      break;
  }
  return at;
}

size_t Overlap::endOfOperand(size_t at) const {
  const plan::Ref &operand = std::get<Collective>(items[at].instruction.action).src;
  size_t last = at;
  for (size_t i = at + 1; i < items.size(); ++i)
    if (std::any_of(items[i].accesses.begin(), items[i].accesses.end(), [&](const BufferAccess &access) { return access.ref.buffer == operand.buffer; }))
      last = i;
  return last;
}

/// How far its wait may go down.
Overlap::Way Overlap::latest(size_t at) const {
  const Item &item = items[at];
  const auto &collective = std::get<Collective>(item.instruction.action);
  const int64_t operand = operandBytes(collective), result = ownBytes(collective.dst);
  const size_t lives = operand > 0 ? endOfOperand(at) : at;
  Way way{at + 1, std::nullopt};
  int started = 0;
  for (; way.end < items.size(); ++way.end) {
    const Item &next = items[way.end];
    const bool needsIt = meet(next.accesses, item.accesses);
    if (next.live + (way.end > lives ? operand : 0) + (way.follower ? result : 0) > most ||
        (next.lane == item.lane && next.role != Role::Wait && ++started == mostUnderWay) ||
        (way.follower && (needsIt || meet(next.accesses, items[*way.follower].accesses))))
      break;
    if (needsIt && !putsAway(next.instruction))
      break;
    if (needsIt)
      way.follower = way.end;
  }
  // A result that nobody reads would live on for nothing.
  bool isRead = way.follower || std::any_of(items.begin() + ptrdiff_t(way.end), items.end(), [&](const Item &later) {
                  return std::any_of(later.accesses.begin(), later.accesses.end(), [&](const BufferAccess &access) {
                    return access.ref.buffer == collective.dst.buffer;
                  });
                });
  return isRead ? way : Way{at + 1, std::nullopt};
}

/// Posts the collective at `at` where something is computed beside it. Else false.
bool Overlap::overlap(size_t at) {
  const size_t first = earliest(at);
  const Way way = latest(at);
  bool gains = false;
  for (size_t i = first; i < way.end; ++i)
    gains |= computes(items[i]);
  if (!gains)
    return false;
  const auto &collective = std::get<Collective>(items[at].instruction.action);
  const int64_t operand = operandBytes(collective), result = ownBytes(collective.dst);
  const size_t lives = operand > 0 ? endOfOperand(at) : at;
  Item post = items[at], wait = items[at];
  post.role = Role::Post;
  post.instruction.id = -1; // the result is there after the wait
  wait.role = Role::Wait;
  wait.instruction.action = plan::Wait{};
  std::vector<Item> between;
  for (size_t i = first; i < way.end; ++i) {
    items[i].live += i < at ? result : (i > lives ? operand : 0) + (way.follower && i > *way.follower ? result : 0);
    if (i != at && i != way.follower)
      between.push_back(std::move(items[i]));
  }
  post.live = std::max(post.live, between.front().live); // at most: what lives there and here
  wait.live = std::max(wait.live, between.back().live);
  post.pair = wait.pair = pairs++;
  between.insert(between.begin(), std::move(post));
  between.push_back(std::move(wait));
  if (way.follower) {
    items[*way.follower].live = between.back().live;
    between.push_back(std::move(items[*way.follower]));
  }
  std::move(between.begin(), between.end() - 1, items.begin() + ptrdiff_t(first));
  items.insert(items.begin() + ptrdiff_t(way.end), std::move(between.back()));
  return true;
}

/// Gives out requests, and the program what it has become.
void Overlap::rewrite(size_t program, int32_t firstRequest) {
  std::vector<bool> isTaken;          // by request from the first on
  std::map<size_t, int32_t> requests; // by pair
  std::vector<Instruction> &instructions = stage.programs[program].instructions;
  instructions.clear();
  for (Item &item : items) {
    if (item.role == Role::Post) {
      auto free = std::find(isTaken.begin(), isTaken.end(), false);
      const size_t number = size_t(free - isTaken.begin());
      if (free == isTaken.end())
        isTaken.push_back(false);
      isTaken[number] = true;
      requests[item.pair] = std::get<Collective>(item.instruction.action).request =
          firstRequest + int32_t(number);
    } else if (item.role == Role::Wait) {
      const int32_t request = std::get<plan::Wait>(item.instruction.action).request = requests.at(item.pair);
      isTaken[size_t(request - firstRequest)] = false;
    }
    instructions.push_back(std::move(item.instruction));
  }
  stage.requests.resize(std::max(stage.requests.size(), size_t(firstRequest) + isTaken.size()), 1);
}

} // namespace

void overlapCollectives(plan::Plan &plan, int64_t stage, std::vector<NotedValue> &) { Overlap(plan, stage).run(); }

} // namespace hpc
