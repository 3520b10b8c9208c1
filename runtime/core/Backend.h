// What a backend has to provide: a device for each rank that computes, and a communicator for each rank that talks.
// The executor and the session know these interfaces alone. Pointers are in the device's memory unless said otherwise.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/core/Rendezvous.h"
#include "runtime/core/Slice.h"
#include "runtime/plan/Plan.h"

#include <memory>

namespace hpc {

/// One rank: rank = stage * ranksPerStage + coordinate.
struct RankPlace {
  int64_t rank = 0, stage = 0, coordinate = 0;
};

/// A generated function, as the backend's device calls it.
using KernelHandle = const void *;

/// A plan::Gemm with addresses and the extents of this rank and micro-batch; strides and layout stand in `plan`.
struct GemmCall {
  const plan::Gemm &plan;
  const float *a, *b;
  float *c;
  int64_t m, n, k;
};

/// Computes for one rank. Used by that rank's thread alone, which also makes and destroys it.
class Device {
public:
  virtual ~Device() = default;

  /// Memory that lives as long as the device, a multiple of 64 in address, every byte `fill`. 0 bytes are legal.
  virtual Expected<std::byte *> allocate(int64_t bytes, std::byte fill) = 0;
  virtual void fill(std::byte *target, std::byte value, int64_t bytes) = 0;
  virtual void copy(std::byte *target, const std::byte *source, int64_t bytes) = 0;
  /// Between a global tensor in the host's memory and a box on the device.
  virtual void gather(const SliceCopy &slice, const std::byte *host, std::byte *target) = 0;
  virtual void scatter(const SliceCopy &slice, const std::byte *source, std::byte *host) = 0;

  /// Told of every product before the first run: the place to reserve scratch and to refuse.
  virtual Status prepare(const plan::Gemm &gemm, int64_t m, int64_t n, int64_t k) = 0;
  virtual Status gemm(const GemmCall &call) = 0;
  virtual Status kernel(KernelHandle kernel, void *const *args, const int64_t *scalars, int64_t rows) = 0;

  /// Bytes that libraries take beside the arenas at their peak.
  virtual int64_t scratchBytes() const = 0;
};

/// Talks for one rank. Used by that rank's thread alone.
class Communicator {
public:
  virtual ~Communicator() = default;

  /// Told of every collective before the first run, in the same order on all ranks of a stage; returns what
  /// collective() wants as `group`.
  virtual Expected<int64_t> prepare(const plan::Collective &collective) = 0;
  virtual Status collective(const plan::Collective &collective, int64_t group, const std::byte *source,
                            std::byte *target, int64_t sourcePosition) = 0;
  /// Post; requests are numbered from 0 to what Backend::createCommunicator was told.
  virtual Status send(int64_t peer, int32_t channel, const std::byte *source, int64_t bytes, int64_t request) = 0;
  virtual Status receive(int64_t peer, int32_t channel, std::byte *target, int64_t bytes, int64_t request) = 0;
  virtual Status wait(int64_t request) = 0;

  virtual int64_t scratchBytes() const = 0;
};

/// Makes devices and communicators for one session. The plan has passed its check and outlives the backend's use.
class Backend {
public:
  virtual ~Backend() = default;

  /// Checks that the plan fits this machine and loads its code. Called once, before all else.
  virtual Status load(const plan::Plan &plan, Rendezvous &rendezvous) = 0;
  virtual Expected<KernelHandle> kernel(const std::string &symbol) const = 0;

  /// Called on the rank's own thread.
  virtual Expected<std::unique_ptr<Device>> createDevice(const RankPlace &place) = 0;
  virtual Expected<std::unique_ptr<Communicator>> createCommunicator(const RankPlace &place) = 0;

  /// After a failed run, when no thread is in it: makes the next run possible.
  virtual void reset() = 0;
};

} // namespace hpc
