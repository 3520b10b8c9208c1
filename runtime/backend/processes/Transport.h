// The message engine (MPI, UCX) that ranks of several processes use: numbered processes, tagged messages in
// order, no blocking calls. An engine is in a plugin that is opened on demand, so this header is all that they
// share.
#pragma once

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hpc::processes {

/// A message under way. Destroying one that is not done gives it up: a receive is cancelled and its target left alone
/// from then on; the source of a send must live until Transport::restart or the end.
class Transfer {
public:
  virtual ~Transfer() = default;
  /// Never waits; keeps the engine going.
  virtual Expected<bool> done() = 0;
};

/// When a send is done.
enum class SendDone {
  Read,     ///< its source may be used again; the message may wait in memory of the receiver's engine
  Received, ///< its receive has been posted too, so no more waits there than senders hold
};

/// How an engine reaches a process, itself included.
struct Peer {
  std::string address; ///< the result of its Transport::address()
  bool isNear = false; ///< on the same machine
};

/// May be called by all threads of a process; an implementation locks where its engine needs that.
class Transport {
public:
  virtual ~Transport() = default;

  /// Messages between two processes with one tag arrive in the order in which they were sent. 0 bytes are legal.
  virtual Expected<std::unique_ptr<Transfer>> send(int64_t process, int64_t tag, const std::byte *source, int64_t bytes,
                                                   SendDone when) = 0;
  virtual Expected<std::unique_ptr<Transfer>> receive(int64_t process, int64_t tag, std::byte *target,
                                                      int64_t bytes) = 0;
  virtual int64_t largestTag() const = 0;
  /// Lets the engine work on pending messages, without waiting.
  virtual void progress() = 0;
  /// After a failure, when all processes have given up their transfers: no earlier send may match a later receive. The
  /// first call begins it; then called until it returns true. All processes call it.
  virtual Expected<bool> restart() = 0;

  // How processes connect: an engine with a launcher of its own knows the others already (gather), another one gets
  // their addresses (connect).
  /// This process and how many there are; only of an engine with a launcher.
  virtual int64_t process() const = 0;
  virtual int64_t processes() const = 0;
  /// The texts of all processes, by process. May wait for those that have not called it.
  virtual Expected<std::vector<std::string>> gather(const std::string &mine) = 0;
  /// The address by which others reach this process; empty for an engine with a launcher.
  virtual std::string address() const = 0;
  virtual Status connect(int64_t process, const std::vector<Peer> &peers) = 0;
  /// The end of a successful run, called by all processes. Without it the engine is left as it is.
  virtual void close() = 0;
};

/// The function that a plugin exports as `hpcCreateTransport`. `processesHere`: their number on this machine, whose memory
/// they share; 0: not known. A null result: `error` has the reason.
using CreateTransport = Transport *(int64_t processesHere, std::string *error);
constexpr const char *createTransportSymbol = "hpcCreateTransport";

/// Opens libhpc_<name>.so beside the program, in ../lib of it, or where the system looks. The plugin stays loaded.
Expected<std::unique_ptr<Transport>> openTransport(const std::string &name, int64_t processesHere = 0);

} // namespace hpc::processes
