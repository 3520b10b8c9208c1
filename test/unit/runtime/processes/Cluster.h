// Several "processes" in one: each with a Transport over a network that is a table of messages, and a Control over real
// connections. The network is as unkind as an engine may be: it delivers late, small messages are done when they are
// sent if they may be, large ones not before they are received.
#pragma once

#include "runtime/backend/processes/ProcessWorld.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>

namespace hpc {

class LoopNetwork {
public:
  explicit LoopNetwork(unsigned seed) : chance(seed) {}

  struct Message {
    std::vector<std::byte> copy; ///< of a small one
    const std::byte *source = nullptr;
    int64_t bytes = 0;
    bool taken = false;
  };
  struct Wanted {
    std::byte *target = nullptr;
    int64_t bytes = 0;
    bool filled = false;
  };
  using Key = std::tuple<uint64_t, int64_t, int64_t, int64_t>; ///< epoch, from, to, tag

  std::shared_ptr<Message> send(const Key &key, const std::byte *source, int64_t bytes, processes::SendDone when) {
    std::lock_guard<std::mutex> lock(mutex);
    auto message = std::make_shared<Message>();
    message->source = source;
    message->bytes = bytes;
    if (bytes <= 256 && when == processes::SendDone::Read) {
      message->copy.assign(source, source + bytes);
      message->taken = true;
    }
    sent[key].push_back(message);
    int64_t &untaken = underWay[std::get<1>(key)];
    mostUnderWay = std::max(mostUnderWay, untaken += bytes);
    return message;
  }
  std::shared_ptr<Wanted> receive(const Key &key, std::byte *target, int64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    auto one = std::make_shared<Wanted>();
    one->target = target;
    one->bytes = bytes;
    wanted[key].push_back(one);
    return one;
  }
  void giveUp(const Key &key, const std::shared_ptr<Wanted> &one) {
    std::lock_guard<std::mutex> lock(mutex);
    std::deque<std::shared_ptr<Wanted>> &list = wanted[key];
    list.erase(std::remove(list.begin(), list.end(), one), list.end());
  }
  void giveUp(const Key &key, const std::shared_ptr<Message> &one) {
    std::lock_guard<std::mutex> lock(mutex);
    std::deque<std::shared_ptr<Message>> &list = sent[key];
    auto gone = std::remove(list.begin(), list.end(), one);
    underWay[std::get<1>(key)] -= gone == list.end() ? 0 : one->bytes;
    list.erase(gone, list.end());
  }
  /// One look in three finds nothing new. A size that differs is remembered as a defect.
  template <typename T> bool look(const Key &key, const bool &flag, const T &) {
    std::lock_guard<std::mutex> lock(mutex);
    if (chance() % 3 == 0)
      return false;
    auto &messages = sent[key];
    auto &places = wanted[key];
    while (!messages.empty() && !places.empty()) {
      Message &message = *messages.front();
      Wanted &place = *places.front();
      if (message.bytes != place.bytes)
        sizesDiffer = true;
      const std::byte *from = message.copy.empty() ? message.source : message.copy.data();
      std::copy(from, from + std::min(message.bytes, place.bytes), place.target);
      message.taken = place.filled = true;
      underWay[std::get<1>(key)] -= message.bytes;
      messages.pop_front();
      places.pop_front();
    }
    return flag;
  }

  bool isTaken(const Message &message) {
    std::lock_guard<std::mutex> lock(mutex);
    return message.taken;
  }

  bool sizesDiffer = false;
  int64_t mostUnderWay = 0; ///< bytes that one process had sent and no other received

private:
  std::mutex mutex;
  std::mt19937 chance;
  std::map<Key, std::deque<std::shared_ptr<Message>>> sent;
  std::map<int64_t, int64_t> underWay; ///< by sender
  std::map<Key, std::deque<std::shared_ptr<Wanted>>> wanted;
};

template <typename T> class LoopTransfer : public processes::Transfer {
public:
  LoopTransfer(LoopNetwork &network, LoopNetwork::Key key, std::shared_ptr<T> one, const bool &flag)
      : network(network), key(std::move(key)), one(std::move(one)), flag(flag) {}
  ~LoopTransfer() override { network.giveUp(key, one); }
  Expected<bool> done() override { return network.look(key, flag, *one); }

private:
  LoopNetwork &network;
  const LoopNetwork::Key key;
  const std::shared_ptr<T> one;
  const bool &flag;
};

class LoopTransport : public processes::Transport {
public:
  LoopTransport(LoopNetwork &network, int64_t mine, int64_t count) : network(network), mine(mine), count(count) {}

  Expected<std::unique_ptr<processes::Transfer>> send(int64_t to, int64_t tag, const std::byte *source, int64_t bytes,
                                                      processes::SendDone when) override {
    LoopNetwork::Key key{epoch, mine, to, tag};
    auto message = network.send(key, source, bytes, when);
    // What is taken at once stays in the network: a small message outlives its transfer.
    if (network.isTaken(*message))
      return std::unique_ptr<processes::Transfer>(std::make_unique<Sent>());
    return std::unique_ptr<processes::Transfer>(
        std::make_unique<LoopTransfer<LoopNetwork::Message>>(network, key, message, message->taken));
  }
  Expected<std::unique_ptr<processes::Transfer>> receive(int64_t from, int64_t tag, std::byte *target,
                                                         int64_t bytes) override {
    LoopNetwork::Key key{epoch, from, mine, tag};
    auto wanted = network.receive(key, target, bytes);
    return std::unique_ptr<processes::Transfer>(
        std::make_unique<LoopTransfer<LoopNetwork::Wanted>>(network, key, wanted, wanted->filled));
  }
  int64_t largestTag() const override { return 32767; }
  void progress() override {}
  Expected<bool> restart() override {
    ++epoch;
    return true;
  }
  int64_t process() const override { return mine; }
  int64_t processes() const override { return count; }
  Expected<std::vector<std::string>> gather(const std::string &) override { return std::vector<std::string>(); }
  std::string address() const override { return {}; }
  Status connect(int64_t, const std::vector<processes::Peer> &) override { return Status::success(); }
  void close() override {}

private:
  struct Sent : processes::Transfer {
    Expected<bool> done() override { return true; }
  };
  LoopNetwork &network;
  const int64_t mine, count;
  uint64_t epoch = 0;
};

struct Cluster {
  LoopNetwork network;
  std::vector<processes::Processes> processes;

  Cluster(int64_t count, int64_t ranksPerProcess, unsigned seed = 1,
          std::chrono::milliseconds peerTimeout = std::chrono::milliseconds(0))
      : network(seed), processes(size_t(count)) {
    launch::JoinOptions options;
    options.place.endpoints = {{"127.0.0.1", 0}};
    std::vector<launch::Socket> listeners;
    Expected<launch::Socket> listener = launch::listenOn("127.0.0.1", 0);
    options.place.endpoints[0].port = launch::portOf(*listener);
    listeners.push_back(std::move(*listener));
    onAll([&](int64_t p) {
      launch::Introduction mine = launch::introduceSelf(p, count);
      mine.firstRank = p * ranksPerProcess;
      mine.ranks = ranksPerProcess;
      Expected<launch::Joined> joined =
          p == 0 ? launch::receiveAll(options, listeners, mine) : launch::comeTo(options, mine);
      processes::Processes &one = processes[size_t(p)];
      one.process = p;
      one.count = count;
      one.transport = std::make_unique<LoopTransport>(network, p, count);
      one.control = std::make_unique<launch::Control>(p, std::move(*joined), launch::ControlOptions{peerTimeout, {}});
    });
  }
  /// One thread per process.
  template <typename F> void onAll(F work) {
    std::vector<std::thread> threads;
    for (size_t p = 0; p < processes.size(); ++p)
      threads.emplace_back([&, p] { work(int64_t(p)); });
    for (std::thread &thread : threads)
      thread.join();
  }
};

} // namespace hpc
