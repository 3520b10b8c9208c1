// The loop nest of a device: blocks and threads have items, the threads of a team share loops at the top of their item.
// A sum's states are joined by shuffles within a warp, then through shared memory, in an order that the shape alone fixes.
#pragma once

#include "passes/Kernels/Device/DeviceShape.h"
#include "passes/Kernels/Elements/LoopNest.h"

namespace hpc::kernels {

/// The global of dynamic shared memory that all kernels of a module address.
constexpr const char *sharedMemoryName = "hpc_shared";

class DeviceLoops : public LoopNest {
public:
  /// `entry`: the kernel's first block. `written`: buffers whose content may change while the kernel runs.
  DeviceLoops(OpBuilder &builder, Location loc, Block *entry, const DeviceShape &shape, ArrayRef<Value> written);

  void forEachItem(int64_t count, function_ref<void(Value)> body) override;
  Value loop(Value first, Value last, Value state, function_ref<Value(Value, Value)> body) override;
  void forEachRow(int64_t count, function_ref<void(Value)> body) override;
  Value share(int64_t count, Value state, function_ref<Value(Value)> term,
              function_ref<Value(Value, Value)> join) override;
  bool isShared() const override { return shape.kind == DeviceShape::Kind::Rows && depth == 0; }
  void once(function_ref<void()> body) override;
  Value ownRow(Type stored, int64_t count) override;
  Value load(Type stored, Value buffer, Value position) override;
  void store(Value element, Value buffer, Value position) override;
  /// Memory of a thread.
  Value scratch(Type stored, int64_t count) override;

  /// Shared memory of the block, undefined at its start; null where too little is left.
  Value shared(Type stored, int64_t count);
  void barrier();
  void onlyIf(Value condition, function_ref<void()> body);
  /// The state of the thread of this warp whose number differs in the bit `distance`.
  Value shuffle(Value state, int64_t distance);
  /// Position in the team, as i64.
  Value lane() { return laneIndex; }
  Value constant(int64_t value);

  int64_t sharedBytes() const { return bytes; }

private:
  Value special(const char *which);
  Value address(Type stored, Value buffer, Value position);
  Value joinTeam(Value state, function_ref<Value(Value, Value)> join);

  OpBuilder &builder;
  Location loc;
  Block *entry;
  const DeviceShape &shape;
  SmallVector<Value> written;
  Value laneIndex;
  int depth = 0;     ///< of loops in the item
  int64_t bytes = 0; ///< of shared memory
};

} // namespace hpc::kernels
