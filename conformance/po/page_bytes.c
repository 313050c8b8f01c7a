/*
 * The bytes of a code page that the subject filled.
 */
#include "check.h"
#include "page.h"

/* Bytes that make a start: a landing pad, an instruction of fixed width, most of a longer one. */
#define START_BYTES 4

static bool is_patched(const struct subject_template *t, size_t offset)
{
	for (unsigned i = 0; i < t->patch_count; i++)
		if (offset - t->patches[i].offset < t->patches[i].width)
			return true;
	return false;
}

/* Whether the first `count` bytes at `bytes` are those of the template, patch sites aside. */
static bool starts_as(const struct subject_template *t, const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != t->code[i] && !is_patched(t, i))
			return false;
	return true;
}

/*
 * A place classifies as a template where it starts as one: its first instruction is enough, so a lone landing pad is
 * the start of every template that begins with one. Every byte offset is tried: on some ports instructions begin at
 * any.
 */
static bool judge_padding(struct page *page)
{
	const size_t begin = (size_t)page->t->slots * page->t->pitch;

	for (size_t at = begin; at + START_BYTES <= subject_stub_page; at++)
		for (unsigned i = 0; i < subject_template_count; i++) {
			const struct subject_template *other = &subject_templates[i];

			if (!CHECK_TRUE(!starts_as(other, page->code + at, START_BYTES),
					"nothing behind the last slot classifies as a template")) {
				check_note("classified_as", other->name);
				check_note_code(page->code + begin, subject_stub_page - begin,
						(uintptr_t)page->code + begin, (uintptr_t)page->code + at);
				return false;
			}
		}
	return CHECK_TRUE(begin <= subject_stub_page, "the last slot ends inside the page");
}

/* What a patch site must hold: the template's word plus the slot's executable address, of the site's width. */
static bool judge_patch(struct page *page, uint32_t slot, const struct subject_patch *patch)
{
	const uintptr_t address = page_slot(page, slot);
	const uint64_t mask = patch->width < 8 ? (UINT64_C(1) << patch->width * 8) - 1 : UINT64_MAX;
	const uint64_t word = page_word(page->t->code + patch->offset, patch->width);

	return CHECK_EQUAL((word + address) & mask,
			   page_word((const unsigned char *)address + patch->offset, patch->width),
			   "a patch site holds the template's word plus the slot's executable address") ||
	       page_explain_slot(page, slot);
}

static bool judge_slot(struct page *page, uint32_t slot)
{
	const struct subject_template *t = page->t;
	const unsigned char *bytes = (const unsigned char *)page_slot(page, slot);

	for (size_t i = 0; i < (size_t)(t->code_end - t->code); i++)
		if (!is_patched(t, i) && !CHECK_EQUAL(t->code[i], bytes[i], "a slot holds the bytes of the template")) {
			page_explain_slot(page, slot);
			check_note_number("bytes_mark", (uintptr_t)bytes + i);
			return false;
		}
	for (unsigned i = 0; i < t->patch_count; i++)
		if (!judge_patch(page, slot, &t->patches[i]))
			return false;
	return true;
}

static bool judge_bytes(struct page *page)
{
	for (uint32_t slot = 0; slot < page->t->slots; slot++)
		if (!judge_slot(page, slot))
			return false;
	return true;
}

/* Only the subject's pages: what the suite's builder writes says nothing about the subject. */
static void judge_subject(const struct subject_template *t, bool (*judge)(struct page *page))
{
	if (subject.fill_stub_page)
		page_with(t, PAGE_SUBJECT, judge, 0);
	else
		check_not_claimed("the subject does not fill stub pages (claim stub-pages)");
}

CHECK_TEMPLATES(po_padding, "PO-031", "*",
		"nothing behind the last slot of a filled page classifies as a template of the subject")
{
	judge_subject(t, judge_padding);
}

CHECK_TEMPLATES(po_page_bytes, "PO-032", "*",
		"every slot of a filled page equals the template, and each patch site is right for its slot")
{
	judge_subject(t, judge_bytes);
}
