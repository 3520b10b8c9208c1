// The machine that a plan is made for: what it computes, moves and sends in a second. The only source of what decides
// between plans; every price of a heuristic is one of its ratios.
#pragma once

#include <cstdint>

namespace hpc::plan {

/// One device and its links, all devices alike. Units are SI. The default stands for no machine: its ratios lie between those of
/// two CPU cores (10 operations a byte of memory, 100 a byte sent) and of an H100 (20 in f32, 300 in bf16; 450 GB/s of NVLink).
struct Machine {
  double flops = 16e12;             ///< operations of products a second
  double bytesPerSecond = 1e12;     ///< of its memory
  double linkBytesPerSecond = 62.5e9; ///< received by one rank in a collective
  double linkLatency = 1.048576e-6; ///< seconds that a collective takes however little it moves

  /// Operations that take as long as a byte of memory, or as one that is sent.
  double operationsPerByte() const { return flops / bytesPerSecond; }
  double operationsPerByteSent() const { return flops / linkBytesPerSecond; }
  /// Bytes that take as long to send as a collective takes to start.
  int64_t bytesOfLatency() const { return int64_t(linkLatency * linkBytesPerSecond + 0.5); }
};

} // namespace hpc::plan
