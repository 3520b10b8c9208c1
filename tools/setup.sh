#!/usr/bin/env bash
# Installs missing Debian 12 packages that the build needs, then configures and builds; does nothing if nothing is missing.
# Root (or sudo) is needed for the installation alone. LLVM 22 comes from Debian's security suite, which this script does not add.
#
#   tools/setup.sh [--sanitize=address|thread|fuzzer] [--packages-only] [TARGET...]
#
# builds into build/, build-address/, build-thread/ or build-fuzzer/; without TARGET everything.
set -euo pipefail
cd "$(dirname "$0")/.."

sanitize="" packagesOnly="" targets=()
for argument in "$@"; do
  case "$argument" in
  --sanitize=address | --sanitize=thread | --sanitize=fuzzer) sanitize="${argument#*=}" ;;
  --packages-only) packagesOnly=1 ;;
  -*) echo "setup.sh: unknown option $argument; usage: tools/setup.sh [--sanitize=address|thread|fuzzer] [--packages-only] [TARGET...]" >&2; exit 1 ;;
  *) targets+=("$argument") ;;
  esac
done

packages=(
  clang-22 lld-22 libclang-rt-22-dev               # the compiler; its sanitizer runtimes
  llvm-22-dev libmlir-22-dev mlir-22-tools         # IR, passes, mlir-tblgen
  liblld-22-dev                                    # the linker as a library: the plan's shared object
  llvm-22-tools                                    # lit, FileCheck, not
  cmake ninja-build ccache git ca-certificates
  protobuf-compiler libprotobuf-dev libonnx-dev    # the ONNX schema; the tests of the plan file
  libdnnl-dev libxxhash-dev nlohmann-json3-dev libtomlplusplus-dev
  zlib1g-dev libzstd-dev libxml2-dev libmimalloc-dev
  libisal-dev                                      # CRC32C of TensorBoard's records
  libsimdjson-dev libpcre2-dev libutf8proc-dev libsentencepiece-dev # text files and tokenizers
  libssl-dev libopenmpi-dev openmpi-bin libucx-dev # processes: the rendezvous' proofs; the engines between processes
  libgtest-dev libgmock-dev
  pkg-config coinor-libcbc-dev                     # an integer program beside our own search, in tests
  python3 python3-numpy python3-venv               # lit, the equality grid; the environment of tests that compare with PyPI's packages
)

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || true
  [ "$state" = installed ] || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
  echo "setup.sh: installing ${#missing[@]} packages: ${missing[*]}"
  root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup.sh: installing needs root; run as root, or install sudo, or install by hand: ${missing[*]}" >&2; exit 1; }
    root=(sudo)
  fi
  export DEBIAN_FRONTEND=noninteractive
  "${root[@]}" apt-get update -qq
  unknown=()
  for package in "${missing[@]}"; do
    candidate=$(LC_ALL=C apt-cache policy "$package" | sed -n 's/^ *Candidate: //p')
    case "$candidate" in "" | "(none)") unknown+=("$package") ;; esac
  done
  if [ ${#unknown[@]} -gt 0 ]; then
    echo "setup.sh: no apt source offers: ${unknown[*]}" >&2
    echo "  They are in Debian 12's suites bookworm, bookworm-updates and bookworm-security (LLVM 22 in the last). Add what is missing, for example" >&2
    echo "  echo 'deb http://deb.debian.org/debian-security bookworm-security main' > /etc/apt/sources.list.d/security.list" >&2
    exit 1
  fi
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null
  echo "setup.sh: packages installed after ${SECONDS} s"
else
  echo "setup.sh: all ${#packages[@]} packages are there"
fi
[ -z "$packagesOnly" ] || exit 0

build="build${sanitize:+-$sanitize}"
if [ ! -f "$build/build.ninja" ]; then
  echo "setup.sh: configuring $build"
  mkdir -p "$build"
  cmake -G Ninja -S . -B "$build" -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 -DHPC_SANITIZE="$sanitize" >"$build/configure.log" 2>&1 || {
    cat "$build/configure.log" >&2
    echo "setup.sh: the configuration failed; its log, above, is $build/configure.log" >&2
    rm -f "$build/build.ninja"
    exit 1
  }
fi
started=$SECONDS
echo "setup.sh: building ${targets[*]:-everything} in $build"
ninja -C "$build" --quiet "${targets[@]}"
echo "setup.sh: $build is up to date after $((SECONDS - started)) s"
