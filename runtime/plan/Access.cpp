// The bytes that each kind of instruction reads and writes.
#include "runtime/plan/Access.h"

#include "runtime/plan/CheckedMath.h"

namespace hpc::plan {

int64_t groupSize(const Plan &plan, const std::vector<std::string> &axes) {
  int64_t size = 1;
  for (const std::string &wanted : axes)
    for (const Axis &axis : plan.axes)
      if (axis.name == wanted)
        size = multiplySizes(size, axis.size);
  return size;
}

namespace {

/// Bytes from the first to one past the last element of a [rows, columns] matrix of f32 for every index of `batch`.
int64_t matrixBytes(int64_t rows, int64_t columns, int64_t leading, const std::vector<int64_t> &batch,
                    const std::vector<int64_t> &strides) {
  if (rows == 0 || columns == 0 || productOf(batch) == 0)
    return 0;
  int64_t last = addSizes(multiplySizes(rows - 1, leading), columns - 1);
  for (size_t i = 0; i < batch.size(); ++i)
    last = addSizes(last, multiplySizes(batch[i] - 1, strides[i]));
  return multiplySizes(addSizes(last, 1), byteSize(DType::F32));
}

void widen(Access &access, int64_t bytes, int64_t coordinate, int64_t microBatch) {
  if (bytes <= access.bytes)
    return;
  access.bytes = bytes;
  access.coordinate = coordinate;
  access.microBatch = microBatch;
}

struct Lister {
  const Plan &plan;
  std::vector<Access> list;

  Access &add(const Ref &ref, int64_t bytes, bool write, const char *role) {
    list.push_back({ref, bytes, write, role, 0, 0});
    return list.back();
  }

  void operator()(const Gemm &gemm) {
    Access a{gemm.a, 0, false, "a", 0, 0}, b{gemm.b, 0, false, "b", 0, 0}, c{gemm.c, 0, true, "c", 0, 0};
    int64_t ranks = plan.ranksPerStage();
    forEachEntry(plan, {&gemm.m, &gemm.n, &gemm.k}, [&](int64_t coordinate, int64_t microBatch) {
      int64_t m = gemm.m.at(coordinate, microBatch, ranks), n = gemm.n.at(coordinate, microBatch, ranks),
              k = gemm.k.at(coordinate, microBatch, ranks);
      if (m == 0 || n == 0)
        return true;
      widen(a, matrixBytes(gemm.transposeA ? k : m, gemm.transposeA ? m : k, gemm.lda, gemm.batch, gemm.strideA),
            coordinate, microBatch);
      widen(b, matrixBytes(gemm.transposeB ? n : k, gemm.transposeB ? k : n, gemm.ldb, gemm.batch, gemm.strideB),
            coordinate, microBatch);
      widen(c, matrixBytes(m, n, gemm.ldc, gemm.batch, gemm.strideC), coordinate, microBatch);
      return true;
    });
    list = {a, b, c};
  }
  void operator()(const Kernel &kernel) {
    for (bool write : {false, true})
      for (size_t i = 0; i < kernel.args.size(); ++i)
        if (kernel.writes[i] == write)
          add(kernel.args[i], kernel.argBytes[i], write, "argument");
  }
  void operator()(const Copy &copy) {
    add(copy.src, copy.bytes, false, "src");
    add(copy.dst, copy.bytes, true, "dst");
  }
  void operator()(const Collective &collective) {
    int64_t one = multiplySizes(collective.count, byteSize(collective.dtype));
    int64_t all = multiplySizes(one, groupSize(plan, collective.axes));
    CollectiveKind kind = collective.kind;
    bool wideSrc = kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll;
    bool wideDst = kind == CollectiveKind::AllGather || kind == CollectiveKind::AllToAll;
    add(collective.src, wideSrc ? all : one, false, "src");
    add(collective.dst, wideDst ? all : one, true, "dst");
  }
  void operator()(const Send &send) { add(send.src, send.bytes, false, "src"); }
  void operator()(const Recv &recv) { add(recv.dst, recv.bytes, true, "dst"); }
  void operator()(const Wait &) {}
  /// The buffer's element type is the port's (checkStructure).
  int64_t boxBytes(const Slice &slice, const Port &port) {
    return multiplySizes(productOf(slice.box), byteSize(port.dtype));
  }
  void operator()(const LoadInput &load) { add(load.dst, boxBytes(load.slice, plan.inputs[load.input]), true, "dst"); }
  void operator()(const StoreOutput &store) {
    add(store.src, boxBytes(store.slice, plan.outputs[store.output]), false, "src");
  }
};

} // namespace

std::vector<Access> accessesOf(const Plan &plan, const Instruction &instruction) {
  Lister lister{plan, {}};
  std::visit(lister, instruction.action);
  return std::move(lister.list);
}

} // namespace hpc::plan
