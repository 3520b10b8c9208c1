// What the ranks of several processes need of a message engine (MPI, UCX): numbered processes, tagged messages in
// order, nothing that blocks. An engine lives in a plugin that is opened when it is wanted, so this header is all they
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
  Read,     ///< its source may be used again; what was sent may wait in memory of the receiver's engine
  Received, ///< its receive has been posted too, so that what waits there is never more than senders hold
};

/// How an engine reaches a process, itself included.
struct Peer {
  std::string address; ///< what its Transport::address() said
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
  /// Lets the engine work on what was sent, without waiting.
  virtual void progress() = 0;
  /// After a failure, when all processes have given up their transfers: nothing that was sent before may match what is
  /// received after. Begins it; then asked until it says true. All processes call it.
  virtual Expected<bool> restart() = 0;

  // How processes come together: an engine that was started by its own launcher knows the others already (gather), one
  // that was not is told how to reach them (connect).
  /// This process and how many there are; only of an engine with a launcher.
  virtual int64_t process() const = 0;
  virtual int64_t processes() const = 0;
  /// The texts of all processes, by process. May wait, for those that have not called it.
  virtual Expected<std::vector<std::string>> gather(const std::string &mine) = 0;
  /// What others need to reach this process; empty for an engine with a launcher.
  virtual std::string address() const = 0;
  virtual Status connect(int64_t process, const std::vector<Peer> &peers) = 0;
  /// The end of a run that went well, called by all processes. Without it the engine is left as it is.
  virtual void close() = 0;
};

/// The function that a plugin exports as `hpcCreateTransport`. `processesHere`: their number on this machine, whose memory
/// they share; 0: not known. A null result: `error` has the reason.
using CreateTransport = Transport *(int64_t processesHere, std::string *error);
constexpr const char *createTransportSymbol = "hpcCreateTransport";

/// Opens libhpc_<name>.so beside the program, in ../lib of it, or where the system looks. The plugin stays loaded.
Expected<std::unique_ptr<Transport>> openTransport(const std::string &name, int64_t processesHere = 0);

} // namespace hpc::processes
