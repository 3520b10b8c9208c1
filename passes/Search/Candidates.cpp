// Each choice is a list of values; a list has one value where the choice is decided, or where it makes no difference.
#include "passes/Search/Candidates.h"

#include "passes/Annotate/LayoutStrategy.h"

namespace hpc::search {

Options Candidate::options(const Options &from) const {
  Options options = from;
  options.degrees = dist::degreesOf({{"dp", dp}, {"cp", cp}, {"tp", tp}, {"pp", pp}, {"mb", microBatches}});
  options.setLayout(layout);
  options.cpMode = cpMode;
  options.ppChunks = chunks;
  options.ppSchedule = schedule;
  if (!split.empty())
    options.ppSplit = split;
  options.zero = zero;
  options.recompute = recompute;
  options.budgets.clear();
  return options;
}

std::string Candidate::flags() const {
  const Candidate defaults;
  std::string text;
  auto add = [&](const std::string &flag) { text += (text.empty() ? "--" : " --") + flag; };
  for (auto [flag, size] : {std::pair("dp", dp), {"cp", cp}, {"tp", tp}, {"pp", pp}, {"micro-batches", microBatches}, {"pp-chunks", chunks}, {"zero", zero}})
    if (size > (flag == StringRef("zero") ? 0 : 1))
      add(flag + ("=" + std::to_string(size)));
  Options named;
  named.setLayout(layout);
  if (named.tpLayout != defaults.layout)
    add("tp-layout=" + named.tpLayout);
  if (named.sp)
    add("sp");
  for (auto [flag, value, least] : {std::tuple("cp-mode", &cpMode, &defaults.cpMode), {"pp-schedule", &schedule, &defaults.schedule}, {"recompute", &recompute, &defaults.recompute}})
    if (*value != *least)
      add(flag + ("=" + *value));
  if (!split.empty())
    add("pp-split=" + split);
  if (!sidecar.empty())
    add("spec=FILE");
  return text.empty() ? "--dp=1" : text;
}

static SmallVector<int64_t> divisorsOf(int64_t number) {
  SmallVector<int64_t> all;
  for (int64_t divisor = 1; divisor <= number; ++divisor)
    if (number % divisor == 0)
      all.push_back(divisor);
  return all;
}

namespace {
using Names = SmallVector<std::string>;

struct Enumeration {
  const Space &space;
  std::vector<Family> all = {};

  bool trains() const { return space.options.trains(); }
  /// The value of a degree that is decided.
  int64_t given(const char *axis) const {
    for (const dist::Mesh::Axis &each : space.options.degrees.axes)
      if (each.name == axis)
        return each.size;
    return 1;
  }
  SmallVector<int64_t> degrees(const char *flag, const char *axis, SmallVector<int64_t> free) const {
    return space.isDecided(flag) ? SmallVector<int64_t>{given(axis)} : free;
  }

  Names layouts(int64_t tp) const {
    const bool isDecided = space.isDecided("tp-layout") || space.isDecided("sp");
    if (tp == 1) // a layout that is given wants more ranks
      return isDecided && space.options.layout() != Options().layout() ? Names{} : Names{Options().layout()};
    if (isDecided)
      return {space.options.layout()};
    std::vector<std::string> names = layoutsOf(tp);
    return {names.begin(), names.end()};
  }
  Names cpModes(int64_t cp) const {
    return space.isDecided("cp-mode") || cp == 1 ? Names{space.options.cpMode} : Names{"gather", "ring", "ulysses"};
  }
  SmallVector<int64_t> microBatches(int64_t dp) const {
    // Rows that no rank can share out evenly are not cut further.
    return degrees("micro-batches", "mb", space.batch % dp ? SmallVector<int64_t>{1} : divisorsOf(space.batch / dp));
  }
  SmallVector<int64_t> chunks(int64_t pp, int64_t microBatches) const {
    SmallVector<int64_t> free = {1};
    const bool mayCut = trains() && pp > 1 && microBatches % pp == 0 &&
                        (!space.isDecided("pp-schedule") || space.options.ppSchedule.empty() || space.options.ppSchedule == "interleaved");
    for (int64_t count = 2; mayCut && pp * count <= space.blocks; ++count)
      if (space.blocks % (pp * count) == 0)
        free.push_back(count);
    return space.isDecided("pp-chunks") ? SmallVector<int64_t>{space.options.ppChunks} : free;
  }
  Names schedules(int64_t pp, int64_t chunks) const {
    if (space.isDecided("pp-schedule") || !trains() || pp == 1 || chunks > 1)
      return {space.options.ppSchedule};
    return {"", "zb-h1", "gpipe"}; // "" is 1f1b
  }
  SmallVector<int64_t> zeroLevels(int64_t rowRanks, int64_t microBatches) const {
    if (space.isDecided("zero") || !trains() || rowRanks == 1)
      return {space.options.zero};
    return microBatches > 1 ? SmallVector<int64_t>{0, 1, 2, 3} : SmallVector<int64_t>{0, 1, 3}; // 2 is 1 without micro-batches
  }
  Names recomputations() const {
    if (space.isDecided("recompute") || !trains())
      return {space.options.recompute};
    return space.options.memory ? Names{"none", "attention", "full", "auto"} : Names{"none", "attention", "full"};
  }

  std::vector<Candidate> members(Candidate next) const {
    std::vector<Candidate> found;
    for (int64_t count : chunks(next.pp, next.microBatches))
      for (const std::string &schedule : schedules(next.pp, count))
        for (int64_t level : zeroLevels(next.dp * next.cp, next.microBatches))
          for (const std::string &recompute : recomputations()) {
            next.chunks = count;
            next.schedule = schedule;
            next.zero = level;
            next.recompute = recompute;
            found.push_back(next);
          }
    return found;
  }

  /// By how much less a pipeline idles than with 1f1b in one chunk.
  static int64_t gainOf(const Candidate &candidate) { return candidate.schedule == "zb-h1" ? 3 : candidate.chunks; }

  void addFamily(const Candidate &common) {
    const std::vector<Candidate> found = members(common);
    const Candidate *fastest = &found.front();
    for (const Candidate &member : found)
      if (gainOf(member) > gainOf(*fastest))
        fastest = &member;
    Family family{*fastest, *fastest, int64_t(found.size())};
    family.fastest.zero = found.front().zero;
    family.fastest.recompute = found.front().recompute;
    family.thinnest.zero = found.back().zero;
    all.push_back(std::move(family));
  }

  void addTensorRanks(Candidate next) {
    for (const std::string &layout : layouts(next.tp))
      for (const std::string &mode : cpModes(next.cp))
        for (int64_t count : microBatches(next.dp)) {
          next.layout = layout;
          next.cpMode = mode;
          next.microBatches = count;
          addFamily(next);
        }
  }

  void addAll() {
    const SmallVector<int64_t> sizes = divisorsOf(space.devices);
    for (int64_t pp : degrees("pp", "pp", sizes))
      for (int64_t tp : degrees("tp", "tp", sizes))
        for (int64_t cp : degrees("cp", "cp", sizes)) {
          const int64_t others = pp * tp * cp;
          if (others > space.devices || space.devices % others)
            continue;
          Candidate next;
          next.pp = pp;
          next.tp = tp;
          next.cp = cp;
          next.dp = space.devices / others;
          if (space.isDecided("dp") ? next.dp != given("dp") : space.batch % next.dp != 0)
            continue;
          if ((!space.isDecided("pp") && pp > space.products) || (!space.isDecided("cp") && cp > space.positions))
            continue;
          addTensorRanks(next);
        }
  }
};
} // namespace

std::vector<Family> familiesOf(const Space &space) {
  Enumeration enumeration{space};
  enumeration.addAll();
  return std::move(enumeration.all);
}

std::vector<Candidate> membersOf(const Space &space, const Family &family) { return Enumeration{space}.members(family.fastest); }

} // namespace hpc::search
