# CMake toolchain file of x64, x86-64: static freestanding ELF for Linux, by clang and lld alone.
#
#   cmake -S your-project -B build -G Ninja --toolchain path/to/toolchains/x64.cmake
#   cmake --build build && ctest --test-dir build
#
# The project brings its own _start: there is no C library and no sysroot. CMake runs its tests through the emulator
# named here. Another compiler: -D EXECMEM_CLANG=/path/to/clang.
#
# -mno-red-zone: as the port is built and proved here.
set(EXECMEM_PORT x64)
set(EXECMEM_TRIPLE x86_64-unknown-linux)
set(EXECMEM_EMULATOR qemu-x86_64 -cpu max)
set(EXECMEM_FLAGS -mno-red-zone)
set(CMAKE_SYSTEM_PROCESSOR x86_64)

include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
