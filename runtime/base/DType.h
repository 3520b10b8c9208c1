// Element types of tensors: the few facts that every level needs, in one table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hpc {

enum class DType : uint8_t { F32, F64, F16, BF16, I64, I32, I16, I8, U8, U16, U32, U64, Bool };

/// Bytes of one element.
int64_t byteSize(DType type);
/// "f32", "i64", "bool", ...
const char *name(DType type);
std::optional<DType> parseDType(std::string_view name);
bool isFloat(DType type);
/// Number of entries, for tests that walk all types.
constexpr int numDTypes = int(DType::Bool) + 1;

} // namespace hpc
