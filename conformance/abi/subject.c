/*
 * The proof of the capturing call stub has no subject: what conformance/ links against, empty.
 */
#include <subject.h>

const struct subject_template subject_templates[1];
const unsigned subject_template_count = 0;
const size_t subject_stub_page = 0;
const size_t subject_stub_pages[] = {0};
const char *const subject_claims[] = {0};
const char *const subject_name = "none";
const bool subject_hosted = false;
const struct subject subject = {.version = SUBJECT_VERSION};
