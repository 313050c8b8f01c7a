/*
 * Stub pages for the checks: one template repeated in a code page, its records in a data page, moats around both.
 *
 *	moat | code page | (gap) | data page | moat
 *
 * Moats and gap are inaccessible, and each moat is at least PAGE_MOAT stub pages, so that a distance that counts words
 * or wraps faults instead of finding something. Where the subject's data distance is negative the data page is the
 * lower one. The code page is never writable and executable at once.
 *
 * Two sources of a page: the suite lays out the template itself and fills what no slot uses with PAGE_FILL; the subject
 * fills the same code page through subject.fill_stub_page. Checks judge both (page_each).
 */
#ifndef PAGE_H
#define PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <port.h>

#include "subject.h"

#define PAGE_MOAT       8 /* stub pages */
/*
 * All ones: no instruction on any port, so that running off the end of a slot stops there rather than slides into the
 * neighbour, and the start of no template.
 */
#define PAGE_FILL       0xff
/* A cell and its surroundings on both sides: zeros, or canaries after page_guard_cells. */
#define PAGE_CELL_BYTES 16
#define PAGE_CELL_AT    6
/* Landings, by their part in a call. */
#define PAGE_RIGHT      0 /* named by the field that the path lands by */
#define PAGE_OTHER      1 /* named by the other targets of the same record */
#define PAGE_WRONG      3 /* named by every other record */

enum page_source { PAGE_SUITE, PAGE_SUBJECT, PAGE_SOURCES };

struct page {
	const struct subject_template *t;
	enum page_source source;
	unsigned char *code; /* subject_stub_page bytes, readable and executable */
	unsigned char *data; /* subject_stub_page bytes, readable and writable */
	unsigned char *cells;
	unsigned char *reserved;
	size_t reserved_bytes, cells_bytes;
	bool cells_guarded;
};

/* One slot of a page on one path: what most checks are about. */
struct page_place {
	struct page *page;
	const struct subject_path *path;
	uint32_t slot;
};

/*
 * Has a page of template `t`, built now or left by an earlier check of the process, every record initialised by
 * page_clear and the rest of the data page zero, and calls `judge`, which leaves the protections as they were. First
 * for the suite's page, then, where the subject offers it, for the subject's. Ends at the first judge that returns
 * false. `protection` is added to the code page's, as EXECMEM_PORT_PROT_PADS; where the system refuses it the point is
 * EMU.
 */
void page_each(const struct subject_template *t, bool (*judge)(struct page *page), int protection);
/*
 * page_each for checks of what the code does, call by call: only the page that is used is judged, the subject's where
 * it fills one. That both hold the same code is po_page_bytes' to say; po_path_lands calls both.
 */
void page_used(const struct subject_template *t, bool (*judge)(struct page *page), int protection);
/* The same for one source. False where the page could not be had or `judge` returned false. */
bool page_with(const struct subject_template *t, enum page_source source, bool (*judge)(struct page *page),
	       int protection);

/*
 * Is this a place to leave out: in the middle of a page that the suite lays out although the subject fills one? The two
 * differ in their ends alone, if at all. For checks that judge both pages.
 */
bool page_doubled(const struct page_place *place);
/* Calls `judge` for every path of the template and, within, for every slot in ascending order. */
bool page_each_place(struct page *page, bool (*judge)(const struct page_place *place));

/* Addresses in the code page; entries carry the mode bit. */
uintptr_t page_slot(const struct page *page, uint32_t slot);
uintptr_t page_entry(const struct page *page, uint32_t slot, const struct subject_path *path);
/* Address of a field of the slot's record, or of the data page where the field is in_page. */
uintptr_t page_field(const struct page *page, uint32_t slot, unsigned field);
/* Whether that field lies inside the data page; only then may it be written. */
bool page_field_inside(const struct page *page, uint32_t slot, unsigned field);
/* The word of `width` bytes, at most 8, at any alignment, in the port's byte order. */
uint64_t page_word(const unsigned char *at, unsigned width);
/* Writes the low `width` bytes of the field, in the port's byte order. A field outside the data page is left alone. */
void page_set(struct page *page, uint32_t slot, unsigned field, uintptr_t value);

/* The slot's own value for a field of role value: different in every slot and field, every byte of it random. */
uintptr_t page_value(const struct page *page, uint32_t slot, unsigned field);
/* The slot's own 16-bit cell. */
uint16_t *page_cell(const struct page *page, uint32_t slot);
/*
 * From now on the bytes around every cell are canaries, none of them zero, for the checks that judge them. Elsewhere a
 * counter that is too wide is no matter.
 */
void page_guard_cells(struct page *page);
/* Whether the bytes around the slot's cell are as page_clear wrote them. */
bool page_cell_canaries(const struct page *page, uint32_t slot);

/* What page_aim puts into a field for a call of this place. */
uintptr_t page_aim_value(const struct page_place *place, unsigned field);
/* Makes the record of the place name landing PAGE_RIGHT for its path, PAGE_OTHER otherwise, and sets its cell. */
void page_aim(const struct page_place *place);
/* Makes every target of the slot's record name landing PAGE_WRONG; values, cells and canaries as they begin. */
void page_clear(struct page *page, uint32_t slot);

/*
 * Calls the place captured, its record as it is, and asserts that it reaches landing `landing`; `what` says so in
 * words. A signal behind the landing is not judged here: capture->abandoned tells of it.
 */
bool page_call(const struct page_place *place, struct execmem_port_capture *capture, uint32_t landing,
	       const char *what);

/* Notes where a failed assertion happened, with the slot's code; mark is a pc, or 0 for the entry. Returns false. */
bool page_explain(const struct page_place *place, uintptr_t mark);
/* The same for a slot on no path. */
bool page_explain_slot(struct page *page, uint32_t slot);

#endif
