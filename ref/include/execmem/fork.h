/*
 * fork(2): the shape of pthread_atfork(3). Call execmem_fork_prepare before, execmem_fork_parent after it in the
 * parent, execmem_fork_child after it in the child.
 *
 * The mappings of the memory file are shared with a fork: each side would see what the other writes. So prepare copies
 * the committed bytes to a second memory file, and the child maps its regions and views onto that one, in place, before
 * anything else. (Copying in the child would race with the parent, which goes on publishing; MADV_DONTFORK takes the
 * child's code away, and does nothing under an emulator.)
 *
 * What a child may call: before execmem_fork_child, only execmem_lookup, execmem_kind, execmem_code_find,
 * execmem_code_kind, execmem_stub_find, execmem_error_text, execmem_backend and execmem_emulation; everything else that
 * can fail is EXECMEM_ERROR_FORKED. It may run the code it inherits until the parent changes it. A child that is only
 * going to exec needs neither prepare nor child. After execmem_fork_child it may call everything, and its bytes are its
 * own. Views that the forking thread had open stay open and writable there; those of other threads do too, and stay for
 * ever, since the thread that would close them is gone: their pages cannot be decommitted.
 */
#ifndef EXECMEM_FORK_H
#define EXECMEM_FORK_H

#include <execmem/allocator.h>

/*
 * Stops every other thread's calls, and copies. Until execmem_fork_parent or _child, calls of other threads wait; bytes
 * that they write meanwhile through open views reach the parent alone.
 *
 * EXECMEM_ERROR_FILE_SIZE, _ADDRESS_SPACE, _MAPPING_COUNT, or a negative errno
 *                       no copy could be made: nothing is stopped, and the other two functions are not to be called.
 *                       The process may fork all the same; its child cannot use the library.
 * EXECMEM_ERROR_STATE   prepared already
 * EXECMEM_ERROR_FORKED  this is the child of a fork
 */
EXECMEM_MUST_CHECK int execmem_fork_prepare(struct execmem_allocator *allocator);

/*
 * In the parent, also where fork failed: drops the copy and goes on.
 *
 * EXECMEM_ERROR_STATE   not prepared
 * EXECMEM_ERROR_FORKED  this is the child
 * A negative errno      the copy was not closed at once, though its memory is of no use; everything goes on
 */
EXECMEM_MUST_CHECK int execmem_fork_parent(struct execmem_allocator *allocator);

/*
 * In the child: maps everything onto the copy, in place.
 *
 * EXECMEM_ERROR_STATE   not prepared, or not a child
 * A negative errno
 *                       a mapping was refused: the child cannot use the library, but may call this again
 */
EXECMEM_MUST_CHECK int execmem_fork_child(struct execmem_allocator *allocator);

#endif
