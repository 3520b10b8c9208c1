// Messages by UCX, the engine below Open MPI: shared memory on one machine, TCP or RDMA between several. It needs no
// launcher, just the others' addresses, which the rendezvous brings. A tag holds epoch, sender and the caller's tag.
#include "runtime/backend/processes/Transport.h"
#include "runtime/base/AvailableMemory.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <ucp/api/ucp.h>
#include <utility>

namespace hpc::processes {

namespace {

constexpr int tagBits = 32, processBits = 20, epochBits = 64 - tagBits - processBits;

Status error(const std::string &what, ucs_status_t code) {
  return Status::error(ErrorKind::Io, "UCX: " + what + ": " + ucs_status_string(code));
}

Status connectError(size_t process, ucs_status_t code) {
  std::string what = "connecting to process " + std::to_string(process);
  if (code == UCS_ERR_UNREACHABLE)
    what += " (no network that UCX has found joins the two processes; see that it is up, and that UCX_NET_DEVICES and "
            "UCX_TLS, where set, name one that both have)";
  return error(what, code);
}

/// UCX only reports that it got no memory; mostly it is that of /dev/shm. Empty if there is enough for `processes`,
/// each of which starts two engines before it knows which it needs.
std::string sharedMemoryHint(int64_t processes) {
  constexpr int64_t mebibyte = 1 << 20;
  constexpr double perProcess = 8.3; // two segments of 512 buffers of 8256 bytes, and their queues
  const int64_t count = std::max<int64_t>(processes, 1), needed = int64_t(perProcess * double(count) * mebibyte);
  const SharedMemory memory = sharedMemory();
  if (memory.free >= needed)
    return {};
  return "; " + memory.text(needed) +
         (count > 1 ? " for the " + std::to_string(count) + " processes of this machine" : "") +
         (memory.bytes - memory.free >= mebibyte ? " (" + std::to_string(memory.free / mebibyte) + " are free)" : "") +
         "; make it larger (docker run --shm-size=1g, mount -o remount,size=1g /dev/shm), or do without it: "
         "UCX_TLS=^cma,posix";
}

class UcxTransport;

class UcxTransfer : public Transfer {
public:
  /// `receiver`: the worker that receives; null for a send.
  UcxTransfer(UcxTransport &owner, void *request, ucp_worker_h receiver)
      : owner(owner), request(request), receiver(receiver) {}
  ~UcxTransfer() override;
  Expected<bool> done() override;

private:
  UcxTransport &owner;
  void *request; ///< null: done
  const ucp_worker_h receiver;
};

/// A context of UCX with its worker. One is for the processes of this machine, one for those of others: the best
/// settings for shared memory are not those for a network, and UCX has one set for a whole context.
struct Engine {
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  std::string address;

  /// `settings`: defaults for variables of the environment, without the prefix UCX_.
  Status start(std::initializer_list<std::pair<const char *, const char *>> settings) {
    ucp_config_t *config = nullptr;
    if (ucs_status_t code = ucp_config_read(nullptr, nullptr, &config); code != UCS_OK)
      return error("reading its configuration", code);
    ucs_status_t code = UCS_OK;
    for (auto [name, value] : settings)
      if (code == UCS_OK && !std::getenv((std::string("UCX_") + name).c_str()))
        code = ucp_config_modify(config, name, value);
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    if (code == UCS_OK)
      code = ucp_init(&params, config, &context);
    ucp_config_release(config);
    if (code != UCS_OK)
      return error("starting", code);
    ucp_worker_params_t workerParams{};
    workerParams.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    workerParams.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    if (code = ucp_worker_create(context, &workerParams, &worker); code != UCS_OK)
      return error("starting a worker", code);
    ucp_address_t *bytes = nullptr;
    size_t size = 0;
    if (code = ucp_worker_get_address(worker, &bytes, &size); code != UCS_OK)
      return error("asking for the own address", code);
    address.assign(reinterpret_cast<const char *>(bytes), size);
    ucp_worker_release_address(worker, bytes);
    return Status::success();
  }
  void stop() {
    if (worker)
      ucp_worker_destroy(std::exchange(worker, nullptr));
    if (context)
      ucp_cleanup(std::exchange(context, nullptr));
  }
};

class UcxTransport : public Transport {
public:
  ~UcxTransport() override {
    // Also after a failure: nothing here waits for the others.
    if (leavesMessages) // whose memory is gone: closing would still read it
      return;
    for (const End &end : ends)
      if (end.handle && end.engine == &far) { // closing by force needs error handling, which near ones lack; they end with their worker
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        void *closing = ucp_ep_close_nbx(end.handle, &param);
        for (int round = 0; UCS_PTR_IS_PTR(closing) && ucp_request_check_status(closing) == UCS_INPROGRESS; ++round) {
          ucp_worker_progress(end.engine->worker);
          if (round > 1000000)
            break;
        }
        if (UCS_PTR_IS_PTR(closing))
          ucp_request_free(closing);
      }
    near.stop();
    far.stop();
  }

  /// An error text, empty for success.
  std::string start(int64_t processesHere) {
    // Near: without process_vm_readv, which ends the process (SIGABRT) when the other one has just gone, messages go
    // through shared memory, where the rendezvous protocol costs more than it saves.
    Status status = near.start({{"TLS", "^cma"}, {"RNDV_THRESH", "64m"}});
    if (status.ok())
      status = far.start({});
    return status.ok() ? std::string() : status.message() + sharedMemoryHint(processesHere);
  }

  Expected<std::unique_ptr<Transfer>> send(int64_t process, int64_t tag, const std::byte *source, int64_t bytes,
                                           SendDone when) override {
    std::lock_guard<std::mutex> lock(mutex);
    if (hasAbandoned)
      return abandonedError();
    ucp_request_param_t param{};
    auto *begin = when == SendDone::Received ? ucp_tag_send_sync_nbx : ucp_tag_send_nbx;
    void *request = begin(ends[size_t(process)].handle, source, size_t(bytes), tagOf(mine, tag), &param);
    if (UCS_PTR_IS_ERR(request))
      return error("sending", UCS_PTR_STATUS(request));
    return std::unique_ptr<Transfer>(std::make_unique<UcxTransfer>(*this, request, nullptr));
  }
  Expected<std::unique_ptr<Transfer>> receive(int64_t process, int64_t tag, std::byte *target, int64_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex);
    if (hasAbandoned)
      return abandonedError();
    ucp_request_param_t param{};
    ucp_worker_h worker = ends[size_t(process)].engine->worker;
    void *request = ucp_tag_recv_nbx(worker, target, size_t(bytes), tagOf(process, tag), ~ucp_tag_t(0), &param);
    if (UCS_PTR_IS_ERR(request))
      return error("receiving", UCS_PTR_STATUS(request));
    return std::unique_ptr<Transfer>(std::make_unique<UcxTransfer>(*this, request, worker));
  }
  int64_t largestTag() const override { return (int64_t(1) << tagBits) - 1; }
  void progress() override {
    std::lock_guard<std::mutex> lock(mutex);
    poll();
  }
  /// Under the lock.
  void poll() {
    if (hasAbandoned)
      return;
    for (const Engine *engine : {&near, &far})
      if (engine->worker)
        ucp_worker_progress(engine->worker);
  }
  /// All processes count alike, so no message is needed.
  Expected<bool> restart() override {
    std::lock_guard<std::mutex> lock(mutex);
    ++epoch;
    return true;
  }

  int64_t process() const override { return mine; }
  int64_t processes() const override { return int64_t(ends.size()); }
  Expected<std::vector<std::string>> gather(const std::string &) override {
    return Status::error(ErrorKind::Internal, "UCX has no launcher that it could ask");
  }
  /// The addresses of both engines, the near one's after its length.
  std::string address() const override {
    return std::to_string(near.address.size()) + " " + near.address + far.address;
  }

  Status connect(int64_t process, const std::vector<Peer> &peers) override {
    if (peers.size() > size_t(1) << processBits)
      return Status::error(ErrorKind::Usage, std::to_string(peers.size()) + " processes: at most " +
                                                 std::to_string(1 << processBits) + " can run together");
    mine = process;
    for (const Peer &peer : peers) {
      Engine &engine = peer.isNear ? near : far;
      const std::string address = addressIn(peer);
      if (address.empty())
        return Status::error(ErrorKind::Io, "process " + std::to_string(ends.size()) + " said no address of its UCX; "
                                            "start the same hpc-run everywhere");
      ucp_ep_params_t params{};
      params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
      params.address = reinterpret_cast<const ucp_address_t *>(address.data());
      // If a peer in a network vanishes, its messages fail, and nothing else happens: Control reports the reason.
      // Shared memory has no such mode (UCX would take TCP for it, which is slower) and needs none.
      params.err_mode = peer.isNear ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
      ucp_ep_h end = nullptr;
      if (int64_t(ends.size()) != process)
        if (ucs_status_t code = ucp_ep_create(engine.worker, &params, &end); code != UCS_OK)
          return connectError(ends.size(), code);
      ends.push_back({end, &engine});
    }
    // Polling an unused engine takes time.
    for (Engine *engine : {&near, &far})
      if (std::none_of(ends.begin(), ends.end(), [&](const End &end) { return end.handle && end.engine == engine; }))
        engine->stop();
    return Status::success();
  }
  void close() override {}

  static Status abandonedError() {
    return Status::error(ErrorKind::Io, "UCX: a message of a step that failed is still on its way; start all processes again");
  }

  std::mutex mutex; ///< round every call of the workers
  /// A receive that has begun cannot be taken back. Whatever made progress after that might write to memory that is gone, so
  /// nothing does.
  bool hasAbandoned = false;
  bool leavesMessages = false; ///< the same, or a send that was not finished, which is harmless while its memory is there

private:
  struct End {
    ucp_ep_h handle; ///< null for this process itself
    Engine *engine;
  };

  static std::string addressIn(const Peer &peer) {
    char *after = nullptr;
    const unsigned long long length = std::strtoull(peer.address.c_str(), &after, 10);
    const size_t begin = size_t(after - peer.address.c_str()) + 1;
    if (begin > peer.address.size() || length > peer.address.size() - begin)
      return {};
    return peer.isNear ? peer.address.substr(begin, length) : peer.address.substr(begin + length);
  }

  ucp_tag_t tagOf(int64_t sender, int64_t tag) const {
    return (epoch & ((uint64_t(1) << epochBits) - 1)) << (tagBits + processBits) | uint64_t(sender) << tagBits |
           uint64_t(tag);
  }

  Engine near, far;
  std::vector<End> ends; ///< by process
  int64_t mine = 0;
  uint64_t epoch = 0;
};

Expected<bool> UcxTransfer::done() {
  if (!request)
    return true;
  std::lock_guard<std::mutex> lock(owner.mutex);
  ucs_status_t code = ucp_request_check_status(request);
  if (code == UCS_INPROGRESS) {
    owner.poll();
    code = ucp_request_check_status(request);
  }
  if (code == UCS_INPROGRESS)
    return false;
  ucp_request_free(request);
  request = nullptr;
  if (code != UCS_OK)
    return error(receiver ? "receiving" : "sending", code);
  return true;
}

UcxTransfer::~UcxTransfer() {
  if (!request)
    return;
  std::lock_guard<std::mutex> lock(owner.mutex);
  // Without progress, which would go on with other receives too: their memory may have gone already.
  if (ucp_request_check_status(request) == UCS_INPROGRESS && receiver)
    ucp_request_cancel(receiver, request);
  const bool isUnfinished = ucp_request_check_status(request) == UCS_INPROGRESS;
  owner.hasAbandoned |= isUnfinished && receiver;
  owner.leavesMessages |= isUnfinished;
  ucp_request_free(request);
}

} // namespace

} // namespace hpc::processes

extern "C" hpc::processes::Transport *hpcCreateTransport(int64_t processesHere, std::string *error) {
  auto transport = std::make_unique<hpc::processes::UcxTransport>();
  *error = transport->start(processesHere);
  return error->empty() ? transport.release() : nullptr;
}
