// PTX is written as text: one loop over the elements, one load and one operation for each source.
#include "runtime/backend/cuda/ReduceKernel.h"

#include "runtime/base/IntegerMath.h"

#include <algorithm>

namespace hpc::cuda {

namespace {

/// How elements of a type are loaded, computed with and stored.
struct Form {
  const char *load;    ///< type of the load; narrow integers are extended by it
  const char *store;   ///< type of the store
  char bank;           ///< register that it is loaded into: h (16 bits), r (32), d (64), f, g (f64)
  const char *compute; ///< type of the operation
};

Form formOf(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return {"f32", "f32", 'f', "f32"};
  case DType::F64:
    return {"f64", "f64", 'g', "f64"};
  case DType::F16:
  case DType::BF16:
    return {"b16", "b16", 'h', "f32"};
  case DType::I64:
    return {"s64", "s64", 'd', "s64"};
  case DType::U64:
    return {"u64", "u64", 'd', "u64"};
  case DType::I32:
    return {"s32", "s32", 'r', "s32"};
  case DType::U32:
    return {"u32", "u32", 'r', "u32"};
  case DType::I16:
    return {"s16", "u16", 'r', "s32"};
  case DType::U16:
    return {"u16", "u16", 'r', "u32"};
  case DType::I8:
    return {"s8", "u8", 'r', "s32"};
  case DType::U8:
  case DType::Bool: // bytes 0 and 1: max is or, min and prod are and
    return {"u8", "u8", 'r', "u32"};
  }
  return {};
}

/// a = a op b, in registers of the bank of the type that is computed in.
std::string operation(ReduceKind kind, const Form &form, const std::string &a, const std::string &b) {
  const std::string type = form.compute, registers = " " + a + ", " + a + ", " + b + ";\n";
  const bool isFloat = type[0] == 'f';
  switch (kind) {
  case ReduceKind::Sum:
    return (isFloat ? "add.rn." : "add.") + type + registers;
  case ReduceKind::Prod:
    return (isFloat ? "mul.rn." : "mul.lo.") + type + registers;
  case ReduceKind::Max:
  case ReduceKind::Min: {
    const std::string name = kind == ReduceKind::Max ? "max." : "min.";
    if (type == "f32")
      return name + "NaN.f32" + registers;
    if (type == "f64") // has no .NaN; their sum is NaN if one of them is
      return "setp.nan.f64 %p1, " + a + ", " + b + ";\n@%p1 add.rn.f64" + registers + "@!%p1 " + name + "f64" +
             registers;
    return name + type + registers;
  }
  }
  return {};
}

} // namespace

std::string reducePtx(ReduceKind kind, DType dtype, int sources, int targets) {
  const Form form = formOf(dtype);
  const bool is16 = dtype == DType::F16 || dtype == DType::BF16;
  const std::string loadedBank(1, form.bank), bank = is16 ? "f" : loadedBank;
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n\n.visible .entry reduce(\n";
  for (int i = 0; i < sources + targets; ++i)
    text += "  .param .u64 reduce_param_" + std::to_string(i) + ",\n";
  const std::string count = "reduce_param_" + std::to_string(sources + targets);
  text += "  .param .u64 " + count +
          "\n)\n{\n.reg .pred %p<2>;\n.reg .b16 %h<2>;\n.reg .b32 %r<8>;\n"
          ".reg .b64 %d<2>;\n.reg .f32 %f<2>;\n.reg .f64 %g<2>;\n.reg .b64 %x<6>;\n";
  // x0: the element; x1: elements of the grid; x2: count; x3: the element's offset
  text += "ld.param.u64 %x2, [" + count +
          "];\n"
          "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\nmov.u32 %r5, %nctaid.x;\n"
          "mul.wide.u32 %x0, %r2, %r3;\ncvt.u64.u32 %x3, %r4;\nadd.s64 %x0, %x0, %x3;\nmul.wide.u32 %x1, %r5, %r3;\n"
          "NEXT:\nsetp.ge.u64 %p0, %x0, %x2;\n@%p0 bra DONE;\n"
          "mul.lo.s64 %x3, %x0, " +
          std::to_string(byteSize(dtype)) + ";\n";
  auto address = [&](int parameter) {
    return "ld.param.u64 %x4, [reduce_param_" + std::to_string(parameter) +
           "];\n"
           "cvta.to.global.u64 %x4, %x4;\nadd.s64 %x4, %x4, %x3;\n";
  };
  for (int i = 0; i < sources; ++i) {
    const std::string number = i == 0 ? "0" : "1", running = "%" + bank + number;
    text += address(i) + "ld.global." + form.load + " %" + loadedBank + number + ", [%x4];\n";
    if (dtype == DType::F16)
      text += "cvt.f32.f16 " + running + ", %h" + number + ";\n";
    if (dtype == DType::BF16) // its bits are the upper half of an f32's
      text += "cvt.u32.u16 %r6, %h" + number + ";\nshl.b32 %r6, %r6, 16;\nmov.b32 " + running + ", %r6;\n";
    if (i > 0)
      text += operation(kind, form, "%" + bank + "0", "%" + bank + "1");
  }
  if (dtype == DType::F16)
    text += "cvt.rn.f16.f32 %h0, %f0;\n";
  if (dtype == DType::BF16)
    text += "cvt.rn.bf16.f32 %h0, %f0;\n";
  for (int i = 0; i < targets; ++i)
    text += address(sources + i) + "st.global." + form.store + " [%x4], %" + loadedBank + "0;\n";
  return text + "add.s64 %x0, %x0, %x1;\nbra NEXT;\nDONE:\nret;\n}\n";
}

Expected<CodeLibrary> loadCode(const Driver &driver, const std::string &ptx) {
  char log[4096] = "";
  int options[] = {jitErrorLog, jitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  LibraryHandle handle = nullptr;
  DriverResult result = driver.loadLibrary(&handle, ptx.c_str(), options, values, 2, nullptr, nullptr, 0);
  Status status = check(driver, result, "the driver compiles the plan's code");
  if (!status.ok())
    return Status::error(status.kind(), status.message() + (log[0] ? ": " + std::string(log) : std::string()));
  return CodeLibrary(driver, handle);
}

Expected<KernelObject> findKernel(const Driver &driver, const CodeLibrary &code, const std::string &symbol) {
  KernelObject kernel = nullptr;
  FunctionHandle function = nullptr;
  HPC_RETURN_IF_ERROR(check(driver, driver.getKernel(&kernel, code.get(), symbol.c_str()), "finding '" + symbol + "'"));
  HPC_RETURN_IF_ERROR(check(driver, driver.getFunction(&function, kernel), "loading '" + symbol + "'"));
  return kernel;
}

Expected<KernelObject> ReduceKernels::find(ReduceKind kind, DType dtype, int sources, int targets) {
  if (sources + targets > 256)
    return Status::error(ErrorKind::Unsupported, "a reduction over " + std::to_string(sources) +
                                                     " ranks that share this process; use --tp and --dp up to 128");
  std::lock_guard<std::mutex> lock(mutex);
  auto found = loaded.find({kind, dtype, sources, targets});
  if (found == loaded.end()) {
    Expected<CodeLibrary> code = loadCode(driver, reducePtx(kind, dtype, sources, targets));
    if (!code.ok())
      return code.status();
    found = loaded.emplace(std::tuple(kind, dtype, sources, targets), std::move(*code)).first;
  }
  return findKernel(driver, found->second, "reduce");
}

Status ReduceKernels::launch(KernelObject kernel, const Gpu &gpu, StreamHandle stream,
                             const std::vector<const std::byte *> &sources, const std::vector<std::byte *> &targets,
                             int64_t count) const {
  if (count == 0)
    return Status::success();
  std::vector<void *> arguments;
  for (const std::byte *const &source : sources)
    arguments.push_back(const_cast<std::byte **>(&source));
  for (std::byte *const &target : targets)
    arguments.push_back(const_cast<std::byte **>(&target));
  arguments.push_back(&count);
  constexpr int64_t threads = 256;
  const unsigned blocks = unsigned(std::min(ceilDiv(count, threads), int64_t(8) * gpu.multiprocessors()));
  return check(driver,
               driver.launch(reinterpret_cast<FunctionHandle>(kernel), blocks, 1, 1, threads, 1, 1, 0, stream,
                             arguments.data(), nullptr),
               "starting a reduction");
}

} // namespace hpc::cuda
