// Facts that the processes of a run exchange before it: their identities, and hashes that have to be equal in all.
#pragma once

#include "runtime/launch/Wire.h"

#include <vector>

namespace hpc::launch {

/// A file or setting that has to be equal in all processes.
struct Fingerprint {
  std::string what;   ///< "plan", "inputs"
  uint64_t hash = 0;  ///< of the content
  std::string remedy; ///< "copy the same file to all hosts"
};

struct Introduction {
  int64_t process = 0, processes = 1; ///< -1: its start failed before it knew its number
  int64_t firstRank = 0, ranks = 0; ///< 0 ranks: not known, as its start failed
  int64_t pid = 0;
  std::string host;    ///< its name, for people
  std::string machine; ///< the same for processes that share memory
  std::string cores;   ///< of that machine, that it may use: coreSet()
  std::string engine;  ///< the address of the transport's engine; not known when it joins
  std::vector<Fingerprint> fingerprints; ///< when it joins only of files read at once, later of all
  Status status; ///< the error that it had before it came, if any

  /// "process 1 (ranks 2 to 3, host b, pid 77)"
  std::string text() const;
  void write(WireWriter &writer) const;
  static Introduction read(WireReader &reader);
};

/// The introduction of this process: pid, host, machine and cores.
Introduction introduceSelf(int64_t process, int64_t processes);

/// The same for processes that reach each other by the loopback: containers of one machine do not.
std::string networkName();

/// Success if no process failed and all fingerprints are equal; else an error that names process and difference.
Status compare(const std::vector<Introduction> &all);

} // namespace hpc::launch
