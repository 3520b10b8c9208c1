"""The lit suite: every .mlir and .test file below this folder, run with the build's tools first on the PATH.
Run it over the build's test folder (build/test), which holds lit.site.cfg.py."""
import os
import shutil
import subprocess

import lit.formats

config.name = "hpc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["unit", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.hpc_binary_dir, "test")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.hpc_binary_dir, "bin"), config.llvm_tools_dir, os.environ["PATH"]])
# Hundreds of tests compile the same kernels. The keys have the compiler's build id; tools/test.sh begins with an empty folder.
config.environment["HPC_KERNEL_CACHE"] = os.path.join(config.hpc_binary_dir, "kernel-cache")
if "UCX_MEM_EVENTS" in os.environ:  # lit passes no variable that it does not know
    config.environment["UCX_MEM_EVENTS"] = os.environ["UCX_MEM_EVENTS"]
# A pattern variable that does not begin with $ ends at the next CHECK-LABEL.
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"

config.substitutions.append(("%root", config.hpc_source_dir))
config.substitutions.append(("%models", os.path.join(config.hpc_source_dir, "models")))
config.substitutions.append(("%shared", config.hpc_shared_dir))
config.substitutions.append(("%build", config.hpc_binary_dir))
# Stands in for the GPU's driver and libraries (test/gpu/README.md).
config.substitutions.append(("%standin", os.path.join(config.hpc_binary_dir, "test", "gpu", "standin")))

# REQUIRES: ptxas    the assembler of a CUDA toolkit, in PATH or $CUDA_HOME (/usr/local/cuda)
# REQUIRES: shared   models that are not in the repository
# REQUIRES: mpi      processes by mpirun: Open MPI and our plugin for it
# REQUIRES: ucx      libhpc_ucx.so was built
# REQUIRES: slurm    a cluster that a test can start: Slurm's daemons, munge, root
# REQUIRES: bf16pairs  a CPU that multiplies pairs of bf16 in vectors and has no tiles (VectorUnit)
# REQUIRES: groff    groff, which formats manual pages
# REQUIRES: pypi     %python, a Python with test/requirements.txt (test/environment.sh)
# %if all %{ ... %}  what a run of every day leaves out (tools/test.sh --all)
# UNSUPPORTED: address  a build whose tools are instrumented
cuda = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")
config.environment["PATH"] += os.pathsep + cuda
if shutil.which("ptxas", path=config.environment["PATH"]):
    config.available_features.add("ptxas")
if os.path.isdir(os.path.join(config.hpc_shared_dir, "models")):
    config.available_features.add("shared")
if shutil.which("mpirun") and os.path.exists(os.path.join(config.hpc_binary_dir, "bin", "libhpc_mpi.so")):
    config.available_features.add("mpi")
if os.path.exists(os.path.join(config.hpc_binary_dir, "bin", "libhpc_ucx.so")):
    config.available_features.add("ucx")
python = subprocess.run([os.path.join(config.hpc_source_dir, "test", "environment.sh"), config.hpc_binary_dir], capture_output=True, text=True)
if python.returncode == 0:
    config.available_features.add("pypi")
    config.substitutions.append(("%python", python.stdout.strip()))
if shutil.which("groff"):
    config.available_features.add("groff")
daemons = os.environ["PATH"] + os.pathsep + "/usr/sbin"
if os.geteuid() == 0 and all(shutil.which(name, path=daemons) for name in ("munged", "slurmctld", "slurmd", "srun", "ip")):
    config.available_features.add("slurm")
with open("/proc/cpuinfo") as cpuinfo:
    flags = next((line.split() for line in cpuinfo if line.startswith("flags")), [])
if "avx512_bf16" in flags and "amx_bf16" not in flags:
    config.available_features.add("bf16pairs")
if os.environ.get("HPC_TEST_ALL"):
    config.available_features.add("all")
    config.environment["HPC_TEST_ALL"] = "1"  # scripts ask it, too
if config.hpc_sanitize:
    config.available_features.add(config.hpc_sanitize)
