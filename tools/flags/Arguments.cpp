// Words to values. A value is checked against its type where it is read, so that an error has the place: a flag or a line.
#include "tools/flags/Arguments.h"

#include "runtime/base/Nearest.h"
#include "tools/flags/ConfigFile.h"
#include "tools/flags/Pages.h"

#include <algorithm>
#include <charconv>

namespace hpc {

static Status usage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

static bool hasFlag(const std::vector<Flag> &flags, const std::string &name) {
  return std::any_of(flags.begin(), flags.end(), [&](const Flag &flag) { return flag.isNamed(name) && !flag.value.isPositional; });
}

/// "hpc-run, which runs plans": the tools but `tool` that have the flag, though not `own`, which is of several; "" where there is none.
static std::string otherToolsWith(const ToolText &tool, const std::string &name, const Flag *own = nullptr) {
  std::string text;
  for (const ToolText &other : toolTexts())
    if (other.tool != tool.tool && !(own && own->tools & other.tool) && hasFlag(flagsOf(other.tool), name))
      text += (text.empty() ? "" : ", and of ") + other.name + ", which " + other.purpose;
  return text;
}

std::string unknownFlag(const ToolText &tool, const std::string &name, const std::string &dashes) {
  const std::string none = "there is no " + (dashes.empty() ? "key " : dashes) + name;
  if (std::string others = otherToolsWith(tool, name); !others.empty())
    return none + " here: it is a flag of " + others + "; see " + others.substr(0, others.find(',')) + " --help";
  auto nearest = [&](bool own) {
    std::vector<std::string> names;
    for (const ToolText &one : toolTexts())
      for (const Flag &flag : flagsOf(one.tool))
        if ((one.tool == tool.tool) == own && !(flag.value.isPositional && !dashes.empty()))
          for (const std::string &spelt : {flag.name, flag.alias})
            if (spelt.size() > 1)
              names.push_back(dashes + spelt);
    return nearestNames(dashes + name, std::move(names));
  };
  const std::vector<std::string> own = nearest(true), other = nearest(false);
  if (!own.empty() && (other.empty() || editDistance(dashes + name, own[0]) <= editDistance(dashes + name, other[0])))
    return none + "; did you mean " + anyOf(own, "") + "?";
  if (other.empty())
    return none + "; see " + tool.name + " --help";
  const std::string others = otherToolsWith(tool, other[0].substr(dashes.size()));
  return none + "; did you mean " + other[0] + " of " + others.substr(0, others.find(',')) + "?";
}

const Flag *Arguments::find(const std::string &name) const {
  auto place = std::find_if(flags.begin(), flags.end(), [&](const Flag &flag) { return flag.isNamed(name); });
  return place == flags.end() ? nullptr : &*place;
}

const Flag &Arguments::flag(const std::string &name) const {
  if (const Flag *found = find(name))
    return *found;
  // Code of several tools asks for flags that only some of them have.
  static const Flag ofAnother{"", {}, "", "", 0};
  assert(!otherToolsWith(tool, name).empty() && "no row of the table of flags");
  return ofAnother;
}

bool Arguments::knows(const std::string &name) const { return hasFlag(flags, name); }

void Arguments::offer(const std::string &name, std::vector<std::string> choices) {
  const_cast<Flag &>(flag(name)).value.choices = std::move(choices);
}

bool Arguments::has(const std::string &name) const {
  auto given = values.find(flag(name).name);
  return given != values.end() && !(flag(name).value.kind == FlagValue::Kind::Switch && (given->second.back() == "false" || given->second.back() == "0"));
}

const std::vector<std::string> &Arguments::all(const std::string &name) const {
  static const std::vector<std::string> none;
  auto given = values.find(flag(name).name);
  return given == values.end() ? none : given->second;
}

std::string Arguments::text(const std::string &name) const {
  return all(name).empty() ? flag(name).value.fallback : all(name).back();
}

template <typename Number> static std::optional<Number> numberOf(const std::string &text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number); // was checked by FlagValue::wrong
  return text.empty() ? std::nullopt : std::optional<Number>(number);
}

std::optional<int64_t> Arguments::whole(const std::string &name) const { return numberOf<int64_t>(text(name)); }
std::optional<double> Arguments::real(const std::string &name) const { return numberOf<double>(text(name)); }

std::vector<const Flag *> Arguments::given(const std::string &group) const {
  std::vector<const Flag *> some;
  for (const Flag &flag : flags)
    if ((group.empty() || flag.group == group) && !flag.value.isPositional && has(flag.name))
      some.push_back(&flag);
  return some;
}

/// Values that are wrong are not taken.
Status Arguments::take(const std::vector<std::string> &words) {
  Status unknown, wrong;
  auto fails = [](Status &first, const std::string &message) {
    if (first.ok())
      first = usage(message);
  };
  const std::string seeHelp = "; see " + tool.name + " --help";
  const Flag &positional = *std::find_if(flags.begin(), flags.end(), [](const Flag &flag) { return flag.value.isPositional; });
  bool areFlagsOver = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string &word = words[i];
    const size_t equals = std::min(word.find('='), word.size()), start = word.find_first_not_of('-');
    if (word == "--" && !areFlagsOver) {
      areFlagsOver = true;
      continue;
    }
    if (areFlagsOver || word.empty() || start == 0 || start == std::string::npos) {
      std::vector<std::string> &own = values[positional.name];
      if (own.empty())
        own.push_back(word);
      else
        fails(wrong, "'" + word + "' is one argument too many beside '" + own[0] + "'; " + tool.name + " takes one " + positional.name);
      continue;
    }
    const std::string dashes = word.substr(0, start), name = word.substr(start, equals - start);
    const Flag *flag = knows(name) ? find(name) : nullptr;
    if (!flag) {
      const Foreign kind = otherToolsWith(tool, name).empty() ? foreign(word) : Foreign::Unknown;
      if (kind == Foreign::Unknown)
        fails(unknown, unknownFlag(tool, name, dashes));
      else
        foreignWords.push_back(word);
      if (kind == Foreign::TakesNext && i + 1 == words.size())
        fails(wrong, word + " needs a value" + seeHelp);
      else if (kind == Foreign::TakesNext)
        foreignWords.push_back(words[++i]);
      continue;
    }
    const bool needsValue = flag->value.kind != FlagValue::Kind::Switch && !flag->value.isOptional;
    if (needsValue && equals == word.size() && i + 1 == words.size()) {
      fails(wrong, flag->dashed() + " needs a value, as in " + spelling(*flag));
      continue;
    }
    const std::string value = equals < word.size() ? word.substr(equals + 1) : needsValue ? words[++i] : "";
    if (const std::string why = flag->value.wrong(value); !why.empty()) {
      const std::string others = flag->value.isOneOf ? otherToolsWith(tool, name, flag) : "";
      fails(wrong, flag->dashed() + "=" + value + " " + why +
                       (others.empty() ? "" : " (--" + name + " of " + others.substr(0, others.find(',')) + " is another flag)") + seeHelp);
    } else {
      values[flag->name].push_back(value);
    }
  }
  for (const Flag &flag : flags)
    if (size_t count = all(flag.name).size(); count > 1 && !flag.value.isRepeated)
      fails(wrong, flag.dashed() + " is given " + std::to_string(count) + " times; give it once");
  return unknown.ok() ? wrong : unknown;
}

/// The command line has priority over the file.
Status Arguments::takeConfig(const std::string &path, bool isTold) {
  Expected<std::vector<ConfigEntry>> entries = readConfigFile(path, tool, flags);
  if (!entries.ok())
    return entries.status();
  std::string taken, overruled;
  auto isGivenOtherwise = [&, stronger = *this](const Flag &flag) {
    const std::vector<std::string> others = alternativesOf(flag.name);
    return std::any_of(others.begin(), others.end(), [&](const std::string &other) { return stronger.knows(other) && stronger.has(other); });
  };
  for (const ConfigEntry &entry : *entries) {
    const bool isPositional = entry.flag->value.isPositional;
    if (isGivenOtherwise(*entry.flag) || !values.try_emplace(entry.flag->name, entry.values).second) {
      overruled += " " + (isPositional ? entry.flag->name : entry.flag->dashed());
      continue;
    }
    for (std::string value : entry.values) {
      if (value.find_first_of(" #*'\"") != std::string::npos)
        value = "'" + value + "'";
      taken += " " + (isPositional ? value : entry.flag->dashed() + (value.empty() ? "" : "=") + value);
    }
  }
  if (isTold)
    note = path + " gives" + (taken.empty() ? " nothing" : taken) + (overruled.empty() ? "" : "; the command line has its own" + overruled);
  return Status::success();
}

Status Arguments::parse(int argc, const char *const *argv) {
  const std::vector<std::string> words(argv + 1, argv + std::max(argc, 1));
  for (const std::string &word : words)
    if (word == "-h" || word == "-help" || word == "--help" || word.compare(0, 7, "--help=") == 0) {
      const std::string kind = word.compare(0, 7, "--help=") == 0 ? word.substr(7) : "";
      if (const std::string why = flag("help").value.wrong(kind); !why.empty())
        return usage(word + " " + why);
      page = kind == "man" ? manualPage(tool, flags) : kind == "bash" ? completionScript(tool, flags) : helpText(tool, flags);
      return Status::success();
    }
  Status status = take(words);
  if (has("config"))
    if (Status config = takeConfig(text("config"), /*isTold=*/true); status.ok())
      status = config;
  if (const std::string weakest = weakestConfig(*this); status.ok() && !weakest.empty())
    status = takeConfig(weakest, /*isTold=*/false);
  for (const Flag &flag : flags)
    if (status.ok() && flag.value.isPositional && all(flag.name).empty())
      status = usage("no " + flag.name + " is given; see " + tool.name + " --help");
  return status;
}

} // namespace hpc
