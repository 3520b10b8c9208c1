// A folder for the files of one test, gone when the test ends.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace hpc {

class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hpc-test-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  TemporaryFolder(const TemporaryFolder &) = delete;

  std::string operator/(const std::string &name) const { return path + "/" + name; }
  std::string write(const std::string &name, const std::string &content) const {
    std::ofstream(*this / name, std::ios::binary) << content;
    return *this / name;
  }
  static std::string read(const std::string &file) {
    std::ifstream stream(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
  /// Number of entries in the folder.
  int64_t entries() const {
    return std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator());
  }

  std::string path;
};

} // namespace hpc
