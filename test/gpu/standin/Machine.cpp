// Streams: a thread each, that waits a random while before each thing it does.
#include "test/gpu/standin/Machine.h"

#include "test/gpu/standin/Capture.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace standin {

void configure(const Settings &settings) { Machine::instance().configure(settings); }
int64_t calls() { return Machine::instance().calls(); }
int64_t launchedGraphs() { return Machine::instance().launchedGraphs; }
int64_t epilogues() { return Machine::instance().epilogues; }
std::string failedCall() { return Machine::instance().failedCall(); }
std::vector<std::string> races() { return Machine::instance().races(); }
std::vector<std::string> misuses() { return Machine::instance().misuses(); }
std::string leaks() { return Machine::instance().leaks() + Memory::instance().leaks(); }

namespace {
/// A program that knows nothing of the stand-in must not end well after a race.
__attribute__((destructor)) void tell() {
  std::string text = leaks();
  for (const std::string &line : races())
    text += "race: " + line + "\n";
  for (const std::string &line : misuses())
    text += "misuse: " + line + "\n";
  if (text.empty())
    return;
  std::fprintf(stderr, "stand-in for the GPU:\n%s", text.c_str());
  std::fflush(nullptr);
  ::_exit(3);
}
} // namespace

ContextState *&currentContext() {
  static thread_local ContextState *current = nullptr;
  return current;
}

std::byte *Running::access(uint64_t address, uint64_t bytes) const {
  int device = 0;
  std::byte *data = Memory::instance().find(address, bytes, device);
  if (data && (device < 0 || device == context.device || context.reaches(device)))
    return data;
  fault(hpc::cuda::driverIllegalAddress);
  return nullptr;
}

void Running::note(const std::vector<Range> &ranges, bool isWrite) const {
  for (const std::string &text : Memory::instance().note(ranges, isWrite, {moment, what}, clock))
    Machine::instance().race(text);
}

void Running::fault(DriverResult result) const {
  DriverResult none = 0;
  context.error.compare_exchange_strong(none, result); // the first stays
}

Machine::Machine() {
  auto number = [](const char *name, uint64_t otherwise) {
    const char *value = std::getenv(name);
    return value ? std::strtoull(value, nullptr, 10) : otherwise;
  };
  current.seed = number("HPC_STANDIN_SEED", current.seed);
  current.devices = int(number("HPC_STANDIN_DEVICES", uint64_t(current.devices)));
  current.failingCall = int64_t(number("HPC_STANDIN_FAILING_CALL", uint64_t(current.failingCall)));
  random.seed(current.seed);
}

Machine &Machine::instance() {
  static Machine *machine = new Machine;
  return *machine;
}

void Machine::configure(const Settings &settings) {
  std::lock_guard<std::mutex> lock(mutex);
  current = settings;
  random.seed(settings.seed);
  callCount = 0;
  launchedGraphs = 0;
  epilogues = 0;
  failed.clear();
  raceTexts.clear();
  misuseTexts.clear();
  for (auto &[device, context] : contexts)
    context.error = 0;
}

int Machine::enter(const char *call, int failure) {
  std::lock_guard<std::mutex> lock(mutex);
  if (callCount++ != current.failingCall)
    return 0;
  failed = call;
  return failure;
}

int64_t Machine::calls() {
  std::lock_guard<std::mutex> lock(mutex);
  return callCount;
}

std::string Machine::failedCall() {
  std::lock_guard<std::mutex> lock(mutex);
  return failed;
}

void Machine::misuse(const std::string &text) {
  std::lock_guard<std::mutex> lock(mutex);
  misuseTexts.push_back(text);
}

void Machine::race(const std::string &text) {
  std::lock_guard<std::mutex> lock(mutex);
  raceTexts.push_back(text);
}

std::vector<std::string> Machine::races() {
  std::lock_guard<std::mutex> lock(mutex);
  return raceTexts;
}

std::vector<std::string> Machine::misuses() {
  std::lock_guard<std::mutex> lock(mutex);
  return misuseTexts;
}

std::string Machine::leaks() {
  std::lock_guard<std::mutex> lock(mutex);
  std::string text;
  for (const auto &[kind, number] : live)
    if (number != 0)
      text += std::to_string(number) + " of " + kind + "\n";
  return text;
}

Settings Machine::settings() const {
  std::lock_guard<std::mutex> lock(mutex);
  return current;
}

std::chrono::microseconds Machine::delay() {
  std::lock_guard<std::mutex> lock(mutex);
  // Most things begin at once, so that some queues run far ahead of others.
  if (current.longestDelay == 0 || random() % 4 != 0)
    return std::chrono::microseconds(0);
  return std::chrono::microseconds(random() % uint64_t(current.longestDelay));
}

bool Machine::chance(uint64_t times) {
  std::lock_guard<std::mutex> lock(mutex);
  return random() % times == 0;
}

int Machine::newTimeline() {
  std::lock_guard<std::mutex> lock(mutex);
  return timelines++;
}

Clock Machine::hostClock() {
  std::lock_guard<std::mutex> lock(mutex);
  return host;
}

void Machine::hostLearns(const Clock &clock) {
  std::lock_guard<std::mutex> lock(mutex);
  host.join(clock);
}

ContextState *Machine::context(int device) {
  std::lock_guard<std::mutex> lock(mutex);
  auto [known, isNew] = contexts.try_emplace(device);
  if (isNew) // streams read it without asking
    known->second.device = device;
  return &known->second;
}

void Machine::count(const std::string &kind, int change) {
  std::lock_guard<std::mutex> lock(mutex);
  live[kind] += change;
}

} // namespace standin

namespace hpc::cuda {

using standin::Machine;

void ContextState::retain() {
  std::lock_guard<std::mutex> lock(mutex);
  ++holders;
}

bool ContextState::release() {
  std::lock_guard<std::mutex> lock(mutex);
  if (holders == 0)
    return false;
  if (--holders == 0)
    reached.clear();
  return true;
}

bool ContextState::isRetained() const {
  std::lock_guard<std::mutex> lock(mutex);
  return holders > 0;
}

bool ContextState::reach(int other) {
  std::lock_guard<std::mutex> lock(mutex);
  return reached.insert(other).second;
}

bool ContextState::reaches(int other) const {
  std::lock_guard<std::mutex> lock(mutex);
  return reached.count(other) > 0;
}

namespace {
std::mutex allStreamsMutex;
std::set<StreamState *> allStreams;
} // namespace

StreamState::StreamState(ContextState &context)
    : context(context), timeline(Machine::instance().newTimeline()), thread([this] { run(); }) {
  Machine::instance().count("streams", 1);
  std::lock_guard<std::mutex> lock(allStreamsMutex);
  allStreams.insert(this);
}

StreamState::~StreamState() {
  {
    std::lock_guard<std::mutex> lock(allStreamsMutex);
    allStreams.erase(this);
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    leaving = true;
  }
  changed.notify_all();
  thread.join();
  Machine::instance().count("streams", -1);
}

void StreamState::enqueue(const std::string &what, std::function<void(const standin::Running &)> work, bool isOrder) {
  {
    std::lock_guard<std::mutex> lock(standin::captureMutex());
    if (capture)
      return capture->add(this, what, std::move(work));
  }
  standin::Clock host = Machine::instance().hostClock();
  std::lock_guard<std::mutex> lock(mutex);
  queue.push_back({what, std::move(work), std::move(host), isOrder});
  changed.notify_all();
}

void StreamState::run() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return !queue.empty() || leaving; });
    if (queue.empty())
      return;
    Op op = std::move(queue.front());
    queue.pop_front();
    busy = true;
    lock.unlock();
    if (auto delay = Machine::instance().delay(); delay.count() > 0)
      std::this_thread::sleep_for(delay);
    clock.join(op.host);
    standin::Running running{context, clock, clock.tick(timeline), op.what};
    if (op.isOrder || context.error == 0)
      op.work(running);
    op.work = nullptr;
    lock.lock();
    busy = false;
    if (queue.empty())
      changed.notify_all();
  }
}

void StreamState::synchronize() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return queue.empty() && !busy; });
  Machine::instance().hostLearns(clock);
}

bool StreamState::isCapturing() const {
  std::lock_guard<std::mutex> lock(standin::captureMutex());
  return capture != nullptr;
}

bool StreamState::idle() {
  std::lock_guard<std::mutex> lock(mutex);
  return queue.empty() && !busy;
}

} // namespace hpc::cuda

void standin::synchronizeAll(ContextState &context) {
  std::lock_guard<std::mutex> lock(hpc::cuda::allStreamsMutex);
  for (hpc::cuda::StreamState *stream : hpc::cuda::allStreams)
    if (&stream->context == &context)
      stream->synchronize();
}
