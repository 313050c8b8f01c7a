#include "script.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What follows each word. The order of the numbers is that of the table in script.h. */
static const struct form {
	const char *word;
	enum script_kind kind;
	int numbers;
	const char *expected;
} forms[] = {
	{"reserve", SCRIPT_RESERVE, 2, "reserve REGION BYTES"},
	{"commit", SCRIPT_COMMIT, 3, "commit REGION OFFSET BYTES"},
	{"write", SCRIPT_WRITE, 4, "write REGION OFFSET BYTES ONCE"},
	{"open", SCRIPT_OPEN, 4, "open VIEW REGION OFFSET BYTES"},
	{"close", SCRIPT_CLOSE, 1, "close VIEW"},
	{"release", SCRIPT_RELEASE, 1, "release REGION"},
};

static _Noreturn void refuse(const char *name, size_t line, const char *expected)
{
	fprintf(stderr, "%s:%zu: expected %s\n", name, line, expected);
	exit(2);
}

/* The numbers of a line; 0 where there are not exactly `count`. */
static int numbers(char *text, uint64_t *out, int count)
{
	for (int i = 0; i < count; i++) {
		char *end;

		while (*text == ' ')
			text++;
		if (*text < '0' || *text > '9')
			return 0;
		errno = 0;
		out[i] = strtoull(text, &end, 10);
		if (errno)
			return 0;
		text = end;
	}
	return strcmp(text, "\n") == 0 || *text == '\0';
}

static void fill(struct script_step *step, const uint64_t *n, const struct script *script, const char *name,
		 size_t line)
{
	int at = 0;

	if (step->kind == SCRIPT_OPEN || step->kind == SCRIPT_CLOSE) {
		if (n[at] >= SCRIPT_VIEWS)
			refuse(name, line, "a view below 1024");
		step->view = (uint32_t)n[at++];
	}
	if (step->kind == SCRIPT_CLOSE)
		return;
	if (step->kind == SCRIPT_RESERVE ? n[at] != script->regions : n[at] >= script->regions)
		refuse(name, line, "the next region to reserve, or one that was reserved");
	step->region = (uint32_t)n[at++];
	if (step->kind == SCRIPT_RELEASE)
		return;
	if (step->kind != SCRIPT_RESERVE)
		step->offset = n[at++];
	step->bytes = n[at++];
	if (step->kind == SCRIPT_WRITE) {
		if (n[at] > 1)
			refuse(name, line, "ONCE to be 0 or 1");
		step->once = (unsigned)n[at];
	}
}

struct script script_read(FILE *file, const char *name)
{
	struct script script = {0};
	size_t room = 0, line = 0;
	char text[160];

	while (fgets(text, sizeof(text), file)) {
		const struct form *form = NULL;
		size_t word = strcspn(text, " \n");
		struct script_step step = {0};
		uint64_t n[4] = {0};

		line++;
		for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
			if (strlen(forms[i].word) == word && memcmp(text, forms[i].word, word) == 0)
				form = &forms[i];
		}
		if (!form)
			refuse(name, line, "reserve, commit, write, open, close or release");
		if (!numbers(text + word, n, form->numbers))
			refuse(name, line, form->expected);
		step.kind = form->kind;
		fill(&step, n, &script, name, line);
		if (step.kind == SCRIPT_RESERVE)
			script.regions++;
		if (script.count == room) {
			room = room ? 2 * room : 4096;
			script.steps = realloc(script.steps, room * sizeof(step));
			if (!script.steps) {
				fprintf(stderr, "%s: out of memory at line %zu\n", name, line);
				exit(3);
			}
		}
		script.steps[script.count++] = step;
	}
	if (ferror(file)) {
		fprintf(stderr, "%s: cannot be read\n", name);
		exit(3);
	}
	return script;
}
