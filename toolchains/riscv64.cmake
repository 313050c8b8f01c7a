# CMake toolchain file of riscv64, RV64GC with LP64D: static freestanding ELF for Linux, by clang and lld alone.
#
#   cmake -S your-project -B build -G Ninja --toolchain path/to/toolchains/riscv64.cmake
#   cmake --build build && ctest --test-dir build
#
# The project brings its own _start: there is no C library and no sysroot. CMake runs its tests through the emulator
# named here. Another compiler: -D EXECMEM_CLANG=/path/to/clang.
#
# -mno-relax: distances are settled by the assembler, not by the linker.
set(EXECMEM_PORT riscv64)
set(EXECMEM_TRIPLE riscv64-unknown-linux)
set(EXECMEM_EMULATOR qemu-riscv64 -cpu rv64)
set(EXECMEM_FLAGS -mno-relax)
set(CMAKE_SYSTEM_PROCESSOR riscv64)

include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
