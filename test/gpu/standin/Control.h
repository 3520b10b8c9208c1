// What a test says to the stand-in for a GPU and asks of it. The stand-in is one shared library under the names of the
// driver and cuBLASLt; it behaves as their documentation says and as unkindly as that allows: streams run on
// threads of their own, late and in any order that events permit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace standin {

struct Settings {
  int devices = 1;
  uint64_t seed = 1;
  int longestDelay = 100;            ///< microseconds before a thing that was enqueued begins; 0: none
  int64_t memory = int64_t(4) << 30; ///< bytes of each device
  /// What of an attention's graph cuDNN answers with NOT_SUPPORTED: nothing, the graph itself, its choice of engines, or
  /// the only engine that it chooses.
  enum class DnnRefusal { None, Graph, Choice, Engine } dnnRefusal = DnnRefusal::None;
  size_t dnnVersion = 91900;
  int64_t failingCall = -1;          ///< the number of the call, from 0, that returns an error without doing anything
};

/// Begins anew: forgets races and misuses and counts calls from 0. Everything must have been given back.
void configure(const Settings &settings);
/// How many calls that can fail have been made.
int64_t calls();
/// How many graphs have been launched.
int64_t launchedGraphs();
/// How many products with an epilogue have been called.
int64_t epilogues();
/// The name of the call that failed by request; empty if none has yet.
std::string failedCall();
/// Pairs of accesses to the same bytes, one of them a write, that nothing orders.
std::vector<std::string> races();
/// Things that documentation forbids and that a card need not notice.
std::vector<std::string> misuses();
/// What has not been given back, as text; empty when all was.
std::string leaks();

} // namespace standin
