# CMake toolchain file of loongarch64, LoongArch with LP64D: static freestanding ELF for Linux, by clang and lld alone.
#
#   cmake -S your-project -B build -G Ninja --toolchain path/to/toolchains/loongarch64.cmake
#   cmake --build build && ctest --test-dir build
#
# The project brings its own _start: there is no C library and no sysroot. CMake runs its tests through the emulator
# named here. Another compiler: -D EXECMEM_CLANG=/path/to/clang.
#
# -mno-lsx: clang's default emits vector instructions that not every processor has, nor every emulator.
set(EXECMEM_PORT loongarch64)
set(EXECMEM_TRIPLE loongarch64-unknown-linux)
set(EXECMEM_EMULATOR qemu-loongarch64 -cpu la464-loongarch-cpu)
set(EXECMEM_FLAGS -mno-lsx)
set(CMAKE_SYSTEM_PROCESSOR loongarch64)

include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
