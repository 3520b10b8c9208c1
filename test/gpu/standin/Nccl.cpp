// NCCL's functions under their own names. Calls return at once, often before they have come into effect, as those of a
// communicator that does not block may; work is done on the stream, and ends early when the communicator is aborted.
#include "runtime/backend/cuda/NcclApi.h"
#include "test/gpu/standin/Machine.h"
#include "test/gpu/standin/NcclMail.h"
#include "test/gpu/standin/NcclReduce.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <unistd.h>

using namespace hpc::cuda;
using standin::Machine;
using standin::Piece;
using standin::Range;
using standin::Running;

namespace hpc::cuda {
struct NcclState {
  ContextState *context = nullptr;
  int rank = 0, ranks = 0;
  standin::NcclMail mail;
  std::mutex mutex;                           ///< of the three below
  std::vector<std::function<void()>> waiting; ///< to be enqueued when the call has come into effect
  bool isWatched = false;                     ///< somebody has asked while nothing was in progress
  int polls = 0;                              ///< until it has
  std::atomic<bool> isJoined{false}, isAborted{false};
  std::atomic<NcclResult> error{ncclSuccess};
  std::mutex running; ///< one call at a time
  uint64_t calls = 0; ///< that have run
};
} // namespace hpc::cuda

namespace {

using State = std::shared_ptr<NcclState>;

#define ENTER(FAILURE)                                                                                                 \
  if (int failure = Machine::instance().enter(__func__, FAILURE))                                                      \
  return failure

std::mutex aliveMutex;
std::map<NcclHandle, State> &alive() {
  static auto *states = new std::map<NcclHandle, State>;
  return *states;
}

State find(NcclHandle handle) {
  std::lock_guard<std::mutex> lock(aliveMutex);
  auto found = alive().find(handle);
  if (found != alive().end())
    return found->second;
  Machine::instance().misuse("a communicator is used that was given up, or never made");
  return nullptr;
}

/// One call, to be run on its stream. `move` says what goes where, given the memory of source and target, and what is
/// left to do when it has.
struct Call {
  State state;
  StreamHandle stream;
  std::function<void(const Running &, uint64_t number, std::vector<Piece> &)> begin;
  std::function<void(const Running &)> end;
};

struct Group {
  int depth = 0;
  std::vector<Call> calls;
};
Group &group() {
  static thread_local Group one;
  return one;
}

double patience() {
  const char *seconds = std::getenv("HPC_STANDIN_PATIENCE");
  return seconds ? std::atof(seconds) : 30;
}

void run(NcclState &state, const std::vector<Call> &calls, const Running &running) {
  std::lock_guard<std::mutex> lock(state.running);
  auto stop = [&] { return state.isAborted.load() || running.context.error != 0; };
  if (stop() || state.error != ncclSuccess)
    return;
  std::vector<Piece> pieces;
  for (const Call &call : calls)
    call.begin(running, state.calls, pieces);
  ++state.calls;
  std::string error = state.mail.move(pieces, stop, patience());
  if (!error.empty()) {
    Machine::instance().misuse(error);
    state.error = ncclInternalError;
  }
  if (stop() || !error.empty())
    return;
  for (const Call &call : calls)
    if (call.end)
      call.end(running);
}

/// All calls of a group on one communicator are one piece of work.
NcclResult launch(std::vector<Call> calls) {
  NcclResult result = ncclSuccess;
  while (!calls.empty()) {
    State state = calls.front().state;
    const StreamHandle stream = calls.front().stream;
    std::vector<Call> mine, others;
    for (Call &call : calls)
      (call.state == state ? mine : others).push_back(std::move(call));
    calls = std::move(others);
    auto enqueue = [state, stream, mine = std::move(mine)] {
      stream->enqueue("NCCL", [state, mine](const Running &running) { run(*state, mine, running); });
    };
    std::lock_guard<std::mutex> lock(state->mutex);
    // A stream that is being captured has its work at once.
    if (Machine::instance().chance(3) && !stream->isCapturing()) {
      state->waiting.push_back(std::move(enqueue));
      state->polls = 2;
      result = ncclInProgress;
    } else {
      enqueue();
    }
  }
  return result;
}

NcclResult add(Call call) {
  if (!call.state)
    return ncclInvalidArgument;
  NcclState &state = *call.state;
  Machine &machine = Machine::instance();
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    if (!state.isJoined || !state.waiting.empty())
      machine.misuse("a communicator is called while the call before is in progress");
  }
  if (&call.stream->context != state.context || standin::currentContext() != state.context)
    return ncclInvalidArgument;
  if (state.error != ncclSuccess)
    return state.error;
  if (group().depth > 0) {
    group().calls.push_back(std::move(call));
    return ncclSuccess;
  }
  return launch({std::move(call)});
}

uint64_t addressOf(const void *pointer) { return uint64_t(reinterpret_cast<uintptr_t>(pointer)); }

standin::Label label(const char *call, uint64_t number, uint64_t bytes, int type, int operation) {
  standin::Label made{};
  std::strncpy(made.call, call, sizeof(made.call) - 1);
  made.number = number;
  made.bytes = bytes;
  made.type = type;
  made.operation = operation;
  return made;
}

/// Every rank sends each other `bytes` from its own place for it; what comes is kept until `combine` has it. Source and
/// target may be one only as documentation allows.
Call collective(State state, StreamHandle stream, const char *name, Range source, Range target, uint64_t inPlace,
                uint64_t bytes, uint64_t step, int type, int operation,
                std::function<void(const std::vector<std::vector<std::byte>> &, std::byte *target)> combine) {
  const bool overlaps = source.begin < target.begin + target.bytes && target.begin < source.begin + source.bytes;
  if (overlaps && source.begin - target.begin != inPlace)
    Machine::instance().misuse(std::string(name) + ": source and target overlap");
  auto kept = std::make_shared<std::vector<std::vector<std::byte>>>();
  Call call{state, stream, nullptr, nullptr};
  const int rank = state ? state->rank : 0, ranks = state ? state->ranks : 0;
  call.begin = [=](const Running &running, uint64_t number, std::vector<Piece> &pieces) {
    const std::byte *from = running.access(source.begin, source.bytes);
    running.note({source}, false);
    if (!from)
      return;
    kept->assign(size_t(ranks) * 2, std::vector<std::byte>(bytes)); // what comes, then what goes
    for (int peer = 0; peer < ranks; ++peer) {
      std::vector<std::byte> &goes = (*kept)[size_t(ranks + peer)];
      std::memcpy(goes.data(), from + uint64_t(peer) * step, bytes);
      if (peer == rank) {
        (*kept)[size_t(peer)] = goes;
        continue;
      }
      const standin::Label what = label(name, number, bytes, type, operation);
      pieces.push_back({peer, true, goes.data(), what});
      pieces.push_back({peer, false, (*kept)[size_t(peer)].data(), what});
    }
  };
  call.end = [=](const Running &running) {
    running.note({target}, true);
    std::byte *to = running.access(target.begin, target.bytes);
    kept->resize(size_t(ranks));
    if (to)
      combine(*kept, to);
  };
  return call;
}

/// From the last rank to the first: not the order that anybody expects.
std::function<void(const std::vector<std::vector<std::byte>> &, std::byte *)> reducing(int type, int operation,
                                                                                       size_t count) {
  return [=](const std::vector<std::vector<std::byte>> &values, std::byte *target) {
    std::vector<std::byte> sum = values.back();
    for (size_t i = values.size() - 1; i-- > 0;)
      standin::ncclCombine(type, operation, sum.data(), values[i].data(), count);
    std::memcpy(target, sum.data(), sum.size());
  };
}

} // namespace

extern "C" {

NcclResult ncclGetVersion(int *version) {
  ENTER(ncclInternalError);
  *version = 22809;
  return ncclSuccess;
}
const char *ncclGetErrorString(NcclResult result) {
  return result == ncclSystemError     ? "unhandled system error"
         : result == ncclInternalError ? "internal error"
         : result == ncclInvalidUsage  ? "invalid usage"
         : result == ncclRemoteError   ? "remote process exited or there was a network error"
                                       : "unknown result code";
}
NcclResult ncclGetUniqueId(NcclId *id) {
  ENTER(ncclSystemError);
  static std::atomic<uint64_t> made{0};
  *id = NcclId();
  std::snprintf(id->bytes, sizeof(id->bytes), "%d-%llu-%llx", int(::getpid()), (unsigned long long)(++made),
                (unsigned long long)(std::chrono::steady_clock::now().time_since_epoch().count()));
  return ncclSuccess;
}
NcclResult ncclCommInitRankConfig(NcclHandle *handle, int ranks, NcclId id, int rank, NcclConfig *config) {
  ENTER(ncclSystemError);
  if (!config || config->magic != 0xcafebeef || config->blocking != 0 || !standin::currentContext() ||
      std::memchr(id.bytes, 0, sizeof(id.bytes)) == nullptr)
    return ncclInvalidArgument;
  State state = std::make_shared<NcclState>();
  state->context = standin::currentContext();
  state->rank = rank;
  state->ranks = ranks;
  const char *host = std::getenv("NCCL_HOSTID");
  const uint64_t place = std::hash<std::string>()(host ? host : "") * 64 + uint64_t(state->context->device);
  std::string error = standin::NcclMail::join(id.bytes, ranks, rank, place, state->mail);
  if (!error.empty()) {
    Machine::instance().misuse(error);
    return ncclInvalidUsage;
  }
  *handle = state.get();
  Machine::instance().count("communicators", 1);
  std::lock_guard<std::mutex> lock(aliveMutex);
  alive()[state.get()] = state;
  return ncclInProgress;
}
NcclResult ncclCommAbort(NcclHandle handle) {
  State state = find(handle);
  if (!state)
    return ncclInvalidArgument;
  state->isAborted = true;
  Machine::instance().count("communicators", -1);
  std::vector<std::function<void()>> dropped; // they hold the state that holds them
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    dropped.swap(state->waiting);
  }
  std::lock_guard<std::mutex> lock(aliveMutex);
  alive().erase(handle);
  return ncclSuccess;
}
NcclResult ncclCommGetAsyncError(NcclHandle handle, NcclResult *result) {
  State state = find(handle);
  if (!state)
    return ncclInvalidArgument;
  std::lock_guard<std::mutex> lock(state->mutex);
  // How often somebody asks in vain is chance, and not counted.
  const bool isNews = !state->isJoined || !state->waiting.empty() || !state->isWatched;
  if (!state->isJoined)
    state->isJoined = state->mail.isComplete();
  *result = state->isJoined ? state->error.load() : ncclInProgress;
  if (*result != ncclSuccess)
    return ncclSuccess;
  if (!state->waiting.empty() && --state->polls > 0) {
    *result = ncclInProgress;
    return ncclSuccess;
  }
  if (isNews) {
    state->isWatched = state->waiting.empty();
    ENTER(ncclSystemError);
  }
  for (const std::function<void()> &enqueue : state->waiting)
    enqueue();
  state->waiting.clear();
  *result = ncclSuccess;
  return ncclSuccess;
}
NcclResult ncclGroupStart() {
  ENTER(ncclInternalError);
  ++group().depth;
  return ncclSuccess;
}
NcclResult ncclGroupEnd() {
  Group &mine = group();
  if (mine.depth == 0) {
    Machine::instance().misuse("a group is ended that was not begun");
    return ncclInvalidUsage;
  }
  if (--mine.depth > 0)
    return ncclSuccess;
  std::vector<Call> calls = std::move(mine.calls);
  mine.calls.clear();
  ENTER(ncclSystemError); // a group that fails has ended
  return launch(std::move(calls));
}
NcclResult ncclAllReduce(const void *source, void *target, size_t count, int type, int operation, NcclHandle handle,
                         StreamHandle stream) {
  ENTER(ncclSystemError);
  const uint64_t bytes = count * standin::ncclBytes(type);
  if (bytes == 0)
    return ncclInvalidArgument;
  return add(collective(find(handle), stream, "AllReduce", {addressOf(source), bytes}, {addressOf(target), bytes}, 0,
                        bytes, 0, type, operation, reducing(type, operation, count)));
}
NcclResult ncclAllGather(const void *source, void *target, size_t count, int type, NcclHandle handle,
                         StreamHandle stream) {
  ENTER(ncclSystemError);
  const uint64_t bytes = count * standin::ncclBytes(type);
  State state = find(handle);
  if (bytes == 0 || !state)
    return ncclInvalidArgument;
  auto concatenate = [bytes](const std::vector<std::vector<std::byte>> &values, std::byte *to) {
    for (size_t i = 0; i < values.size(); ++i)
      std::memcpy(to + i * bytes, values[i].data(), bytes);
  };
  return add(collective(state, stream, "AllGather", {addressOf(source), bytes},
                        {addressOf(target), bytes * uint64_t(state->ranks)}, bytes * uint64_t(state->rank), bytes, 0,
                        type, 0, concatenate));
}
NcclResult ncclReduceScatter(const void *source, void *target, size_t count, int type, int operation, NcclHandle handle,
                             StreamHandle stream) {
  ENTER(ncclSystemError);
  const uint64_t bytes = count * standin::ncclBytes(type);
  State state = find(handle);
  if (bytes == 0 || !state)
    return ncclInvalidArgument;
  return add(collective(state, stream, "ReduceScatter", {addressOf(source), bytes * uint64_t(state->ranks)},
                        {addressOf(target), bytes}, 0 - bytes * uint64_t(state->rank), bytes, bytes, type, operation,
                        reducing(type, operation, count)));
}

static NcclResult message(bool isSend, void *address, size_t count, int type, int peer, NcclHandle handle,
                          StreamHandle stream) {
  const uint64_t bytes = count * standin::ncclBytes(type);
  State state = find(handle);
  if (bytes == 0 || !state || peer < 0 || peer >= state->ranks || peer == state->rank)
    return ncclInvalidArgument;
  Call call{state, stream, nullptr, nullptr};
  call.begin = [=](const Running &running, uint64_t, std::vector<Piece> &pieces) {
    running.note({{addressOf(address), bytes}}, !isSend);
    // Messages are counted by pair, and the pairs of a communicator need not have equally many.
    if (std::byte *data = running.access(addressOf(address), bytes))
      pieces.push_back({peer, isSend, data, label("message", 0, bytes, type, 0)});
  };
  return add(std::move(call));
}
NcclResult ncclSend(const void *source, size_t count, int type, int peer, NcclHandle handle, StreamHandle stream) {
  ENTER(ncclSystemError);
  return message(true, const_cast<void *>(source), count, type, peer, handle, stream);
}
NcclResult ncclRecv(void *target, size_t count, int type, int peer, NcclHandle handle, StreamHandle stream) {
  ENTER(ncclSystemError);
  return message(false, target, count, type, peer, handle, stream);
}
} // extern "C"

#define HPC_SAME_TYPE(result, member, symbol, arguments)                                                               \
  static_assert(std::is_same_v<decltype(&::symbol), decltype(Nccl::member)>);
HPC_NCCL_FUNCTIONS(HPC_SAME_TYPE)
