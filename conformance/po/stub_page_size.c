/*
 * The stub page size that a subject chooses for an OS page.
 */
#include "check.h"
#include "subject.h"

static const size_t os_pages[] = {4096, 16384, 65536};

static bool serves(size_t stub_page, size_t os_page)
{
	return stub_page >= os_page && !(stub_page & (os_page - 1));
}

static bool declared(size_t stub_page)
{
	for (unsigned i = 0; subject_stub_pages[i]; i++)
		if (subject_stub_pages[i] == stub_page)
			return true;
	return false;
}

static bool possible(size_t os_page)
{
	for (unsigned i = 0; subject_stub_pages[i]; i++)
		if (serves(subject_stub_pages[i], os_page))
			return true;
	return false;
}

static bool judge(size_t os_page)
{
	size_t stub_page = 0;
	const int result = subject.stub_page_size(os_page, &stub_page);

	check_note_number("asked_os_page", os_page);
	check_note_number("stub_page", stub_page);
	check_note_signed("result", result);
	if (!possible(os_page))
		return CHECK_TRUE(result < 0, "an OS page that no declared stub page size serves is refused") &&
		       CHECK_EQUAL(0, stub_page, "a refusal leaves the answer alone");
	return CHECK_EQUAL(0, (uint64_t)result, "an OS page that a declared stub page size serves is not refused") &&
	       CHECK_TRUE(declared(stub_page), "the answer is a declared stub page size") &&
	       CHECK_TRUE(serves(stub_page, os_page), "the stub page is a multiple of the OS page");
}

CHECK(po_stub_page_size, "PO-050",
      "for each OS page size the answer is a declared stub page size that is a multiple of it, or a refusal")
{
	if (!subject.stub_page_size) {
		check_not_claimed("the subject chooses no stub page size (claim stub-page-size)");
		return;
	}
	for (unsigned i = 0; i < sizeof(os_pages) / sizeof(os_pages[0]); i++)
		if (!judge(os_pages[i]))
			return;
}
