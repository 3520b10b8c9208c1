// The machine that a plan is made for: what it computes, moves and sends in a second. The only source of what decides
// between plans; every price of a heuristic is one of its ratios.
#pragma once

#include "runtime/base/DType.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hpc::cost {

/// Products whose smallest of m, n and k is `least` reach `share` of the peak. Between two points the share is linear in the logarithm of
/// that size; below the first and above the last it stays.
struct Efficiency {
  int64_t least = 1;
  double share = 1;
};

/// Products of operands of one type.
struct ProductSpeed {
  DType type = DType::F32;
  double flops = 0; ///< operations a second at the peak
  std::vector<Efficiency> efficiency; ///< by `least`, ascending; empty: all of the peak
};

/// One way of a library to send over a link, as NCCL's LL, LL128 and Simple are.
struct Protocol {
  double latency = 0;        ///< seconds of one step of a ring, or of a message
  double bytesPerSecond = 0; ///< that one rank sends, and that it receives at the same time
  double start = 0;          ///< seconds of a collective or message beside its steps
  double treeLatency = 0;    ///< seconds of one step of a tree; 0: `latency`
};

/// The network that joins `ranks` ranks that follow each other: the ranks of a host, or all. Its own fields are those of the protocol with the
/// most bytes a second.
struct Link {
  int64_t ranks = 0; ///< 0: all
  double latency = 0;
  double bytesPerSecond = 0;
  double start = 0;
  double treeLatency = 0;
  std::vector<Protocol> others = {}; ///< as many for each link of a machine: those of one place are used together
  Protocol protocol(size_t index) const { return index ? others[index - 1] : Protocol{latency, bytesPerSecond, start, treeLatency}; }
};

/// Ranks that differ from the others.
struct HostDifference {
  int64_t firstRank = 0, ranks = 0;
  double speed = 1;   ///< of computation, as a multiple of the others'
  int64_t memory = 0; ///< bytes; 0: as the others
};

/// Units are SI. The default stands for no machine: its ratios lie between those of two CPU cores (10 operations a byte of memory, 100 a
/// byte sent) and of an H100 (20 in f32, 300 in bf16; 450 GB/s of NVLink).
struct Machine {
  std::string name;
  int64_t ranksPerHost = 0; ///< 0: all ranks are on one host
  int64_t hosts = 0;        ///< 0: as many as are wanted
  int64_t memory = 0;       ///< bytes that a rank may take; 0: unlimited
  int64_t cores = 0;        ///< processors of a host that its ranks share; 0: each rank has its own
  double wakeSeconds = 0;   ///< of such a host: until a rank that sleeps at a transfer goes on; 0: none sleeps
  std::vector<ProductSpeed> products = {{DType::F32, 16e12, {}}}; ///< a type that is not there has the first one's speed
  double elementsPerSecond = 0;   ///< operations a second of kernels beside products; 0: their bytes decide alone
  double bytesPerSecond = 1e12;   ///< of the device's memory
  int64_t cacheBytes = 0;         ///< of a processor's own cache; 0: none is known, and all bytes come from memory
  double cacheBytesPerSecond = 0; ///< of what it holds
  double launch = 0;              ///< seconds that an instruction takes however little it does
  std::vector<Link> links = {{0, 1.048576e-6, 62.5e9}}; ///< from the innermost to the outermost, which joins all
  double overlapSlowdown = 1; ///< computation takes so many times as long while the rank sends or receives beside it
  std::vector<HostDifference> differences;

  /// 0: as many as are wanted.
  int64_t ranks() const { return hosts * ranksPerHost; }
  /// Memory of the rank that has the least among first..first + count - 1; 0: unlimited.
  int64_t memoryOf(int64_t first, int64_t count) const;
  const ProductSpeed &speedOf(DType type) const;
  /// Seconds of a product, launch and memory apart.
  double productSeconds(DType type, double m, double n, double k) const;
  /// The innermost link that joins ranks which lie at most `span` - 1 apart within its blocks: ranks first..first + span - 1.
  const Link &linkOf(int64_t first, int64_t span) const;

  // Ratios, by which heuristics weigh; sending is over the innermost link.
  double flops(DType type = DType::F32) const { return speedOf(type).flops; }
  /// Operations a second of large products: the peak times the share that these reach.
  double reachedFlops(DType type = DType::F32) const;
  /// Operations of products that take as long as a byte of memory, or as one that is sent.
  double operationsPerByte(DType type = DType::F32) const { return reachedFlops(type) / bytesPerSecond; }
  double operationsPerByteSent(DType type = DType::F32) const { return reachedFlops(type) / links.front().bytesPerSecond; }
  /// Bytes that take as long to send as the start and first step of a collective, by the protocol where these are shortest. `link`: by index.
  int64_t bytesOfLatency(size_t link = 0) const;
};

} // namespace hpc::cost
