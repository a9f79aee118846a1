/* SPDX-License-Identifier: BSD-2-Clause */
/* rig.c - options, TAP, time, chance and memory of the stress programs. */
#include "rig.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LONG_S = 30 };

struct rig rig;

static pid_t main_pid;
static cpu_set_t first_cpus;
static unsigned n_tests;
static unsigned n_bad;
static unsigned n_wanted; /* failures that were asked for */
static const char *_Atomic deadline_what;

static void
put(const char *head, const char *format, va_list ap)
{
	char line[512];
	size_t n = strlen(head);
	int m;

	memcpy(line, head, n);
	m = vsnprintf(line + n, sizeof(line) - n - 1, format, ap);
	n += m < 0 ? 0 : (size_t)m;
	if (n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDOUT_FILENO, line, n) < 0)
		_exit(98);
}

void
rig_diag(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	put("# ", format, ap);
	va_end(ap);
}

static void
put_test(bool good, const char *format, va_list ap)
{
	char head[32];

	n_tests++;
	n_bad += !good;
	(void)snprintf(
	    head, sizeof(head), "%s %u - ", good ? "ok" : "not ok", n_tests);
	put(head, format, ap);
}

void
rig_ok(bool good, const char *format, ...)
{
	va_list ap;

	if (rig.expect_failure && !good) {
		n_wanted++;
		good = true;
		rig_diag("broken, as expected:");
	}
	va_start(ap, format);
	put_test(good, format, ap);
	va_end(ap);
}

void
rig_ok_skip(const char *format, ...)
{
	char head[48];
	va_list ap;

	(void)snprintf(head, sizeof(head), "ok %u # SKIP ", ++n_tests);
	va_start(ap, format);
	put(head, format, ap);
	va_end(ap);
}

static void
put_plan(void)
{
	char line[32];
	int n = snprintf(line, sizeof(line), "1..%u\n", n_tests);

	if (write(STDOUT_FILENO, line, (size_t)n) < 0)
		_exit(98);
}

RIG_PRINTF(1, 2)
static void
fail_unwanted(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	put_test(false, format, ap);
	va_end(ap);
}

int
rig_end(void)
{
	rig_deadline(0, NULL);
	if (rig.expect_failure && !n_wanted)
		fail_unwanted("a failure was expected, all went well");
	put_plan();
	return n_bad != 0;
}

void
rig_skip(const char *why)
{
	char line[256];
	int n = snprintf(line, sizeof(line), "SKIP: %s\n", why);

	if (write(STDOUT_FILENO, line, (size_t)n) < 0)
		_exit(98);
	_exit(77);
}

void
rig_fail_now(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	if (getpid() != main_pid) {
		put("# child: ", format, ap);
		_exit(1);
	}
	put_test(false, format, ap);
	va_end(ap);
	put_plan();
	_exit(1);
}

void
rig_stalled(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	put_test(rig.expect_failure, format, ap);
	va_end(ap);
	put_plan();
	_exit(rig.expect_failure ? 0 : 1);
}

static void
on_deadline(int signo)
{
	(void)signo;
	if (getpid() != main_pid)
		_exit(RIG_OVERDUE);
	rig_stalled("stalled: %s", atomic_load(&deadline_what));
}

void
rig_deadline(unsigned seconds, const char *what)
{
	atomic_store(&deadline_what, what);
	(void)alarm(seconds);
}

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

static uintptr_t code_from;
static uintptr_t code_to;

static int
note_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t at = *(const uintptr_t *)arg;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X) != 0 &&
		    at >= from && at - from < ph->p_memsz) {
			code_from = from;
			code_to = from + ph->p_memsz;
			return 1;
		}
	}
	return 0;
}

static const char *
find_allocator(void)
{
	void *(*f)(size_t) = malloc;
	uintptr_t at = (uintptr_t)f;
	Dl_info info;

	(void)dl_iterate_phdr(note_code, &at);
	return dladdr((const void *)at, &info) == 0 ? "?" : info.dli_fname;
}

static void
start_again(char **argv, const char *library)
{
	(void)setenv("EDDY_STRESS_ON", library, 1);
	if (strcmp(library, "none") == 0)
		(void)unsetenv("LD_PRELOAD");
	else
		(void)setenv("LD_PRELOAD", library, 1);
	(void)execv("/proc/self/exe", argv);
	rig_fail_now("exec: errno %d", errno);
}

static double
env_number(const char *name, double otherwise)
{
	const char *text = getenv(name);

	return text == NULL || *text == '\0' ? otherwise : strtod(text, NULL);
}

void
rig_start(int argc, char **argv, double default_seconds)
{
	const char *library = getenv("EDDY_SO");
	const char *on = getenv("EDDY_STRESS_ON");
	const char *name;
	struct sigaction sa = {.sa_handler = on_deadline};

	main_pid = getpid();
	(void)sched_getaffinity(0, sizeof(first_cpus), &first_cpus);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--on") == 0 && i + 1 < argc) {
			library = argv[++i];
		} else if (strcmp(argv[i], "--expect-failure") == 0) {
			rig.expect_failure = true;
		} else if (strcmp(argv[i], "--no-signals") == 0) {
			rig.no_signals = true;
		} else if (rig.takes_word && rig.word == NULL &&
			   argv[i][0] != '-') {
			rig.word = argv[i];
		} else {
			rig_diag(
			    "options: [--on LIBRARY|none] [--expect-failure]"
			    " [--no-signals]%s",
			    rig.takes_word ? " [NAME]" : "");
			_exit(2);
		}
	}
	if (on == NULL && library != NULL && *library != '\0')
		start_again(argv, library);
	name = find_allocator();
	if (on != NULL && strcmp(on, "none") != 0 &&
	    strcmp(base_name(on), base_name(name)) != 0)
		rig_skip("the library named is not there");
	(void)unsetenv("EDDY_STRESS_ON");
	rig.library = base_name(name);
	rig.patience = (unsigned)env_number("EDDY_PATIENCE", 1);
	rig.patience_s = rig.expect_failure ? 4 : 30 * rig.patience;
	rig.is_long = env_number("EDDY_TIME", 0) >= LONG_S;
	rig.seconds = env_number("EDDY_TIME", default_seconds);
	rig.seed = (uint64_t)env_number("EDDY_SEED", 0);
	if (rig.seed == 0)
		rig.seed = rig_now_ns() % 1000000007 + 1;
	(void)sigaction(SIGALRM, &sa, NULL);
	if (rig.expect_failure)
		rig_diag("a failure is expected");
	rig_diag("malloc of %s, seed %llu, %.0f s", rig.library,
	    (unsigned long long)rig.seed, rig.seconds);
}

uint64_t
rig_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t
rig_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

size_t
rig_rss_bytes(void)
{
	return rig_rss_bytes_of("/proc/self/statm");
}

size_t
rig_rss_bytes_of(const char *statm)
{
	char text[128] = "";
	int fd = open(statm, O_RDONLY | O_CLOEXEC);
	char *space;

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	(void)close(fd);
	space = strchr(text, ' ');
	if (space == NULL)
		return 0;
	return strtoul(space, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

size_t
rig_in_use_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

const char *
rig_place(uintptr_t ip, char *buffer, size_t size)
{
	Dl_info info;
	uintptr_t base;

	if (dladdr((const void *)ip, &info) == 0) {
		(void)snprintf(buffer, size, "%#lx", (unsigned long)ip);
		return buffer;
	}
	base = (uintptr_t)info.dli_fbase;
	(void)snprintf(buffer, size, "%s+%#lx (%s)", base_name(info.dli_fname),
	    (unsigned long)(ip - base),
	    info.dli_sname == NULL ? "local" : info.dli_sname);
	return buffer;
}

bool
rig_in_allocator(uintptr_t ip)
{
	return ip >= code_from && ip < code_to;
}

void
rig_sleep_us(unsigned us)
{
	struct timespec ts = {
	    .tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};

	(void)nanosleep(&ts, NULL);
}

int
rig_futex_wait(const _Atomic uint32_t *word, uint32_t value, unsigned ms)
{
	struct timespec ts = {
	    .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	return (int)syscall(
	    SYS_futex, word, FUTEX_WAIT, value, ms == 0 ? NULL : &ts, NULL, 0);
}

void
rig_futex_wake(const _Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
}

void
rig_pin(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

void
rig_unpin(void)
{
	(void)sched_setaffinity(0, sizeof(first_cpus), &first_cpus);
}

unsigned
rig_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : (unsigned)n;
}
