// From the list of what instructions touch alone. The result is written where the product stood, earlier than the plan
// says, and buffers share memory: so what is between the two is compared with it by address, all else by buffer.
#include "runtime/core/EpilogueFusion.h"

#include "runtime/plan/Access.h"

#include <algorithm>
#include <optional>

namespace hpc {

namespace {

/// Bytes of a buffer.
struct Piece {
  plan::Ref ref;
  int64_t bytes;
};

Piece pieceOf(const plan::KernelArg &argument) { return {argument.place, argument.bytes}; }
Piece pieceOf(const plan::BufferAccess &access) { return {access.ref, access.bytes}; }

bool isSame(const plan::Ref &one, const plan::Ref &other) {
  return one.buffer == other.buffer && one.byteOffset == other.byteOffset;
}

bool overlap(int64_t a, int64_t bytesA, int64_t b, int64_t bytesB) {
  return bytesA > 0 && bytesB > 0 && a < b + bytesB && b < a + bytesA;
}

bool shareBytes(const Piece &one, const Piece &other) {
  return one.ref.buffer == other.ref.buffer &&
         overlap(one.ref.byteOffset, one.bytes, other.ref.byteOffset, other.bytes);
}

/// By where the buffers lie; of several slots any may be meant.
bool shareMemory(const plan::Stage &stage, const Piece &one, const Piece &other) {
  const plan::Buffer &a = stage.buffers[size_t(one.ref.buffer)], &b = stage.buffers[size_t(other.ref.buffer)];
  if (plan::arenaOf(a) != plan::arenaOf(b) || one.bytes == 0 || other.bytes == 0)
    return false;
  auto span = [](const plan::Buffer &buffer) { return (buffer.slots - 1) * buffer.slotStride; };
  return overlap(a.offset + one.ref.byteOffset, one.bytes + span(a), b.offset + other.ref.byteOffset,
                 other.bytes + span(b));
}

struct Finder {
  const plan::Plan &plan;
  const plan::Stage &stage;
  const plan::Program &program;
  std::vector<std::vector<plan::BufferAccess>> accesses; ///< by instruction

  Finder(const plan::Plan &plan, const plan::Stage &stage, const plan::Program &program)
      : plan(plan), stage(stage), program(program) {
    for (const plan::Instruction &instruction : program.instructions)
      accesses.push_back(plan::accessesOf(plan, instruction));
  }

  /// The last instruction before the kernel that writes some of `product`; none where a byte of it is read between the
  /// two, or the result could not be written, or the bias not be read, as early as that.
  std::optional<size_t> findWriter(size_t kernel, const Piece &product, const Piece &bias, const Piece &result) const {
    const bool inPlace = isSame(product.ref, result.ref);
    for (size_t i = kernel; i-- > 0;) {
      const std::vector<plan::BufferAccess> &list = accesses[i];
      auto any = [&](auto test) { return std::any_of(list.begin(), list.end(), test); };
      const bool writes = any([&](const plan::BufferAccess &a) { return a.write && shareBytes(pieceOf(a), product); });
      auto isOwn = [&](const plan::BufferAccess &a) { return writes && a.write && shareBytes(pieceOf(a), product); };
      if (std::holds_alternative<plan::Wait>(program.instructions[i].action) || any([&](const plan::BufferAccess &a) {
            return (!a.write && shareBytes(pieceOf(a), product)) || (a.write && shareMemory(stage, pieceOf(a), bias)) ||
                   (!inPlace && !isOwn(a) && shareMemory(stage, pieceOf(a), result));
          }))
        return std::nullopt;
      if (writes)
        return i;
    }
    return std::nullopt;
  }

  /// Whether the product's place is read by nothing but the kernel, which no place that outlives the program can say.
  bool isTemporary(size_t kernel, const Piece &product, const Piece &result) const {
    if (stage.buffers[size_t(product.ref.buffer)].lifetime != plan::Lifetime::Program)
      return false;
    if (isSame(product.ref, result.ref))
      return true; // what is read behind the kernel is its result
    for (size_t i = kernel + 1; i < accesses.size(); ++i)
      for (const plan::BufferAccess &access : accesses[i])
        if (shareBytes(pieceOf(access), product))
          return false;
    return true;
  }

  std::optional<ProductWithEpilogue> find(size_t index) const {
    const plan::Instruction &second = program.instructions[index];
    const auto *kernel = std::get_if<plan::Kernel>(&second.action);
    if (!kernel || !kernel->epilogue)
      return std::nullopt;
    const plan::Epilogue &epilogue = *kernel->epilogue;
    const Piece product = pieceOf(kernel->args[size_t(epilogue.product)]),
                bias = pieceOf(kernel->args[size_t(epilogue.bias)]),
                result = pieceOf(kernel->args[size_t(3 - epilogue.product - epilogue.bias)]);
    if (product.bytes == 0 || shareMemory(stage, bias, product) || shareMemory(stage, bias, result) ||
        !isTemporary(index, product, result))
      return std::nullopt;
    const std::optional<size_t> writer = findWriter(index, product, bias, result);
    if (!writer)
      return std::nullopt;
    const plan::Instruction &first = program.instructions[*writer];
    const auto *gemm = std::get_if<plan::Gemm>(&first.action);
    const int64_t rows = product.bytes / bias.bytes;
    const int64_t columns = bias.bytes / byteSize(stage.buffers[size_t(bias.ref.buffer)].dtype);
    if (!gemm || first.when.values != second.when.values || first.onRequest != second.onRequest ||
        !isSame(gemm->c.place, product.ref) || gemm->c.dtype != stage.buffers[size_t(bias.ref.buffer)].dtype ||
        !gemm->batch.empty() || gemm->c.ld != columns || !isEverywhere(gemm->m, rows) ||
        !isEverywhere(gemm->n, columns) || !isEverywhere(gemm->addToC, 0))
      return std::nullopt;
    ProductWithEpilogue fused{int64_t(*writer), int64_t(index), *gemm};
    fused.gemm.c.place = result.ref;
    fused.gemm.epilogue = {epilogue.kind, bias.ref};
    return fused;
  }
};

} // namespace

std::vector<ProductWithEpilogue> findFusedEpilogues(const plan::Plan &plan, const plan::Stage &stage,
                                              const plan::Program &program) {
  std::vector<ProductWithEpilogue> found;
  auto isEpilogue = [](const plan::Instruction &instruction) {
    const auto *kernel = std::get_if<plan::Kernel>(&instruction.action);
    return kernel && kernel->epilogue;
  };
  if (std::none_of(program.instructions.begin(), program.instructions.end(), isEpilogue))
    return found;
  const Finder finder(plan, stage, program);
  for (size_t i = 0; i < program.instructions.size(); ++i)
    if (std::optional<ProductWithEpilogue> fused = finder.find(i))
      found.push_back(std::move(*fused));
  return found;
}

} // namespace hpc
