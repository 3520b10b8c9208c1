// TCP with deadlines: nothing here waits for a peer without an end.
#pragma once

#include "runtime/base/Status.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hpc::launch {

using Clock = std::chrono::steady_clock;

/// Owns a descriptor, never blocking.
class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor(descriptor) {}
  Socket(Socket &&other) noexcept : descriptor(other.descriptor) { other.descriptor = -1; }
  Socket &operator=(Socket &&other) noexcept;
  ~Socket() { close(); }

  bool isOpen() const { return descriptor >= 0; }
  int get() const { return descriptor; }
  void close();

  /// Appends received bytes to `received`, at most until it holds `limit` bytes; false at the end of the connection.
  bool read(std::string &received, size_t limit);
  /// Sends as much of `pending` as possible and removes it; false if the connection is broken.
  bool write(std::string &pending);
  /// "10.0.0.2:4711"
  std::string peerName() const;
  bool peerIsLoopback() const;

private:
  int descriptor = -1;
};

/// Listens on the named address alone; port 0 takes a free one.
Expected<Socket> listenOn(const std::string &host, uint16_t port);
uint16_t portOf(const Socket &listener);
/// The next connection, or a closed socket when there is none now.
Socket acceptFrom(const Socket &listener);
/// One attempt, which ends at the deadline.
Expected<Socket> connectTo(const std::string &host, uint16_t port, Clock::time_point deadline);
/// Waits until the socket can be read, or written where `write`; false at the deadline.
bool waitFor(const Socket &socket, bool write, Clock::time_point deadline);

/// Whether all addresses of a name are loopback: others cannot reach them. An error for a name that is unknown.
Expected<bool> isLoopback(const std::string &host);
/// Addresses of this machine that others may reach, those of interfaces that are up.
std::vector<std::string> ownAddresses();
std::string hostName();

} // namespace hpc::launch
