// Nothing is made before the run can begin, so a call that fails leaves no folder behind.
#include "tools/hpc-train/RunFolder.h"

#include "runtime/base/File.h"
#include "runtime/plan/PlanFile.h"

#include <ctime>
#include <filesystem>

namespace hpc {

namespace fs = std::filesystem;

Status RunFolder::checkNew() const {
  std::error_code error;
  if (fs::exists(config(), error))
    return Status::error(ErrorKind::Usage, "--run=" + path + ": there is a run in it; hpc-train --resume=" + path +
                                               " goes on with it, or name another folder");
  const bool isFolder = fs::is_directory(path, error);
  if (fs::exists(path + "/lock", error))
    HPC_RETURN_IF_ERROR(RunLock::take(path).status());
  if (fs::exists(path, error) && (!isFolder || !fs::is_empty(path, error)))
    return Status::error(ErrorKind::Usage, "--run=" + path + (isFolder ? ": the folder has other files in it" : ": is no folder") + "; name a new one");
  return Status::success();
}

Status RunFolder::checkRun() const {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return Status::error(ErrorKind::Io, "--resume=" + path + ": there is no such folder; give the --run of a call before");
  if (!fs::exists(config(), error))
    return Status::error(ErrorKind::Usage, "--resume=" + path + ": the folder holds no run, which would have a config.toml; give the --run of a call before");
  return Status::success();
}

Expected<RunLock> RunFolder::take() const {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    return Status::error(ErrorKind::Io, "--run=" + path + " cannot be made: " + error.message() + "; name another folder");
  return RunLock::take(path);
}

void RunFolder::clear() const {
  std::error_code none;
  if (fs::exists(config(), none))
    return;
  fs::remove_all(logs(), none);
  fs::remove(path + "/lock", none);
  fs::remove(path, none); // where it is empty
}

Status RunFolder::begin(const std::string &configText, const plan::Plan &made) const {
  std::error_code error;
  fs::create_directories(planFolder(), error);
  if (error)
    return Status::error(ErrorKind::Io, "--run=" + path + " cannot be made: " + error.message() + "; name another folder");
  HPC_RETURN_IF_ERROR(plan::writePlan(made, plan()));
  return writeFile(config(), configText);
}

std::string defaultRunFolder(const std::string &model) {
  char when[32];
  const std::time_t now = std::time(nullptr);
  std::tm local;
  std::strftime(when, sizeof(when), "%Y%m%d-%H%M%S", ::localtime_r(&now, &local));
  return "runs/" + fs::path(model).stem().string() + "-" + when;
}

} // namespace hpc
