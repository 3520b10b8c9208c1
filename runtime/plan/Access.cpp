// The bytes that each kind of instruction reads and writes.
#include "runtime/plan/Access.h"

#include "runtime/base/IntegerMath.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/Groups.h"

#include <algorithm>

namespace hpc::plan {

namespace {

/// Bytes from the first to one past the last element of an operand of [rows, columns] as multiplied.
int64_t matrixBytes(const Operand &operand, int64_t rows, int64_t columns, const std::vector<int64_t> &batch,
                    const std::optional<Windows> &windows = std::nullopt) {
  if (rows == 0 || columns == 0 || productOf(batch) == 0)
    return 0;
  if (operand.transpose)
    std::swap(rows, columns);
  int64_t last = addSizes(multiplySizes(rows - 1, operand.ld), columns - 1);
  if (windows) // whole channels
    last = multiplySizes(ceilDiv(rows, windows->rowsOfChannel()), windows->imageSize()) - 1;
  for (size_t i = 0; i < batch.size(); ++i)
    last = addSizes(last, multiplySizes(batch[i] - 1, operand.stride[i]));
  return multiplySizes(addSizes(last, 1), byteSize(operand.dtype));
}

void widen(BufferAccess &access, int64_t bytes, int64_t coordinate, int64_t microBatch) {
  if (bytes <= access.bytes)
    return;
  access.bytes = bytes;
  access.coordinate = coordinate;
  access.microBatch = microBatch;
}

struct Lister {
  const Plan &plan;
  std::vector<BufferAccess> list;

  void add(const Ref &ref, int64_t bytes, bool write, const char *role, int32_t operand) {
    list.push_back({ref, bytes, write, role, 0, 0, operand, nullptr});
  }

  void operator()(const Gemm &gemm) {
    BufferAccess a{gemm.a.place, 0, false, "a"}, b{gemm.b.place, 0, false, "b"}, c{gemm.c.place, 0, true, "c"}, bias;
    b.operand = operandB;
    c.operand = 2;
    if (gemm.epilogue) {
      bias = {gemm.epilogue->bias, 0, false, "bias"};
      bias.operand = 3;
    }
    int64_t ranks = plan.ranksPerStage();
    // The offset of a and b moves the end of what is read from the place on.
    auto widenMatrix = [&](BufferAccess &access, const Operand &operand, int64_t bytes, int64_t coordinate, int64_t microBatch) {
      widen(access, bytes == 0 ? 0 : addSizes(operand.offset.at(coordinate, microBatch, plan.ranksPerStage()), bytes), coordinate, microBatch);
    };
    forEachEntry(plan, {&gemm.m, &gemm.n, &gemm.k, &gemm.a.offset, &gemm.b.offset}, [&](int64_t coordinate, int64_t microBatch) {
      int64_t m = gemm.m.at(coordinate, microBatch, ranks), n = gemm.n.at(coordinate, microBatch, ranks),
              k = gemm.k.at(coordinate, microBatch, ranks);
      if (m == 0 || n == 0)
        return true;
      widenMatrix(a, gemm.a, matrixBytes(gemm.a, m, k, gemm.batch), coordinate, microBatch);
      widenMatrix(b, gemm.b, matrixBytes(gemm.b, k, n, gemm.batch, gemm.windows), coordinate, microBatch);
      widen(c, matrixBytes(gemm.c, m, n, gemm.batch), coordinate, microBatch);
      widen(bias, multiplySizes(n, byteSize(gemm.c.dtype)), coordinate, microBatch);
      return true;
    });
    list = {a, b};
    if (gemm.epilogue)
      list.push_back(bias);
    if (!isEverywhere(gemm.addToC, 0)) {
      BufferAccess sum = c;
      sum.write = false;
      sum.when = &gemm.addToC;
      list.push_back(sum);
    }
    list.push_back(c);
  }
  void operator()(const Kernel &kernel) {
    for (bool write : {false, true})
      for (size_t i = 0; i < kernel.args.size(); ++i)
        if (const KernelArg &arg = kernel.args[i]; write ? arg.writes : arg.reads)
          add(arg.place, arg.bytes, write, "argument", int32_t(i));
  }
  void operator()(const Copy &copy) {
    addMoving(copy.src, copy.srcOffset, copy.bytes, false, "src", 0);
    addMoving(copy.dst, copy.dstOffset, copy.bytes, true, "dst", 1);
  }
  /// From the first to the last byte that it may be in any step and at any coordinate.
  void addMoving(Ref ref, const ByCoord &offset, int64_t bytes, bool write, const char *role, int32_t operand) {
    const auto [least, most] = std::minmax_element(offset.values.begin(), offset.values.end());
    const int64_t end = offset.varies() ? offset.scale * plan.inputs[size_t(offset.input)].largest.value_or(0) : 0;
    const int64_t low = *least + std::min<int64_t>(0, end), high = *most + std::max<int64_t>(0, end);
    ref.byteOffset = addSizes(ref.byteOffset, low);
    add(ref, bytes == 0 ? 0 : addSizes(bytes, high - low), write, role, operand);
  }
  void operator()(const Accumulate &sum) {
    int64_t bytes = multiplySizes(sum.count, byteSize(sum.dtype));
    add(sum.src, bytes, false, "src", 0);
    if (!isEverywhere(sum.add, 0)) {
      add(sum.dst, bytes, false, "dst", 1);
      list.back().when = &sum.add;
    }
    add(sum.dst, bytes, true, "dst", 1);
  }
  void operator()(const Collective &collective) {
    int64_t one = multiplySizes(collective.count, byteSize(collective.dtype));
    int64_t all = multiplySizes(one, groupSize(plan, collective.axes));
    CollectiveKind kind = collective.kind;
    bool wideSrc = kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll;
    bool wideDst = kind == CollectiveKind::AllGather || kind == CollectiveKind::AllToAll;
    add(collective.src, wideSrc ? all : one, false, "src", 0);
    add(collective.dst, wideDst ? all : one, true, "dst", 1);
  }
  void operator()(const Send &send) { add(send.src, send.bytes, false, "src", 0); }
  void operator()(const Recv &recv) { add(recv.dst, recv.bytes, true, "dst", 0); }
  void operator()(const Wait &) {}
  /// The buffer's element type is the port's (checkStructure).
  int64_t boxBytes(const Slice &slice, const Port &port) {
    return multiplySizes(productOf(slice.box), byteSize(port.dtype));
  }
  void operator()(const LoadInput &load) {
    add(load.dst, boxBytes(load.slice, plan.inputs[load.input]), true, "dst", 0);
  }
  void operator()(const StoreOutput &store) {
    add(store.src, boxBytes(store.slice, plan.outputs[store.output]), false, "src", 0);
  }
};

} // namespace

std::vector<BufferAccess> accessesOf(const Plan &plan, const Instruction &instruction) {
  Lister lister{plan, {}};
  std::visit(lister, instruction.action);
  for (BufferAccess &access : lister.list)
    if (access.bytes > 0)
      access.bytes = addSizes(access.bytes, multiplySizes(plan.microBatches - 1, access.ref.microBatchStride));
  return std::move(lister.list);
}

namespace {
struct PlaceLister {
  using Places = std::vector<Ref *>;
  Places operator()(Gemm &gemm) const {
    Places places = {&gemm.a.place, &gemm.b.place, &gemm.c.place};
    if (gemm.epilogue)
      places.push_back(&gemm.epilogue->bias);
    return places;
  }
  Places operator()(Kernel &kernel) const {
    Places places;
    for (KernelArg &arg : kernel.args)
      places.push_back(&arg.place);
    return places;
  }
  Places operator()(Copy &copy) const { return {&copy.src, &copy.dst}; }
  Places operator()(Accumulate &sum) const { return {&sum.src, &sum.dst}; }
  Places operator()(Collective &collective) const { return {&collective.src, &collective.dst}; }
  Places operator()(Send &send) const { return {&send.src}; }
  Places operator()(Recv &recv) const { return {&recv.dst}; }
  Places operator()(Wait &) const { return {}; }
  Places operator()(LoadInput &load) const { return {&load.dst}; }
  Places operator()(StoreOutput &store) const { return {&store.src}; }
};
} // namespace

std::vector<Ref *> placesOf(Action &action) { return std::visit(PlaceLister(), action); }
std::vector<const Ref *> placesOf(const Action &action) {
  const std::vector<Ref *> places = placesOf(const_cast<Action &>(action));
  return {places.begin(), places.end()};
}

int32_t postedRequest(const Action &action) {
  if (const auto *send = std::get_if<Send>(&action))
    return send->request;
  if (const auto *recv = std::get_if<Recv>(&action))
    return recv->request;
  const auto *collective = std::get_if<Collective>(&action);
  return collective ? collective->request : -1;
}

} // namespace hpc::plan
