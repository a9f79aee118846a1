/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * urcu_free.c - deferred frees, in the flavour that the build chooses.
 *
 * Each block carries a mark, which free() of this program wipes before it hands
 * the block on: a reader that sees another mark has seen a freed block.  Every
 * part runs in a process of its own.
 */
#include "probe.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#if defined(TEST_MEMB)
#	define FLAVOR "memb"
#	include <urcu/urcu-memb.h>
#	define rcu_flavor            urcu_memb_flavor
#	define rcu_read_lock         urcu_memb_read_lock
#	define rcu_read_unlock       urcu_memb_read_unlock
#	define rcu_quiescent_state   urcu_memb_quiescent_state
#	define rcu_thread_offline    urcu_memb_thread_offline
#	define rcu_thread_online     urcu_memb_thread_online
#	define rcu_register_thread   urcu_memb_register_thread
#	define rcu_unregister_thread urcu_memb_unregister_thread
#	define synchronize_rcu       urcu_memb_synchronize_rcu
#elif defined(TEST_MB)
#	define FLAVOR "mb"
#	define RCU_MB
#	include <urcu.h>
#elif defined(TEST_QSBR)
#	define FLAVOR "qsbr"
#	include <urcu-qsbr.h>
#else
#	define FLAVOR "bp"
#	include <urcu-bp.h>
#endif
#include <eddy/urcu.h>

#define MARK UINT64_C(0x6f626a6563743a29)
#define DEAD UINT64_C(0xdeadbeefdeadbeef)

enum { SHARED = 16, READERS = 2, WRITERS = 2, SWAPS = 20000 };
enum { WAITERS = 3, BARRIERS = 5000 };
enum { HELPERS = 4 };

struct thing {
	uint64_t mark;
	uint64_t n;
	uint64_t not_n;
};

static _Atomic uint64_t n_freed;
static _Atomic uint64_t n_handed;
static _Atomic unsigned n_bad;
static _Atomic(struct thing *) shared[SHARED];
static struct flag over;
/* Blocks of which each is waited for, and whether it came to free. */
static _Atomic(struct thing *) watched[WAITERS];
static _Atomic bool gone[WAITERS];

/* The thread forks at the n-th question for a size, or free; what fork
 * returned.  Or it stands still at the n-th question. */
static _Thread_local int fork_at;
static _Thread_local int fork_at_free;
static _Thread_local pid_t within;
static _Thread_local int stop_at;
static struct flag stands;
static struct flag may_go_on;

static void (*next_free)(void *);

/* dlsym may free. */
__attribute__((constructor)) static void
find_next(void)
{
	next_free = (void (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "free");
}

/* The library's calls come here too. */
void
free(void *p)
{
	struct thing *t = p;

	if (p == NULL || next_free == NULL)
		return;
	if (t->mark == MARK) {
		t->mark = DEAD;
		t->not_n = t->n;
		for (unsigned i = 0; i < WAITERS; i++)
			if (atomic_load(&watched[i]) == t) {
				atomic_store(&watched[i], NULL);
				atomic_store(&gone[i], true);
			}
		atomic_fetch_add(&n_freed, 1);
	}
	next_free(p);
	if (fork_at_free > 0 && --fork_at_free == 0)
		within = fork();
}

/* The library's questions come here too. */
size_t
malloc_usable_size(void *p)
{
	static size_t (*next)(void *);

	if (next == NULL)
		next = (size_t(*)(void *))(uintptr_t)dlsym(
		    RTLD_NEXT, "malloc_usable_size");
	if (fork_at > 0 && --fork_at == 0)
		within = fork();
	if (stop_at > 0 && --stop_at == 0) {
		flag_set(&stands);
		while (!flag_is_set(&may_go_on))
			(void)usleep(1000);
	}
	return next(p);
}

static struct thing *
thing_of_size(size_t size, uint64_t n)
{
	struct thing *t = malloc(size);

	if (t == NULL)
		tap_bail("no memory");
	t->mark = MARK;
	t->n = n;
	t->not_n = ~n;
	return t;
}

static struct thing *
thing(uint64_t n)
{
	return thing_of_size(sizeof(struct thing), n);
}

static void
hand(struct thing *t)
{
	if (eddy_free_rcu(t) != 0)
		tap_bail("a block was refused");
	atomic_fetch_add(&n_handed, 1);
}

static void
hand_many(unsigned n)
{
	while (n-- > 0)
		hand(thing(n));
}

static void
nap_ms(unsigned ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

	(void)nanosleep(&t, NULL);
}

static struct eddy_urcu_stats
stats(void)
{
	struct eddy_urcu_stats s;

	if (eddy_rcu_stats(&s, sizeof s) != 0)
		tap_bail("no statistics");
	return s;
}

static bool
all_freed(void)
{
	uint64_t freed = atomic_load(&n_freed);
	uint64_t handed = atomic_load(&n_handed);

	if (freed == handed)
		return true;
	tap_diag("%llu of %llu freed", (unsigned long long)freed,
	    (unsigned long long)handed);
	return false;
}

static pthread_t
go(void *(*run)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, arg) != 0)
		tap_bail("no thread");
	return t;
}

/* ------------------------------------------------------------------ */
/* A reader that sits in its section */

static struct flag sits;
static struct flag may_leave;

static void *
sitter(void *arg)
{
	rcu_register_thread();
	rcu_read_lock();
	flag_set(&sits);
	while (!flag_is_set(&may_leave))
		nap_ms(1);
	rcu_read_unlock();
	rcu_unregister_thread();
	return arg;
}

static pthread_t
sit(void)
{
	pthread_t t;

	flag_clear(&sits);
	flag_clear(&may_leave);
	t = go(sitter, NULL);
	while (!flag_is_set(&sits))
		nap_ms(1);
	return t;
}

static void
stand_up(pthread_t t)
{
	flag_set(&may_leave);
	(void)pthread_join(t, NULL);
}

/* ------------------------------------------------------------------ */
/* The parts: each returns whether it held */

static void *
reader(void *arg)
{
	uint64_t rng = tap.seed + (uintptr_t)arg;

	rcu_register_thread();
	while (!flag_is_set(&over)) {
		struct thing *t;

		rcu_read_lock();
		t = atomic_load(&shared[tap_random(&rng) % SHARED]);
		for (unsigned i = 0; i < 3; i++) {
			if (t->mark != MARK || t->n != ~t->not_n)
				atomic_fetch_add(&n_bad, 1);
			if (tap_random(&rng) % 64 == 0)
				(void)sched_yield();
		}
		rcu_read_unlock();
		rcu_quiescent_state();
	}
	rcu_unregister_thread();
	return NULL;
}

static void *
writer(void *arg)
{
	uint64_t rng = tap.seed * 3 + (uintptr_t)arg;

	for (unsigned i = 0; i < SWAPS; i++)
		hand(atomic_exchange(
		    &shared[tap_random(&rng) % SHARED], thing(i)));
	return NULL;
}

static bool
part_readers(void)
{
	pthread_t t[READERS + WRITERS];

	for (unsigned i = 0; i < SHARED; i++)
		shared[i] = thing(i);
	for (unsigned i = 0; i < READERS + WRITERS; i++)
		t[i] = go(i < READERS ? reader : writer, (void *)(uintptr_t)i);
	for (unsigned i = READERS; i < READERS + WRITERS; i++)
		(void)pthread_join(t[i], NULL);
	flag_set(&over);
	for (unsigned i = 0; i < READERS; i++)
		(void)pthread_join(t[i], NULL);
	if (eddy_rcu_barrier() != 0 || !all_freed())
		return false;
	if (atomic_load(&n_bad) != 0)
		tap_diag("%u looks at freed blocks", atomic_load(&n_bad));
	return atomic_load(&n_bad) == 0 && stats().waiting_objects == 0 &&
	       stats().open_objects == 0 && stats().ripe_batches == 0 &&
	       stats().freed_objects == atomic_load(&n_freed);
}

static bool
part_batch(void)
{
	void *p[300];

	for (unsigned i = 0; i < 300; i++)
		p[i] = i % 10 == 9
			   ? NULL
			   : thing_of_size(sizeof(struct thing) + i * i * 5, i);
	if (eddy_free_rcu_batch(p, 300) != 300 || eddy_free_rcu(NULL) != 0 ||
	    eddy_try_free_rcu(NULL) != 0)
		return false;
	atomic_fetch_add(&n_handed, 270);
	if (eddy_try_free_rcu(thing(1)) != 0)
		return false;
	atomic_fetch_add(&n_handed, 1);
	return eddy_rcu_barrier() == 0 && all_freed();
}

static _Atomic unsigned n_late;

/* Whether one's own block is freed when one's own barrier has ended.  A reader:
 * where the flavour counts states it is not in one of rest meanwhile. */
static void *
waits(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	uint64_t rng = tap.seed * 5 + me;

	rcu_register_thread();
	for (unsigned i = 0; i < BARRIERS; i++) {
		struct thing *t = thing(i);

		atomic_store(&gone[me], false);
		atomic_store(&watched[me], t);
		hand(t);
		if (tap_random(&rng) % 4 == 0)
			(void)sched_yield();
		if (eddy_rcu_barrier() != 0 || !atomic_load(&gone[me]))
			atomic_fetch_add(&n_late, 1);
		rcu_quiescent_state();
	}
	rcu_unregister_thread();
	return NULL;
}

static void *
hands(void *arg)
{
	while (!flag_is_set(&over)) {
		hand_many(200);
		nap_ms(1);
	}
	return arg;
}

/* Barriers at the same time, while others hand over. */
static bool
part_barriers(void)
{
	pthread_t t[WAITERS + 1];

	for (unsigned i = 0; i < WAITERS; i++)
		t[i] = go(waits, (void *)(uintptr_t)i);
	t[WAITERS] = go(hands, NULL);
	for (unsigned i = 0; i < WAITERS; i++)
		(void)pthread_join(t[i], NULL);
	flag_set(&over);
	(void)pthread_join(t[WAITERS], NULL);
	if (atomic_load(&n_late) != 0)
		tap_diag("%u blocks outlived a barrier", atomic_load(&n_late));
	return atomic_load(&n_late) == 0 && eddy_rcu_barrier() == 0 &&
	       all_freed();
}

/* Objects of readers, and of threads that are none, in sections of others. */
static bool
part_sections(void)
{
	pthread_t t;

	rcu_register_thread();
	rcu_read_lock();
	hand_many(100);
	rcu_read_unlock();
	rcu_unregister_thread();
	if (eddy_rcu_barrier() != 0 || !all_freed())
		return false;
	t = sit();
	hand_many(500);
	nap_ms(60);
	if (atomic_load(&n_freed) != 100)
		tap_diag("freed below a reader");
	else if (stats().open_objects + stats().waiting_objects != 500)
		tap_diag("%d are not what waits",
		    (int)(stats().open_objects + stats().waiting_objects));
	else {
		stand_up(t);
		return eddy_rcu_barrier() == 0 && all_freed();
	}
	return false;
}

/* Switches of the helper's, or -1. */
static long
naps_of_helper(void)
{
	char path[64];
	char line[256];
	long ret = -1;

	for (int tid = getpid(); tid < getpid() + 2000 && ret < 0; tid++) {
		bool mine = false;
		FILE *f;

		(void)snprintf(
		    path, sizeof path, "/proc/self/task/%d/status", tid);
		f = fopen(path, "r");
		if (f == NULL)
			continue;
		while (fgets(line, sizeof line, f) != NULL) {
			mine = mine || strstr(line, "eddy_urcu0") != NULL;
			if (mine)
				(void)sscanf(
				    line, "voluntary_ctxt_switches: %ld", &ret);
		}
		(void)fclose(f);
	}
	return ret;
}

/* One object goes without a further call; then nobody wakes any more. */
static bool
part_alone(void)
{
	long before = -2;

	hand_many(1);
	while (atomic_load(&n_freed) != 1)
		nap_ms(5); /* the alarm ends it */
	for (;;) {
		long now = naps_of_helper();

		if (now >= 0 && now == before)
			return stats().helpers == 1 && stats().oldest_ms == 0;
		before = now;
		nap_ms(300);
	}
}

static bool
part_bound(void)
{
	pthread_t t = sit();
	struct thing *last = thing(0);
	struct eddy_urcu_stats s;
	bool held = true;

	if (eddy_rcu_set_bound(1000, SIZE_MAX) != 0 ||
	    eddy_rcu_set_bound(0, 1) != EINVAL)
		return false;
	hand_many(5000);
	s = stats();
	held = held && s.bound_objects == 1000 && s.beyond > 0 &&
	       s.waiting_objects + s.open_objects == 5000 &&
	       s.peak_objects >= 4900;
	held =
	    held && eddy_try_free_rcu(last) == EAGAIN && stats().refused == 1;
	if (!held)
		tap_diag("beyond %llu, waiting %llu, open %llu",
		    (unsigned long long)s.beyond,
		    (unsigned long long)s.waiting_objects,
		    (unsigned long long)s.open_objects);
	/* The helper gets to its grace period. */
	while (stats().grace_ms == 0 || stats().oldest_ms == 0)
		nap_ms(1);
	held = held && atomic_load(&n_freed) == 0;
	stand_up(t);
	held = held && eddy_rcu_barrier() == 0 && all_freed();
	/* A helper that finds so much makes another. */
	while (stats().helpers < 2)
		hand_many(600);
	held = held && eddy_rcu_barrier() == 0 && all_freed();
	held = held && eddy_rcu_set_bound(SIZE_MAX, 100 * 64) == 0 &&
	       eddy_try_free_rcu(last) == 0;
	atomic_fetch_add(&n_handed, 1);
	return held && eddy_rcu_barrier() == 0 && all_freed();
}

/* ------------------------------------------------------------------ */
/* Threads that die, and that stand still */

static _Atomic bool to_die;

static void
on_strike(int sig)
{
	(void)sig;
	if (atomic_load(&to_die))
		(void)syscall(SYS_exit, 0);
	flag_set(&stands);
	while (!flag_is_set(&may_go_on))
		nap_ms(1);
}

static void *
putter(void *arg)
{
	_Atomic uint64_t *n = arg;

	while (!flag_is_set(&over)) {
		hand(thing(0));
		atomic_fetch_add(n, 1);
	}
	return NULL;
}

static void
strike(pthread_t t, uint64_t *rng)
{
	for (uint64_t i = tap_random(rng) % 20000; i > 0; i--)
		__asm__ __volatile__("");
	(void)pthread_kill(t, SIGUSR1);
}

static bool
part_deaths(void)
{
	enum { DEATHS = 40, BATCH = 64 };
	_Atomic uint64_t n[DEATHS + 1] = {0};
	uint64_t rng = tap.seed;
	uint64_t lost;
	pthread_t other;

	(void)signal(SIGUSR1, on_strike);
	atomic_store(&to_die, true);
	if (eddy_rcu_start() != 0)
		return false;
	other = go(putter, &n[DEATHS]);
	for (unsigned i = 0; i < DEATHS; i++) {
		pthread_t t = go(putter, &n[i]);

		while (atomic_load(&n[i]) < 200)
			nap_ms(1);
		strike(t, &rng);
		(void)pthread_join(t, NULL);
	}
	flag_set(&over);
	(void)pthread_join(other, NULL);
	if (eddy_rcu_barrier() != 0)
		return false;
	/* One may have been counted as handed over just when it was lost, or
	 * have been handed over and not counted. */
	lost = atomic_load(&n_handed) + DEATHS - atomic_load(&n_freed);
	tap_diag("%llu blocks lost", (unsigned long long)lost - DEATHS);
	return lost <= DEATHS * (2 * BATCH + 2);
}

static bool
part_frozen(void)
{
	enum { FREEZES = 15 };
	uint64_t rng = tap.seed;
	bool held = true;

	(void)signal(SIGUSR1, on_strike);
	if (eddy_rcu_start() != 0)
		return false;
	for (unsigned i = 0; i < FREEZES && held; i++) {
		_Atomic uint64_t n = 0;
		pthread_t t;
		uint64_t missing;

		flag_clear(&over);
		flag_clear(&stands);
		flag_clear(&may_go_on);
		t = go(putter, &n);
		while (atomic_load(&n) < 200)
			nap_ms(1);
		strike(t, &rng);
		while (!flag_is_set(&stands))
			nap_ms(1);
		hand_many(1000);
		held = eddy_rcu_barrier() == 0;
		missing = atomic_load(&n_handed) + 1 - atomic_load(&n_freed);
		if (missing > 2 * 64 + 2) {
			tap_diag(
			    "%llu not freed", (unsigned long long)missing - 1);
			held = false;
		}
		flag_set(&over);
		flag_set(&may_go_on);
		(void)pthread_join(t, NULL);
		held = held && eddy_rcu_barrier() == 0 && all_freed();
	}
	return held;
}

/* Handlers hand over in the midst of handing over. */
static void
on_knock(int sig)
{
	int kept = errno;

	(void)sig;
	hand(thing(1));
	errno = kept;
}

static bool
part_handlers(void)
{
	_Atomic uint64_t n = 0;
	uint64_t rng = tap.seed;
	pthread_t t;

	(void)signal(SIGUSR1, on_knock);
	if (eddy_rcu_start() != 0)
		return false;
	t = go(putter, &n);
	for (unsigned i = 0; i < 2000; i++)
		strike(t, &rng);
	flag_set(&over);
	(void)pthread_join(t, NULL);
	return eddy_rcu_barrier() == 0 && all_freed();
}

/* Hands over until it has stood still once. */
static void *
stops(void *arg)
{
	cpu_set_t one;

	/* All in one lane. */
	CPU_ZERO(&one);
	CPU_SET((size_t) * (int *)arg, &one);
	(void)sched_setaffinity(0, sizeof one, &one);
	stop_at = 5;
	while (stop_at > 0)
		hand(thing(1));
	return NULL;
}

static pthread_t
stop_one(int *cpu)
{
	pthread_t t;

	flag_clear(&stands);
	flag_clear(&may_go_on);
	t = go(stops, cpu);
	while (!flag_is_set(&stands))
		nap_ms(1);
	return t;
}

static void *
goes_on_soon(void *arg)
{
	nap_ms(200);
	flag_set(&may_go_on);
	return arg;
}

/* One for whom a barrier has lost its patience goes on, and is not taken for
 * another then. */
static bool
part_stopped(void)
{
	int cpu = sched_getcpu();
	bool held;
	pthread_t t = stop_one(&cpu);
	pthread_t soon;

	held = eddy_rcu_barrier() == 0 && !flag_is_set(&may_go_on);
	flag_set(&may_go_on);
	(void)pthread_join(t, NULL);
	t = stop_one(&cpu);
	soon = go(goes_on_soon, NULL);
	held = held && eddy_rcu_barrier() == 0 && flag_is_set(&may_go_on);
	(void)pthread_join(t, NULL);
	(void)pthread_join(soon, NULL);
	return held && eddy_rcu_barrier() == 0 && all_freed();
}

/* Who makes the library's thread is killed where it is made. */
static void *
dies_starting(void *arg)
{
	struct sock_filter code[] = {
	    BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof code / sizeof code[0], code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0)
		(void)eddy_rcu_start();
	flag_set(&over);
	return arg;
}

static bool
part_starter(void)
{
	pthread_t t;

	t = go(dies_starting, NULL);
	(void)pthread_join(t, NULL);
	if (flag_is_set(&over)) {
		tap_diag("it was not killed");
		return false;
	}
	/* The alarm ends it. */
	while (atomic_load(&n_freed) < 100) {
		if (atomic_load(&n_handed) < 100000)
			hand_many(1);
		nap_ms(10);
	}
	return stats().helpers == 1;
}

/* ------------------------------------------------------------------ */
/* No system call */

static void *
strict(void *arg)
{
	void **p = arg;

	if (prctl(PR_SET_SECCOMP, 1 /* SECCOMP_MODE_STRICT */) == 0) {
		for (unsigned i = 0; i < 2000; i++)
			(void)eddy_free_rcu(p[i]);
		atomic_fetch_add(&n_handed, 2000);
	}
	(void)syscall(SYS_exit, 0);
	return NULL;
}

static bool
part_no_calls(void)
{
	static void *p[2000];
	pthread_t reads;
	pthread_t t;

	/* The helper is awake, for it waits for a reader. */
	reads = sit();
	hand_many(1);
	while (stats().grace_ms == 0)
		nap_ms(1);
	for (unsigned i = 0; i < 2000; i++)
		p[i] = thing(i);
	t = go(strict, p);
	(void)pthread_join(t, NULL);
	if (atomic_load(&n_handed) == 1) {
		for (unsigned i = 0; i < 2000; i++)
			free(p[i]);
		atomic_fetch_add(&n_handed, 2000);
		tap_diag("seccomp refused");
	}
	stand_up(reads);
	return eddy_rcu_barrier() == 0 && all_freed();
}

/* ------------------------------------------------------------------ */
/* Forks and ends */

static bool
child_ends_well(pid_t pid)
{
	int status;

	if (pid <= 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (status != 0)
		tap_diag("child: status %#x", (unsigned)status);
	return status == 0;
}

static int
in_child(void)
{
	uint64_t lost;
	int err;

	hand_many(100);
	err = eddy_rcu_barrier();
	if (err ==
	    ENOTSUP) /* forked in the midst of a grace period after all */
		return stats().cut == 1 ? 0 : 2;
	if (err != 0)
		return 3;
	/* The one that each helper was freeing at that moment; the writer may
	 * not have counted one. */
	lost = atomic_load(&n_handed) + 1 - atomic_load(&n_freed);
	if (lost <= HELPERS + 1)
		return 0;
	tap_diag("%llu blocks missed", (unsigned long long)lost - 1);
	return 4;
}

static bool
part_fork(void)
{
	_Atomic uint64_t n = 0;
	pthread_t t;
	bool held = true;

#ifdef TEST_BP
	(void)pthread_atfork(urcu_bp_before_fork, urcu_bp_after_fork_parent,
	    urcu_bp_after_fork_child);
#endif
	/* Nobody else: all of it is freed. */
	hand_many(300);
	t = go(putter, &n);
	for (unsigned i = 0; i < 20 && held; i++) {
		pid_t pid;

		hand_many(20);
		pid = fork();
		if (pid == 0)
			_exit(in_child());
		held = child_ends_well(pid);
	}
	flag_set(&over);
	(void)pthread_join(t, NULL);
	return held && eddy_rcu_barrier() == 0 && all_freed();
}

/*
 * A fork from the midst of handing over, as by a handler: where the sizes of a
 * full batch are asked for, or what is ripe is freed.  The child goes on there.
 * What others had in hand it may miss; of its own nothing, and nothing is freed
 * twice.
 */
static bool
part_fork_within(void)
{
#ifdef TEST_BP
	(void)pthread_atfork(urcu_bp_before_fork, urcu_bp_after_fork_parent,
	    urcu_bp_after_fork_child);
#endif
	for (unsigned i = 0; i < 40; i++) {
		within = -1;
		if (i % 4 == 3)
			fork_at_free = 1 + (int)i;
		else
			fork_at = 1 + (int)(i % 2 == 0 ? i : 64 - i);
		while (within < 0) {
			hand_many(i % 4 == 3 ? 64 : 1);
			if (i % 4 == 3 && eddy_rcu_barrier() != 0)
				return false;
		}
		if (within == 0) {
			uint64_t before = atomic_load(&n_freed);

			hand_many(200);
			_exit(eddy_rcu_barrier() == 0 &&
				      atomic_load(&n_freed) >= before + 200 &&
				      atomic_load(&n_freed) <=
					  atomic_load(&n_handed) &&
				      stats().waiting_objects <=
					  atomic_load(&n_handed)
				  ? 0
				  : 5);
		}
		if (!child_ends_well(within))
			return false;
	}
	return eddy_rcu_barrier() == 0 && all_freed();
}

/* A grace period that does not end: not for the fork either. */
static bool
part_fork_cut(void)
{
#ifdef TEST_BP
	return true;
#else
	pthread_t t = sit();
	pid_t pid;
	bool held;

	hand_many(100);
	while (stats().grace_ms == 0)
		nap_ms(1);
	pid = fork();
	if (pid == 0) {
		hand_many(1000);
		_exit(stats().cut == 1 && eddy_rcu_barrier() == ENOTSUP &&
			      eddy_rcu_start() == ENOTSUP
			  ? 0
			  : 1);
	}
	held = child_ends_well(pid);
	stand_up(t);
	return held && eddy_rcu_barrier() == 0 && all_freed();
#endif
}

static void *
leaves(void *arg)
{
	hand_many(200);
	return arg;
}

static bool
part_ends(void)
{
	bool held = true;

	/* exit(), with a reader in its section. */
	for (unsigned i = 0; i < 3 && held; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)sit();
			hand_many(1000);
			if (i != 0)
				nap_ms(15 * i);
			exit(0);
		}
		held = child_ends_well(pid);
	}
	/* The main thread goes first. */
	for (unsigned i = 0; i < 3 && held; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			hand_many(i == 1 ? 1 : 1000);
			if (i != 0)
				(void)go(leaves, NULL);
			if (i == 2)
				nap_ms(100);
			pthread_exit(NULL);
		}
		held = child_ends_well(pid);
	}
	return held;
}

/* ------------------------------------------------------------------ */

static const struct part {
	const char *name;
	bool (*run)(void);
	const char *says;
} parts[] = {
    {"readers", part_readers, "what readers see is not freed, the rest is"},
    {"batch", part_batch, "many at once, of all sizes, and NULL"},
    {"sections", part_sections, "from sections and from without"},
    {"barriers", part_barriers, "a barrier's blocks, others' barriers beside"},
    {"alone", part_alone, "a single object goes, and then all sleep"},
    {"bound", part_bound,
	"a reader that stays: counted, refused, never waited for"},
    {"deaths", part_deaths, "a killed thread costs a batch or two"},
    {"frozen", part_frozen, "a thread that stands still holds nobody up"},
    {"stopped", part_stopped, "one that is late is not taken for another"},
    {"starter", part_starter, "a killed starter is not waited for"},
    {"handlers", part_handlers, "signal handlers hand over"},
    {"calls", part_no_calls, "no system call while the helper is awake"},
    {"fork", part_fork, "children free what waited"},
    {"within", part_fork_within, "a fork from within goes on there"},
    {"cut", part_fork_cut, "a fork in a grace period that does not end"},
    {"ends", part_ends, "exit and pthread_exit with objects that wait"},
};

/* Why a part says nothing of this flavour; NULL: it does. */
static const char *
why_not(const char *part)
{
#ifdef TEST_BP
	if (strcmp(part, "cut") == 0)
		return "urcu-bp's own handlers of fork wait";
#else
	(void)part;
#endif
	return NULL;
}

int
main(int argc, char **argv)
{
	tap_begin(argv);
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (argc > 1 && strcmp(argv[1], parts[i].name) == 0)
			return parts[i].run() ? 0 : 1;
	tap_guard(500);
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		const char *why = why_not(parts[i].name);

		if (why != NULL)
			tap_skip(parts[i].says, "%s", why);
		else
			tap_ok(probe_again(argv, parts[i].name, parts[i].says),
			    FLAVOR ": %s", parts[i].says);
	}
	return tap_end();
}
