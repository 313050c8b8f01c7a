/*
 * Where slots and records lie, from the declared sizes alone: what no page has to be built for.
 */
#include "check.h"
#include "subject.h"

/* A stretch of the data page, in bytes from its start. */
struct stretch {
	int64_t begin, end;
};

static struct stretch record_of(const struct subject_template *t, uint32_t slot)
{
	const int64_t begin = t->record_offset + (int64_t)slot * t->record_stride;

	return (struct stretch){begin, begin + t->record_size};
}

static bool inside(struct stretch inner, struct stretch outer)
{
	return inner.begin >= outer.begin && inner.end <= outer.end;
}

static bool judge_slot(const struct subject_template *t, uint32_t slot)
{
	const struct stretch page = {0, (int64_t)subject_stub_page};
	const struct stretch code = {(int64_t)slot * t->pitch, (int64_t)slot * t->pitch + (t->code_end - t->code)};
	const struct stretch record = record_of(t, slot);
	const bool good = CHECK_TRUE(inside(code, page), "a slot lies inside the code page") &&
			  CHECK_TRUE(inside(record, page), "a record lies inside the data page") &&
			  CHECK_TRUE(!slot || record_of(t, slot - 1).end <= record.begin, "no two records overlap") &&
			  CHECK_TRUE(!slot || code.begin - (int64_t)t->pitch + (t->code_end - t->code) <= code.begin,
				     "no two slots overlap");

	if (!good) {
		check_note_number("slot", slot);
		check_note_signed("record_begin", record.begin);
		check_note_signed("record_end", record.end);
	}
	return good;
}

/* A field belongs to its record, or, shared by every slot, to the rest of the data page. */
static bool judge_field(const struct subject_template *t, const struct subject_field *field)
{
	const struct stretch own = {field->offset, field->offset + field->width};
	const struct stretch record = {0, t->record_size}, page = {0, (int64_t)subject_stub_page};
	const struct stretch records = {t->record_offset, record_of(t, t->slots - 1).end};
	const bool good = field->in_page
				  ? CHECK_TRUE(inside(own, page), "a field of the page lies inside the data page") &&
					    CHECK_TRUE(own.end <= records.begin || own.begin >= records.end,
						       "a field of the page overlaps no record")
				  : CHECK_TRUE(inside(own, record), "a field lies inside its record");

	if (!good)
		check_note("field", field->name);
	return good;
}

CHECK_TEMPLATES(po_records, "PO-030", "*",
		"no two records overlap; every slot lies inside the code page and its record inside the data page")
{
	const int64_t apart = t->data_distance < 0 ? -t->data_distance : t->data_distance;

	if (!CHECK_TRUE(t->slots > 0, "a page holds a slot") ||
	    !CHECK_TRUE(apart >= (int64_t)subject_stub_page, "code page and data page do not overlap"))
		return;
	for (unsigned i = 0; i < t->field_count; i++)
		if (!judge_field(t, &t->fields[i]))
			return;
	for (uint32_t slot = 0; slot < t->slots; slot++)
		if (!judge_slot(t, slot))
			return;
}
