// The store's protocol, as observed on a connection of torch's own client (test/processes/agent_store.py keeps such
// bytes): a byte for the query, then its arguments; numbers in little endian, texts after their length in 8 bytes.
// torch's client puts a slash before each key. The connection begins with Validate and its magic number.
#include "runtime/launch/AgentStore.h"

#include "runtime/launch/Wire.h"

namespace hpc::launch {

using namespace std::chrono_literals;

namespace {

enum class Query : uint8_t { Validate = 0, Set = 1, Get = 3, Check = 5, Wait = 6, Ping = 13 };
constexpr uint64_t magic = 0x3c85f7ce;
/// Bytes that a store of before 2.4 reads as the length of a text: none can have it, so that store hangs up at once.
constexpr uint64_t pingNonce = 0xfffffff1;
constexpr auto patience = 4000ms;
constexpr uint64_t longest = 1 << 20; ///< value; ours are short

class Request {
public:
  explicit Request(Query query) { writer.number(uint64_t(query), 1); }
  Request &number(uint64_t value, int bytes) {
    writer.number(value, bytes);
    return *this;
  }
  Request &text(const std::string &value) {
    writer.number(value.size());
    writer.content += value;
    return *this;
  }
  Request &key(const std::string &value) { return text("/" + value); }
  const std::string &bytes() const { return writer.content; }

private:
  WireWriter writer;
};

} // namespace

Status AgentStore::error(const std::string &what) const {
  return Status::error(ErrorKind::Io, "the store of torchrun's agent at " + place.host + ":" +
                                          std::to_string(place.port) + " (MASTER_ADDR, MASTER_PORT) " + what +
                                          "; give --rendezvous=HOST:PORT with an address of process 0's machine and a "
                                          "free port to do without it");
}

Expected<AgentStore> AgentStore::open(const Endpoint &place, Clock::time_point end) {
  Expected<Socket> socket = connectTo(place.host, place.port, std::min(end, Clock::now() + patience));
  if (!socket.ok())
    return AgentStore(place, {}).error("cannot be reached: " + socket.status().message());
  AgentStore store(place, std::move(*socket));
  if (!store.send(Request(Query::Validate).number(magic, 4).bytes()).ok() || !store.ping().ok())
    return store.error("does not answer as torch 2.4 and later do");
  return store;
}

Status AgentStore::send(std::string request) {
  const Clock::time_point end = Clock::now() + patience;
  while (socket.write(request))
    if (request.empty())
      return Status::success();
    else if (!waitFor(socket, true, end))
      break;
  return error("has closed the connection");
}

Expected<std::string> AgentStore::receive(size_t bytes, Clock::time_point end) {
  while (received.size() < bytes) {
    if (!waitFor(socket, false, end))
      return error("does not answer in time");
    if (!socket.read(received, bytes) && received.size() < bytes)
      return error("has closed the connection");
  }
  std::string taken = received.substr(0, bytes);
  received.erase(0, bytes);
  return taken;
}

Status AgentStore::ping() {
  HPC_RETURN_IF_ERROR(send(Request(Query::Ping).number(pingNonce, 4).bytes()));
  Expected<std::string> answer = receive(4, Clock::now() + patience);
  if (!answer.ok())
    return answer.status();
  return WireReader(*answer).number(4) == pingNonce ? Status::success() : error("answers a request that was not made");
}

Status AgentStore::set(const std::string &key, const std::string &value) {
  HPC_RETURN_IF_ERROR(send(Request(Query::Set).key(key).text(value).bytes()));
  return ping(); // to set has no answer
}

/// The value of a key that the store has.
Expected<std::string> AgentStore::value(const std::string &key) {
  HPC_RETURN_IF_ERROR(send(Request(Query::Get).key(key).bytes()));
  const Clock::time_point end = Clock::now() + patience;
  Expected<std::string> head = receive(8, end);
  if (!head.ok())
    return head;
  const uint64_t size = WireReader(*head).number();
  return size > longest ? error("returns a value that hpc-run has not written") : receive(size, end);
}

Expected<std::optional<std::string>> AgentStore::get(const std::string &key) {
  HPC_RETURN_IF_ERROR(send(Request(Query::Check).number(1, 8).key(key).bytes()));
  Expected<std::string> missing = receive(1, Clock::now() + patience);
  if (!missing.ok())
    return missing.status();
  if ((*missing)[0] != 0)
    return std::optional<std::string>();
  Expected<std::string> read = value(key);
  return read.ok() ? Expected<std::optional<std::string>>(std::optional<std::string>(*read)) : read.status();
}

Expected<std::string> AgentStore::await(const std::string &key, Clock::time_point end) {
  HPC_RETURN_IF_ERROR(send(Request(Query::Wait).number(1, 8).key(key).bytes()));
  Expected<std::string> isThere = receive(1, end);
  return isThere.ok() ? value(key) : isThere;
}

} // namespace hpc::launch
