# CMake toolchain file of arm32, Armv7-A with hard float: static freestanding ELF for Linux, by clang and lld alone.
#
#   cmake -S your-project -B build -G Ninja --toolchain path/to/toolchains/arm32.cmake
#   cmake --build build && ctest --test-dir build
#
# The project brings its own _start: there is no C library and no sysroot. CMake runs its tests through the emulator
# named here. Another compiler: -D EXECMEM_CLANG=/path/to/clang.
#
# -mfpu=neon: vector registers, as the port is proved with here.
# 64-bit division calls __aeabi_uldivmod and its like: the project brings those as well.
set(EXECMEM_PORT arm32)
set(EXECMEM_TRIPLE armv7-unknown-linux-gnueabihf)
set(EXECMEM_EMULATOR qemu-arm -cpu max)
set(EXECMEM_FLAGS -mfpu=neon)
set(CMAKE_SYSTEM_PROCESSOR armv7-a)

include("${CMAKE_CURRENT_LIST_DIR}/common.cmake")
