#include "tools/hpc-generate/Answers.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace hpc {

using generate::Answer;
using generate::FinishReason;

static const char *nameOf(FinishReason reason) {
  switch (reason) {
  case FinishReason::Length:
    return "length";
  case FinishReason::EndToken:
    return "end_token";
  case FinishReason::StopText:
    return "stop_text";
  case FinishReason::Interrupted:
    return "interrupted";
  }
  return "";
}

Answers::Answers(const std::vector<GivenPrompt> &prompts, AnswerOptions given)
    : prompts(prompts), options(std::move(given)), slots(prompts.size() * size_t(options.perPrompt)) {}

Answers::Slot &Answers::slotOf(size_t number) {
  Slot &slot = slots[number];
  if (slot.hasBegun)
    return slot;
  slot.hasBegun = true;
  if (options.tokenizer) {
    const std::vector<int64_t> &ids = promptOf(number).ids;
    slot.stream.emplace(*options.tokenizer, std::vector<int32_t>(ids.begin(), ids.end()), options.stops);
  }
  if (!options.asJson)
    slot.text = (number > 0 ? "---\n" : "") + promptOf(number).text;
  return slot;
}

Status Answers::add(size_t number, int64_t id) {
  Slot &slot = slotOf(number);
  if (!slot.stream || std::find(options.endTokens.begin(), options.endTokens.end(), id) != options.endTokens.end())
    return Status::success();
  Expected<std::string> text = slot.stream->add(id);
  HPC_RETURN_IF_ERROR(text.status());
  if (!options.asJson)
    slot.text += *text;
  print();
  return Status::success();
}

Status Answers::finish(size_t number, const Answer &answer) {
  if (!slots[number].hasBegun)
    for (int64_t id : answer.ids)
      HPC_RETURN_IF_ERROR(add(number, id));
  Slot &slot = slotOf(number);
  nlohmann::ordered_json line;
  if (slot.stream) {
    Expected<std::string> rest = slot.stream->finish();
    HPC_RETURN_IF_ERROR(rest.status());
    unknown += slot.stream->unknownIds();
    if (!options.asJson)
      slot.text += *rest + "\n";
    line["prompt"] = promptOf(number).text;
    line["text"] = slot.stream->text();
  } else {
    line["prompt_ids"] = promptOf(number).ids;
  }
  line["ids"] = answer.ids;
  if (options.hasScores)
    line["score"] = answer.score;
  line["finish_reason"] = nameOf(answer.reason);
  slot.line = line.dump() + "\n";
  if (options.asJson)
    slot.text = slot.line;
  slot.isFinished = true;
  print();
  return Status::success();
}

void Answers::write(std::string_view text) {
  if (!options.isPrinted || refused != 0 || text.empty())
    return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    refused = errno;
}

void Answers::print() {
  for (; next < slots.size(); ++next) {
    write(slots[next].text);
    slots[next].text.clear();
    if (!slots[next].isFinished)
      return;
  }
}

void Answers::flush() {
  for (Slot &slot : slots) {
    write(slot.text);
    slot.text.clear();
  }
}

std::string Answers::lines() const {
  std::string all;
  for (const Slot &slot : slots)
    all += slot.line;
  return all;
}

} // namespace hpc
