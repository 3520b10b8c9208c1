#include "runtime/text/DataFiles.h"

#include <algorithm>
#include <filesystem>
#include <glob.h>

namespace hpc::text {

static bool isThere(const std::string &path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

/// "b.txt" of "b.txt.0123456789abcdef.npy" and "b.txt.0123456789abcdef.documents.npy" (TokenFile); "" of other names.
static std::string textOf(std::string path) {
  for (const std::string ending : {".npy", ".documents"})
    if (path.size() > ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0)
      path.resize(path.size() - ending.size());
  const size_t dot = path.rfind('.');
  const bool isHash = dot != std::string::npos && path.size() - dot == 17 && path.find_first_not_of("0123456789abcdef", dot + 1) == std::string::npos;
  return isHash ? path.substr(0, dot) : "";
}

static std::vector<std::string> matchesOf(const std::string &pattern) {
  glob_t found = {};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), GLOB_TILDE, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  auto isKept = [&](const std::string &path) { return std::binary_search(paths.begin(), paths.end(), textOf(path)); };
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> others;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(others), [&](const std::string &path) { return !isKept(path); });
  return others;
}

Expected<std::vector<DataFiles>> dataFilesOf(const std::string &names) {
  auto usage = [](const std::string &message) { return Status::error(ErrorKind::Usage, message); };
  if (isThere(names))
    return std::vector<DataFiles>{{{names}, ""}};
  std::vector<DataFiles> groups;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    std::string path = names.substr(begin, end - begin), weight;
    begin = end + 1;
    if (const size_t equals = path.rfind('='); equals != std::string::npos && !isThere(path)) {
      weight = path.substr(equals + 1);
      path.resize(equals);
    }
    if (path.empty())
      return usage("'" + names + "' names a file that has no name; give FILE, FILE,FILE or FILE=WEIGHT,FILE=WEIGHT");
    std::vector<std::string> paths = {path};
    if (path.find_first_of("*?[") != std::string::npos && !isThere(path))
      paths = matchesOf(path);
    if (paths.empty())
      return usage("'" + path + "' matches no file; name one that is there");
    if (!groups.empty() && groups.back().weight.empty() != weight.empty())
      return usage("'" + names + "' has weights for some files and none for others; give all of them one, or none");
    if (!groups.empty() && weight.empty())
      groups.back().paths.insert(groups.back().paths.end(), paths.begin(), paths.end());
    else
      groups.push_back({paths, weight});
  }
  return groups;
}

} // namespace hpc::text
