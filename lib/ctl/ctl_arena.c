/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_arena.c - arena.<i>.*, arenas.*: index i is arena number i + 1. */
#include <errno.h>
#include <string.h>

#include "lib/base/chars.h"
#include "lib/ctl/arena_words.h"
#include "lib/ctl/ctl_gen_names.h"
#include "lib/ctl/snapshot.h"
#include "lib/ctl/stats.h"
#include "lib/data/board.h"
#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/gather.h"
#include "lib/heap/hooks.h"
#include "lib/heap/own.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/reset.h"
#include "lib/heap/segment.h"
#include "lib/heap/sizes.h"
#include "lib/os/os.h"
#include "lib/prof/sample.h"

uint32_t
eddy_ctl_n_arenas(struct eddy_heap *h)
{
	return eddy_stats_n_arenas(h);
}

struct eddy_arena *
eddy_ctl_arena(struct eddy_heap *h, size_t i)
{
	/* Programs take it for granted, even if nothing was allocated yet. */
	if (i == 0)
		return eddy_arena_of_home(h, 0);
	return i < eddy_ctl_n_arenas(h) ? eddy_arena_there(h, (uint32_t)i + 1)
					: NULL;
}

bool
eddy_ctl_index_arena(struct eddy_heap *h, size_t i)
{
	return i <= eddy_ctl_n_arenas(h) || i == EDDY_CTL_ALL ||
	       i == EDDY_CTL_DESTROYED;
}

/* ------------------------------------------------------------------ */
/* Memory that goes back */

int
eddy_ctl_arena_initialized(struct eddy_ctl *c)
{
	if (c->i == EDDY_CTL_DESTROYED)
		c->out = eddy_snapshot_any_ended();
	else
		c->out = eddy_ctl_is_all(c->h, c->i) ||
			 eddy_ctl_arena(c->h, c->i) != NULL;
	return 0;
}

int
eddy_ctl_arena_purge(struct eddy_ctl *c)
{
	struct eddy_arena *a = eddy_ctl_arena(c->h, c->i);

	if (a != NULL || eddy_ctl_is_all(c->h, c->i))
		(void)eddy_gather_purge(c->h, a, 0);
	return 0;
}

/* The steps of all arenas: those that have nothing due do nothing. */
int
eddy_ctl_arena_decay(struct eddy_ctl *c)
{
	if (c->i != EDDY_CTL_DESTROYED)
		(void)eddy_reclaim_step(
		    c->h, 0, 1, eddy_os_milliseconds(), SIZE_MAX);
	return 0;
}

static int64_t
dirty_ms(struct eddy_arena *a)
{
	/* relaxed: an option. */
	return eddy_load_relaxed(&a->reclaim.dirty_decay_ms);
}

static int64_t
muzzy_ms(struct eddy_arena *a)
{
	/* relaxed: an option. */
	return eddy_load_relaxed(&a->reclaim.muzzy_decay_ms);
}

int
eddy_ctl_arena_dirty_decay_ms(struct eddy_ctl *c)
{
	struct eddy_arena *a = eddy_ctl_arena(c->h, c->i);

	if (a == NULL || (c->writes && (int64_t)c->in < -1))
		return EFAULT;
	c->out = (uint64_t)dirty_ms(a);
	if (c->writes)
		eddy_reclaim_decay(c->h, a, (int64_t)c->in, muzzy_ms(a));
	return 0;
}

int
eddy_ctl_arena_muzzy_decay_ms(struct eddy_ctl *c)
{
	struct eddy_arena *a = eddy_ctl_arena(c->h, c->i);

	if (a == NULL || (c->writes && (int64_t)c->in < -1))
		return EFAULT;
	c->out = (uint64_t)muzzy_ms(a);
	if (c->writes)
		eddy_reclaim_decay(c->h, a, dirty_ms(a), (int64_t)c->in);
	return 0;
}

/*
 * For arenas that are made from now on: what was written, plus 2; 0: as the
 * options.
 * W, R: any CPU.  O: none: a setting.
 */
static _Atomic uint64_t new_dirty;
static _Atomic uint64_t new_muzzy;

static int64_t
new_ms(_Atomic uint64_t *setting, int64_t option)
{
	/* relaxed: a setting. */
	uint64_t v = eddy_load_relaxed(setting);

	return v != 0 ? (int64_t)(v - 2) : option;
}

static int
new_decay(struct eddy_ctl *c, _Atomic uint64_t *setting, int64_t option)
{
	if (c->writes && (int64_t)c->in < -1)
		return EFAULT;
	c->out = (uint64_t)new_ms(setting, option);
	if (c->writes) /* relaxed: a setting. */
		eddy_store_relaxed(setting, c->in + 2);
	return 0;
}

int
eddy_ctl_arenas_dirty_decay_ms(struct eddy_ctl *c)
{
	return new_decay(c, &new_dirty, c->h->opts.dirty_decay_ms);
}

int
eddy_ctl_arenas_muzzy_decay_ms(struct eddy_ctl *c)
{
	return new_decay(c, &new_muzzy, c->h->opts.muzzy_decay_ms);
}

int
eddy_ctl_arena_dss(struct eddy_ctl *c)
{
	static const char disabled[] = "disabled";
	const char *s = (const char *)(uintptr_t)c->in;

	if (!eddy_ctl_is_all(c->h, c->i) && c->i != EDDY_CTL_DESTROYED &&
	    eddy_ctl_arena(c->h, c->i) == NULL)
		return EFAULT;
	c->out = eddy_ctl_pointer(disabled);
	if (!c->writes || strcmp(s, disabled) == 0)
		return 0;
	return strcmp(s, "primary") == 0 || strcmp(s, "secondary") == 0
		   ? EFAULT
		   : EINVAL;
}

int
eddy_ctl_arena_extent_hooks(struct eddy_ctl *c)
{
	struct eddy_arena *a = eddy_ctl_arena(c->h, c->i);
	extent_hooks_t *hooks;

	/* A home's that nobody has used is made now. */
	if (a == NULL && c->i < c->h->n_homes)
		a = eddy_arena_of_home(c->h, (uint32_t)c->i);
	/* A file is no memory of hooks. */
	if (a == NULL || a->backing.kind != EDDY_PRIVATE)
		return EFAULT;
	c->out = eddy_ctl_pointer(eddy_hooks_get(a));
	if (!c->writes)
		return 0;
	/* Of a pool the library alone says what stays mapped.  relaxed: since
	 * it has its number. */
	if (eddy_load_relaxed(&a->pooled))
		return EFAULT;
	hooks = (extent_hooks_t *)(uintptr_t)c->in;
	c->out = eddy_ctl_pointer(eddy_hooks_set(a, hooks));
	return 0;
}

/* ------------------------------------------------------------------ */
/* What is kept for an arena and changes nothing */

#define NAME_WORDS 4
#define NAME_SLOTS 8

struct extra {
	/* W, R: any CPU.  O: BOARD-R2 -> BOARD-A2. */
	struct eddy_board name_board;
	_Atomic uint64_t name[NAME_SLOTS][NAME_WORDS];
	/* Written, plus 1; 0: never.  W, R: any CPU.  O: none: a setting. */
	_Atomic uint64_t retain_grow_limit;
	_Atomic uint64_t oversize_threshold;
};

#define EXTRAS_SIZE \
	eddy_align_up((EDDY_MAX_ARENAS + 1) * sizeof(struct extra), 65536)

/*
 * By index; mapped with the first write, each page accessible with the first
 * write to it, readable before.
 * W: who wants the first.  R: any CPU.  O: EXTRA-R1 -> EXTRA-A1.
 */
static _Atomic(struct extra *) extras;

static struct extra *
extra_of(size_t i)
{
	/* EXTRA-A1: pairs with EXTRA-R1. */
	struct extra *e = eddy_load_acquire(&extras);

	return e != NULL ? e + i : NULL;
}

/* The same, to be written.  NULL: no memory. */
static struct extra *
open_extra(size_t i)
{
	struct extra *e = extra_of(0);
	uintptr_t from;
	uintptr_t to;

	if (e == NULL) {
		struct extra *fresh = eddy_os_reserve(EXTRAS_SIZE);

		if (fresh == NULL)
			return NULL;
		/* EXTRA-R1: it is readable.  EXTRA-A1: or another's. */
		if (eddy_os_commit_readonly(fresh, EXTRAS_SIZE) == 0 &&
		    eddy_cas_acq_rel(&extras, &e, fresh))
			e = fresh;
		else
			eddy_os_unmap(fresh, EXTRAS_SIZE);
		if (e == NULL)
			return NULL;
	}
	from = eddy_align_down((uintptr_t)(e + i), eddy_os_page_size());
	to = eddy_align_up((uintptr_t)(e + i + 1), eddy_os_page_size());
	return eddy_os_commit((void *)from, to - from) == 0 ? e + i : NULL;
}

/* Reads what is kept, or what holds before; then keeps what is written. */
static int
keep(struct eddy_ctl *c, size_t offset, uint64_t before)
{
	struct extra *e = extra_of(c->i);
	uint64_t v = 0;

	if (eddy_ctl_arena(c->h, c->i) == NULL)
		return EFAULT;
	if (e != NULL) /* relaxed: a setting. */
		v = eddy_load_relaxed((_Atomic uint64_t *)((char *)e + offset));
	c->out = v != 0 ? v - 1 : before;
	if (!c->writes)
		return 0;
	e = open_extra(c->i);
	if (e == NULL)
		return EAGAIN;
	if (c->in == UINT64_MAX)
		c->in--;
	/* relaxed: a setting. */
	eddy_store_relaxed((_Atomic uint64_t *)((char *)e + offset), c->in + 1);
	return 0;
}

int
eddy_ctl_arena_retain_grow_limit(struct eddy_ctl *c)
{
	if (c->writes) {
		unsigned i;

		if (c->in < EDDY_PAGE)
			return EFAULT;
		if (c->in > EDDY_SIZE_LIMIT)
			c->in = EDDY_SIZE_LIMIT;
		i = eddy_sizes_extent_of(c->in / EDDY_PAGE);
		c->in = i < 3 ? (i + 1) * EDDY_PAGE : eddy_sizes_large(i - 3);
	}
	return keep(
	    c, offsetof(struct extra, retain_grow_limit), EDDY_SIZE_LIMIT);
}

int
eddy_ctl_arena_oversize_threshold(struct eddy_ctl *c)
{
	return keep(c, offsetof(struct extra, oversize_threshold), 0);
}

/* ------------------------------------------------------------------ */
/* Names of arenas */

#define NAME_MAX_BYTES (NAME_WORDS * sizeof(uint64_t))

/* "auto_0" */
static void
default_name(struct eddy_ctl *c, char *ret)
{
	struct eddy_arena *a = eddy_arena_at(c->h, (uint32_t)c->i + 1);
	const char *s = c->i < c->h->n_homes + c->h->n_samples ||
				(a != NULL && a->home != EDDY_HOME_NONE)
			    ? "auto_"
			    : "manual_";
	char digits[EDDY_DIGITS_MAX + 1];
	char *end = digits + EDDY_DIGITS_MAX;

	*end = '\0';
	(void)stpcpy(stpcpy(ret, s), eddy_digits(end, c->i));
}

static void
read_name(struct eddy_ctl *c, char *ret)
{
	struct extra *e = extra_of(c->i);
	uint64_t words[NAME_WORDS];
	uint64_t shown;

	do {
		shown = e != NULL ? eddy_board_look(&e->name_board) : 0;
		if (shown == 0) {
			default_name(c, ret);
			return;
		}
		for (unsigned i = 0; i < NAME_WORDS; i++)
			words[i] = eddy_board_read(
			    &e->name[eddy_board_slot(shown)][i]);
	} while (!eddy_board_same(&e->name_board, shown));
	memcpy(ret, words, sizeof(words));
}

static int
write_name(struct eddy_ctl *c, const char *name)
{
	uint64_t words[NAME_WORDS] = {0};
	struct eddy_board_turn turn;
	struct extra *e;

	/* What is longer is cut. */
	memcpy(words, name, strnlen(name, NAME_MAX_BYTES - 1));
	e = open_extra(c->i);
	if (e == NULL)
		return EAGAIN;
	turn = eddy_board_take(&e->name_board, NAME_SLOTS);
	if (turn.slot < 0)
		return EAGAIN;
	for (unsigned i = 0; i < NAME_WORDS; i++)
		eddy_board_write(&e->name[turn.slot][i], words[i]);
	eddy_board_show(&e->name_board, turn);
	return 0;
}

int
eddy_ctl_arena_name(struct eddy_ctl *c)
{
	char name[NAME_MAX_BYTES];
	const char *in;
	char *out;

	if (eddy_ctl_is_all(c->h, c->i) || c->i == EDDY_CTL_DESTROYED)
		return EINVAL;
	if (eddy_ctl_arena(c->h, c->i) == NULL)
		return EFAULT;
	if (c->newp != NULL && c->newlen != sizeof(in))
		return EINVAL;
	if (c->oldp != NULL && c->oldlenp != NULL) {
		if (*c->oldlenp != sizeof(out))
			return EINVAL;
		memcpy(&out, c->oldp, sizeof(out));
		read_name(c, name);
		memcpy(out, name, sizeof(name));
	}
	if (c->newp == NULL)
		return 0;
	memcpy(&in, c->newp, sizeof(in));
	return in != NULL ? write_name(c, in) : EINVAL;
}

/* ------------------------------------------------------------------ */
/* The end of an arena */

/* What was kept for an index is its next arena's no more. */
static void
forget(struct eddy_ctl *c)
{
	struct extra *e = extra_of(c->i);
	char name[NAME_MAX_BYTES];

	/* relaxed, all: settings; else the page may not be writable. */
	if (e == NULL)
		return;
	if (eddy_load_relaxed(&e->retain_grow_limit) != 0)
		eddy_store_relaxed(&e->retain_grow_limit, 0);
	if (eddy_load_relaxed(&e->oversize_threshold) != 0)
		eddy_store_relaxed(&e->oversize_threshold, 0);
	if (eddy_board_look(&e->name_board) == 0)
		return;
	default_name(c, name);
	/* The old one stays where there is no room to write: 7 are at it. */
	if (write_name(c, name) != 0)
		return;
}

void
eddy_ctl_arena_ended(struct eddy_heap *h, struct eddy_arena *a)
{
	struct eddy_ctl c = {.h = h, .i = a->number - 1};

	eddy_snapshot_ended(a);
	forget(&c);
}

void
eddy_ctl_call_arena(struct eddy_heap *h, struct eddy_arena *a, const char *name)
{
	struct eddy_ctl c = {.h = h, .i = a->number - 1};

	/* It keeps its number where there is no room for a name. */
	if (write_name(&c, name) != 0)
		return;
}

int
eddy_ctl_arena_reset(struct eddy_ctl *c)
{
	struct eddy_arena *a = eddy_ctl_arena(c->h, c->i);

	/* relaxed: as eddy_reset has it. */
	if (a == NULL || a->home != EDDY_HOME_NONE ||
	    eddy_load_relaxed(&a->n_regions) != 0)
		return EFAULT;
	eddy_prof_drop_arena(c->h, a);
	return -eddy_reset(c->h, a);
}

int
eddy_ctl_arena_destroy(struct eddy_ctl *c)
{
	struct eddy_arena *a = eddy_ctl_arena(c->h, c->i);
	int err;

	if (a == NULL || a->home != EDDY_HOME_NONE)
		return EFAULT;
	/* relaxed: as eddy_reset has it. */
	if (eddy_own_n_bound(a) == 0 && eddy_load_relaxed(&a->n_regions) == 0)
		eddy_prof_drop_arena(c->h, a);
	err = -eddy_reset_destroy(c->h, a);
	if (err != 0)
		return err;
	eddy_ctl_arena_ended(c->h, a);
	return 0;
}

/* ------------------------------------------------------------------ */
/* arenas.* */

int
eddy_ctl_arenas_narenas(struct eddy_ctl *c)
{
	c->out = eddy_ctl_n_arenas(c->h);
	return 0;
}

/* Whether the caller has room for an unsigned, and knows it. */
static bool
takes_number(struct eddy_ctl *c)
{
	if (c->oldp != NULL && c->oldlenp != NULL &&
	    *c->oldlenp == sizeof(unsigned))
		return true;
	if (c->oldlenp != NULL)
		*c->oldlenp = 0;
	return false;
}

static uint32_t
node_here(struct eddy_heap *h)
{
	return (uint32_t)h->places.node_of_home[eddy_cache_home(h)];
}

static void
set_times(struct eddy_ctl *c, struct eddy_arena *a)
{
	/* Muzzy pages of a file are as far as it goes there. */
	if (a->backing.kind == EDDY_PRIVATE)
		eddy_reclaim_decay(c->h, a,
		    new_ms(&new_dirty, c->h->opts.dirty_decay_ms),
		    new_ms(&new_muzzy, c->h->opts.muzzy_decay_ms));
}

/* reserve: the arena has some memory of its hooks from the start. */
static int
create(struct eddy_ctl *c, extent_hooks_t *hooks, bool reserve)
{
	struct eddy_arena *a;
	uint32_t number;
	unsigned index;
	int err = hooks == NULL
		      ? eddy_arena_add(c->h, node_here(c->h), &number)
		      : eddy_arena_add_bare(c->h, node_here(c->h), &number);

	if (err != 0)
		return EAGAIN;
	a = eddy_arena_at(c->h, number);
	set_times(c, a);
	(void)eddy_hooks_set(a, hooks);
	if (reserve && eddy_hooks_get(a) != &eddy_hooks_default &&
	    !eddy_chunk_reserve(c->h, a)) {
		/* It holds nothing, so that it ends at once. */
		(void)eddy_hooks_set(a, NULL);
		/* relaxed: its number is nobody's yet. */
		eddy_store_relaxed(&a->stillborn, true);
		/* Nobody else knows it; if it fails all the same it is lost. */
		err = eddy_reset_destroy(c->h, a);
		(void)err;
		return EAGAIN;
	}
	index = number - 1;
	return eddy_ctl_give(c, &index, sizeof(index));
}

int
eddy_ctl_arenas_create(struct eddy_ctl *c)
{
	extent_hooks_t *hooks = NULL;

	if (!takes_number(c) || (c->newp != NULL && c->newlen != sizeof(hooks)))
		return EINVAL;
	if (c->newp != NULL)
		memcpy(&hooks, c->newp, sizeof(hooks));
	return create(c, hooks, true);
}

int
eddy_ctl_arenas_create_ext(struct eddy_ctl *c)
{
	struct {
		extent_hooks_t *hooks;
		bool for_metadata;
	} config = {NULL, true};

	if (!takes_number(c) ||
	    (c->newp != NULL && c->newlen != sizeof(config)))
		return EINVAL;
	if (c->newp != NULL)
		memcpy(&config, c->newp, sizeof(config));
	return create(c, config.hooks, config.for_metadata);
}

int
eddy_ctl_eddy_arena_create(struct eddy_ctl *c)
{
	struct eddy_arena_plan plan = {.node = node_here(c->h)};
	const char *words = NULL;
	uint32_t number;
	unsigned index;
	int err;

	if (!takes_number(c) || (c->newp != NULL && c->newlen != sizeof(words)))
		return EINVAL;
	if (c->newp != NULL)
		memcpy(&words, c->newp, sizeof(words));
	err = eddy_arena_words(c->h, words != NULL ? words : "", &plan);
	if (err == 0)
		err = eddy_arena_make(c->h, &plan, &number);
	if (err != 0)
		return -err;
	set_times(c, eddy_arena_at(c->h, number));
	index = number - 1;
	return eddy_ctl_give(c, &index, sizeof(index));
}

bool
eddy_ctl_index_arena_in_use(struct eddy_heap *h, size_t i)
{
	return eddy_ctl_arena(h, i) != NULL;
}

int
eddy_ctl_arena_pactivep(struct eddy_ctl *c)
{
	c->out = eddy_ctl_pointer(&eddy_ctl_arena(c->h, c->i)->reclaim.active);
	return 0;
}

int
eddy_ctl_arenas_lookup(struct eddy_ctl *c)
{
	struct eddy_arena *a;
	const void *p;
	unsigned index;

	if (c->newp == NULL || c->newlen != sizeof(p))
		return EINVAL;
	memcpy(&p, c->newp, sizeof(p));
	a = eddy_arena_of(c->h, p);
	if (a == NULL)
		return EINVAL;
	index = a->number - 1;
	/* A sample counts as one of the home's own. */
	if (a->home == EDDY_HOME_SAMPLES)
		index -= c->h->n_homes;
	return eddy_ctl_give(c, &index, sizeof(index));
}

/* ------------------------------------------------------------------ */
/* Sizes */

bool
eddy_ctl_index_bin(struct eddy_heap *h, size_t i)
{
	(void)h;
	return i < EDDY_N_SMALL;
}

bool
eddy_ctl_index_lextent(struct eddy_heap *h, size_t i)
{
	(void)h;
	return i < EDDY_N_LARGE;
}

bool
eddy_ctl_index_extent(struct eddy_heap *h, size_t i)
{
	(void)h;
	return i < EDDY_N_EXTENTS;
}

/* Of an allocator that is not here. */
bool
eddy_ctl_index_hpa_slab(struct eddy_heap *h, size_t i)
{
	(void)h;
	return i < 64;
}

int
eddy_ctl_bin_size(struct eddy_ctl *c)
{
	c->out = eddy_classes[c->i + 1].size;
	return 0;
}

int
eddy_ctl_bin_nregs(struct eddy_ctl *c)
{
	c->out = eddy_classes[c->i + 1].n_objects;
	return 0;
}

int
eddy_ctl_bin_slab_size(struct eddy_ctl *c)
{
	c->out = eddy_classes[c->i + 1].pages * EDDY_PAGE;
	return 0;
}

int
eddy_ctl_lextent_size(struct eddy_ctl *c)
{
	c->out = eddy_sizes_large((unsigned)c->i);
	return 0;
}

int
eddy_ctl_arenas_nhbins(struct eddy_ctl *c)
{
	size_t max = c->h->opts.tcache_max;

	c->out = 0;
	while (c->out < EDDY_N_SMALL && eddy_classes[c->out + 1].size <= max)
		c->out++;
	for (unsigned i = 0; max >= eddy_sizes_large(i); i++)
		c->out++;
	return 0;
}
