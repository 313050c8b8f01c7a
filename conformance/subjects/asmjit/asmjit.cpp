/*
 * asmjit's JitAllocator as an allocator of blocks. What it makes itself is code of its assembler, put into a block.
 */
#include <asmjit/x86.h>

#include <cstring>
#include <new>

#include <hosted/hosted.h>
#include <subject.h>
#include <subject_blocks.h>

#ifndef ASMJIT_OPTIONS
#define ASMJIT_OPTIONS asmjit::JitAllocatorOptions::kNone
#endif

namespace
{

using Allocator = asmjit::JitAllocator;

Allocator *own(subject_blocks *blocks)
{
	return reinterpret_cast<Allocator *>(blocks);
}

/* asmjit names its errors, few of which say what the system answered. */
int error_of(asmjit::Error error)
{
	switch (error) {
	case asmjit::kErrorOk:
		return 0;
	case asmjit::kErrorInvalidArgument:
		return SUBJECT_ERROR_ARGUMENT;
	default:
		return SUBJECT_ERROR_OTHER;
	}
}

int create_on(const subject_os *os, subject_blocks **blocks)
{
	Allocator::CreateParams parameters;

	hosted_over(os);
	parameters.options = ASMJIT_OPTIONS;
	Allocator *made = new (std::nothrow) Allocator(&parameters);
	if (!made)
		return SUBJECT_ERROR_OTHER;
	*blocks = reinterpret_cast<subject_blocks *>(made);
	return 0;
}

int create(subject_blocks **blocks)
{
	return create_on(nullptr, blocks);
}

int create_over(const subject_os *os, subject_blocks **blocks)
{
	return create_on(os, blocks);
}

int destroy(subject_blocks *blocks)
{
	delete own(blocks);
	return 0;
}

int allocate(subject_blocks *blocks, size_t bytes, subject_block *block)
{
	void *rx, *rw;
	size_t whole;
	const asmjit::Error error = own(blocks)->alloc(&rx, &rw, bytes);

	if (error)
		return error_of(error);
	own(blocks)->query(rx, &rx, &rw, &whole);
	*block = {reinterpret_cast<uintptr_t>(rx), whole, {reinterpret_cast<uintptr_t>(rw), 0}};
	return 0;
}

int release(subject_blocks *blocks, const subject_block *block)
{
	return error_of(own(blocks)->release(reinterpret_cast<void *>(block->rx)));
}

int write(subject_blocks *, const subject_block *block, size_t offset, const void *code, size_t bytes)
{
	std::memcpy(reinterpret_cast<char *>(block->own[0]) + offset, code, bytes);
	asmjit::VirtMem::flushInstructionCache(reinterpret_cast<void *>(block->rx + offset), bytes);
	return 0;
}

int make(subject_blocks *blocks, unsigned value, subject_block *block)
{
	asmjit::CodeHolder code;

	if (code.init(asmjit::Environment::host()))
		return SUBJECT_ERROR_OTHER;
	asmjit::x86::Assembler assembler(&code);
	if (assembler.mov(asmjit::x86::eax, value) || assembler.ret() || code.flatten())
		return SUBJECT_ERROR_OTHER;
	const int error = allocate(blocks, code.codeSize(), block);
	if (error)
		return error;
	if (code.relocateToBase(block->rx) ||
	    code.copyFlattenedData(reinterpret_cast<void *>(block->own[0]), block->bytes)) {
		release(blocks, block);
		return SUBJECT_ERROR_OTHER;
	}
	asmjit::VirtMem::flushInstructionCache(reinterpret_cast<void *>(block->rx), block->bytes);
	return 0;
}

const subject_blocks_operations blocks_operations = {
	.create = create,
	.allocate = allocate,
	.release = release,
	.write = write,
	.destroy = destroy,
	.create_over = create_over,
	.make = make,
};

} // namespace

const struct subject subject = {
	.version = SUBJECT_VERSION,
	.fill_stub_page = nullptr,
	.stub_page_size = nullptr,
	.allocator = nullptr,
	.code_heap = nullptr,
	.stub_heap = nullptr,
	.release = nullptr,
	.blocks = &blocks_operations,
};
