// Names are paths of modules with dots between. Prefixes are counted over all names, so that chance finds none.
#include "runtime/core/TensorNames.h"

#include <algorithm>
#include <set>

namespace hpc {

namespace {

std::vector<std::string> partsOf(const std::string &name) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <size_t Count> bool isOneOf(const std::string &text, const char *const (&words)[Count]) {
  return std::any_of(std::begin(words), std::end(words), [&](const char *word) { return text == word; });
}

/// The name without what torch.compile and the wrappers of data parallelism put into it.
std::string withoutWrappers(const std::string &name) {
  static constexpr const char *wrappers[] = {"_orig_mod", "module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"};
  std::string result;
  for (const std::string &part : partsOf(name))
    if (!isOneOf(part, wrappers))
      result += (result.empty() ? "" : ".") + part;
  return result;
}

/// Whether a prefix ("model.transformer.") is made of names that hold a whole model.
bool isWrapper(const std::string &prefix) {
  static constexpr const char *holders[] = {"model", "module", "transformer", "_orig_mod", "base_model", "backbone", "net", "network"};
  std::vector<std::string> parts = partsOf(prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1));
  return std::all_of(parts.begin(), parts.end(), [&](const std::string &part) { return isOneOf(part, holders); });
}

/// A prefix of the plan's names, and what stands for it in the file.
struct Renaming {
  std::string from, to;

  std::optional<std::string> operator()(const std::string &name) const {
    if (name.compare(0, from.size(), from) != 0)
      return std::nullopt;
    return to + name.substr(from.size());
  }
  bool operator<(const Renaming &other) const { return std::tie(from, to) < std::tie(other.from, other.to); }
  /// A prefix may come or go; one may become another where both hold whole models.
  bool isPlausible() const { return from.empty() || to.empty() || (isWrapper(from) && isWrapper(to)); }
  std::string text() const {
    if (from.empty())
      return "names of the file begin with '" + to + "' besides";
    return to.empty() ? "names of the file lack '" + from + "'" : "names of the file have '" + to + "' for '" + from + "'";
  }
};

class Matching {
public:
  Matching(const std::vector<WantedTensor> &wanted, const std::map<std::string, std::vector<int64_t>> &available)
      : wanted(wanted), available(available) {
    result.of.resize(wanted.size());
  }

  NameMatches run() {
    take([](const std::string &name) { return std::optional(name); });
    takeWithoutWrappers();
    takeRenamed();
    takeTied();
    return std::move(result);
  }

private:
  bool isFree(const std::string &name) const { return available.count(name) && !claimed.count(name); }
  /// A tensor that an exporter derived goes by its own name beside the original.
  bool isFreeFor(size_t i, const std::string &name) const {
    return wanted[i].mayBeTransposed ? available.count(name) > 0 : isFree(name);
  }

  /// Takes what `nameInFile` says of any name of what is not matched yet; how many.
  template <typename Function> int64_t take(Function nameInFile) {
    int64_t taken = 0;
    for (size_t i = 0; i < wanted.size(); ++i)
      for (size_t name = 0; name < wanted[i].names.size() && !result.of[i]; ++name)
        if (std::optional<std::string> found = nameInFile(wanted[i].names[name]); found && isFreeFor(i, *found)) {
          claimed.insert(*found);
          result.of[i] = {*found, name};
          ++taken;
        }
    return taken;
  }

  void takeWithoutWrappers() {
    std::map<std::string, std::string> bare;
    std::set<std::string> twice;
    for (const auto &[name, shape] : available)
      if (!bare.emplace(withoutWrappers(name), name).second)
        twice.insert(withoutWrappers(name));
    const int64_t taken = take([&](const std::string &name) -> std::optional<std::string> {
      auto found = bare.find(withoutWrappers(name));
      return found != bare.end() && !twice.count(found->first) ? std::optional(found->second) : std::nullopt;
    });
    if (taken > 0)
      result.notes.push_back("names are compared without what wrappers put into them (_orig_mod, module)");
  }

  /// How many of the tensors without a match a renaming gives one of their own.
  int64_t votes(const Renaming &renaming) const {
    std::set<std::string> taken;
    int64_t count = 0;
    for (size_t i = 0; i < wanted.size(); ++i)
      if (!result.of[i])
        count += std::any_of(wanted[i].names.begin(), wanted[i].names.end(), [&](const std::string &name) {
          std::optional<std::string> found = renaming(name);
          return found && isFreeFor(i, *found) && (wanted[i].mayBeTransposed || taken.insert(*found).second);
        });
    return count;
  }

  /// For every name the renamings that leave as much of its end as any tensor of the file shares.
  std::set<Renaming> candidates() const {
    std::multimap<std::string, const std::string *> byEnd; // the last two parts, or all of it
    auto endOf = [](const std::string &name) {
      size_t dot = name.rfind('.');
      dot = dot == name.npos || dot == 0 ? name.npos : name.rfind('.', dot - 1);
      return dot == name.npos ? name : name.substr(dot + 1);
    };
    for (const auto &[name, shape] : available)
      if (isFree(name))
        byEnd.emplace(endOf(name), &name);
    std::set<Renaming> renamings;
    constexpr size_t most = 256; // one layer says all
    for (size_t i = 0; i < wanted.size() && renamings.size() < most; ++i) {
      if (result.of[i])
        continue;
      for (const std::string &name : wanted[i].names) {
        auto [first, last] = byEnd.equal_range(endOf(name));
        for (; first != last; ++first) {
          const std::string &other = *first->second;
          size_t shared = 0;
          while (shared < std::min(name.size(), other.size()) && name[name.size() - 1 - shared] == other[other.size() - 1 - shared])
            ++shared;
          // Back to where a part begins in both.
          while (shared > 0 && !((shared == name.size() || name[name.size() - 1 - shared] == '.') &&
                                 (shared == other.size() || other[other.size() - 1 - shared] == '.')))
            --shared;
          Renaming renaming{name.substr(0, name.size() - shared), other.substr(0, other.size() - shared)};
          if (shared > 0 && renaming.isPlausible())
            renamings.insert(renaming);
        }
      }
    }
    return renamings;
  }

  void takeRenamed() {
    std::optional<Renaming> best;
    int64_t most = 0, ties = 0;
    for (const Renaming &renaming : candidates()) {
      const int64_t count = votes(renaming);
      ties = count > most ? 1 : ties + (count == most);
      if (count > most) {
        most = count;
        best = renaming;
      }
    }
    if (!best || ties > 1)
      return;
    take(*best);
    result.notes.push_back(best->text());
  }

  void takeTied() {
    static constexpr const char *heads[] = {"lm_head", "embed_out", "output_projection", "unembed"},
                                *tables[] = {"wte", "embed_tokens", "word_embeddings", "tok_embeddings", "shared", "embed_in",
                                             "token_embedding", "embed"};
    auto moduleOf = [](const std::string &name) {
      std::vector<std::string> parts = partsOf(name);
      return parts.size() < 2 || parts.back() != "weight" ? std::string() : parts[parts.size() - 2];
    };
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (result.of[i])
        continue;
      const std::vector<int64_t> &wantedShape = wanted[i].shape, turned(wantedShape.rbegin(), wantedShape.rend());
      const std::string module = moduleOf(wanted[i].names.back()); // of what an exporter made the name in the state is the last
      const bool isHead = isOneOf(module, heads);
      if (!isHead && !isOneOf(module, tables))
        continue;
      std::vector<std::string> others;
      for (const auto &[name, shape] : available)
        if ((shape == wantedShape || (wanted[i].mayBeTransposed && shape == turned)) &&
            (isHead ? isOneOf(moduleOf(name), tables) : isOneOf(moduleOf(name), heads)))
          others.push_back(name);
      if (others.size() != 1)
        continue;
      result.of[i] = {others[0], wanted[i].names.size()};
      result.notes.push_back("'" + wanted[i].names[0] + "' is tied to '" + others[0] + "', since the file has it alone");
    }
  }

  const std::vector<WantedTensor> &wanted;
  const std::map<std::string, std::vector<int64_t>> &available;
  std::set<std::string> claimed;
  NameMatches result;
};

} // namespace

NameMatches matchNames(const std::vector<WantedTensor> &wanted,
                       const std::map<std::string, std::vector<int64_t>> &available) {
  return Matching(wanted, available).run();
}

} // namespace hpc
