/*
 * The subject interface: what a conformance program knows of an implementation under test.
 *
 * Templates are data, generated from a manifest; operations are offered by the subject's own C file, or left out.
 * Every operation belongs to one claim: the manifest's `claims` and the operations offered must agree, both ways.
 */
#ifndef SUBJECT_H
#define SUBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SUBJECT_VERSION 3

enum subject_role {
	SUBJECT_TARGET, /* a code address, with its mode bit */
	SUBJECT_VALUE,  /* any pointer-sized value, handed on in a register */
	SUBJECT_CELL,   /* a pointer to a 16-bit counter */
	SUBJECT_TAIL,   /* a code address that first points at a path of the same slot, named by `tail` */
	SUBJECT_IDLE    /* never read by the code (a type tag) */
};

struct subject_field {
	const char *name;
	int32_t offset; /* bytes from the record, or from the data page where in_page */
	uint8_t width;  /* bytes */
	uint8_t role;   /* enum subject_role */
	bool in_page;   /* one a data page, shared by every slot */
	int8_t tail;    /* SUBJECT_TAIL: the path whose entry it first holds, else -1 */
};

enum subject_direction { SUBJECT_LOAD, SUBJECT_STORE, SUBJECT_UPDATE /* load, then store */ };

/* One access that a path makes to its data page, in program order. */
struct subject_access {
	uint32_t at;         /* offset in the slot of the instruction, as the disassembly shows it */
	uint8_t length;      /* bytes of that instruction; 0 where the disassembly could not tell */
	uint8_t field;       /* index into fields */
	uint8_t width;       /* bytes */
	uint8_t direction;   /* enum subject_direction */
	int16_t destination; /* general register loaded; -1: the program counter; -2: unknown */
};

struct subject_carry {
	uint16_t reg;  /* index into the capture's general registers; behind them, words from the stack pointer up */
	uint8_t field; /* whose value it holds on arrival */
};

/* One way through a template, from an entry to the target that a field names. */
struct subject_path {
	const char *name;
	uint32_t entry; /* offset in the slot */
	uint16_t count; /* what the 16-bit cell holds before, where a field is a SUBJECT_CELL */
	uint8_t lands;  /* index of the field whose target is reached */
	uint8_t access_count, carry_count, clobber_count;
	uint8_t pushed; /* bytes that it leaves below the caller's stack pointer, for the target to take off */
	const struct subject_access *accesses;
	const struct subject_carry *carries;
	const uint16_t *clobbers; /* general registers that may change besides the carries */
};

/* A pc-independent word of the template that the page builder adds the slot's executable address to. */
struct subject_patch {
	uint32_t offset;
	uint8_t width;
};

struct subject_template {
	const char *name; /* "fixup_precode" */
	const char *kind; /* "stub_precode", "fixup_precode", "call_counting", "closure" or "other" */
	const unsigned char *code, *code_end;
	uint32_t pitch;         /* bytes from slot to slot */
	uint32_t slots;         /* slots in one page of subject_stub_page bytes */
	uint32_t mode_bit;      /* added to an entry's address when it is called (T32: 1) */
	int64_t data_distance;  /* bytes from code page to data page, usually the stub page size */
	int32_t record_offset;  /* bytes from the data page to the first record */
	uint32_t record_stride; /* bytes from record to record */
	uint32_t record_size;   /* bytes */
	uint8_t field_count, path_count, patch_count;
	bool landing_pads;
	const struct subject_field *fields;
	const struct subject_path *paths;
	const struct subject_patch *patches;
};

/* Generated from the manifest (build/.../manifest.c). */
extern const struct subject_template subject_templates[];
extern const unsigned subject_template_count;
extern const size_t subject_stub_page;     /* bytes */
extern const size_t subject_stub_pages[];  /* every declared stub page size of this variant; ends with 0 */
extern const char *const subject_claims[]; /* null-terminated */
extern const char *const subject_name;
extern const bool subject_hosted; /* there is a C library in the program, which maps memory of its own */
/* For each general register: is it an argument register, must it be preserved, does the call stub own it? */
extern const uint8_t subject_general_class[];
extern const uint8_t subject_vector_class[];
extern const char *const subject_general_name[];
extern const char *const subject_vector_name[];
#define SUBJECT_CLASS_ARGUMENT  1
#define SUBJECT_CLASS_PRESERVED 2
#define SUBJECT_CLASS_RESERVED  4

/* Operations. A null one is not offered. Returns 0 or a negative number that the subject's manifest may explain. */
struct subject_allocator_operations; /* subject_allocator.h */
struct subject_code_heap_operations; /* subject_code_heap.h */
struct subject_stub_heap_operations; /* subject_stub_heap.h */
struct subject_release_operations;   /* subject_release.h */
struct subject_blocks_operations;    /* subject_blocks.h */

struct subject {
	uint32_t version; /* SUBJECT_VERSION */
	/*
	 * Claim "stub-pages". Fills one code page of `stub_page` bytes with a template: `writable` is where to write,
	 * `executable` where it will run. Everything behind the last slot is the subject's choice.
	 */
	int (*fill_stub_page)(const struct subject_template *t, unsigned char *writable, uintptr_t executable,
			      size_t stub_page);
	/*
	 * Claim "stub-page-size". The stub page size to use under an OS page of `os_page` bytes, or a negative error
	 * where the templates cannot reach so far.
	 */
	int (*stub_page_size)(size_t os_page, size_t *stub_page);
	/* Claims of allocators: each operation names its own. Null: none of them. */
	const struct subject_allocator_operations *allocator;
	/* Claims of code heaps, of stub heaps, and of page release, likewise. */
	const struct subject_code_heap_operations *code_heap;
	const struct subject_stub_heap_operations *stub_heap;
	const struct subject_release_operations *release;
	/* Claims of allocators that hand out blocks. */
	const struct subject_blocks_operations *blocks;
};
extern const struct subject subject;

#ifdef __cplusplus
}
#endif

#endif
