# CMake toolchain file of x86, 32-bit x86: static freestanding ELF for Linux, by clang and lld alone.
#
#   cmake -S your-project -B build -G Ninja --toolchain path/to/toolchains/x86.cmake
#   cmake --build build && ctest --test-dir build
#
# The project brings its own _start: there is no C library and no sysroot. CMake runs its tests through the emulator
# named here. Another compiler: -D EXECMEM_CLANG=/path/to/clang.
#
# -msse2: vector registers, as the port is proved with here.
# 64-bit division calls __udivdi3 and its like: the project brings those as well.
set(EXECMEM_PORT x86)
set(EXECMEM_TRIPLE i686-unknown-linux)
set(EXECMEM_EMULATOR qemu-i386 -cpu max)
set(EXECMEM_FLAGS -msse2)
set(CMAKE_SYSTEM_PROCESSOR i686)

include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
