/*
 * What the benchmark asks of its peer for heaps of code, asmjit's JitAllocator with dual mapping: peer.cpp, which is
 * built where asmjit is there.
 */
#ifndef EXECMEM_BENCH_PEER_H
#define EXECMEM_BENCH_PEER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bench_peer;

/* One pool of blocks of 64 bytes, or several, of 64 to 256. Ends the program where there is none to be had. */
struct bench_peer *bench_peer_create(int several_pools);
void bench_peer_destroy(struct bench_peer *peer);
/* A block with this code: where it is executed. */
void *bench_peer_put(struct bench_peer *peer, const void *code, size_t bytes);
void bench_peer_release(struct bench_peer *peer, void *rx);
/* Where the block of an address begins, and its bytes. */
uintptr_t bench_peer_find(struct bench_peer *peer, const void *address, size_t *bytes);
/* Bytes that it has mapped for code, without the second view of them, and of bookkeeping. */
size_t bench_peer_memory(struct bench_peer *peer);

#ifdef __cplusplus
}
#endif

#endif
