// How many values become one: the reductions of ops, sharding rules, collectives and plans.
// Each means the same everywhere, or a dim that ranks share would not reduce to what one rank computes: integers wrap;
// max and min of floats give NaN if any value is NaN, and -0 is less than +0.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hpc {

enum class ReduceKind : uint8_t { Sum, Max, Min, Prod };

constexpr ReduceKind allReduceKinds[] = {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod};

/// As IR, rules and print-outs spell it: "sum".
constexpr const char *name(ReduceKind kind) {
  constexpr const char *names[] = {"sum", "max", "min", "prod"};
  return names[int(kind)];
}

inline std::optional<ReduceKind> reduceKindNamed(std::string_view text) {
  for (ReduceKind kind : allReduceKinds)
    if (text == name(kind))
      return kind;
  return std::nullopt;
}

} // namespace hpc
