// Flags are listed by group, groups in the order of the table.
#include "tools/flags/Pages.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>

namespace hpc {

constexpr size_t helpColumn = 28, pageWidth = 120;

/// "--tp" with its value by `show`, which may mark it.
static std::string spelt(const Flag &flag, const std::string &dashed, const std::string &value) {
  if (flag.value.isPositional)
    return value;
  if (flag.value.kind == FlagValue::Kind::Switch)
    return dashed;
  if (flag.value.isOptional)
    return dashed + "[=" + value + "]";
  const bool isLong = dashed.compare(0, 2, "--") == 0 && flag.value.name.find('=') == std::string::npos;
  return dashed + (isLong ? "=" : " ") + value;
}

std::string spelling(const Flag &flag) { return spelt(flag, flag.dashed(), flag.value.name); }

/// "-o, --output=PLAN".
static std::string allSpellings(const Flag &flag) {
  const std::string other = flag.alias.empty() ? "" : (flag.alias.size() == 1 ? "-" : "--") + flag.alias + ", ";
  return other + spelt(flag, "--" + flag.name, flag.value.name);
}

static void eachGroup(const std::vector<Flag> &flags, const std::function<void(const std::string &, const std::vector<const Flag *> &)> &visit) {
  std::vector<std::string> done;
  for (const Flag &first : flags) {
    if (std::find(done.begin(), done.end(), first.group) != done.end())
      continue;
    done.push_back(first.group);
    std::vector<const Flag *> members;
    for (const Flag &flag : flags)
      if (flag.group == first.group)
        members.push_back(&flag);
    visit(first.group, members);
  }
}

/// Words with a line break and `indent` blanks where a line would end after `pageWidth`; the first begins at `column`.
static std::string wrapped(const std::string &text, size_t column, size_t indent) {
  std::string result;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(' ', start), text.size());
    if (start > 0) {
      const bool fits = column + 1 + (end - start) <= pageWidth;
      result += fits ? " " : "\n" + std::string(indent, ' ');
      column = fits ? column + 1 : indent;
    }
    result += text.substr(start, end - start);
    column += end - start;
    start = end + 1;
  }
  return result;
}

std::string helpText(const ToolText &tool, const std::vector<Flag> &flags) {
  std::string text = wrapped(tool.name + ": " + tool.description, 0, 0) + "\n\n";
  for (const std::string &usage : tool.usage)
    text += "  " + usage + "\n";
  text += "\nFor example\n";
  for (const std::string &example : tool.examples)
    text += "  " + example + "\n";
  eachGroup(flags, [&](const std::string &group, const std::vector<const Flag *> &members) {
    text += "\n" + group + "\n";
    for (const Flag *flag : members) {
      std::string left = "  " + allSpellings(*flag);
      left += std::string(left.size() + 2 <= helpColumn ? helpColumn - left.size() : 2, ' ');
      text += left + wrapped(flag->fullHelp(), left.size(), helpColumn) + "\n";
    }
  });
  return text + (tool.footer.empty() ? "" : "\n" + tool.footer + "\n");
}

/// As roff prints it unchanged.
static std::string roff(const std::string &text) {
  static const std::map<char, const char *> escapes = {{'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'~', "\\(ti"}, {'^', "\\(ha"}};
  std::string result = !text.empty() && text[0] == '.' ? "\\&" : "";
  for (char letter : text)
    if (auto escape = escapes.find(letter); escape != escapes.end())
      result += escape->second;
    else
      result += letter;
  return result;
}

static std::string roffLines(const std::vector<std::string> &lines) {
  std::string text = ".nf\n";
  for (const std::string &line : lines)
    text += roff(line) + "\n";
  return text + ".fi\n";
}

std::string manualPage(const ToolText &tool, const std::vector<Flag> &flags) {
  std::string upper = tool.name, text;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char letter) { return char(std::toupper(letter)); });
  text += ".TH " + upper + " 1 \"\" \"" + tool.name + "\" \"User Commands\"\n.ad l\n.nh\n.SH NAME\n" + roff(tool.name) + " \\- " + roff(tool.purpose) + "\n";
  text += ".SH SYNOPSIS\n" + roffLines(tool.usage) + ".SH DESCRIPTION\n" + roff(tool.description) + "\n.SH OPTIONS\n";
  eachGroup(flags, [&](const std::string &group, const std::vector<const Flag *> &members) {
    text += ".SS \"" + roff(group) + "\"\n";
    for (const Flag *flag : members)
      text += ".TP\n\\fB" + roff(allSpellings(*flag)) + "\\fR\n" + roff(flag->fullHelp()) + ".\n";
  });
  text += ".SH FILES\nA file of \\fB\\-\\-config\\fR is TOML. Its keys are the flags without their dashes:\n.PP\n" +
          roffLines(tool.config) +
          ".PP\nFlags of the command line win. An unknown key and a value of another type are errors, which name the line.\n";
  text += ".SH \"EXIT STATUS\"\n0 on success, 1 on an error that the user can mend, 2 on a defect of the program.\n.SH EXAMPLES\n" + roffLines(tool.examples);
  if (!tool.footer.empty())
    text += ".SH NOTES\n" + roff(tool.footer) + "\n";
  text += ".SH \"SEE ALSO\"\n";
  std::string others;
  for (const ToolText &other : toolTexts())
    if (other.tool != tool.tool)
      others += (others.empty() ? "\\fB" : ", \\fB") + roff(other.name) + "\\fR(1)";
  return text + others + "\n";
}

/// Lines of a shell's `case` for the value of a flag. An optional value must follow '='.
static std::string completionOfValue(const Flag &flag) {
  const FlagValue &value = flag.value;
  std::string pattern, words;
  for (const std::string &name : {flag.name, flag.alias})
    if (!name.empty()) {
      const std::string dashed = (name.size() == 1 ? "-" : "--") + name;
      pattern += (pattern.empty() ? "" : "|") + (value.isOptional ? "" : dashed + "|") + dashed + "=";
    }
  for (const std::string &choice : value.choices)
    words += (words.empty() ? "" : "\\n") + choice;
  std::string offered = words.empty() ? "" : " -W $'" + words + "'";
  offered += value.isFile ? " -f" : value.isFolder ? " -d" : "";
  return "  " + pattern + ") " + (offered.empty() ? "" : "ours=($(compgen" + offered + " -P \"$before\" -- \"$word\"))") +
         (value.isFile || value.isFolder ? " options=filenames" : "") + " ;;\n";
}

std::string completionScript(const ToolText &tool, const std::vector<Flag> &flags) {
  std::string function = "_" + tool.name, names, cases;
  std::replace(function.begin(), function.end(), '-', '_');
  for (const Flag &flag : flags) {
    const bool hasValue = flag.value.kind != FlagValue::Kind::Switch;
    if (flag.value.isPositional)
      continue;
    for (const std::string &name : {flag.name, flag.alias})
      if (name.size() > 1)
        names += "\\n--" + name + (!hasValue ? "" : flag.value.isOptional ? "\\n--" + name + "=" : "=");
    if (hasValue)
      cases += completionOfValue(flag);
  }
  return "# Completion of " + tool.name + " for bash; zsh takes it after: autoload -U bashcompinit && bashcompinit\n" + function + R"sh(() {
  local IFS=$'\n' word="${COMP_WORDS[COMP_CWORD]}" last="${COMP_WORDS[COMP_CWORD-1]}" flag="" before="" options="" ours=()
  # bash has a word of its own for each '='. zsh has none, and completes files after a blank alone.
  case "$word" in
  =) flag="$last=" word="" ;;
  --*=*) flag="${word%%=*}=" before="${word%%=*}=" word="${word#*=}" ;;
  *) if [ "$last" = = ]; then flag="${COMP_WORDS[COMP_CWORD-2]}="; else flag="$last"; fi ;;
  esac
  case "$flag" in
)sh" + cases + R"sh(  *)
    case "$word" in
    -*) ours=($(compgen -W $')sh" + names.substr(2) + R"sh(' -- "$word")) options=nospace ;;
    *) ours=($(compgen -f -- "$word")) options=filenames ;;
    esac
    ;;
  esac
  if type compopt >/dev/null 2>&1; then
    case "$options:${ours[0]-}" in
    filenames:* | nospace:*=) compopt -o "$options" ;;
    esac
  elif [ "$options" = nospace ]; then
    ours=("${ours[@]%=}")
  fi
  COMPREPLY=("${ours[@]}")
}
complete -F )sh" + function + " " + tool.name + "\n";
}

} // namespace hpc
