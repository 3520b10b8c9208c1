// The user's annotations, `<model>.shard.json`, as plain structs: how some parameters and tensors are cut, which stage
// computes what. docs/shard.schema.json is its grammar; a rule decides whatever it is the first to match.
#pragma once

#include "compiler/Dialect/Dist/MeshDegrees.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpc {

/// One axis that cuts one dim, or one sub-dim of it: {"dim": 1, "of": [3, 12, 64], "at": 1, "axis": "tp"}.
/// Several cuts of one dim take the dim apart alike; on one sub-dim the first is the outermost.
struct SidecarCut {
  int64_t dim = 0;              ///< from the end where it is negative
  std::vector<int64_t> of;      ///< sizes of the sub-dims, major to minor; empty = the dim as it is
  size_t at = 0;                ///< which of them is cut
  std::string axis;
  std::optional<int64_t> parts; ///< the size that the writer believes the axis to have
  bool operator==(const SidecarCut &other) const {
    return dim == other.dim && of == other.of && at == other.at && axis == other.axis && parts == other.parts;
  }
};

struct SidecarRule {
  int line = 0;
  std::string match;     ///< fnmatch: `*` crosses dots and slashes
  bool optional = false; ///< that it decides nothing is no error
};
/// Decides about the cut, or about training, or both; each is left to the rules after it by one that does not say it.
struct ParamRule : SidecarRule {
  bool decidesCut = true; ///< false: no "shard" is given, and nothing that goes with it
  std::vector<SidecarCut> shard;
  std::optional<bool> trainable; ///< false: a training step leaves the parameter as it is
  bool outputReplicate = false; ///< who reads the parameter's product reads all of it
  /// The compiler's own choice, written down (--write-spec): it is weighed as one, and yields where an op cannot follow.
  bool inferred = false;
};
struct TensorRule : SidecarRule {
  std::vector<SidecarCut> shard;
};
struct StageRule : SidecarRule {
  int64_t stage = 0, chunk = 0;
};

/// The choices of a plan beside degrees and cuts, as the flags of those names have them; one that is not there is left to flags and defaults.
/// All but chunks and cpMode are about a training step, and mean nothing without one.
struct PlanChoices {
  std::optional<int64_t> chunks, zero;
  std::string schedule, recompute, cpMode;
  std::optional<int64_t> memory; ///< bytes a rank, for the recompute policy auto
  bool empty() const { return !chunks && !zero && schedule.empty() && recompute.empty() && cpMode.empty() && !memory; }
};

struct Sidecar {
  std::string file; ///< for messages
  dist::GivenSizes mesh; ///< degrees, and sizes of a layout's own axes ("tp.x"); flags beat them
  std::string layout;    ///< as --tp-layout has it; "" = the file names none
  PlanChoices plan;
  std::vector<ParamRule> params;
  std::vector<TensorRule> tensors;
  std::vector<StageRule> stages;

  /// "gpt2.shard.json:7"
  std::string place(const SidecarRule &rule) const { return file + ":" + std::to_string(rule.line); }
};

/// Errors (sidecar): what is no JSON, has a wrong version, a key, kind or number that no model could give a meaning.
Expected<Sidecar> parseSidecar(std::string_view text, const std::string &file);
/// The inverse: a rule a line.
std::string sidecarText(const Sidecar &sidecar);

/// Whether a pattern matches a name.
bool matchesName(const std::string &pattern, const std::string &name);
/// The pattern that matches this name alone.
std::string patternFor(const std::string &name);
/// The name that needs the fewest changes for the pattern to match it, "" where there is none near.
std::string nearestMatch(const std::string &pattern, const std::vector<std::string> &names);

} // namespace hpc
