// A message is what a step takes: its kind, position, row and ids.
#include "runtime/generate/PlanDecoder.h"

#include "runtime/base/ArrayElements.h"
#include "runtime/core/WideningConversion.h"
#include "runtime/plan/Entries.h"

#include <algorithm>
#include <cstring>

namespace hpc::generate {

static const char *const entryOf[] = {"prefill", "decode", "reorder"};

static Status otherKind(const plan::Plan &plan, const std::string &what) {
  const std::string entries = plan::entryNames(plan);
  return Status::error(ErrorKind::Usage, what + (entries.empty() ? "" : " (its entries are " + entries + ")") +
                                             ", so it generates no text; make a plan of the model with hpc-opt --generate");
}

/// The number of the port that `isIt` is true of.
template <typename IsIt> static std::optional<size_t> portOf(const std::vector<plan::Port> &ports, IsIt isIt) {
  const auto found = std::find_if(ports.begin(), ports.end(), isIt);
  return found == ports.end() ? std::nullopt : std::optional(size_t(found - ports.begin()));
}
static std::optional<size_t> scalarOf(const plan::Plan &entry, const char *name) {
  return portOf(entry.inputs, [&](const plan::Port &port) { return port.isStepScalar && port.name == name; });
}
static std::optional<size_t> idsOf(const plan::Plan &entry) {
  return portOf(entry.inputs, [](const plan::Port &port) { return !port.isStepScalar; });
}

Expected<DecoderShape> PlanDecoder::shapeOf(const plan::Plan &plan) {
  DecoderShape shape;
  for (const char *name : {entryOf[0], entryOf[1]}) {
    Expected<size_t> number = plan::findEntry(plan, name);
    if (plan.entries.empty() || !number.ok())
      return otherKind(plan, std::string("the plan has no entry '") + name + "'");
    const plan::Plan entry = plan::planOf(plan, *number);
    const std::optional<size_t> ids = idsOf(entry), position = scalarOf(entry, "position");
    if (!ids || entry.inputs[*ids].shape.size() != 2 || !position || !entry.inputs[*position].largest || entry.outputs.empty() || entry.outputs[0].shape.size() != 3)
      return otherKind(plan, std::string("the entry '") + name + "' of the plan does not take ids and a position and give logits");
    const std::vector<int64_t> &in = entry.inputs[*ids].shape;
    (name == entryOf[0] ? shape.chunk : shape.maxLength) = name == entryOf[0] ? in[1] : *entry.inputs[*position].largest + 1;
    shape.batch = in[0];
    shape.vocabulary = entry.outputs[0].shape[2];
  }
  return shape;
}

Expected<PlanDecoder> PlanDecoder::create(const plan::Plan &plan, Session &session, std::function<bool()> isStopped) {
  Expected<DecoderShape> shape = shapeOf(plan);
  HPC_RETURN_IF_ERROR(shape.status());
  PlanDecoder decoder(session, *shape, std::move(isStopped));
  for (Step step : {Step::Prefill, Step::Decode, Step::Reorder}) {
    Expected<size_t> number = plan::findEntry(plan, entryOf[size_t(step)]);
    HPC_RETURN_IF_ERROR(number.status());
    const plan::Plan &own = session.entry(*number);
    Entry &entry = decoder.entries[size_t(step)];
    entry = {*number, idsOf(own), scalarOf(own, "position"), scalarOf(own, "row"), std::nullopt, {}, {}};
    for (const plan::Port &port : own.inputs)
      entry.inputs.push_back(Array::zeros(port.dtype, port.shape));
    for (size_t input = 0; input < own.inputs.size(); ++input)
      if (std::optional<size_t> number(input); number != entry.ids && number != entry.position && number != entry.row && step != Step::Reorder)
        return otherKind(plan, std::string("the entry '") + entryOf[size_t(step)] + "' of the plan takes '" + own.inputs[input].name + "'");
    if (!own.outputs.empty())
      entry.logits = 0;
    if (step == Step::Reorder && int64_t(own.inputs.size()) != shape->batch)
      return otherKind(plan, "the entry 'reorder' of the plan does not take the number of a row for each of " + std::to_string(shape->batch));
  }
  return decoder;
}

/// In one process nobody else is there.
Status PlanDecoder::announce(const std::vector<int64_t> &message) {
  if (session.ownRanks().count == session.entry(0).worldSize())
    return Status::success();
  std::string bytes(message.size() * sizeof(int64_t), '\0');
  std::memcpy(bytes.data(), message.data(), bytes.size());
  Expected<std::vector<std::string>> all = session.exchange(bytes);
  HPC_RETURN_IF_ERROR(all.status());
  for (size_t process = 1; process < all->size(); ++process)
    interrupted |= (*all)[process] == "stop";
  return Status::success();
}

Status PlanDecoder::run(Step step, const int64_t *numbers, int64_t position, int64_t row) {
  Entry &entry = entries[size_t(step)];
  auto put = [&](std::optional<size_t> input, const int64_t *from) {
    if (!input)
      return;
    Array &array = entry.inputs[*input];
    for (int64_t i = 0; i < array.elements(); ++i)
      if (array.dtype == DType::I32)
        array.as<int32_t>()[i] = int32_t(from[i]);
      else
        array.as<int64_t>()[i] = from[i];
  };
  put(entry.ids, numbers);
  for (size_t scalar = 0; step == Step::Reorder && scalar < entry.inputs.size(); ++scalar)
    put(scalar, numbers + scalar);
  put(entry.position, &position);
  put(entry.row, &row);
  const Status status = session.run(entry.number, entry.inputs, entry.outputs);
  failed |= !status.ok();
  return status;
}

Status PlanDecoder::run(Step step, const std::vector<int64_t> &numbers, int64_t position, int64_t row) {
  std::vector<int64_t> message = {int64_t(step), position, row};
  message.insert(message.end(), numbers.begin(), numbers.end());
  HPC_RETURN_IF_ERROR(announce(message));
  return run(step, numbers.data(), position, row);
}

void PlanDecoder::readLogits(Step step, std::vector<float> &logits) const {
  const Array &array = entries[size_t(step)].outputs[*entries[size_t(step)].logits];
  logits.resize(size_t(array.elements()));
  if (array.dtype == DType::F32)
    std::memcpy(logits.data(), array.data.data(), array.data.size());
  else if (isExactIn(array.dtype, DType::F32))
    widen(array.dtype, array.data.data(), DType::F32, reinterpret_cast<std::byte *>(logits.data()), array.elements());
  else
    for (int64_t i = 0; i < array.elements(); ++i)
      logits[size_t(i)] = float(numberAt(array, i));
}

Status PlanDecoder::prefill(const std::vector<int64_t> &ids, int64_t position, int64_t row, std::vector<float> &logits) {
  HPC_RETURN_IF_ERROR(run(Step::Prefill, ids, position, row));
  readLogits(Step::Prefill, logits);
  return Status::success();
}

Status PlanDecoder::decode(const std::vector<int64_t> &ids, int64_t position, std::vector<float> &logits) {
  HPC_RETURN_IF_ERROR(run(Step::Decode, ids, position, 0));
  readLogits(Step::Decode, logits);
  return Status::success();
}

Status PlanDecoder::reorder(const std::vector<int64_t> &rows) { return run(Step::Reorder, rows, 0, 0); }

Status PlanDecoder::finish() { return failed ? Status::success() : announce({int64_t(Step::Finish), 0, 0}); }

Status PlanDecoder::follow() {
  while (true) {
    Expected<std::vector<std::string>> all = session.exchange(isStopped() ? "stop" : "");
    HPC_RETURN_IF_ERROR(all.status());
    const std::string &bytes = all->front(); // of this program, which all processes run
    std::vector<int64_t> message(bytes.size() / sizeof(int64_t));
    std::memcpy(message.data(), bytes.data(), bytes.size());
    const Step step = Step(message[0]);
    if (step == Step::Finish)
      return Status::success();
    HPC_RETURN_IF_ERROR(run(step, message.data() + 3, message[1], message[2]));
  }
}

} // namespace hpc::generate
