# What we build on (docs/install.md says why).
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
# Inside our programs: libsentencepiece has another protobuf in it, whose functions a shared one would replace.
set(Protobuf_USE_STATIC_LIBS ON)
foreach(library Protobuf_LIBRARY Protobuf_LITE_LIBRARY)
  if("${${library}_RELEASE}" MATCHES "\\.so$") # of a build folder from before
    unset(${library}_RELEASE CACHE)
    unset(${library}_DEBUG CACHE)
  endif()
endforeach()
find_package(Protobuf REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
separate_arguments(HPC_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})

find_program(CCACHE ccache)
if(CCACHE)
  # The sloppiness is what ccache needs to cache files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  add_link_options(-fuse-ld=lld)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-unused-parameter>")
