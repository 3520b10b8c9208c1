// One part: a slab of the padded image becomes [positions.., channels], oneDNN convolves it, and the result goes to its
// rows of C.
#include "runtime/backend/host/Convolution.h"

#include "runtime/backend/host/TileProduct.h"
#include "runtime/backend/host/Transpose.h"
#include "runtime/base/IntegerMath.h"

#include <algorithm>
#include <cstring>

namespace hpc::host {

namespace {

using dnnl::memory;

/// Bytes of cache for a slab and its result.
constexpr int64_t slabBytes = 512 << 10;
/// For threads; with more slabs or fewer rows than these, a second thread costs more than it gains.
constexpr int64_t fewParts = 4, leastRows = 64, leastPositions = 4;
/// Below this depth, writing the columns takes less time than transposing the image.
constexpr int64_t leastDepth = 96;
/// Tiles are faster where both are large (measured).
constexpr int64_t rowsForTiles = 512, columnsForTiles = 1024;

constexpr memory::format_tag channelsLast[] = {memory::format_tag::nwc, memory::format_tag::nhwc, memory::format_tag::ndhwc};
constexpr memory::format_tag plainWeight[] = {memory::format_tag::oiw, memory::format_tag::oihw, memory::format_tag::oidhw};

Status libraryError(const dnnl::error &error) {
  return Status::error(ErrorKind::Internal, std::string("oneDNN refuses a convolution: ") + error.what());
}

/// Where a product of the batch has its operands, in elements.
struct BatchPlace {
  int64_t a = 0, b = 0, c = 0;
};
BatchPlace placeOf(const plan::Gemm &gemm, int64_t product) {
  BatchPlace place;
  for (size_t d = gemm.batch.size(); d-- > 0; product /= gemm.batch[d]) {
    const int64_t index = product % gemm.batch[d];
    place.a += index * gemm.a.stride[d];
    place.b += index * gemm.b.stride[d];
    place.c += index * gemm.c.stride[d];
  }
  return place;
}

bool isConvolution(const GemmCall &call, bool mayUseTiles) {
  const plan::Gemm &gemm = call.plan;
  const plan::Windows &windows = *gemm.windows;
  const int64_t size = windows.rowsOfChannel();
  for (DType type : {gemm.a.dtype, gemm.b.dtype, gemm.c.dtype, gemm.accumulate})
    if (type != DType::F32)
      return false;
  if (gemm.a.transpose || gemm.b.transpose || call.addToC || windows.image.size() > std::size(channelsLast))
    return false;
  if (call.m == 0 || call.n != windows.columns() || call.k != windows.channels * size || gemm.a.ld != call.k)
    return false;
  // Each product has a matrix of A of its own, and these follow each other in memory.
  for (size_t d = 0; d < gemm.batch.size(); ++d)
    if (gemm.batch[d] == 0 || gemm.a.stride[d] % (call.m * call.k) != 0)
      return false;
  if (size == 1 || call.k < leastDepth)
    return false;
  const bool usesTiles = fitsTiles({call.m, call.n, call.k, {nullptr, DType::F32, call.k}, {nullptr, DType::F32, call.n},
                                    {nullptr, DType::F32, call.n}, DType::F32, false, mayUseTiles});
  return !(usesTiles && call.m >= rowsForTiles && call.n >= columnsForTiles);
}

} // namespace

Convolution::Convolution(const GemmCall &call) : windows(*call.plan.windows), m(call.m), k(call.k) {
  const plan::Gemm &gemm = call.plan;
  for (size_t d = 0; d < gemm.batch.size(); ++d) {
    products *= gemm.batch[d];
    groups += (gemm.batch[d] - 1) * (gemm.a.stride[d] / (m * k));
  }
}

void Convolution::cut() {
  const int64_t positions = windows.counts[0], target = m * (windows.columns() / positions);
  int64_t line = windows.channels; // of the padded image, along the first dim
  for (size_t d = 1; d < windows.image.size(); ++d)
    line *= reach(d, windows.counts[d]);
  auto bytes = [&](int64_t count) { return (line * reach(0, count) + target * count) * int64_t(sizeof(float)); };
  auto ofSlab = [&] { return ceilDiv(positions, slabs); };
  while (ofSlab() > 1 && bytes(ofSlab()) > slabBytes)
    slabs *= 2;
  rows = m;
  while (products * slabs * rowParts < fewParts && rows % 32 == 0 && rows / 2 >= leastRows) {
    rowParts *= 2;
    rows /= 2;
  }
  while (products * slabs * rowParts < fewParts && ofSlab() / 2 >= leastPositions)
    slabs *= 2;
  slabs = ceilDiv(positions, ofSlab());
}

Convolution::Slab Convolution::makeSlab(int64_t positions) const {
  const size_t dims = windows.image.size();
  memory::dims source{1, windows.channels}, target{1, rows}, weight{rows, windows.channels}, dilations, low, high;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t count = d == 0 ? positions : windows.counts[d], all = reach(d, count);
    low.push_back(isPadded(d) ? 0 : windows.low[d]);
    const int64_t held = isPadded(d) ? all : std::min(windows.image[d], all - low.back());
    high.push_back(all - low.back() - held);
    source.push_back(held);
    target.push_back(count);
    weight.push_back(windows.sizes[d]);
    dilations.push_back(windows.dilations[d] - 1);
  }
  const auto type = memory::data_type::f32;
  const memory::desc from(source, type, channelsLast[dims - 1]), to(target, type, channelsLast[dims - 1]);
  const memory::desc with = weightFormat ? weightFormat : memory::desc(weight, type, memory::format_tag::any);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::convolution_forward::primitive_desc found(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, from, with, to,
       memory::dims(windows.strides.begin(), windows.strides.end()), dilations, low, high},
      attributes, engine);
  return {positions, from, to, found.scratchpad_desc(), dnnl::convolution_forward(found)};
}

std::unique_ptr<Convolution> Convolution::create(const GemmCall &call, bool mayUseTiles) {
  if (!isConvolution(call, mayUseTiles))
    return nullptr;
  try {
    std::unique_ptr<Convolution> made(new Convolution(call));
    for (size_t d = 0; d < made->windows.image.size(); ++d)
      if (made->windows.low[d] >= made->reach(d, made->windows.counts[d]))
        return nullptr; // no window sees the image: an extent of 0, of which oneDNN 2.6.3 dies
    made->cut();
    const int64_t positions = made->windows.counts[0], first = ceilDiv(positions, made->slabs);
    made->slab = made->makeSlab(first);
    made->weightFormat = dnnl::memory::desc(*dnnl_primitive_desc_query_md(made->slab.primitive.get_primitive_desc(),
                                                                          dnnl_query_weights_md, 0));
    made->lastSlab = made->makeSlab(positions - (made->slabs - 1) * first);
    // Loops without vectors, or oneDNN's own columns.
    for (const Slab *slab : {&made->slab, &made->lastSlab}) {
      const char *code = nullptr;
      dnnl_primitive_desc_query(slab->primitive.get_primitive_desc(), dnnl_query_impl_info_str, 0, &code);
      if (!code || std::strstr(code, "ref") || std::strstr(code, "gemm"))
        return nullptr;
    }
    return made;
  } catch (const dnnl::error &) {
    return nullptr;
  }
}

int64_t Convolution::scratch() const {
  int64_t bytes = 0;
  for (const Slab *each : {&slab, &lastSlab})
    bytes = std::max<int64_t>(bytes, roundUp(int64_t(each->source.get_size()), 64) + roundUp(int64_t(each->target.get_size()), 64) +
                                         int64_t(each->scratch.get_size()) + 64);
  return bytes;
}

Status Convolution::pack(const std::byte *a, std::byte *to) const {
  try {
    const memory::desc stored(weightFormat.dims(), memory::data_type::f32, plainWeight[windows.image.size() - 1]);
    memory from(stored, engine, const_cast<std::byte *>(a)), blob(weightFormat, engine, to);
    dnnl::stream stream(engine);
    dnnl::reorder(from, blob).execute(stream, from, blob);
    return Status::success();
  } catch (const dnnl::error &error) {
    return libraryError(error);
  }
}

/// [channels, image..] from position `first` of the first dim on, with zeros around it where slabs have them, to
/// [positions.., channels].
void Convolution::readSlab(const float *image, const Slab &slab, int64_t first, float *to) const {
  const size_t dims = windows.image.size(), last = dims - 1;
  const int64_t channels = windows.channels, imageSize = windows.imageSize();
  const memory::dims shape = slab.source.dims(); // 1, channels, then the dims
  const int64_t width = shape[2 + last];
  int64_t lines = 1;
  for (size_t d = 0; d < last; ++d)
    lines *= shape[2 + d];
  for (int64_t line = 0; line < lines; ++line, to += width * channels) {
    int64_t rest = line, at = 0, step = 1;
    bool isInside = true;
    for (size_t d = last; d-- > 0; rest /= shape[2 + d]) {
      const int64_t position = rest % shape[2 + d] + (d == 0 ? first : 0) - (isPadded(d) ? windows.low[d] : 0);
      isInside &= position >= 0 && position < windows.image[d];
      at += position * step;
      step *= windows.image[d];
    }
    // Where the image begins in this line.
    const int64_t begin = (isPadded(last) ? windows.low[last] : 0) - (dims == 1 ? first : 0);
    const int64_t from = isInside ? std::clamp<int64_t>(begin, 0, width) : width;
    const int64_t end = std::clamp<int64_t>(begin + windows.image[last], from, width);
    std::fill(to, to + from * channels, 0.0f);
    if (end > from)
      transpose(image + at * windows.image[last] + (from - begin), imageSize, channels, end - from, to + from * channels, channels);
    std::fill(to + end * channels, to + width * channels, 0.0f);
  }
}

Status Convolution::runPart(const GemmCall &call, const std::byte *weight, int64_t part, Scratch &scratch) const {
  const int64_t index = part % slabs, rowPart = part / slabs % rowParts;
  const BatchPlace place = placeOf(call.plan, part / slabs / rowParts);
  const Slab &form = index + 1 < slabs ? slab : lastSlab;
  const int64_t position = index * slab.positions, line = windows.columns() / windows.counts[0];
  std::byte *const memoryStart = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  float *const source = reinterpret_cast<float *>(memoryStart);
  float *const target = reinterpret_cast<float *>(memoryStart + roundUp(int64_t(form.source.get_size()), 64));
  std::byte *const beside = reinterpret_cast<std::byte *>(target) + roundUp(int64_t(form.target.get_size()), 64);
  readSlab(reinterpret_cast<const float *>(call.b) + place.b, form, position * windows.strides[0], source);
  const std::byte *blob = weight + (place.a / (m * k) * rowParts + rowPart) * blobBytes();
  dnnl::stream stream(engine);
  form.primitive.execute(stream, {{DNNL_ARG_SRC, memory(form.source, engine, source)},
                                  {DNNL_ARG_WEIGHTS, memory(weightFormat, engine, const_cast<std::byte *>(blob))},
                                  {DNNL_ARG_DST, memory(form.target, engine, target)},
                                  {DNNL_ARG_SCRATCHPAD, memory(form.scratch, engine, beside)}});
  float *const c = reinterpret_cast<float *>(call.c) + place.c + rowPart * rows * call.plan.c.ld + position * line;
  transpose(target, rows, form.positions * line, rows, c, call.plan.c.ld);
  return Status::success();
}

Status Convolution::run(const GemmCall &call, const std::byte *weight, ThreadPool &threads, std::vector<Scratch> &scratch) const {
  return threads.run(products * rowParts * slabs, 1, [&](int64_t thread, int64_t first, int64_t last) {
    if (thread > 0)
      useOneThread();
    try {
      for (int64_t part = first; part < last; ++part)
        HPC_RETURN_IF_ERROR(runPart(call, weight, part, scratch[size_t(thread)]));
    } catch (const dnnl::error &error) {
      return libraryError(error);
    }
    return Status::success();
  });
}

} // namespace hpc::host
