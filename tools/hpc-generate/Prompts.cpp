#include "tools/hpc-generate/Prompts.h"

#include "runtime/generate/TextStream.h"
#include "runtime/text/ByteSource.h"

#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace hpc {

static Status promptUsage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

static Expected<std::string> contentOf(const std::string &path) {
  if (path == "-")
    return std::string(std::istreambuf_iterator<char>(std::cin), {});
  Expected<text::ByteSource> source = text::ByteSource::open(path);
  HPC_RETURN_IF_ERROR(source.status());
  std::string content;
  for (char part[1 << 16];;) {
    Expected<int64_t> got = source->read(part, sizeof part);
    HPC_RETURN_IF_ERROR(got.status());
    if (*got == 0)
      return content;
    content.append(part, size_t(*got));
  }
}

/// The reason why a line is no prompt; "" where it is one.
static std::string takeLine(std::string_view line, bool isIds, GivenPrompt &prompt) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    return "is no JSON";
  if (!json.is_object())
    return "is no JSON object";
  if (isIds) {
    const auto ids = json.find("ids");
    if (ids == json.end() || !ids->is_array())
      return "has no list under 'ids'";
    for (const nlohmann::json &id : *ids)
      if (id.is_number_unsigned() && id.get<uint64_t>() <= uint64_t(INT32_MAX))
        prompt.ids.push_back(id.get<int64_t>());
      else
        return "has " + id.dump() + " in its list, which is no id";
    return "";
  }
  for (const char *key : {"prompt", "text"})
    if (const auto text = json.find(key); text != json.end()) {
      if (!text->is_string())
        return std::string("has no string under '") + key + "'";
      prompt.text = text->get<std::string>();
      return "";
    }
  return "has neither 'prompt' nor 'text'";
}

static Expected<std::vector<GivenPrompt>> readLines(const std::string &path, bool isIds) {
  const std::string name = path == "-" ? "standard input" : "'" + path + "'";
  Expected<std::string> content = contentOf(path);
  HPC_RETURN_IF_ERROR(content.status());
  std::vector<GivenPrompt> prompts;
  int64_t number = 0;
  for (size_t begin = 0; begin < content->size();) {
    const size_t end = std::min(content->find('\n', begin), content->size());
    const std::string_view line = std::string_view(*content).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos)
      continue;
    GivenPrompt prompt{name + ", line " + std::to_string(number), "", {}};
    if (const std::string wrong = takeLine(line, isIds, prompt); !wrong.empty())
      return Status::error(ErrorKind::Io, prompt.place + " " + wrong + "; a line is " + (isIds ? "{\"ids\": [5, 9]}" : "{\"prompt\": \"text\"}"));
    prompts.push_back(std::move(prompt));
  }
  if (prompts.empty())
    return promptUsage(name + " has no line, so there is no prompt; give one a line, as " + (isIds ? "{\"ids\": [5, 9]}" : "{\"prompt\": \"text\"}"));
  return prompts;
}

Expected<std::vector<GivenPrompt>> readPrompts(const Arguments &arguments) {
  std::string given;
  for (const char *flag : {"prompt", "prompts", "ids"})
    if (arguments.has(flag)) {
      if (!given.empty())
        return promptUsage("--" + given + " and --" + flag + " both give prompts; leave one of them out");
      given = flag;
    }
  if (given.empty())
    return promptUsage("there is no prompt; give --prompt=TEXT, --prompts=FILE.jsonl or --ids=FILE.jsonl");
  std::vector<GivenPrompt> prompts;
  if (given == "prompt") {
    for (const std::string &text : arguments.all("prompt"))
      prompts.push_back({"--prompt", text, {}});
  } else {
    const std::string path = arguments.text(given);
    Expected<std::vector<GivenPrompt>> read = readLines(path.empty() && given == "ids" ? "-" : path, given == "ids");
    HPC_RETURN_IF_ERROR(read.status().at("--" + given));
    prompts = std::move(*read);
  }
  for (const GivenPrompt &prompt : prompts) {
    if (given == "ids" ? prompt.ids.empty() : prompt.text.empty())
      return promptUsage(prompt.place + ": the prompt is empty, and there is nothing to continue; give at least one " + (given == "ids" ? "id" : "word"));
    if (generate::validUtf8(prompt.text) != prompt.text)
      return promptUsage(prompt.place + ": the prompt is no UTF-8; convert it");
  }
  return prompts;
}

Status encodePrompts(const text::Tokenizer &tokenizer, std::vector<GivenPrompt> &prompts) {
  const std::unique_ptr<text::Tokenizer::Memory> memory = tokenizer.makeMemory();
  for (GivenPrompt &prompt : prompts) {
    std::vector<int32_t> ids;
    if (tokenizer.begin())
      ids.push_back(*tokenizer.begin());
    const size_t before = ids.size();
    HPC_RETURN_IF_ERROR(tokenizer.encode(prompt.text, ids, *memory).at(prompt.place));
    if (ids.size() == before)
      return promptUsage(prompt.place + ": the tokenizer makes no token of the prompt; give at least one word");
    prompt.ids.assign(ids.begin(), ids.end());
  }
  return Status::success();
}

} // namespace hpc
