// getaddrinfo, poll and non-blocking calls; every descriptor is closed on exec.
#include "runtime/launch/Socket.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hpc::launch {

namespace {

struct FreeAddresses {
  void operator()(addrinfo *list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Status ioError(const std::string &message) { return Status::error(ErrorKind::Io, message); }

Expected<Addresses> resolve(const std::string &host, uint16_t port) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  if (int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list))
    return Status::error(ErrorKind::Usage, "cannot find host '" + host + "' of the rendezvous: " +
                                               (code == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(code)));
  return Addresses(list);
}

bool isLoopbackAddress(const sockaddr *address) {
  if (address->sa_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in *>(address)->sin_addr.s_addr) >> 24) == 127;
  if (address->sa_family != AF_INET6)
    return false;
  const in6_addr &six = reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

void sendAtOnce(int descriptor) {
  int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); // a hint: it works without
}

} // namespace

Socket &Socket::operator=(Socket &&other) noexcept {
  std::swap(descriptor, other.descriptor);
  return *this;
}

void Socket::close() {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = -1;
}

bool Socket::read(std::string &received, size_t limit) {
  char block[16384];
  while (received.size() < limit) {
    ssize_t bytes = ::recv(descriptor, block, std::min(sizeof(block), limit - received.size()), 0);
    if (bytes > 0)
      received.append(block, size_t(bytes));
    else if (bytes == 0)
      return false;
    else if (errno != EINTR)
      return errno == EAGAIN || errno == EWOULDBLOCK;
  }
  return true;
}

bool Socket::write(std::string &pending) {
  while (!pending.empty()) {
    ssize_t bytes = ::send(descriptor, pending.data(), pending.size(), MSG_NOSIGNAL);
    if (bytes >= 0)
      pending.erase(0, size_t(bytes));
    else if (errno != EINTR)
      return errno == EAGAIN || errno == EWOULDBLOCK;
  }
  return true;
}

std::string Socket::peerName() const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (::getpeername(descriptor, reinterpret_cast<sockaddr *>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr *>(&address), size, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown address";
  return std::string(host) + ":" + port;
}

bool Socket::peerIsLoopback() const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  return ::getpeername(descriptor, reinterpret_cast<sockaddr *>(&address), &size) == 0 &&
         isLoopbackAddress(reinterpret_cast<sockaddr *>(&address));
}

Expected<Socket> listenOn(const std::string &host, uint16_t port) {
  Expected<Addresses> list = resolve(host, port);
  if (!list.ok())
    return list.status();
  const addrinfo &first = **list;
  Socket socket(::socket(first.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  int on = 1;
  if (socket.isOpen())
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (!socket.isOpen() || ::bind(socket.get(), first.ai_addr, first.ai_addrlen) != 0 ||
      ::listen(socket.get(), 1024) != 0)
    return ioError("process 0 cannot listen at " + host + ":" + std::to_string(port) +
                   " for the others: " + std::strerror(errno) +
                   "; the rendezvous is an address of the machine that process 0 runs on, and a "
                   "port that nothing else uses");
  return socket;
}

uint16_t portOf(const Socket &listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr *>(&address), &size) != 0)
    return 0;
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in *>(&address)->sin_port
                                            : reinterpret_cast<sockaddr_in6 *>(&address)->sin6_port);
}

Socket acceptFrom(const Socket &listener) {
  Socket socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.isOpen())
    sendAtOnce(socket.get());
  return socket;
}

bool waitFor(const Socket &socket, bool write, Clock::time_point deadline) {
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left < 0)
      return false;
    pollfd entry{socket.get(), short(write ? POLLOUT : POLLIN), 0};
    int ready = ::poll(&entry, 1, int(std::min<int64_t>(left + 1, 1000)));
    if (ready > 0)
      return true;
    if (ready < 0 && errno != EINTR)
      return false;
  }
}

Expected<Socket> connectTo(const std::string &host, uint16_t port, Clock::time_point deadline) {
  Expected<Addresses> list = resolve(host, port);
  if (!list.ok())
    return list.status();
  std::string reason = "no answer";
  for (const addrinfo *each = list->get(); each; each = each->ai_next) {
    Socket socket(::socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.isOpen())
      continue;
    sendAtOnce(socket.get());
    int code = ::connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    if (code == EINPROGRESS && waitFor(socket, true, deadline)) {
      socklen_t size = sizeof(code);
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &size);
    }
    if (code == 0)
      return socket;
    reason = code == EINPROGRESS ? "no answer" : std::strerror(code);
  }
  return ioError("cannot reach " + host + ":" + std::to_string(port) + ": " + reason);
}

Expected<bool> isLoopback(const std::string &host) {
  Expected<Addresses> list = resolve(host, 0);
  if (!list.ok())
    return list.status();
  for (const addrinfo *each = list->get(); each; each = each->ai_next)
    if (!isLoopbackAddress(each->ai_addr))
      return false;
  return true;
}

std::vector<std::string> ownAddresses() {
  std::vector<std::string> addresses;
  ifaddrs *list = nullptr;
  if (::getifaddrs(&list) != 0)
    return addresses;
  for (const ifaddrs *each = list; each; each = each->ifa_next) {
    if (!each->ifa_addr || !(each->ifa_flags & IFF_UP) || isLoopbackAddress(each->ifa_addr))
      continue;
    const bool four = each->ifa_addr->sa_family == AF_INET, six = each->ifa_addr->sa_family == AF_INET6;
    // Link-local addresses of IPv6 mean nothing without the interface.
    if (six && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6 *>(each->ifa_addr)->sin6_addr))
      continue;
    char text[NI_MAXHOST];
    if ((four || six) && ::getnameinfo(each->ifa_addr, four ? sizeof(sockaddr_in) : sizeof(sockaddr_in6), text,
                                       sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0)
      addresses.push_back(text);
  }
  ::freeifaddrs(list);
  return addresses;
}

std::string hostName() {
  char name[256] = "unknown";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

} // namespace hpc::launch
