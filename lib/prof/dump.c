/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/prof/dump.h"

#include <errno.h>
#include <string.h>

#include "lib/base/chars.h"
#include "lib/os/os.h"
#include "lib/prof/ground.h"
#include "lib/prof/sample.h"
#include "lib/prof/stacks.h"
#include "lib/prof/weights.h"

typedef void (*dump_hook)(const char *);

#define BUFFER   ((size_t)64 << 10)
#define MAX_PATH 512

/* What names begin with.  W: the control plane.  R: any CPU.
 * O: PREFIX-R1 -> PREFIX-A1. */
static _Atomic(const char *) prefix;
/* Names given out, of all kinds and of each.  W, R: any CPU.  O: none. */
static _Atomic uint64_t n_names;
static _Atomic uint64_t n_asked;
static _Atomic uint64_t n_interval;
static _Atomic uint64_t n_growth;

/* ------------------------------------------------------------------ */
/* Text */

struct file {
	int fd;
	int error;
	size_t n;
	char *buf; /* BUFFER */
};

static void
flush(struct file *f)
{
	for (size_t done = 0; done < f->n && f->error == 0;) {
		ssize_t r = eddy_os_write(f->fd, f->buf + done, f->n - done);

		if (r >= 0)
			done += (size_t)r;
		else if (r != -EINTR)
			f->error = (int)r;
	}
	f->n = 0;
}

static void
put(struct file *f, const char *s)
{
	for (; *s != '\0'; s++) {
		if (f->n == BUFFER)
			flush(f);
		f->buf[f->n++] = *s;
	}
}

static char *
digits(char buf[EDDY_DIGITS_MAX + 1], uint64_t v, unsigned base)
{
	char *end = buf + EDDY_DIGITS_MAX;

	*end = '\0';
	return eddy_digits_of(end, v, base);
}

static void
put_number(struct file *f, uint64_t v)
{
	char buf[EDDY_DIGITS_MAX + 1];

	put(f, digits(buf, v, 10));
}

/* "3: 48 [0: 0]" */
static void
put_counts(struct file *f, const uint64_t v[4])
{
	put_number(f, v[0]);
	put(f, ": ");
	put_number(f, v[1]);
	put(f, " [");
	put_number(f, v[2]);
	put(f, ": ");
	put_number(f, v[3]);
	put(f, "]");
}

/* ------------------------------------------------------------------ */
/* Sums */

/* Live objects and bytes; those that ever were. */
struct totals {
	uint64_t objects;
	uint64_t bytes;
	uint64_t ever_objects;
	uint64_t ever_bytes;
};

struct dump {
	struct file f;
	struct eddy_heap *h;
	uint32_t era;
	bool accum;
	bool gperftools;
	unsigned n_threads;
	struct totals *of_thread; /* by index */
};

static void
add_count(struct totals *t, struct eddy_count *c)
{
	/* relaxed, all: sums. */
	t->objects += eddy_load_relaxed(&c->now.objects);
	t->bytes += eddy_load_relaxed(&c->now.bytes);
	t->ever_objects += eddy_load_relaxed(&c->ever.objects);
	t->ever_bytes += eddy_load_relaxed(&c->ever.bytes);
}

static struct eddy_count *
first_count(struct eddy_stack *s)
{
	/* STACK-A1: pairs with STACK-R1. */
	return eddy_load_acquire(&s->counts);
}

static void
sum_stack(struct eddy_stack *s, uint32_t era, struct totals *ret)
{
	*ret = (struct totals){0};
	for (struct eddy_count *c = first_count(s); c != NULL; c = c->next)
		if (eddy_count_era(c) == era)
			add_count(ret, c);
}

/* As readers want it; false: nothing to tell. */
static bool
to_reader(const struct dump *d, const struct totals *t, uint64_t hash,
    uint64_t ret[4])
{
	unsigned lg = eddy_prof_lg(d->era);

	ret[2] = ret[3] = 0;
	eddy_weights_to_reader(
	    lg, t->objects, t->bytes, hash, &ret[0], &ret[1]);
	if (d->accum)
		eddy_weights_to_reader(
		    lg, t->ever_objects, t->ever_bytes, hash, &ret[2], &ret[3]);
	return ret[0] != 0 || ret[2] != 0;
}

/* What a thread has of a stack must not be rounded as others are. */
static uint64_t
hash_of(const struct eddy_stack *s, const struct eddy_prof_thread *t)
{
	return (s->hash ^ (t->index + 1)) * 0x9e3779b97f4a7c15;
}

/* The sum of what the lines of all stacks say. */
static void
sum_all(struct dump *d, uint64_t ret[4])
{
	size_t place = 0;
	struct eddy_stack *s = NULL;

	memset(ret, 0, 4 * sizeof(*ret));
	while ((s = eddy_stack_next(s, &place)) != NULL) {
		struct totals t;
		uint64_t v[4];

		sum_stack(s, d->era, &t);
		if (to_reader(d, &t, s->hash, v))
			for (unsigned i = 0; i < 4; i++)
				ret[i] += v[i];
	}
}

void
eddy_dump_count(struct eddy_dump_leaks *ret)
{
	/* relaxed: a setting. */
	uint32_t era = eddy_load_relaxed(&eddy_prof.era);
	size_t place = 0;
	struct eddy_stack *s = NULL;
	uint64_t objects = 0;

	*ret = (struct eddy_dump_leaks){0};
	while ((s = eddy_stack_next(s, &place)) != NULL) {
		struct totals t;

		sum_stack(s, era, &t);
		if (t.objects == 0 || (int64_t)t.objects < 0)
			continue;
		objects += t.objects;
		ret->bytes += t.bytes;
		ret->stacks++;
	}
	ret->objects = (objects + 32768) >> EDDY_LG_OBJECT;
}

/* ------------------------------------------------------------------ */
/* The threaded form */

static void
put_thread_counts(
    struct dump *d, const struct eddy_prof_thread *t, const uint64_t v[4])
{
	put(&d->f, "  t");
	/* relaxed: a name. */
	put_number(&d->f, eddy_load_relaxed(&t->uid));
	put(&d->f, ": ");
	put_counts(&d->f, v);
}

static void
put_thread_name(struct dump *d, const struct eddy_prof_thread *t)
{
	union {
		char text[EDDY_THREAD_NAME];
		uint64_t word[EDDY_THREAD_NAME / sizeof(uint64_t)];
	} u;

	for (size_t i = 0; i < sizeof(u.word) / sizeof(u.word[0]); i++) {
		/* relaxed: a name. */
		u.word[i] = eddy_load_relaxed(&t->name[i]);
	}
	u.text[sizeof(u.text) - 1] = '\0';
	if (u.text[0] != '\0') {
		put(&d->f, " ");
		put(&d->f, u.text);
	}
	put(&d->f, "\n");
}

/* Sums of threads over all stacks: what their lines will say. */
static void
sum_threads(struct dump *d)
{
	size_t place = 0;
	struct eddy_stack *s = NULL;

	while ((s = eddy_stack_next(s, &place)) != NULL)
		for (struct eddy_count *c = first_count(s); c != NULL;
		     c = c->next) {
			struct totals t = {0};
			struct totals *sum;
			uint64_t v[4];

			if (eddy_count_era(c) != d->era ||
			    c->thread->index >= d->n_threads)
				continue;
			add_count(&t, c);
			if (!to_reader(d, &t, hash_of(s, c->thread), v))
				continue;
			sum = &d->of_thread[c->thread->index];
			sum->objects += v[0];
			sum->bytes += v[1];
			sum->ever_objects += v[2];
			sum->ever_bytes += v[3];
		}
}

static void
put_threads(struct dump *d)
{
	sum_threads(d);
	for (struct eddy_prof_thread *t = eddy_stack_threads(); t != NULL;
	     t = t->next) {
		const struct totals *sum;

		if (t->index >= d->n_threads)
			continue;
		sum = &d->of_thread[t->index];
		if (sum->objects == 0 && sum->ever_objects == 0)
			continue;
		put_thread_counts(d, t,
		    (uint64_t[4]){sum->objects, sum->bytes, sum->ever_objects,
			sum->ever_bytes});
		put_thread_name(d, t);
	}
}

static void
put_frames(struct dump *d, const struct eddy_stack *s)
{
	char buf[EDDY_DIGITS_MAX + 1];

	for (unsigned i = 0; i < s->n; i++) {
		put(&d->f, " 0x");
		put(&d->f, digits(buf, s->frame[i], 16));
	}
	put(&d->f, "\n");
}

static void
put_stack_threaded(struct dump *d, struct eddy_stack *s, const uint64_t sum[4])
{
	put(&d->f, "@");
	put_frames(d, s);
	put(&d->f, "  t*: ");
	put_counts(&d->f, sum);
	put(&d->f, "\n");
	for (struct eddy_count *c = first_count(s); c != NULL; c = c->next) {
		struct totals t = {0};
		uint64_t v[4];

		if (eddy_count_era(c) != d->era)
			continue;
		add_count(&t, c);
		if (!to_reader(d, &t, hash_of(s, c->thread), v))
			continue;
		put_thread_counts(d, c->thread, v);
		put(&d->f, "\n");
	}
}

/* ------------------------------------------------------------------ */

/* What was ever allocated stands for itself only if it was counted. */
static void
put_counts_gperftools(struct dump *d, const uint64_t v[4])
{
	uint64_t same[4] = {v[0], v[1], v[0], v[1]};

	put_counts(&d->f, d->accum ? v : same);
	put(&d->f, " @");
}

static void
put_head(struct dump *d)
{
	uint64_t sum[4];

	sum_all(d, sum);
	if (d->gperftools) {
		put(&d->f, "heap profile: ");
		put_counts_gperftools(d, sum);
		put(&d->f, " heap_v2/");
		put_number(&d->f, (uint64_t)1 << eddy_prof_lg(d->era));
		put(&d->f, "\n");
		return;
	}
	put(&d->f, "heap_v2/");
	put_number(&d->f, (uint64_t)1 << eddy_prof_lg(d->era));
	put(&d->f, "\n  t*: ");
	put_counts(&d->f, sum);
	put(&d->f, "\n");
	put_threads(d);
}

static void
put_stacks(struct dump *d)
{
	size_t place = 0;
	struct eddy_stack *s = NULL;

	while ((s = eddy_stack_next(s, &place)) != NULL) {
		struct totals t;
		uint64_t v[4];

		sum_stack(s, d->era, &t);
		if (!to_reader(d, &t, s->hash, v))
			continue;
		if (d->gperftools) {
			put_counts_gperftools(d, v);
			put_frames(d, s);
		} else {
			put_stack_threaded(d, s, v);
		}
	}
}

static void
put_maps(struct dump *d)
{
	int fd = eddy_os_open("/proc/self/maps");
	ssize_t r;

	put(&d->f, "\nMAPPED_LIBRARIES:\n");
	if (fd < 0)
		return;
	flush(&d->f);
	do {
		r = eddy_os_read(fd, d->f.buf, BUFFER);
		d->f.n = r > 0 ? (size_t)r : 0;
		flush(&d->f);
	} while (r > 0 || r == -EINTR);
	(void)eddy_os_close(fd);
}

static int
dump_to(struct eddy_heap *h, int fd)
{
	struct dump d = {.f.fd = fd,
	    .h = h,
	    .accum = h->opts.prof_accum,
	    .n_threads = eddy_stack_n_threads()};
	size_t size =
	    eddy_align_up(BUFFER + d.n_threads * sizeof(struct totals), BUFFER);

	/* relaxed, both: settings. */
	d.era = eddy_load_relaxed(&eddy_prof.era);
	d.gperftools = eddy_load_relaxed(&eddy_prof.gperftools) != 0;
	d.f.buf = eddy_ground_map(size);
	if (d.f.buf == NULL)
		return -ENOMEM;
	d.of_thread = (struct totals *)(void *)(d.f.buf + BUFFER);
	put_head(&d);
	put_stacks(&d);
	put_maps(&d);
	flush(&d.f);
	eddy_ground_unmap(d.f.buf, size);
	return d.f.error;
}

/* ------------------------------------------------------------------ */
/* Names */

struct path {
	size_t n;
	char text[MAX_PATH];
};

static void
append(struct path *p, const char *s)
{
	while (*s != '\0' && p->n < MAX_PATH - 1)
		p->text[p->n++] = *s++;
	p->text[p->n] = '\0';
}

static void
append_number(struct path *p, uint64_t v)
{
	char buf[EDDY_DIGITS_MAX + 1];

	append(p, digits(buf, v, 10));
}

/* Of the link "pid:[4026531836]", the number. */
static void
append_namespace(struct path *p)
{
	char link[64];
	ssize_t n = eddy_os_readlink("/proc/self/ns/pid", link, sizeof(link));
	uint64_t v = 0;

	for (ssize_t i = 0; i < n; i++)
		if (link[i] >= '0' && link[i] <= '9')
			v = v * 10 + (uint64_t)(link[i] - '0');
	append_number(p, v);
}

/* PREFIX.PID[.NAMESPACE].SEQ.KIND[SEQ].heap */
static bool
next_name(struct eddy_heap *h, enum eddy_dump_kind kind, struct path *p)
{
	/* PREFIX-A1: pairs with PREFIX-R1. */
	const char *begin = eddy_load_acquire(&prefix);
	_Atomic uint64_t *counter = kind == EDDY_DUMP_ASKED      ? &n_asked
				    : kind == EDDY_DUMP_INTERVAL ? &n_interval
				    : kind == EDDY_DUMP_GROWTH   ? &n_growth
								 : NULL;

	p->n = 0;
	if (begin == NULL || *begin == '\0')
		return false;
	append(p, begin);
	append(p, ".");
	append_number(p, (uint64_t)eddy_os_pid());
	if (h->opts.prof_pid_namespace) {
		append(p, ".");
		append_namespace(p);
	}
	append(p, ".");
	/* relaxed, both: a number of one's own. */
	append_number(p, eddy_add_relaxed(&n_names, 1));
	append(p, ".");
	append(p, (char[2]){(char)kind, '\0'});
	if (counter != NULL)
		append_number(p, eddy_add_relaxed(counter, 1));
	append(p, ".heap");
	return p->n < MAX_PATH - 1;
}

void
eddy_dump_begin(struct eddy_heap *h)
{
	/* PREFIX-R1: the option. */
	eddy_store_release(&prefix, h->opts.prof_prefix);
}

int
eddy_dump_set_prefix(const char *s)
{
	size_t n = strlen(s) + 1;
	char *copy;

	if (n > MAX_PATH)
		return -ENAMETOOLONG;
	/* Readers may have the old one, so it stays. */
	copy = eddy_ground_take(n);
	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, s, n);
	/* PREFIX-R1: the copy. */
	eddy_store_release(&prefix, copy);
	return 0;
}

/* ------------------------------------------------------------------ */

int
eddy_dump(struct eddy_heap *h, const char *path, enum eddy_dump_kind kind)
{
	struct path name;
	dump_hook hook;
	int err;
	int fd;

	if (path == NULL) {
		if (!next_name(h, kind, &name))
			return -EINVAL;
		path = name.text;
	}
	fd = eddy_os_create(path);
	if (fd < 0)
		return fd;
	err = dump_to(h, fd);
	if (eddy_os_close(fd) != 0 && err == 0)
		err = -EIO;
	/* TELL-A1: pairs with TELL-R1. */
	hook = (dump_hook)eddy_load_acquire(&eddy_prof.dump_hook);
	if (hook != NULL) {
		eddy_prof_enter_hook();
		hook(path);
		eddy_prof_leave_hook();
	}
	return err;
}

void
eddy_dump_of_itself(struct eddy_heap *h, enum eddy_dump_kind kind)
{
	static const char failed[] =
	    "<eddy>: no heap profile was written; prof_prefix says where to\n";
	int err = eddy_dump(h, NULL, kind);

	if (err != 0 && err != -EINVAL)
		(void)eddy_os_write(2, failed, sizeof(failed) - 1);
}
