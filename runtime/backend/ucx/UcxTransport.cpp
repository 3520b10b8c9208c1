// Messages by UCX, the engine below Open MPI: shared memory on one machine, TCP or RDMA between several. It needs no
// launcher, just the others' addresses, which the rendezvous brings. A tag holds epoch, sender and the caller's tag.
#include "runtime/backend/processes/Transport.h"

#include <mutex>
#include <ucp/api/ucp.h>

namespace hpc::processes {

namespace {

constexpr int tagBits = 32, processBits = 20, epochBits = 64 - tagBits - processBits;

Status error(const std::string &what, ucs_status_t code) {
  return Status::error(ErrorKind::Io, "UCX: " + what + ": " + ucs_status_string(code));
}

class UcxTransport;

class UcxTransfer : public Transfer {
public:
  UcxTransfer(UcxTransport &owner, void *request, bool isReceive)
      : owner(owner), request(request), isReceive(isReceive) {}
  ~UcxTransfer() override;
  Expected<bool> done() override;

private:
  UcxTransport &owner;
  void *request; ///< null: done
  const bool isReceive;
};

class UcxTransport : public Transport {
public:
  ~UcxTransport() override {
    // Also after a failure: nothing here waits for the others.
    for (ucp_ep_h end : ends)
      if (end) {
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        void *closing = ucp_ep_close_nbx(end, &param);
        for (int round = 0; UCS_PTR_IS_PTR(closing) && ucp_request_check_status(closing) == UCS_INPROGRESS; ++round) {
          ucp_worker_progress(worker);
          if (round > 1000000)
            break;
        }
        if (UCS_PTR_IS_PTR(closing))
          ucp_request_free(closing);
      }
    if (worker)
      ucp_worker_destroy(worker);
    if (context)
      ucp_cleanup(context);
  }

  /// An error text, empty for success.
  std::string start() {
    ucp_config_t *config = nullptr;
    if (ucs_status_t code = ucp_config_read(nullptr, nullptr, &config); code != UCS_OK)
      return error("reading its configuration", code).message();
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    ucs_status_t code = ucp_init(&params, config, &context);
    ucp_config_release(config);
    if (code != UCS_OK)
      return error("starting", code).message();
    ucp_worker_params_t workerParams{};
    workerParams.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    workerParams.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    if (code = ucp_worker_create(context, &workerParams, &worker); code != UCS_OK)
      return error("starting a worker", code).message();
    ucp_address_t *bytes = nullptr;
    size_t size = 0;
    if (code = ucp_worker_get_address(worker, &bytes, &size); code != UCS_OK)
      return error("asking for the own address", code).message();
    own.assign(reinterpret_cast<const char *>(bytes), size);
    ucp_worker_release_address(worker, bytes);
    return {};
  }

  Expected<std::unique_ptr<Transfer>> send(int64_t process, int64_t tag, const std::byte *source,
                                           int64_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex);
    ucp_request_param_t param{};
    void *request = ucp_tag_send_nbx(ends[size_t(process)], source, size_t(bytes), tagOf(mine, tag), &param);
    if (UCS_PTR_IS_ERR(request))
      return error("sending", UCS_PTR_STATUS(request));
    return std::unique_ptr<Transfer>(std::make_unique<UcxTransfer>(*this, request, false));
  }
  Expected<std::unique_ptr<Transfer>> receive(int64_t process, int64_t tag, std::byte *target, int64_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex);
    ucp_request_param_t param{};
    void *request = ucp_tag_recv_nbx(worker, target, size_t(bytes), tagOf(process, tag), ~ucp_tag_t(0), &param);
    if (UCS_PTR_IS_ERR(request))
      return error("receiving", UCS_PTR_STATUS(request));
    return std::unique_ptr<Transfer>(std::make_unique<UcxTransfer>(*this, request, true));
  }
  int64_t largestTag() const override { return (int64_t(1) << tagBits) - 1; }
  void progress() override {
    std::lock_guard<std::mutex> lock(mutex);
    ucp_worker_progress(worker);
  }
  /// All processes count alike, so nothing has to be told.
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
  std::string address() const override { return own; }

  Status connect(int64_t process, const std::vector<std::string> &addresses) override {
    if (addresses.size() > size_t(1) << processBits)
      return Status::error(ErrorKind::Usage, std::to_string(addresses.size()) + " processes: at most " +
                                                 std::to_string(1 << processBits) + " can run together");
    mine = process;
    for (const std::string &address : addresses) {
      ucp_ep_params_t params{};
      params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
      params.address = reinterpret_cast<const ucp_address_t *>(address.data());
      // A peer that vanishes makes its messages fail, and nothing else: Control tells what happened.
      params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
      ucp_ep_h end = nullptr;
      if (int64_t(ends.size()) != process)
        if (ucs_status_t code = ucp_ep_create(worker, &params, &end); code != UCS_OK)
          return error("connecting to process " + std::to_string(ends.size()), code);
      ends.push_back(end);
    }
    return Status::success();
  }
  void close() override {}

  ucp_worker_h worker = nullptr;
  std::mutex mutex; ///< round every call of the worker

private:
  ucp_tag_t tagOf(int64_t sender, int64_t tag) const {
    return (epoch & ((uint64_t(1) << epochBits) - 1)) << (tagBits + processBits) | uint64_t(sender) << tagBits |
           uint64_t(tag);
  }

  ucp_context_h context = nullptr;
  std::string own;
  std::vector<ucp_ep_h> ends; ///< by process; null for itself
  int64_t mine = 0;
  uint64_t epoch = 0;
};

Expected<bool> UcxTransfer::done() {
  if (!request)
    return true;
  std::lock_guard<std::mutex> lock(owner.mutex);
  ucs_status_t code = ucp_request_check_status(request);
  if (code == UCS_INPROGRESS) {
    ucp_worker_progress(owner.worker);
    code = ucp_request_check_status(request);
  }
  if (code == UCS_INPROGRESS)
    return false;
  ucp_request_free(request);
  request = nullptr;
  if (code != UCS_OK)
    return error(isReceive ? "receiving" : "sending", code);
  return true;
}

UcxTransfer::~UcxTransfer() {
  if (!request)
    return;
  std::lock_guard<std::mutex> lock(owner.mutex);
  if (ucp_request_check_status(request) == UCS_INPROGRESS && isReceive) {
    ucp_request_cancel(owner.worker, request);
    for (int round = 0; ucp_request_check_status(request) == UCS_INPROGRESS && round < 100000; ++round)
      ucp_worker_progress(owner.worker);
  }
  ucp_request_free(request);
}

} // namespace

} // namespace hpc::processes

extern "C" hpc::processes::Transport *hpcCreateTransport(std::string *error) {
  auto transport = std::make_unique<hpc::processes::UcxTransport>();
  *error = transport->start();
  return error->empty() ? transport.release() : nullptr;
}
