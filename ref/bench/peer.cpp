#include "peer.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <asmjit/core.h>

struct bench_peer {
	asmjit::JitAllocator allocator;

	explicit bench_peer(const asmjit::JitAllocator::CreateParams &parameters) : allocator(&parameters) {}
};

static void must(asmjit::Error error, const char *what)
{
	if (error == asmjit::kErrorOk)
		return;
	std::fprintf(stderr, "bench: %s of asmjit: %s\n", what, asmjit::DebugUtils::errorAsString(error));
	std::_Exit(3);
}

bench_peer *bench_peer_create(int several_pools)
{
	asmjit::JitAllocator::CreateParams parameters;

	parameters.options = asmjit::JitAllocatorOptions::kUseDualMapping;
	if (several_pools)
		parameters.options |= asmjit::JitAllocatorOptions::kUseMultiplePools;
	return new bench_peer(parameters);
}

void bench_peer_destroy(bench_peer *peer)
{
	delete peer;
}

void *bench_peer_put(bench_peer *peer, const void *code, size_t bytes)
{
	void *rx, *rw;

	must(peer->allocator.alloc(&rx, &rw, bytes), "alloc");
	std::memcpy(rw, code, bytes);
	return rx;
}

void bench_peer_release(bench_peer *peer, void *rx)
{
	must(peer->allocator.release(rx), "release");
}

uintptr_t bench_peer_find(bench_peer *peer, const void *address, size_t *bytes)
{
	void *rx, *rw;

	must(peer->allocator.query(const_cast<void *>(address), &rx, &rw, bytes), "query");
	return reinterpret_cast<uintptr_t>(rx);
}

size_t bench_peer_memory(bench_peer *peer)
{
	const asmjit::JitAllocator::Statistics statistics = peer->allocator.statistics();

	return statistics.reservedSize() + statistics.overheadSize();
}
