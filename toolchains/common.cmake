# What every toolchain file of this folder shares: clang and lld, static freestanding ELF, no sysroot, no C library.
#
# A port's file sets these and includes this one:
#   EXECMEM_PORT            the port's name
#   EXECMEM_TRIPLE          what clang calls it
#   EXECMEM_EMULATOR        the emulator's argv (list)
#   EXECMEM_FLAGS           code generation flags that the port needs besides the common ones (list)
#   CMAKE_SYSTEM_PROCESSOR  the processor, in CMake's spelling
#
# -D EXECMEM_CLANG=/path/to/clang chooses a compiler; otherwise the first on PATH of the list below that has the port's
# back end is taken. The linker and the binary utilities come from the same LLVM.
# Flags of your own: environment variables CFLAGS, CXXFLAGS, ASMFLAGS and LDFLAGS at the first configuration add to those
# of here; -D CMAKE_C_FLAGS=... would replace them.
set(CMAKE_SYSTEM_NAME Linux)
set(EXECMEM_PORT "${EXECMEM_PORT}" CACHE INTERNAL "Port that the toolchain file targets")

if(NOT EXECMEM_CLANG)
	# An unversioned clang may be too old for a port, so each candidate is asked: it compiles nothing, for the port.
	set(execmem_names clang-19 clang-22 clang-21 clang-20 clang-18 clang-17 clang-16 clang)
	foreach(name IN LISTS execmem_names)
		find_program(execmem_candidate NAMES ${name} NO_CACHE NO_CMAKE_FIND_ROOT_PATH)
		if(execmem_candidate)
			execute_process(
				COMMAND "${execmem_candidate}" --target=${EXECMEM_TRIPLE} ${EXECMEM_FLAGS} -x c -c /dev/null -o /dev/null
				RESULT_VARIABLE execmem_status OUTPUT_QUIET ERROR_QUIET)
			if(execmem_status EQUAL 0)
				set(EXECMEM_CLANG "${execmem_candidate}" CACHE FILEPATH "clang with the back end of ${EXECMEM_TRIPLE}")
				break()
			endif()
		endif()
		unset(execmem_candidate)
	endforeach()
	if(NOT EXECMEM_CLANG)
		list(JOIN execmem_names " " execmem_names)
		message(FATAL_ERROR "toolchains/${EXECMEM_PORT}.cmake: no clang on PATH that has the back end of "
			"${EXECMEM_TRIPLE} and knows its flags (tried: ${execmem_names}).\n"
			"On Debian: apt-get install clang-19 lld-19 llvm-19. Elsewhere: -D EXECMEM_CLANG=/path/to/clang")
	endif()
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EXECMEM_CLANG)

get_filename_component(execmem_bin "${EXECMEM_CLANG}" REALPATH)
get_filename_component(execmem_bin "${execmem_bin}" DIRECTORY)
foreach(language C ASM)
	set(CMAKE_${language}_COMPILER "${EXECMEM_CLANG}")
endforeach()
find_program(EXECMEM_CLANGXX NAMES clang++ HINTS "${execmem_bin}" NO_DEFAULT_PATH)
if(EXECMEM_CLANGXX)
	set(CMAKE_CXX_COMPILER "${EXECMEM_CLANGXX}")
endif()
foreach(tool AR RANLIB NM OBJCOPY OBJDUMP READELF STRIP)
	string(TOLOWER llvm-${tool} name)
	find_program(CMAKE_${tool} NAMES ${name} HINTS "${execmem_bin}" NO_CMAKE_FIND_ROOT_PATH)
endforeach()

# -nostdlibinc keeps the build machine's own /usr/include out; clang's <stdint.h> and its like stay.
list(JOIN EXECMEM_FLAGS " " execmem_flags)
set(execmem_flags "-ffreestanding -nostdlibinc -fno-stack-protector -fno-pic ${execmem_flags}")
foreach(language C CXX ASM)
	set(CMAKE_${language}_COMPILER_TARGET ${EXECMEM_TRIPLE})
	set(CMAKE_${language}_FLAGS_INIT "${execmem_flags}")
endforeach()
string(APPEND CMAKE_CXX_FLAGS_INIT " -fno-exceptions -fno-rtti -fno-threadsafe-statics")
# 64 KiB segments: the program then loads whatever page size the kernel has.
set(CMAKE_EXE_LINKER_FLAGS_INIT
	"-fuse-ld=lld -static -nostdlib -Wl,-z,max-page-size=65536 -Wl,-z,noexecstack")

# As -fno-pic above: a library's own choice would come behind it.
if(NOT DEFINED CMAKE_POSITION_INDEPENDENT_CODE)
	set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
endif()

# A probe cannot be linked (there is no program start); what it tests is the compiler.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
# Nothing of the build machine may be linked or included: packages are looked for in CMAKE_PREFIX_PATH alone, which is
# for the target here. CMAKE_FIND_ROOT_PATH may be set instead.
if(NOT DEFINED CMAKE_FIND_ROOT_PATH)
	set(CMAKE_FIND_ROOT_PATH "${CMAKE_CURRENT_LIST_DIR}" ${CMAKE_PREFIX_PATH})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

set(CMAKE_CROSSCOMPILING_EMULATOR "${EXECMEM_EMULATOR}")
