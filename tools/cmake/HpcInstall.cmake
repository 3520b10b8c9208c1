# cmake --install: the tools, and compilation and running as a library: find_package(hpc), target_link_libraries(... hpc::driver).
set(hpc_targets hpc_mlir hpc_compiler hpc_passes hpc_driver hpc_phases hpc_providers hpc_pch hpc_base hpc_plan hpc_cost hpc_core hpc_host hpc_sharding hpc_sidecar_file hpc_onnx_reader
  hpc_interfaces hpc_dist hpc_nn hpc_pipe hpc_interpreter hpc_import hpc_sidecar hpc_raise hpc_train hpc_precision hpc_generate_step hpc_annotate hpc_propagate hpc_partition hpc_stage
  hpc_recompute hpc_kernels hpc_lower hpc_schedule hpc_place hpc_search)
foreach(target ${hpc_targets})
  set_property(TARGET ${target} PROPERTY INTERFACE_INCLUDE_DIRECTORIES
    "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>;$<BUILD_INTERFACE:${CMAKE_BINARY_DIR}>;$<INSTALL_INTERFACE:include/hpc>")
endforeach()
set_property(TARGET hpc_mlir APPEND PROPERTY INTERFACE_INCLUDE_DIRECTORIES ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
set_property(TARGET hpc_driver PROPERTY EXPORT_NAME driver)
install(TARGETS ${hpc_targets} EXPORT hpc-targets ARCHIVE DESTINATION lib)
set_target_properties(hpc-opt hpc-run hpc-train hpc-generate hpc-plan hpc-calibrate PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON) # LLVM lies in a folder of its own
install(TARGETS hpc-opt hpc-run hpc-train hpc-generate hpc-plan hpc-calibrate RUNTIME DESTINATION bin)
install(DIRECTORY runtime/cost/machines DESTINATION share/hpc) # compiled in, too (runtime/cost/CMakeLists.txt)
install(DIRECTORY ${CMAKE_BINARY_DIR}/share/ DESTINATION share) # manual pages and completion (tools/flags/CMakeLists.txt)
foreach(plugin hpc_mpi hpc_ucx hpc_cuda_plugin hpc_sentencepiece) # looked for beside the tools
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION bin)
  endif()
endforeach()
install(DIRECTORY compiler passes runtime DESTINATION include/hpc FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${CMAKE_BINARY_DIR}/compiler ${CMAKE_BINARY_DIR}/passes ${CMAKE_BINARY_DIR}/runtime DESTINATION include/hpc
  FILES_MATCHING PATTERN "*.h.inc" PATTERN "plan.pb.h" PATTERN "CMakeFiles" EXCLUDE)
install(EXPORT hpc-targets NAMESPACE hpc:: DESTINATION lib/cmake/hpc)
file(WRITE ${CMAKE_BINARY_DIR}/hpc-config.cmake [[
include(CMakeFindDependencyMacro)
find_dependency(MLIR CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
find_dependency(Protobuf)
find_dependency(Threads)
find_dependency(OpenSSL)
include("${CMAKE_CURRENT_LIST_DIR}/hpc-targets.cmake")
]])
install(FILES ${CMAKE_BINARY_DIR}/hpc-config.cmake DESTINATION lib/cmake/hpc)
