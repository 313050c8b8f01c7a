#include "page.h"

#include "call.h"
#include "check.h"
#include "os.h"

static const char *const source_names[PAGE_SOURCES] = {"suite", "subject"};

/* ---- Addresses ---- */

uintptr_t page_slot(const struct page *page, uint32_t slot)
{
	return (uintptr_t)page->code + (uintptr_t)slot * page->t->pitch;
}

uintptr_t page_entry(const struct page *page, uint32_t slot, const struct subject_path *path)
{
	return page_slot(page, slot) + path->entry + page->t->mode_bit;
}

/* Bytes from the data page to a field. */
static int64_t field_offset(const struct subject_template *t, uint32_t slot, unsigned field)
{
	const struct subject_field *f = &t->fields[field];

	return f->in_page ? f->offset : t->record_offset + (int64_t)slot * t->record_stride + f->offset;
}

uintptr_t page_field(const struct page *page, uint32_t slot, unsigned field)
{
	return (uintptr_t)page->data + (uintptr_t)field_offset(page->t, slot, field);
}

bool page_field_inside(const struct page *page, uint32_t slot, unsigned field)
{
	const int64_t offset = field_offset(page->t, slot, field);

	return offset >= 0 && offset + page->t->fields[field].width <= (int64_t)subject_stub_page;
}

uint16_t *page_cell(const struct page *page, uint32_t slot)
{
	return (uint16_t *)(page->cells + (size_t)slot * PAGE_CELL_BYTES + PAGE_CELL_AT);
}

/* ---- Records ---- */

/* The bytes of a word of `width` bytes begin at its low end, which a big-endian port keeps last. */
static unsigned char *low_bytes(uint64_t *word, unsigned width)
{
	const union {
		uint16_t word;
		unsigned char first;
	} order = {1};

	return (unsigned char *)word + (order.first ? 0 : sizeof(*word) - width);
}

uint64_t page_word(const unsigned char *at, unsigned width)
{
	uint64_t word = 0;
	unsigned char *bytes = low_bytes(&word, width);

	for (unsigned i = 0; i < width; i++)
		bytes[i] = at[i];
	return word;
}

static void set_word(unsigned char *at, unsigned width, uint64_t word)
{
	const unsigned char *bytes = low_bytes(&word, width);

	for (unsigned i = 0; i < width; i++)
		at[i] = bytes[i];
}

void page_set(struct page *page, uint32_t slot, unsigned field, uintptr_t value)
{
	unsigned char *at = (unsigned char *)page_field(page, slot, field);
	const unsigned width = page->t->fields[field].width;

	if (!page_field_inside(page, slot, field))
		return;
	set_word(at, width > sizeof(uint64_t) ? sizeof(uint64_t) : width, value);
}

uintptr_t page_value(const struct page *page, uint32_t slot, unsigned field)
{
	const uint64_t record = page->t->fields[field].in_page ? 0 : (uint64_t)slot + 1;

	return (uintptr_t)call_mix(check_seed, record << 8 | field);
}

static unsigned char canary(const struct page *page, uint32_t slot, unsigned i)
{
	return page->cells_guarded ? (unsigned char)((0xa1 + slot * 29 + i * 7) | 1) : 0;
}

bool page_cell_canaries(const struct page *page, uint32_t slot)
{
	const unsigned char *bytes = page->cells + (size_t)slot * PAGE_CELL_BYTES;

	for (unsigned i = 0; i < PAGE_CELL_BYTES; i++)
		if (i != PAGE_CELL_AT && i != PAGE_CELL_AT + 1 && bytes[i] != canary(page, slot, i))
			return false;
	return true;
}

uintptr_t page_aim_value(const struct page_place *place, unsigned field)
{
	switch (place->page->t->fields[field].role) {
	case SUBJECT_TARGET:
	case SUBJECT_TAIL:
		return execmem_port_landing[field == place->path->lands ? PAGE_RIGHT : PAGE_OTHER];
	case SUBJECT_CELL:
		return (uintptr_t)page_cell(place->page, place->slot);
	default:
		return page_value(place->page, place->slot, field);
	}
}

void page_aim(const struct page_place *place)
{
	for (unsigned i = 0; i < place->page->t->field_count; i++)
		page_set(place->page, place->slot, i, page_aim_value(place, i));
	*page_cell(place->page, place->slot) = place->path->count;
}

void page_clear(struct page *page, uint32_t slot)
{
	unsigned char *cell = page->cells + (size_t)slot * PAGE_CELL_BYTES;

	for (unsigned i = 0; i < PAGE_CELL_BYTES; i++)
		cell[i] = canary(page, slot, i);
	for (unsigned i = 0; i < page->t->field_count; i++) {
		const uint8_t role = page->t->fields[i].role;

		page_set(page, slot, i,
			 role == SUBJECT_TARGET || role == SUBJECT_TAIL ? execmem_port_landing[PAGE_WRONG]
			 : role == SUBJECT_CELL                         ? (uintptr_t)page_cell(page, slot)
									: page_value(page, slot, i));
	}
}

void page_guard_cells(struct page *page)
{
	page->cells_guarded = true;
	for (uint32_t slot = 0; slot < page->t->slots; slot++)
		page_clear(page, slot);
}

/* ---- Building ---- */

static void fill(struct page *page)
{
	const struct subject_template *t = page->t;
	const size_t code_bytes = (size_t)(t->code_end - t->code);

	for (size_t i = 0; i < subject_stub_page; i++)
		page->code[i] = PAGE_FILL;
	for (uint32_t slot = 0; slot < t->slots; slot++) {
		unsigned char *to = page->code + (size_t)slot * t->pitch;

		for (size_t i = 0; i < code_bytes; i++)
			to[i] = t->code[i];
		for (unsigned i = 0; i < t->patch_count; i++) {
			const struct subject_patch *patch = &t->patches[i];

			set_word(to + patch->offset, patch->width,
				 page_word(to + patch->offset, patch->width) + (uintptr_t)to);
		}
	}
}

/* Whether the declared layout is one that pages can be made of; PO-005 and PO-030 judge the rest of it. */
static bool buildable(const struct subject_template *t)
{
	const int64_t apart = t->data_distance < 0 ? -t->data_distance : t->data_distance;

	if (subject_stub_page % check_os_page) {
		check_emulator("the OS page is larger than the stub page, so that code and data would share one");
		return false;
	}
	return CHECK_TRUE(t->slots && (uint64_t)t->slots * t->pitch <= subject_stub_page,
			  "the slots lie inside the code page") &&
	       CHECK_TRUE((size_t)(t->code_end - t->code) <= t->pitch, "the template's code fits its slot") &&
	       CHECK_TRUE(apart >= (int64_t)subject_stub_page && !((uint64_t)apart & (check_os_page - 1)),
			  "the data page is apart from the code page, on an OS page");
}

/* Reserves the whole span, with the code page on a multiple of the stub page size, or where the caller said. */
static void reserve(struct page *page)
{
	const int64_t distance = page->t->data_distance;
	const size_t moat = PAGE_MOAT * subject_stub_page;
	const size_t below = moat + (size_t)(distance < 0 ? -distance : 0);
	const size_t above = (size_t)(distance < 0 ? 0 : distance) + subject_stub_page + moat;
	const uintptr_t align = subject_stub_page - 1;

	if (check_code_at) {
		const uintptr_t at = check_code_at + (uintptr_t)(page->t - subject_templates) * check_code_step;

		page->reserved_bytes = below + above;
		page->reserved = os_reserve((void *)(at - below), page->reserved_bytes);
		page->code = page->reserved + below;
	} else {
		page->reserved_bytes = below + above + subject_stub_page;
		page->reserved = os_reserve(NULL, page->reserved_bytes);
		page->code = (unsigned char *)(((uintptr_t)page->reserved + below + align) & ~align);
	}
	page->data = page->code + distance;
}

/*
 * The subject writes where the code does not run, as through a writable view: what it derives from the wrong one of its
 * two addresses shows. Behind the page it is given nothing that it could write.
 */
static int fill_by_subject(struct page *page)
{
	const size_t moat = PAGE_MOAT * subject_stub_page;
	unsigned char *const reserved = os_reserve(NULL, moat + subject_stub_page + moat);
	unsigned char *const writable = reserved + moat;
	int result;

	if (!subject.fill_stub_page)
		check_broken("a page is asked of a subject that fills none", 0);
	os_protect(writable, subject_stub_page, OS_READ | OS_WRITE);
	result = subject.fill_stub_page(page->t, writable, (uintptr_t)page->code, subject_stub_page);
	for (size_t i = 0; i < subject_stub_page; i++)
		page->code[i] = writable[i];
	os_unmap(reserved, moat + subject_stub_page + moat);
	return result;
}

/* Every record and cell as a check expects to find them; what an earlier check left in the data page is gone. */
static void begin(struct page *page)
{
	uintptr_t *const words = (uintptr_t *)page->data;

	page->cells_guarded = false;
	for (size_t i = 0; i < subject_stub_page / sizeof(*words); i++)
		words[i] = 0;
	for (uint32_t slot = 0; slot < page->t->slots; slot++)
		page_clear(page, slot);
}

static bool build(struct page *page, int protection)
{
	const struct subject_template *t = page->t;
	int result = 0;

	reserve(page);
	page->cells_bytes = ((size_t)t->slots * PAGE_CELL_BYTES + check_os_page - 1) & ~(check_os_page - 1);
	page->cells = os_reserve(NULL, page->cells_bytes);
	os_protect(page->cells, page->cells_bytes, OS_READ | OS_WRITE);
	os_protect(page->code, subject_stub_page, OS_READ | OS_WRITE);
	os_protect(page->data, subject_stub_page, OS_READ | OS_WRITE);
	if (page->source == PAGE_SUITE)
		fill(page);
	else
		result = fill_by_subject(page);
	if (!CHECK_TRUE(!result, "the subject fills a stub page")) {
		check_note_signed("result", result);
		return false;
	}
	result = os_try_protect(page->code, subject_stub_page, OS_READ | OS_EXECUTE | protection);
	if (result && protection)
		check_emulator("the system refuses landing-pad enforcement for a page");
	else if (result)
		check_broken("the system refuses to make a code page executable", result);
	os_sync_code(page->code, subject_stub_page);
	return !result;
}

/*
 * Pages that checks of this process have used and left as they should: an emulator has translated their code, which
 * takes it longer than everything else that a check does. Pages at a fixed address are not kept: another source's page
 * is to lie there next.
 */
static struct page *kept_page(const struct subject_template *t, enum page_source source, int protection)
{
	static struct page kept[16];
	const size_t index = (size_t)(t - subject_templates) * PAGE_SOURCES + source;

	return index < sizeof(kept) / sizeof(kept[0]) && !protection && !check_code_at ? &kept[index] : NULL;
}

bool page_with(const struct subject_template *t, enum page_source source, bool (*judge)(struct page *page),
	       int protection)
{
	struct page once = {0}, *const kept = kept_page(t, source, protection), *const page = kept ? kept : &once;
	bool good = true;

	check_note_clear();
	check_note("template", t->name);
	check_note("pages", source_names[source]);
	if (!buildable(t))
		return false;
	if (!page->reserved) {
		*page = (struct page){.t = t, .source = source};
		good = build(page, protection);
	}
	if (good) {
		begin(page);
		good = judge(page);
	}
	if (!good || !kept) {
		os_unmap(page->cells, page->cells_bytes);
		os_unmap(page->reserved, page->reserved_bytes);
		page->reserved = NULL;
	}
	return good;
}

void page_each(const struct subject_template *t, bool (*judge)(struct page *page), int protection)
{
	if (page_with(t, PAGE_SUITE, judge, protection) && subject.fill_stub_page)
		page_with(t, PAGE_SUBJECT, judge, protection);
}

void page_used(const struct subject_template *t, bool (*judge)(struct page *page), int protection)
{
	page_with(t, subject.fill_stub_page ? PAGE_SUBJECT : PAGE_SUITE, judge, protection);
}

bool page_doubled(const struct page_place *place)
{
	return place->page->source == PAGE_SUITE && subject.fill_stub_page && place->slot &&
	       place->slot + 1 != place->page->t->slots;
}

bool page_each_place(struct page *page, bool (*judge)(const struct page_place *place))
{
	for (unsigned i = 0; i < page->t->path_count; i++)
		for (uint32_t slot = 0; slot < page->t->slots; slot++) {
			const struct page_place place = {page, &page->t->paths[i], slot};

			if (!judge(&place))
				return false;
		}
	return true;
}

/* ---- Calls and failures ---- */

bool page_call(const struct page_place *place, struct execmem_port_capture *capture, uint32_t landing, const char *what)
{
	const uintptr_t slot = page_slot(place->page, place->slot);
	struct call_signal ended;

	capture->entry = page_entry(place->page, place->slot, place->path);
	ended = call_captured(capture, NULL, NULL);
	if (CHECK_EQUAL(landing, capture->landed, what))
		return true;
	if (ended.signal) {
		check_note_number("signal", (uint64_t)ended.signal);
		check_note_number("signal_pc", ended.pc);
		check_note_number("signal_address", ended.address);
	}
	return page_explain(place, ended.pc - slot < place->page->t->pitch ? ended.pc : 0);
}

bool page_explain(const struct page_place *place, uintptr_t mark)
{
	check_note("path", place->path->name);
	page_explain_slot(place->page, place->slot);
	check_note_number("bytes_mark", mark ? mark : page_slot(place->page, place->slot) + place->path->entry);
	return false;
}

bool page_explain_slot(struct page *page, uint32_t slot)
{
	const uintptr_t at = page_slot(page, slot);

	check_note_number("slot", slot);
	check_note_code((const void *)at, page->t->pitch, at, at);
	return false;
}
