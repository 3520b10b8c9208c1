// What streams were told while they were captured: nodes in lanes, one lane a stream, and edges where events led from
// one to another. It runs as a graph does: lanes beside each other, in any order that the edges allow.
#pragma once

#include "test/gpu/standin/Machine.h"

#include <thread>

/// A function that is defined otherwise than the backend calls it does not compile.
namespace hpc::cuda {
extern "C" {
#define HPC_DECLARE(result, member, symbol, arguments) result symbol arguments;
HPC_DRIVER_FUNCTIONS(HPC_DECLARE)
#undef HPC_DECLARE
}
} // namespace hpc::cuda

namespace standin {

using hpc::cuda::EventState;
using hpc::cuda::StreamState;

/// Of one graph; under captureMutex() until it has ended.
struct Capture {
  enum Kind { Work, Record, Wait };
  struct Node {
    Kind kind;
    size_t lane;
    std::string what;
    std::function<void(const Running &)> work;
    size_t edge = 0; ///< of a record and its waits
  };
  StreamState *origin = nullptr;
  std::thread::id thread;
  bool isThreadLocal = true, isInvalid = false, hasEnded = false;
  std::vector<StreamState *> streams; ///< by lane
  std::vector<Node> nodes;
  size_t edges = 0;
  /// How many nodes of work each lane has, and how many of each lane another comes after.
  std::vector<size_t> works;
  std::vector<std::vector<size_t>> known, knownByEdge;

  size_t laneOf(StreamState *stream);
  void add(StreamState *stream, const std::string &what, std::function<void(const Running &)> work);
  size_t record(StreamState *stream);
  void wait(StreamState *stream, size_t edge);
  /// Whether the origin comes after everything.
  bool isJoined() const;
};

std::mutex &captureMutex();
/// 0, or what a call returns that this thread may not make while it captures; the capture is then spoilt.
DriverResult forbiddenNow();

} // namespace standin
