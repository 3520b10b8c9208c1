// PTX is written as text: one loop over the elements of the grid.
#include "runtime/backend/cuda/WidenKernel.h"

#include "runtime/backend/cuda/ReduceKernel.h"
#include "runtime/base/IntegerMath.h"

#include <algorithm>

namespace hpc::cuda {

std::string widenPtx(DType from) {
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n\n.visible .entry widen(\n";
  for (int i = 0; i < 9; ++i)
    text += std::string("  .param ") + (i >= 2 && i < 6 ? ".u32" : ".u64") + " widen_param_" + std::to_string(i) + (i < 8 ? ",\n" : "\n)\n{\n");
  text += ".reg .pred %p<1>;\n.reg .b16 %h<1>;\n.reg .b32 %r<17>;\n.reg .b64 %x<7>;\n.reg .f32 %f<1>;\n";
  for (int i = 0; i < 2; ++i) { // x0, x1: source and target
    const std::string x = "%x" + std::to_string(i);
    text += "ld.param.u64 " + x + ", [widen_param_" + std::to_string(i) + "];\ncvta.to.global.u64 " + x + ", " + x + ";\n";
  }
  for (int i = 0; i < 4; ++i) // r0: elements; r1, r2, r3: sizes of the last dims
    text += "ld.param.u32 %r" + std::to_string(i) + ", [widen_param_" + std::to_string(2 + i) + "];\n";
  for (int i = 0; i < 3; ++i) // x2, x3, x4: strides
    text += "ld.param.u64 %x" + std::to_string(2 + i) + ", [widen_param_" + std::to_string(6 + i) + "];\n";
  // r8: the element; r9: elements of the grid
  text += "mov.u32 %r4, %ctaid.x;\nmov.u32 %r5, %ntid.x;\nmov.u32 %r6, %tid.x;\nmov.u32 %r7, %nctaid.x;\n"
          "mul.lo.u32 %r8, %r4, %r5;\nadd.u32 %r8, %r8, %r6;\nmul.lo.u32 %r9, %r7, %r5;\n"
          "NEXT:\nsetp.ge.u32 %p0, %r8, %r0;\n@%p0 bra DONE;\n";
  // r10, r12, r14: what is left before the last dim, the last two, the last three; r11, r13, r15: the index along each
  for (int i = 0; i < 3; ++i) {
    const std::string whole = i == 0 ? "%r8" : "%r" + std::to_string(8 + 2 * i), size = "%r" + std::to_string(1 + i), left = "%r" + std::to_string(10 + 2 * i),
                      index = "%r" + std::to_string(11 + 2 * i);
    text += "div.u32 " + left + ", " + whole + ", " + size + ";\nmul.lo.u32 " + index + ", " + left + ", " + size + ";\nsub.u32 " + index + ", " + whole + ", " + index + ";\n";
  }
  text += "cvt.u64.u32 %x5, %r11;\n"; // x5: the target's element
  const char *places[][2] = {{"%r14", "%x2"}, {"%r15", "%x3"}, {"%r13", "%x4"}};
  for (auto [index, stride] : places)
    text += std::string("cvt.u64.u32 %x6, ") + index + ";\nmul.lo.s64 %x6, %x6, " + stride + ";\nadd.s64 %x5, %x5, %x6;\n";
  text += "mul.lo.s64 %x5, %x5, 4;\nadd.s64 %x5, %x1, %x5;\n"
          "mul.wide.u32 %x6, %r8, 2;\nadd.s64 %x6, %x0, %x6;\nld.global.b16 %h0, [%x6];\n";
  if (from == DType::F16)
    text += "cvt.f32.f16 %f0, %h0;\n";
  else // its bits are the upper half of an f32's
    text += "cvt.u32.u16 %r16, %h0;\nshl.b32 %r16, %r16, 16;\nmov.b32 %f0, %r16;\n";
  return text + "st.global.f32 [%x5], %f0;\nadd.u32 %r8, %r8, %r9;\nbra NEXT;\nDONE:\nret;\n}\n";
}

Expected<KernelObject> WidenKernels::find(const Driver &driver, DType from) {
  auto found = loaded.find(from);
  if (found == loaded.end()) {
    Expected<CodeLibrary> code = loadCode(driver, widenPtx(from));
    if (!code.ok())
      return code.status();
    found = loaded.emplace(from, std::move(*code)).first;
  }
  return findKernel(driver, found->second, "widen");
}

Status WidenKernels::launch(KernelObject kernel, const Gpu &gpu, StreamHandle stream, const std::byte *source, std::byte *target, const Dims &dims, const Dims &strides) {
  const int64_t elements = dims[0] * dims[1] * dims[2] * dims[3];
  uint32_t sizes[] = {uint32_t(elements), uint32_t(dims[3]), uint32_t(dims[2]), uint32_t(dims[1])};
  Dims places = strides;
  void *arguments[] = {&source, &target, &sizes[0], &sizes[1], &sizes[2], &sizes[3], &places[0], &places[1], &places[2]};
  constexpr int64_t threads = 256;
  const unsigned blocks = unsigned(std::min(ceilDiv(elements, threads), int64_t(8) * gpu.multiprocessors()));
  return check(gpu.driver(), gpu.driver().launch(reinterpret_cast<FunctionHandle>(kernel), blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr), "widening a gradient of attention");
}

} // namespace hpc::cuda
