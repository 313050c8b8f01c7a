/*
 * Policies `exact` and `scudo` on real memory, private and in a file, against a list of which blocks are live: never a
 * page with a live block, every page that is wholly free, and the counters are what the system measures. Random
 * layouts and steps, refused calls among them; a sequence that fails is cut down to the steps it needs, and printed.
 */
#include "release_naive.h"

#include <string.h>

static void print(const struct release_sequence *s)
{
	static const char *const names[RELEASE_KINDS] = {"take", "give", "exact", "scudo", "refuse"};
	const struct execmem_release_layout *l = &s->layout;

	fprintf(stderr, "page %zu block %zu first %zu blocks %zu end %zu %s\n", l->page_bytes, l->block_bytes, l->first,
		l->blocks, l->end, s->file ? "file" : "private");
	for (size_t i = 0; i < s->count; i++)
		fprintf(stderr, "  %s %u %u\n", names[s->step[i].kind], s->step[i].a, s->step[i].b);
}

/* Leaves out every step without which it fails as well, again and again. */
static void shrink(struct release_sequence *s)
{
	static struct release_sequence less;
	uint64_t released = 0;

	for (bool any = true; any;) {
		any = false;
		for (size_t i = s->count; i--;) {
			less = *s;
			memmove(&less.step[i], &less.step[i + 1], (s->count - i - 1) * sizeof(less.step[0]));
			less.count--;
			if (release_play(&less, &released).line) {
				*s = less;
				any = true;
			}
		}
	}
}

int main(int argc, char **argv)
{
	unsigned long sequences = argc > 1 ? strtoul(argv[1], NULL, 10) : 300;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, released = 0;
	static struct release_sequence s;

	for (uint64_t seed = first; seed < first + sequences; seed++) {
		struct release_failure failure;

		test_seed = seed;
		release_make(&s, seed, NULL, 0);
		failure = release_play(&s, &released);
		if (!failure.line)
			continue;
		fprintf(stderr, "release_naive.c:%d: %s, step %zu (seed %llu)\n", failure.line, failure.what,
			failure.step, (unsigned long long)seed);
		shrink(&s);
		failure = release_play(&s, &released);
		fprintf(stderr, "cut down: %s, at step %zu of\n", failure.what, failure.step);
		print(&s);
		return 1;
	}
	EXPECT(released > 1000 || sequences < 300);
	return 0;
}
