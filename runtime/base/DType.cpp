// The table of element types.
#include "runtime/base/DType.h"

namespace hpc {

namespace {
struct Row {
  DType type;
  const char *name;
  int64_t bytes;
  bool isFloat;
};
constexpr Row rows[] = {
    {DType::F32, "f32", 4, true},    {DType::F64, "f64", 8, true},  {DType::F16, "f16", 2, true},
    {DType::BF16, "bf16", 2, true},  {DType::I64, "i64", 8, false}, {DType::I32, "i32", 4, false},
    {DType::I16, "i16", 2, false},   {DType::I8, "i8", 1, false},   {DType::U8, "u8", 1, false},
    {DType::U16, "u16", 2, false},   {DType::U32, "u32", 4, false}, {DType::U64, "u64", 8, false},
    {DType::Bool, "bool", 1, false},
};
static_assert(sizeof(rows) / sizeof(rows[0]) == numDTypes);
const Row &row(DType type) { return rows[int(type)]; }
} // namespace

int64_t byteSize(DType type) { return row(type).bytes; }
const char *name(DType type) { return row(type).name; }
bool isFloat(DType type) { return row(type).isFloat; }

std::optional<DType> parseDType(std::string_view name) {
  for (const Row &entry : rows)
    if (name == entry.name)
      return entry.type;
  return std::nullopt;
}

} // namespace hpc
