# One CMake library per folder. Three kinds of folder:
#   hpc_runtime_library   plain C++ with exceptions allowed inside (protobuf, JSON); no LLVM on the include path
#   hpc_mlir_library      C++ against MLIR, without exceptions, on the shared precompiled header
#   hpc_tablegen          the generated headers of one .td file
# Sources are found by globbing, so that a new file needs no line here.

function(hpc_runtime_library name)
  cmake_parse_arguments(ARG "" "" "LINK;EXCLUDE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  foreach(file ${ARG_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  if(NOT sources)
    set(sources ${CMAKE_SOURCE_DIR}/tools/cmake/empty.cpp)
  endif()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
endfunction()

# Everything that includes MLIR needs these; the shared libraries alone, since static archives beside them duplicate TypeIDs.
add_library(hpc_mlir INTERFACE)
target_include_directories(hpc_mlir INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_include_directories(hpc_mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
# -fPIC for executables too (CMake gives them -fPIE): the precompiled header is shared with the libraries.
target_compile_options(hpc_mlir INTERFACE ${HPC_LLVM_DEFINITIONS} -fno-exceptions $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-fPIC>)
target_link_libraries(hpc_mlir INTERFACE MLIR LLVM)

function(hpc_mlir_library name)
  cmake_parse_arguments(ARG "" "" "LINK;EXCLUDE;SUBFOLDERS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  foreach(folder ${ARG_SUBFOLDERS})
    file(GLOB more CONFIGURE_DEPENDS ${folder}/*.cpp)
    list(APPEND sources ${more})
  endforeach()
  foreach(file ${ARG_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  if(NOT sources)
    set(sources ${CMAKE_SOURCE_DIR}/tools/cmake/empty.cpp)
  endif()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC hpc_mlir ${ARG_LINK})
  target_precompile_headers(${name} REUSE_FROM hpc_pch)
  add_dependencies(${name} hpc_tablegen_headers)
endfunction()

add_custom_target(hpc_tablegen_headers)

# hpc_tablegen(NN.td -gen-op-decls NNOps.h.inc -gen-op-defs NNOps.cpp.inc ...): pairs of generator and output.
function(hpc_tablegen td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(rest ${ARGN})
  while(rest)
    list(POP_FRONT rest generator output)
    string(REPLACE "|" ";" generator "${generator}")
    mlir_tablegen(${output} ${generator} EXTRA_INCLUDES ${CMAKE_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
  endwhile()
  string(MAKE_C_IDENTIFIER "hpc_tablegen_${CMAKE_CURRENT_SOURCE_DIR}_${td}" target)
  add_public_tablegen_target(${target})
  add_dependencies(hpc_tablegen_headers ${target})
endfunction()

# Documentation of dialects and passes from their ODS, in docs/ of the build folder: `ninja hpc-docs`.
add_custom_target(hpc-docs)
function(hpc_docs td output generator)
  set(file ${CMAKE_BINARY_DIR}/docs/${output}.md)
  add_custom_command(OUTPUT ${file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/docs
    COMMAND ${MLIR_TABLEGEN_EXE} ${generator} ${ARGN} -I ${CMAKE_SOURCE_DIR} -I ${MLIR_INCLUDE_DIRS} ${CMAKE_CURRENT_SOURCE_DIR}/${td} -o ${file}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${td})
  string(MAKE_C_IDENTIFIER "hpc_docs_${output}" target)
  add_custom_target(${target} DEPENDS ${file})
  add_dependencies(hpc-docs ${target})
endfunction()
