// Registers and spills are those of ptxas for compute capability 9.0; another card's compiler may differ.
#include "tools/hpc-plan/Kernels.h"

#include "runtime/base/CountText.h"
#include "runtime/plan/CodeModules.h"
#include "runtime/plan/TextTable.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace hpc {

namespace {
constexpr const char *architecture = "sm_90";

struct Resources {
  std::string registers, spills;
  int64_t staticShared = 0;
};

struct Row {
  const plan::Kernel *kernel = nullptr;
  int64_t calls = 0;
};

/// "" where there is none.
std::string findAssembler() {
  std::vector<std::string> folders;
  std::stringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');)
    folders.push_back(folder);
  if (const char *home = std::getenv("CUDA_HOME"))
    folders.push_back(std::string(home) + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  for (const std::string &folder : folders)
    if (std::string file = folder + "/ptxas"; access(file.c_str(), X_OK) == 0)
      return file;
  return "";
}

/// A folder that is removed with its files at the end.
struct TemporaryFolder {
  std::string path = (std::filesystem::temp_directory_path() / "hpc-plan-XXXXXX").string();
  bool made = mkdtemp(path.data()) != nullptr;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (made)
      std::filesystem::remove_all(path, ignored);
  }
};

std::string readText(const std::string &path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The output of `ptxas -v`. Errors: it cannot be run, or refuses the code.
Expected<std::string> assemble(const std::string &assembler, const std::string &ptx) {
  TemporaryFolder folder;
  std::string input = folder.path + "/kernels.ptx", output = folder.path + "/kernels.cubin", report = folder.path + "/report";
  if (!folder.made || !(std::ofstream(input) << ptx << std::flush))
    return Status::error(ErrorKind::Io, folder.path + ": the kernels cannot be written for ptxas");
  std::string verbose = "-v", arch = std::string("-arch=") + architecture, to = "-o";
  std::string program = assembler;
  char *arguments[] = {program.data(), verbose.data(), arch.data(), input.data(), to.data(), output.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, report.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int failed = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ), state = 0;
  posix_spawn_file_actions_destroy(&actions);
  if (failed || waitpid(child, &state, 0) != child)
    return Status::error(ErrorKind::Io, assembler + " cannot be run; take it out of PATH and CUDA_HOME to do without");
  std::string text = readText(report);
  if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
    return Status::error(ErrorKind::Plan, "the plan's ptx is refused by " + assembler + ": " + text.substr(0, 500));
  return text;
}

/// The number before `what`, as text; "" where the line has none.
std::string numberBefore(const std::string &line, const std::string &what) {
  size_t end = line.find(what);
  if (end == std::string::npos)
    return "";
  size_t begin = line.find_last_not_of("0123456789", end - 1);
  return line.substr(begin + 1, end - begin - 1);
}

std::map<std::string, Resources> parseReport(const std::string &report) {
  std::map<std::string, Resources> all;
  std::stringstream lines(report);
  std::string symbol;
  for (std::string line; std::getline(lines, line);) {
    if (size_t begin = line.find("entry function '"); begin != std::string::npos) {
      begin += std::string("entry function '").size();
      symbol = line.substr(begin, line.find('\'', begin) - begin);
    }
    if (symbol.empty())
      continue;
    if (std::string bytes = numberBefore(line, " bytes spill stores"); !bytes.empty())
      all[symbol].spills = bytes;
    if (std::string count = numberBefore(line, " registers"); !count.empty())
      all[symbol].registers = count;
    if (std::string bytes = numberBefore(line, " bytes smem"); !bytes.empty())
      all[symbol].staticShared = std::atoll(bytes.c_str());
  }
  return all;
}

int64_t most(const plan::ByCoord &table) { return *std::max_element(table.values.begin(), table.values.end()); }

std::map<std::string, Row> collect(const plan::Plan &plan) {
  std::map<std::string, Row> rows;
  for (const plan::Stage &stage : plan.stages)
    for (const plan::Program &program : stage.programs)
      for (const plan::Instruction &instruction : program.instructions)
        if (const auto *kernel = std::get_if<plan::Kernel>(&instruction.action)) {
          Row &row = rows[kernel->symbol];
          row.kernel = kernel;
          ++row.calls;
        }
  return rows;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}
} // namespace

Expected<std::string> kernelTable(const plan::Plan &plan, double bandwidth) {
  const std::vector<const plan::CodeModule *> modules = plan::codeFor(plan, "ptx");
  const bool hasDevice = !modules.empty();
  std::string assembler = hasDevice ? findAssembler() : "", note;
  std::map<std::string, Resources> resources;
  if (!assembler.empty()) {
    for (const plan::CodeModule *module : modules) {
      Expected<std::string> report = assemble(assembler, module->bytes);
      if (!report.ok())
        return report.status();
      resources.merge(parseReport(*report));
    }
    note = std::string("registers and spills: ptxas for ") + architecture + "\n";
  } else if (hasDevice) {
    note = "registers and spills: unknown, there is no ptxas in PATH or $CUDA_HOME/bin\n";
  } else {
    note = "no code for a device; hpc-opt --target=host,cuda makes some\n";
  }
  std::vector<std::string> titles = {"kernel", "calls", "bytes", "us at " + fixed(bandwidth, 0) + " GB/s"};
  if (hasDevice)
    titles.insert(titles.end(), {"blocks", "threads", "shared", "registers", "spilled"});
  plan::TextTable table(titles);
  std::map<std::string, Row> rows = collect(plan);
  for (const auto &[symbol, row] : rows) {
    int64_t bytes = 0;
    for (const plan::KernelArg &argument : row.kernel->args)
      bytes += argument.bytes;
    std::vector<std::string> cells = {symbol, std::to_string(row.calls), std::to_string(bytes),
                                      fixed(double(bytes) / (bandwidth * 1e3), 2)};
    if (hasDevice) {
      const plan::Launch &launch = row.kernel->launch;
      auto found = resources.find(symbol);
      bool isKnown = found != resources.end();
      cells.insert(cells.end(),
                   {std::to_string(most(launch.blocks)), std::to_string(most(launch.threads)),
                    std::to_string(most(launch.sharedBytes) + (isKnown ? found->second.staticShared : 0)),
                    isKnown ? found->second.registers : "-", isKnown ? found->second.spills : "-"});
    }
    table.add(cells);
  }
  return countText(int64_t(rows.size()), "kernel") + "; bytes are those of a call's arguments\n" +
         (rows.empty() ? "" : table.text()) + note;
}

} // namespace hpc
