// The command line of the tools without LLVM (CLI11), with the messages and exit codes that hpc-opt has.
#pragma once

#include "runtime/base/Status.h"
#include "tools/Suggestion.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>

namespace hpc {

/// "hpc-run: error[usage]: ..." on standard error; the exit code of the error.
inline int reportError(const std::string &tool, const Status &status) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", tool.c_str(), status.text().c_str());
  return status.exitCode();
}

/// The exit code of a tool that has done its work: an error where what it printed could not be written.
inline int finish(const std::string &tool) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout.good())
    return 0;
  return reportError(
      tool, Status::error(ErrorKind::Io,
                          "standard output cannot be written, so what it has is not whole; look for a full disk"));
}

/// A number above 0, or of 0 too. CLI11's own checks name the largest double, in 309 digits, as their end.
inline CLI::Validator numberFrom(bool zeroToo) {
  return CLI::Validator(
      [zeroToo](std::string &text) {
        double number = 0;
        bool good = CLI::detail::lexical_cast(text, number) && std::isfinite(number) && (number > 0 || (zeroToo && number == 0));
        return good ? std::string() : text + " is not a number " + (zeroToo ? "of 0 or more" : "above 0");
      },
      "");
}

/// What is in its range is for its user to say: nan is a number here.
inline CLI::Validator anyNumber() {
  return CLI::Validator(
      [](std::string &text) {
        double number = 0;
        return CLI::detail::lexical_cast(text, number) ? std::string() : text + " is not a number";
      },
      "");
}

/// A whole number from `least` to `most`.
inline CLI::Validator wholeNumber(int64_t least, int64_t most) {
  return CLI::Validator(
      [least, most](std::string &text) {
        int64_t number = 0;
        bool good = CLI::detail::lexical_cast(text, number) && number >= least && number <= most;
        return good ? std::string()
                    : text + " is not a whole number from " + std::to_string(least) + " to " + std::to_string(most);
      },
      "");
}

/// Parses the arguments of a tool that `app` is named after. `isHelp`: --help was asked for, and is printed.
inline Status parseArguments(CLI::App &app, int argc, char **argv, bool &isHelp) {
  const std::string tool = app.get_name();
  auto usage = [&](const std::string &message) { return Status::error(ErrorKind::Usage, message); };
  std::string valued, wrong;
  for (int i = 1; i < argc; ++i) // CLI11 takes any number, too
    for (const CLI::Option *option : app.get_options())
      for (const std::string &name : option->get_lnames()) {
        const std::string argument = argv[i], start = "--" + name + "=";
        if (option->get_items_expected_max() == 0 && argument.compare(0, start.size(), start) == 0)
          valued = argument + ": the flag takes no value; give --" + name + " alone, or leave it out";
      }
  app.allow_extras(); // what is left over is told below, with what it may have been meant to be
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    std::fputs(app.help().c_str(), stdout);
    isHelp = true;
    return Status::success();
  } catch (const CLI::ParseError &error) {
    wrong = std::string(error.what()) + "; see " + tool + " --help";
  }
  if (!valued.empty())
    return usage(valued);
  // A misspelt flag first: what else is wrong may follow from it.
  std::vector<std::string> flags, extras = app.remaining();
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      flags.push_back("--" + name);
  for (const std::string &extra : extras)
    if (extra.size() > 1 && extra[0] == '-')
      return usage(unknownFlag(tool, extra.substr(0, extra.find('=')), flags));
  if (wrong.empty() && !extras.empty())
    wrong = "'" + extras[0] + "' is one argument too many; see " + tool + " --help";
  return wrong.empty() ? Status::success() : usage(wrong);
}

/// A value is the exit code of a program that has nothing left to do: --help was asked for, or the arguments are wrong.
inline std::optional<int> parseArguments(CLI::App &app, int argc, char **argv) {
  bool isHelp = false;
  Status status = parseArguments(app, argc, argv, isHelp);
  if (!status.ok())
    return reportError(app.get_name(), status);
  return isHelp ? std::optional<int>(0) : std::nullopt;
}

} // namespace hpc
