// A flag of the layout that is given is decided; the search chooses the others.
#include "tools/compiling/SearchFlags.h"

namespace hpc {

bool searchesPlan(const Arguments &arguments) { return arguments.has("auto") || arguments.has("rank-layouts"); }

Expected<search::Question> readQuestion(const Arguments &arguments, const CompileRequest &request) {
  const std::string flag = arguments.has("auto") ? "--auto" : "--rank-layouts=" + arguments.text("rank-layouts");
  if (!request.devices)
    return Status::error(ErrorKind::Usage, flag + " chooses a plan for some number of ranks, and none is given; add --devices=8 or what you have");
  search::Question question;
  question.request = request;
  Options &options = question.request.options;
  if (options.memory == 0)
    options.memory = machineOf(options).memoryOf(0, *request.devices);
  if (std::optional<int64_t> listed = arguments.whole("rank-layouts"))
    question.listed = size_t(*listed);
  return question;
}

} // namespace hpc
