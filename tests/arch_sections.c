/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arch_sections.c - the restartable sections and the hit paths do to a row
 * what rseq.h says, and nothing else.
 *
 * The assembly gets an area that the kernel knows nothing of and slots that
 * are this program's own; so it runs where rseq is missing, too.  An abort is
 * played by a fault: the handler sends a section that faults to its abort
 * label, as the kernel would.
 */
#ifndef _GNU_SOURCE
#	define _GNU_SOURCE
#endif
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "lib/arch/names.h"
#include "lib/arch/quirks.h"
#include "lib/arch/rseq.h"
#include "tests/tap.h"

#if EDDY_HAS_SECTIONS

#	define N_SLOTS       4 /* for CPU -2, -1, 0 and 1 */
#	define STORAGE       65536
#	define CAPACITY      100
#	define ROW           48u
#	define HOME          1024u
#	define CLOSED        ((uint64_t)UINT32_MAX << 32)
#	define N_DESCRIPTORS 11
#	define COUNTER       32768

struct row {
	uint32_t cur;
	uint32_t gen;
	uint32_t end;
	uint32_t beg;
};

/* The kernel's struct rseq_cs. */
struct descriptor {
	uint32_t version;
	uint32_t flags;
	uint64_t start;
	uint64_t length;
	uint64_t abort;
};

extern const struct descriptor __start___rseq_cs[];
extern const struct descriptor __stop___rseq_cs[];
extern const struct descriptor *const __start___rseq_cs_ptr_array[];
extern const struct descriptor *const __stop___rseq_cs_ptr_array[];

void *eddy_malloc(size_t size);
void *eddy_new(size_t size);
void *eddy_new_nothrow(size_t size);
void eddy_free(void *p);

/* What the assembly refers to. */
struct eddy_fast eddy_fast;
__thread struct eddy_rseq *eddy_area;
__thread int64_t eddy_prof_left;
/* By row, as far as assembly reads it. */
const struct class
{
	uint32_t size;
	uint32_t others[3];
} eddy_classes[64] = {[0 ... 63] = {.size = 48}};

void *eddy_malloc_slow(size_t size);
void *eddy_new_slow(size_t size);
void *eddy_new_nothrow_slow(size_t size);
void eddy_free_slow(void *p);

static enum slow { NONE, MALLOC, NEW, NEW_NOTHROW, FREE } slow;
static size_t slow_size;
static void *slow_pointer;
static char slow_memory[1 << 20];
static size_t slow_used;

static char *memory; /* N_SLOTS slots */
static char *slots;  /* that of CPU 0 */
static struct eddy_rseq area;
static volatile sig_atomic_t n_aborts;

/* ------------------------------------------------------------------ */
/* Slow paths: libc comes by as well, before main and in it. */

static void *
slow_alloc(enum slow which, size_t size)
{
	slow = which;
	slow_size = size;
	if (size > sizeof slow_memory - slow_used - 16)
		return NULL;
	slow_used += (size + 15) & ~(size_t)15;
	return slow_memory + slow_used - ((size + 15) & ~(size_t)15);
}

void *
eddy_malloc_slow(size_t size)
{
	return slow_alloc(MALLOC, size);
}

void *
eddy_new_slow(size_t size)
{
	return slow_alloc(NEW, size);
}

void *
eddy_new_nothrow_slow(size_t size)
{
	return slow_alloc(NEW_NOTHROW, size);
}

void
eddy_free_slow(void *p)
{
	slow = FREE;
	slow_pointer = p;
}

/* ------------------------------------------------------------------ */

static char *
slot_of(int cpu)
{
	return slots + (ptrdiff_t)cpu * EDDY_SLOT_SIZE;
}

static struct row *
row_at(int cpu, uint32_t place)
{
	return (struct row *)(void *)(slot_of(cpu) + place);
}

static uintptr_t *
cell(int cpu, unsigned i)
{
	return (uintptr_t *)(void *)(slot_of(cpu) + STORAGE) + i;
}

static void *
object(unsigned i)
{
	return (void *)(uintptr_t)(0x5eed0000000u + i * 16);
}

/* Slots as before any use, but the rows of CPU 0 and 1, with n objects. */
static void
lay(int cpu, unsigned n)
{
	memset(memory, 0, (size_t)N_SLOTS * EDDY_SLOT_SIZE);
	for (int c = 0; c < 2; c++) {
		row_at(c, 0)->gen = HOME;
		*row_at(c, HOME + ROW) = (struct row){
		    STORAGE + n * 8, 5, STORAGE + CAPACITY * 8, STORAGE};
		for (unsigned i = 0; i < CAPACITY + 64; i++)
			*cell(c, i) = i < n ? (uintptr_t)object(i) : 0xdead;
	}
	memset(&area, 0x5a, sizeof area);
	area.cpu_id = (uint32_t)cpu;
	area.rseq_cs = 0;
	slow = NONE;
	slow_size = 0;
	slow_pointer = NULL;
}

/* A copy of all slots, to see what a call has changed. */
static char *before;

static void
keep(void)
{
	memcpy(before, memory, (size_t)N_SLOTS * EDDY_SLOT_SIZE);
}

static bool
unchanged(void)
{
	return memcmp(before, memory, (size_t)N_SLOTS * EDDY_SLOT_SIZE) == 0;
}

/* cur and nothing else has become this. */
static bool
only_cur(int cpu, uint32_t cur)
{
	struct row *old =
	    (struct row *)(void *)(before +
				   ((char *)row_at(cpu, HOME + ROW) - memory));

	if (row_at(cpu, HOME + ROW)->cur != cur)
		return false;
	old->cur = cur;
	return unchanged();
}

/* Of the area rseq_cs alone was written, and it names a descriptor. */
static bool
area_kept(uint32_t cpu)
{
	struct eddy_rseq want;
	const struct descriptor *d =
	    (const struct descriptor *)(uintptr_t)area.rseq_cs;

	memset(&want, 0x5a, sizeof want);
	want.cpu_id = cpu;
	want.rseq_cs = area.rseq_cs;
	return memcmp(&want, &area, sizeof want) == 0 &&
	       d >= __start___rseq_cs && d < __stop___rseq_cs;
}

static int
pop(void **ret)
{
	return eddy_section_pop(&area, (uintptr_t)slots, ROW, ret);
}

static int
pop_at(void **ret)
{
	return eddy_section_pop_at(&area, (uintptr_t)slots, HOME + ROW, ret);
}

static int
push(void *p)
{
	return eddy_section_push(&area, (uintptr_t)slots, HOME + ROW, p);
}

static int
refill(void *const *p, uint32_t n)
{
	return eddy_section_refill(&area, (uintptr_t)slots, HOME + ROW, p, n);
}

static int
flush(void **p, uint32_t *n)
{
	return eddy_section_flush(&area, (uintptr_t)slots, HOME + ROW, p, n);
}

static int
limits(uint32_t cpu, uint32_t gen, uint64_t value)
{
	return eddy_section_limits(
	    &area, (uintptr_t)slots, HOME + ROW, cpu, gen, value);
}

static int
add(uint64_t n)
{
	return eddy_section_add(&area, (uintptr_t)slots, COUNTER, n);
}

/* All of them at once, for rows where none may succeed. */
static bool
all_fail(uint32_t cpu)
{
	void *const in[1] = {object(7)};
	void *out[64] = {NULL};
	uint32_t n = 64;
	bool held = true;

	keep();
	held &= pop(&out[0]) == EDDY_SECTION_FAIL && out[0] == NULL;
	held &= area_kept(cpu);
	held &= pop_at(&out[0]) == EDDY_SECTION_FAIL && out[0] == NULL;
	held &= area_kept(cpu);
	held &= push(object(7)) == EDDY_SECTION_FAIL;
	held &= area_kept(cpu);
	held &= refill(in, 1) == EDDY_SECTION_FAIL;
	held &= area_kept(cpu);
	held &=
	    flush(out, &n) == EDDY_SECTION_FAIL && n == 64 && out[0] == NULL;
	held &= area_kept(cpu);
	return held && unchanged();
}

/* ------------------------------------------------------------------ */

/* how: with or without the home's addition. */
static void
test_pop_by(int (*how)(void **), const char *name, const char *from)
{
	void *p = NULL;
	bool held = true;

	for (int cpu = 0; cpu < 2; cpu++) {
		lay(cpu, 3);
		for (unsigned i = 3; i-- > 0;) {
			keep();
			held &= how(&p) == EDDY_SECTION_OK;
			held &= p == object(i);
			held &= only_cur(cpu, STORAGE + i * 8);
			held &= area_kept((uint32_t)cpu);
		}
		keep();
		p = &area;
		held &= how(&p) == EDDY_SECTION_FAIL && p == &area;
		held &= unchanged();
	}
	tap_ok(held, "%s: newest first, %s, until empty", name, from);

	lay(0, CAPACITY);
	row_at(0, HOME + ROW)->end = STORAGE + 8;
	keep();
	tap_ok(how(&p) == EDDY_SECTION_OK && p == object(CAPACITY - 1) &&
		   only_cur(0, STORAGE + (CAPACITY - 1) * 8),
	    "%s: from a row that holds more than its capacity", name);
}

static void
test_pop(void)
{
	test_pop_by(pop, "pop", "from the slot's home");
	test_pop_by(pop_at, "pop_at", "from the row that it is told");
}

static void
test_push(void)
{
	bool held = true;

	for (int cpu = 0; cpu < 2; cpu++) {
		lay(cpu, CAPACITY - 2);
		for (unsigned i = CAPACITY - 2; i < CAPACITY; i++) {
			keep();
			held &= push(object(i)) == EDDY_SECTION_OK;
			held &= *cell(cpu, i) == (uintptr_t)object(i);
			*cell(cpu, i) = 0xdead;
			held &= only_cur(cpu, STORAGE + (i + 1) * 8);
			held &= area_kept((uint32_t)cpu);
			*cell(cpu, i) = (uintptr_t)object(i);
		}
		keep();
		held &= push(object(1)) == EDDY_SECTION_FAIL && unchanged();
	}
	tap_ok(held, "push: on top, until full");

	lay(0, 50);
	row_at(0, HOME + ROW)->end = STORAGE + 49 * 8;
	keep();
	tap_ok(push(object(1)) == EDDY_SECTION_FAIL && unchanged(),
	    "push: not on a row that holds more than its capacity");
}

static void
test_refill(void)
{
	static const uint32_t sizes[] = {1, 2, 63, 64};
	void *in[64];
	bool held = true;

	for (unsigned i = 0; i < 64; i++)
		in[i] = object(1000 + i);
	for (unsigned k = 0; k < 4; k++) {
		uint32_t n = sizes[k];
		unsigned was = CAPACITY - n; /* fits to the last place */

		lay(1, was);
		keep();
		held &= refill(in, n) == EDDY_SECTION_OK && area_kept(1);
		held &= memcmp(cell(1, was), in, n * 8) == 0;
		for (unsigned i = 0; i < n; i++)
			*cell(1, was + i) = 0xdead;
		held &= only_cur(1, STORAGE + CAPACITY * 8);

		lay(1, was + 1);
		keep();
		held &= refill(in, n) == EDDY_SECTION_FAIL && unchanged();
	}
	tap_ok(held, "refill: in order, all or nothing");

	lay(0, 50);
	row_at(0, HOME + ROW)->end = STORAGE + 49 * 8;
	keep();
	tap_ok(refill(in, 1) == EDDY_SECTION_FAIL && unchanged(),
	    "refill: not a row that holds more than its capacity");
}

static void
test_flush(void)
{
	static const uint32_t asked[] = {1, 5, 63, 64};
	static const unsigned holds[] = {1, 2, 5, 64, CAPACITY};
	bool held = true;

	for (unsigned k = 0; k < 4 * 5; k++) {
		unsigned has = holds[k / 4];
		uint32_t want = asked[k % 4] < has ? asked[k % 4] : has;
		uint32_t n = asked[k % 4];
		void *out[65];

		for (unsigned i = 0; i < 65; i++)
			out[i] = &area;
		lay(1, has);
		keep();
		held &= flush(out, &n) == EDDY_SECTION_OK && n == want;
		held &= area_kept(1);
		for (unsigned i = 0; i < 65; i++)
			held &= out[i] ==
				(i < n ? object(has - n + i) : (void *)&area);
		held &= only_cur(1, STORAGE + (has - want) * 8);
	}
	tap_ok(held, "flush: the top in order, at most what there is");
}

static void
test_limits(void)
{
	const uint64_t open = (uint64_t)STORAGE << 32 | (STORAGE + 80);
	struct row *r;
	bool held = true;

	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		lay((int)cpu, 3);
		r = row_at((int)cpu, HOME + ROW);
		r->end = 0;
		r->beg = UINT32_MAX;
		keep();
		held &= limits(1 - cpu, 5, open) == EDDY_SECTION_FAIL;
		held &= limits(cpu, 4, open) == EDDY_SECTION_FAIL;
		held &= limits(cpu, 9, open) == EDDY_SECTION_FAIL;
		held &= limits((uint32_t)-1, 5, open) == EDDY_SECTION_FAIL;
		held &= unchanged() && area_kept(cpu);
		held &= limits(cpu, 5, open) == EDDY_SECTION_OK;
		held &= r->cur == STORAGE + 24 && r->gen == 5 &&
			r->beg == STORAGE && r->end == STORAGE + 80;
		r->end = 0;
		r->beg = UINT32_MAX;
		held &= unchanged();
	}
	tap_ok(held, "limits: both at once, if CPU and generation are right");
}

static void
test_add(void)
{
	uint64_t *counter;
	bool held = true;

	for (int cpu = -2; cpu < 2; cpu++) {
		lay(cpu, 3);
		keep();
		held &= add(5) == EDDY_SECTION_FAIL && unchanged();
		held &= area_kept((uint32_t)cpu);
	}
	tap_ok(held, "add: a slot that is not ready fails");
	held = true;
	for (int cpu = 0; cpu < 2; cpu++) {
		lay(cpu, 3);
		row_at(cpu, 0)->beg = 1;
		counter = (uint64_t *)(void *)(slot_of(cpu) + COUNTER);
		*counter = UINT32_MAX;
		keep();
		held &= add((uint64_t)7 << 32) == EDDY_SECTION_OK;
		held &= *counter == UINT32_MAX + ((uint64_t)7 << 32);
		held &= area_kept((uint32_t)cpu);
		*counter = UINT32_MAX;
		held &= unchanged();
	}
	tap_ok(held, "add: 64 bits, of this CPU");
}

static void
test_closed(void)
{
	bool held = true;

	lay(0, 3);
	memcpy(&row_at(0, HOME + ROW)->end, &(uint64_t){CLOSED}, 8);
	tap_ok(all_fail(0), "a closed row: all but limits fail");
	lay(0, 3);
	*row_at(0, HOME + ROW) = (struct row){0, 0, 0, 0};
	tap_ok(all_fail(0), "a row of zeros: all but limits fail");
	for (int cpu = -2; cpu < 0; cpu++) {
		lay(cpu, 3);
		held &= all_fail((uint32_t)cpu);
		held &= limits(0, 5, CLOSED) == EDDY_SECTION_FAIL;
		held &= unchanged();
	}
	tap_ok(held, "CPU -1 and -2: the slots in front of CPU 0, all fail");
}

/* ------------------------------------------------------------------ */

static uint8_t rows[EDDY_ROW_MAX_ASM / 8 + 1];
static uint32_t tags[16];

/* A heap of 16 pages, the last two above the limit. */
#	define BASE 0x40000000u

static void
lay_fast(unsigned n)
{
	lay(1, n);
	memset(rows, 9, sizeof rows);
	memset(tags, 0, sizeof tags);
	eddy_fast.base = BASE;
	eddy_fast.limit = 14;
	eddy_fast.tags = (uintptr_t)tags;
	eddy_fast.slots = (uintptr_t)slots;
	eddy_fast.rows = (uintptr_t)rows;
	eddy_fast.below = EDDY_ROW_MAX_ASM + 1;
	eddy_prof_left = 0;
}

/* With the area only while f runs: nothing of libc may see it. */
static void *
call(void *(*f)(size_t), size_t size)
{
	void *p;

	slow = NONE;
	eddy_area = &area;
	p = f(size);
	eddy_area = NULL;
	return p;
}

static void
call_free(void (*f)(void *), uintptr_t p)
{
	slow = NONE;
	eddy_area = &area;
	f((void *)p);
	eddy_area = NULL;
}

static const struct {
	const char *name;
	void *(*f)(size_t);
	enum slow slow;
} allocs[] = {
    {"malloc", eddy_malloc, MALLOC},
    {"new", eddy_new, NEW},
    {"new, nothrow", eddy_new_nothrow, NEW_NOTHROW},
};

static void
test_alloc(unsigned k)
{
	static const size_t sizes[] = {0, 1, 7, 8, 9, 100, 65535, 65536};
	static const size_t beyond[] = {65537, 1 << 20, SIZE_MAX - 7, SIZE_MAX};
	void *(*f)(size_t) = allocs[k].f;
	bool held = true;
	void *p;

	for (unsigned i = 0; i < 8; i++) {
		lay_fast(3);
		rows[sizes[i] / 8 + (sizes[i] % 8 != 0)] = ROW / 16;
		keep();
		p = call(f, sizes[i]);
		held &= p == object(2) && slow == NONE && area_kept(1);
		held &= only_cur(1, STORAGE + 16);
	}
	tap_ok(held, "%s: pops the row of the size", allocs[k].name);

	held = true;
	for (unsigned i = 0; i < 4; i++) {
		lay_fast(3);
		memset(rows, ROW / 16, sizeof rows);
		keep();
		(void)call(f, beyond[i]);
		held &= slow == allocs[k].slow && slow_size == beyond[i];
		held &= unchanged();
	}
	tap_ok(held, "%s: sizes without a row go to C", allocs[k].name);

	lay_fast(0);
	rows[5] = ROW / 16;
	keep();
	(void)call(f, 40);
	held = slow == allocs[k].slow && slow_size == 40 && unchanged();
	lay_fast(3);
	rows[5] = ROW / 16;
	slow = NONE;
	slow_size = 0;
	keep();
	(void)f(40);
	held &= slow == allocs[k].slow && slow_size == 40 && unchanged();
	held &= area.rseq_cs == 0;
	tap_ok(held, "%s: an empty row, a thread without area go to C",
	    allocs[k].name);
}

/* While allocations are counted. */
static void
test_counted(unsigned k)
{
	static const size_t sizes[] = {0, 1, 40, 65536};
	void *(*f)(size_t) = allocs[k].f;
	bool held = true;

	for (unsigned i = 0; i < 4; i++) {
		lay_fast(3);
		memset(rows, ROW / 16, sizeof rows);
		eddy_fast.below = 0;
		eddy_prof_left = 100;
		keep();
		held &= call(f, sizes[i]) == object(2) && slow == NONE;
		held &= eddy_prof_left == 52 && only_cur(1, STORAGE + 16);
		held &= call(f, sizes[i]) == object(1) && slow == NONE;
		held &= eddy_prof_left == 4;
		keep();
		(void)call(f, sizes[i]);
		held &= slow == allocs[k].slow && slow_size == sizes[i];
		held &= eddy_prof_left == -44 && unchanged();
	}
	lay_fast(0);
	memset(rows, ROW / 16, sizeof rows);
	eddy_fast.below = 0;
	eddy_prof_left = 100;
	(void)call(f, 40);
	held &= slow == allocs[k].slow && eddy_prof_left == 52;
	(void)call(f, 65537);
	held &= slow == allocs[k].slow && eddy_prof_left == 52;
	tap_ok(held, "%s: counts class sizes; below 0, C has the call",
	    allocs[k].name);
}

static void
test_free(void)
{
	static const uintptr_t outside[] = {0, 1, 4096, BASE - 1,
	    BASE + 14 * 4096, BASE + 15 * 4096, UINTPTR_MAX};
	bool held = true;

	for (uintptr_t page = 0; page < 14; page++) {
		uintptr_t p = BASE + page * 4096 + (page % 2 ? 0 : 4095);

		lay_fast(3);
		tags[page] = 0x1fff0000u | (HOME + ROW);
		keep();
		call_free(eddy_free, p);
		held &= slow == NONE && area_kept(1) && *cell(1, 3) == p;
		*cell(1, 3) = 0xdead;
		held &= only_cur(1, STORAGE + 32);
	}
	tap_ok(held, "free: pushes on the row that the page's tag names");

	held = true;
	for (unsigned i = 0; i < sizeof outside / sizeof *outside; i++) {
		lay_fast(3);
		for (unsigned page = 0; page < 16; page++)
			tags[page] = HOME + ROW;
		keep();
		call_free(eddy_free, outside[i]);
		held &= slow == FREE && slow_pointer == (void *)outside[i];
		held &= unchanged();
	}
	tap_ok(held, "free: what is not below the limit goes to C");

	lay_fast(CAPACITY);
	tags[3] = HOME + ROW;
	keep();
	call_free(eddy_free, BASE + 3 * 4096);
	held = slow == FREE && slow_pointer == (void *)(BASE + 3 * 4096ul);
	held &= unchanged();
	call_free(eddy_free, BASE + 4 * 4096); /* tag 0 */
	held &= slow == FREE && slow_pointer == (void *)(BASE + 4 * 4096ul);
	held &= unchanged();
	lay_fast(3);
	tags[3] = HOME + ROW;
	keep();
	slow = NONE;
	eddy_free((void *)(BASE + 3 * 4096ul));
	held &= slow == FREE && unchanged() && area.rseq_cs == 0;
	tap_ok(held, "free: a full row, a run, a thread without area go to C");
}

#	define NAME(public, internal) extern __typeof__(internal) public;
EDDY_NAMES(NAME)
#	undef NAME

/* A compiler may take for granted that two functions are never one. */
static bool
is_one(const void *a, const void *b)
{
	__asm__("" : "+r"(a), "+r"(b));
	return a == b;
}

static void
test_names(void)
{
	bool held = true;

#	define NAME(public, internal) \
		held &=                \
		    is_one((const void *)(public), (const void *)(internal));
	EDDY_NAMES(NAME)
#	undef NAME
	tap_ok(held, "every public name is its hit path");
}

/* ------------------------------------------------------------------ */
/* Descriptors and aborts */

static void
test_descriptors(void)
{
	const struct descriptor *d = __start___rseq_cs;
	size_t n = (size_t)(__stop___rseq_cs - __start___rseq_cs);
	bool held = n == N_DESCRIPTORS;

	tap_ok(held, "%zu descriptors, one for each section", n);
	for (size_t i = 0; i < n; i++) {
		uint32_t signature;

		memcpy(
		    &signature, (const void *)(uintptr_t)(d[i].abort - 4), 4);
		held &= (uintptr_t)&d[i] % 32 == 0;
		held &= d[i].version == 0 && d[i].flags == 0;
		held &= d[i].length > 0 && d[i].length < 256;
		held &= d[i].abort - d[i].start >= d[i].length;
		held &= signature == EDDY_RSEQ_SIGNATURE;
		for (size_t j = 0; j < i; j++)
			held &= d[i].start - d[j].start >= d[j].length &&
				d[j].start - d[i].start >= d[i].length;
	}
	tap_ok(
	    held, "aborts land behind the signature, outside of the section");
	held = __stop___rseq_cs_ptr_array - __start___rseq_cs_ptr_array ==
	       (ptrdiff_t)n;
	for (size_t i = 0; held && i < n; i++)
		held = __start___rseq_cs_ptr_array[i] == &d[i];
	tap_ok(held, "debuggers find each descriptor");
}

static void
on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	const struct descriptor *d =
	    (const struct descriptor *)(uintptr_t)area.rseq_cs;
#	ifdef __x86_64__
	greg_t *pc = &c->uc_mcontext.gregs[REG_RIP];
#	else
	unsigned long long *pc = &c->uc_mcontext.pc;
#	endif

	(void)info;
	if (d == NULL || (uint64_t)*pc - d->start >= d->length)
		tap_on_signal(sig);
	n_aborts++;
	area.rseq_cs = 0;
	*pc = (__typeof__(*pc))d->abort;
}

static void
protect(size_t at, int how)
{
	if (mprotect(slot_of(1) + at, STORAGE, how) != 0)
		tap_bail("mprotect");
}

/* The part of the slot at `at` refuses; then all is as it was. */
static bool
aborts(size_t at, int how, unsigned n)
{
	void *in[64];
	void *out[64];
	uint32_t got = 64;
	bool held = true;

	for (unsigned i = 0; i < 64; i++)
		in[i] = object(i);
	n_aborts = 0;
	lay_fast(n);
	rows[5] = ROW / 16;
	tags[3] = HOME + ROW;
	keep();
	protect(at, how);
	out[0] = &area;
	held &= pop(&out[0]) == EDDY_SECTION_ABORT && out[0] == &area;
	held &= pop_at(&out[0]) == EDDY_SECTION_ABORT && out[0] == &area;
	held &= push(object(1)) == EDDY_SECTION_ABORT;
	held &= refill(in, 2) == EDDY_SECTION_ABORT;
	held &= flush(out, &got) == EDDY_SECTION_ABORT && got == 64;
	for (unsigned k = 0; k < 3; k++) {
		(void)call(allocs[k].f, 40);
		held &= slow == allocs[k].slow && slow_size == 40;
	}
	call_free(eddy_free, BASE + 3 * 4096);
	held &= slow == FREE && slow_pointer == (void *)(BASE + 3 * 4096ul);
	held &= n_aborts == 9;
	protect(at, PROT_READ | PROT_WRITE);
	/* What lies above cur is nobody's. */
	for (unsigned i = n; i < n + 64; i++)
		*cell(1, i) = 0xdead;
	return held && unchanged();
}

static void
test_aborts(void)
{
	struct sigaction act = {
	    .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	bool held;

	if (sigaction(SIGSEGV, &act, NULL) != 0)
		tap_bail("sigaction");
	tap_ok(aborts(STORAGE, PROT_NONE, 20),
	    "an abort in the middle leaves the row, says so or goes to C");
	tap_ok(aborts(0, PROT_READ, 20),
	    "an abort before the commit leaves the row, says so or goes to C");
	lay(1, 3);
	keep();
	n_aborts = 0;
	protect(0, PROT_READ);
	held = limits(1, 5, CLOSED) == EDDY_SECTION_ABORT && n_aborts == 1;
	protect(0, PROT_READ | PROT_WRITE);
	tap_ok(held && unchanged(), "limits: an abort leaves the row");
	row_at(1, 0)->beg = 1;
	keep();
	protect(0, PROT_READ);
	held = add(1) == EDDY_SECTION_ABORT && n_aborts == 2;
	protect(0, PROT_READ | PROT_WRITE);
	tap_ok(held && unchanged(), "add: an abort leaves the counter");
}

static void
test_releases(void)
{
	static const char *const good[] = {"4.18.0", "5.10.0-8-arm64", "6.1.0",
	    "6.18.44", "6.2", "7.1.0-rc1", "7.10.3", "8.0.1", "61.9.0"};
	static const char *const bad[] = {"6.19.0", "6.19", "6.19.12-1-vendor",
	    "6.20.1", "7.0.0", "7.0.0-rc7", "7.0.3", "2.6.79", "", "6", "6.",
	    "v6.1", "6-19"};
	bool held = true;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		held &= !eddy_arch_release_broken(good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		held &= eddy_arch_release_broken(bad[i]);
	tap_ok(held, "kernels of aarch64 that do not abort are known");
#	ifdef __x86_64__
	tap_ok(!eddy_arch_rseq_broken(), "x86-64 has no such kernel");
#	endif
}

int
main(void)
{
	size_t size = (size_t)N_SLOTS * EDDY_SLOT_SIZE;

	tap.pid = getpid();
	tap_guard(60);
	memory = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		tap_bail("mmap");
	before = memory + size;
	slots = memory + (size_t)2 * EDDY_SLOT_SIZE;

	test_pop();
	test_push();
	test_refill();
	test_flush();
	test_limits();
	test_add();
	test_closed();
	for (unsigned k = 0; k < 3; k++) {
		test_alloc(k);
		test_counted(k);
	}
	test_free();
	test_names();
	test_descriptors();
	test_aborts();
	test_releases();
	return tap_end();
}

#else

int
main(void)
{
	tap_skip_all("no sections on this machine: lib/arch/generic");
}

#endif
