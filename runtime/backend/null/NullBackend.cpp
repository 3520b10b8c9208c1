// Addresses are reserved and not readable, so that code which moves data by mistake fails at once.
#include "runtime/backend/null/NullBackend.h"

#include "runtime/base/CountText.h"
#include "runtime/plan/PlanFacts.h"
#include "runtime/plan/PlanNames.h"

#include <algorithm>
#include <sys/mman.h>

namespace hpc::null {

namespace {

class NullDevice : public Device {
public:
  explicit NullDevice(Counts &counts) : counts(counts) {}
  ~NullDevice() override {
    for (auto [address, bytes] : reserved)
      ::munmap(address, bytes);
  }

  Expected<std::byte *> allocate(plan::Space, int64_t bytes, std::byte) override {
    size_t size = size_t(std::max<int64_t>(bytes, 1));
    void *address = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
      return Status::error(ErrorKind::Capacity,
                           "cannot reserve " + countText(bytes, "byte") + " of addresses for one rank");
    reserved.emplace_back(address, size);
    return static_cast<std::byte *>(address);
  }
  Status fill(std::byte *, std::byte, int64_t) override { return Status::success(); }
  Status copy(std::byte *, const std::byte *, int64_t bytes) override {
    ++counts.copies;
    counts.copiedBytes += bytes;
    return Status::success();
  }
  Status accumulate(std::byte *target, const std::byte *source, DType dtype, int64_t count) override {
    return copy(target, source, count * byteSize(dtype));
  }
  Status gather(const SliceCopy &, const std::byte *, std::byte *) override {
    ++counts.loads;
    return Status::success();
  }
  Status scatter(const SliceCopy &, const std::byte *, std::byte *) override {
    ++counts.stores;
    return Status::success();
  }

  Expected<GemmHandle> prepare(const GemmCall &) override { return GemmHandle(0); }
  Status gemm(GemmHandle, const GemmCall &call) override {
    ++counts.gemms;
    int64_t products = 1;
    for (int64_t size : call.plan.batch)
      products *= size;
    counts.flops += 2 * call.m * call.n * call.k * products;
    return Status::success();
  }
  Status kernel(const KernelCall &call) override {
    ++counts.kernels;
    counts.flops += call.plan.flops;
    return Status::success();
  }
  Status finish() override { return Status::success(); }
  int64_t scratchBytes() const override { return 0; }

private:
  Counts &counts;
  std::vector<std::pair<void *, size_t>> reserved;
};

class NullCommunicator : public Communicator {
public:
  NullCommunicator(const plan::Plan &plan, Counts &counts) : plan(plan), counts(counts) {}

  Expected<int64_t> prepare(const plan::Collective &collective) override {
    std::string axes;
    for (const std::string &axis : collective.axes)
      axes += (axes.empty() ? "" : ",") + axis;
    groups.push_back(&counts.traffic[{plan::name(collective.kind), axes}]);
    return int64_t(groups.size()) - 1;
  }
  Status collective(const plan::Collective &collective, int64_t group, const std::byte *, std::byte *,
                    int64_t) override {
    ++groups[size_t(group)]->calls;
    groups[size_t(group)]->bytes += plan::payloadBytes(plan, collective);
    return Status::success();
  }
  Status post(const plan::Collective &collective, int64_t group, const std::byte *source, std::byte *target,
              int64_t sourcePosition, int64_t) override {
    return this->collective(collective, group, source, target, sourcePosition);
  }
  Status send(int64_t, int32_t, const std::byte *, int64_t bytes, int64_t) override { return add("send", bytes); }
  Status receive(int64_t, int32_t, std::byte *, int64_t bytes, int64_t) override { return add("recv", bytes); }
  Status wait(int64_t) override {
    ++counts.waits;
    return Status::success();
  }
  int64_t scratchBytes() const override { return 0; }

private:
  Status add(const char *kind, int64_t bytes) {
    Traffic &traffic = counts.traffic[{kind, ""}];
    ++traffic.calls;
    traffic.bytes += bytes;
    return Status::success();
  }

  const plan::Plan &plan;
  Counts &counts;
  std::vector<Traffic *> groups; ///< by the result of prepare
};

class NullBackend : public Backend {
public:
  explicit NullBackend(std::vector<Counts> &counts) : counts(counts) {}

  Status load(const plan::Plan &loaded, RankRange, int64_t) override {
    plan = &loaded;
    return Status::success();
  }
  Expected<KernelHandle> kernel(const std::string &) const override { return KernelHandle(this); } // never called
  Expected<std::unique_ptr<Device>> createDevice(const RankPlace &place, ThreadPool &) override {
    return std::unique_ptr<Device>(std::make_unique<NullDevice>(counts[size_t(place.rank)]));
  }
  Expected<std::unique_ptr<Communicator>> createCommunicator(const RankPlace &place, int64_t) override {
    return std::unique_ptr<Communicator>(std::make_unique<NullCommunicator>(*plan, counts[size_t(place.rank)]));
  }
  void fail(const Status &) override {}
  Status agree(const Status &mine, bool *) override { return mine; }

private:
  const plan::Plan *plan = nullptr;
  std::vector<Counts> &counts;
};

} // namespace

std::unique_ptr<Backend> createNullBackend(std::vector<Counts> &counts) {
  return std::make_unique<NullBackend>(counts);
}

} // namespace hpc::null
