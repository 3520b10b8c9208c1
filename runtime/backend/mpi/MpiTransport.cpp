// Messages by MPI. All calls except those at start and end are non-blocking, and one lock is around them, so that
// MPI_THREAD_SERIALIZED is enough however many ranks share the process.
#include "runtime/backend/processes/Transport.h"

#include <algorithm>
#include <chrono>
#include <mpi.h>
#include <mutex>

namespace hpc::processes {

namespace {

/// MPI counts in int.
constexpr int64_t pieceBytes = int64_t(1) << 30;

Status error(const std::string &what, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Status::error(ErrorKind::Io, "MPI: " + what + ": " + std::string(text, size_t(length)));
}

class MpiTransport;

class MpiTransfer : public Transfer {
public:
  MpiTransfer(MpiTransport &owner, bool isReceive) : owner(owner), isReceive(isReceive) {}
  ~MpiTransfer() override;
  Expected<bool> done() override;

  MpiTransport &owner;
  const bool isReceive;
  std::vector<MPI_Request> requests; ///< of the pieces that are not done
};

class MpiTransport : public Transport {
public:
  /// An error text, empty for success.
  std::string start() {
    int provided = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
      return "cannot start MPI";
    if (provided < MPI_THREAD_SERIALIZED)
      return "this MPI lets one thread only call it (it was built without MPI_THREAD_SERIALIZED), and ranks are "
             "threads; use another build of MPI, or --launch=env";
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (int code = MPI_Comm_dup(MPI_COMM_WORLD, &world); code != MPI_SUCCESS)
      return error("duplicating the world", code).message();
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    void *value = nullptr;
    int found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
    tags = found ? *static_cast<int *>(value) : 32767;
    return {};
  }

  Expected<std::unique_ptr<Transfer>> send(int64_t process, int64_t tag, const std::byte *source, int64_t bytes,
                                           SendDone when) override {
    auto *post = when == SendDone::Received ? MPI_Issend : MPI_Isend;
    return begin(false, bytes, [&](int64_t at, int count, MPI_Request *request) {
      return post(source + at, count, MPI_BYTE, int(process), int(tag), world, request);
    });
  }
  Expected<std::unique_ptr<Transfer>> receive(int64_t process, int64_t tag, std::byte *target, int64_t bytes) override {
    return begin(true, bytes, [&](int64_t at, int count, MPI_Request *request) {
      return MPI_Irecv(target + at, count, MPI_BYTE, int(process), int(tag), world, request);
    });
  }
  int64_t largestTag() const override { return tags; }

  void progress() override {
    std::lock_guard<std::mutex> lock(mutex);
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world, &flag, MPI_STATUS_IGNORE);
  }

  /// Messages of the old communicator cannot match any in the new one. Sends that nobody will receive stay with the old
  /// one, which is therefore never freed.
  Expected<bool> restart() override {
    std::lock_guard<std::mutex> lock(mutex);
    if (!isRestarting) {
      if (int code = MPI_Comm_idup(world, &fresh, &restarting); code != MPI_SUCCESS)
        return error("duplicating the world", code);
      isRestarting = true;
    }
    int flag = 0;
    if (int code = MPI_Test(&restarting, &flag, MPI_STATUS_IGNORE); code != MPI_SUCCESS)
      return error("duplicating the world", code);
    if (!flag)
      return false;
    world = fresh;
    isRestarting = false;
    return true;
  }

  int64_t process() const override { return rank; }
  int64_t processes() const override { return size; }

  Expected<std::vector<std::string>> gather(const std::string &mine) override {
    std::lock_guard<std::mutex> lock(mutex);
    int length = int(mine.size()), most = 0;
    if (int code = MPI_Allreduce(&length, &most, 1, MPI_INT, MPI_MAX, world); code != MPI_SUCCESS)
      return error("gathering", code);
    std::string padded = mine, all(size_t(most) * size_t(size), '\0');
    padded.resize(size_t(most));
    std::vector<int> lengths(size_t(size), 0);
    int code = MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, world);
    if (code == MPI_SUCCESS)
      code = MPI_Allgather(padded.data(), most, MPI_BYTE, all.data(), most, MPI_BYTE, world);
    if (code != MPI_SUCCESS)
      return error("gathering", code);
    std::vector<std::string> texts;
    for (int i = 0; i < size; ++i)
      texts.push_back(all.substr(size_t(most) * size_t(i), size_t(lengths[size_t(i)])));
    return texts;
  }
  std::string address() const override { return {}; }
  Status connect(int64_t, const std::vector<Peer> &) override { return Status::success(); }
  void close() override { MPI_Finalize(); }

  std::mutex mutex; ///< round every call of MPI

private:
  template <typename F> Expected<std::unique_ptr<Transfer>> begin(bool isReceive, int64_t bytes, F post) {
    auto transfer = std::make_unique<MpiTransfer>(*this, isReceive);
    std::lock_guard<std::mutex> lock(mutex);
    int64_t at = 0;
    do { // a message of 0 bytes is one piece
      int64_t count = std::min(pieceBytes, bytes - at);
      MPI_Request request = MPI_REQUEST_NULL;
      if (int code = post(at, int(count), &request); code != MPI_SUCCESS)
        return error(isReceive ? "receiving" : "sending", code);
      transfer->requests.push_back(request);
      at += count;
    } while (at < bytes);
    return std::unique_ptr<Transfer>(std::move(transfer));
  }

  MPI_Comm world = MPI_COMM_NULL, fresh = MPI_COMM_NULL;
  MPI_Request restarting = MPI_REQUEST_NULL;
  bool isRestarting = false;
  int rank = 0, size = 1;
  int64_t tags = 0;
};

Expected<bool> MpiTransfer::done() {
  std::lock_guard<std::mutex> lock(owner.mutex);
  while (!requests.empty()) {
    int flag = 0;
    if (int code = MPI_Test(&requests.back(), &flag, MPI_STATUS_IGNORE); code != MPI_SUCCESS)
      return error(isReceive ? "receiving" : "sending", code);
    if (!flag)
      return false;
    requests.pop_back();
  }
  return true;
}

MpiTransfer::~MpiTransfer() {
  std::lock_guard<std::mutex> lock(owner.mutex);
  for (MPI_Request &request : requests) {
    // A receive that has begun to be written runs on to its end, if its sender lives; a send cannot be called back.
    if (isReceive)
      MPI_Cancel(&request);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(isReceive ? 200 : 0);
    int flag = 0;
    do {
      if (MPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        break;
    } while (!flag && std::chrono::steady_clock::now() < end);
    if (!flag)
      MPI_Request_free(&request);
  }
}

} // namespace

} // namespace hpc::processes

extern "C" hpc::processes::Transport *hpcCreateTransport(int64_t, std::string *error) {
  auto transport = std::make_unique<hpc::processes::MpiTransport>();
  *error = transport->start();
  return error->empty() ? transport.release() : nullptr;
}
