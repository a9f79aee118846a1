#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# env_static.sh - a static program with libeddy.a inside: it links, every
# member of the family is eddy's, threads and fork work.  And what the shared
# library asks of others.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
[ -n "${EDDY_SO:-}" ] || skip_all 'no EDDY_SO'
archive=${EDDY_A:-$(dirname "$EDDY_SO")/libeddy.a}
cc=${CC:-cc}

cat >"$tap_work/prog.c" <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *
work(void *arg)
{
	static __thread char *p[200];

	for (unsigned i = 0; i < 200000; i++) {
		unsigned k = i * 7919u % 200;

		if (p[k] != NULL && p[k][0] != (char)k)
			abort();
		free(p[k]);
		p[k] = malloc(1 + i * 31u % 9000);
		p[k][0] = (char)k;
	}
	for (int i = 0; i < 200; i++)
		free(p[i]);
	return arg;
}

int
main(void)
{
	pthread_t t[4];
	char *s = strdup("static");
	char *line = NULL;
	void *a = NULL;
	int st;
	pid_t pid;

	for (int i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, work, NULL) != 0)
			return 1;
	pid = fork();
	if (pid == 0) {
		work(NULL);
		_exit(0);
	}
	for (int i = 0; i < 4; i++)
		(void)pthread_join(t[i], NULL);
	if (waitpid(pid, &st, 0) != pid || st != 0)
		return 2;
	if (asprintf(&line, "%s %d", s, 42) != 9 ||
	    posix_memalign(&a, 4096, 4096) != 0)
		return 3;
	/* 3 usable sizes that are eddy's and not glibc's */
	if (malloc_usable_size(a) != 4096 ||
	    malloc_usable_size(p_100()) != 112 ||
	    malloc_usable_size(p_20000()) != 20480)
		return 4;
	free(a);
	free(s);
	free(line);
	free(valloc(1));
	free(pvalloc(1));
	free(memalign(64, 1));
	free(aligned_alloc(64, 64));
	free(reallocarray(NULL, 10, 10));
	(void)malloc_trim(0);
	if (mallinfo2().uordblks + mallinfo2().hblkhd == 0)
		return 5;
	puts("static");
	return 0;
}
END
sed -i 's/p_100()/malloc(100)/; s/p_20000()/calloc(2, 10000)/' \
	"$tap_work/prog.c"

build() {
	"$cc" -O1 -fno-builtin -pthread "$@"
}

if [ ! -f "$archive" ]; then
	skip 'a static program' 'no libeddy.a: built with --disable-static'
elif ok 'a static program links with libeddy.a' \
	build -static "$tap_work/prog.c" "$archive" -o "$tap_work/static"; then
	run() {
		env -u LD_PRELOAD "$@" >"$tap_work/out" || return
		[ "$(cat "$tap_work/out")" = static ]
	}
	ok 'and runs' run "$tap_work/static"
	ok 'and runs without rseq' env EDDY_CONF=rseq:false "$tap_work/static"
fi
if [ -f "$archive" ] && ok 'a dynamic program links with libeddy.a' \
	build "$tap_work/prog.c" "$archive" -o "$tap_work/mixed"; then
	ok 'and runs' "$tap_work/mixed"
fi

if command -v readelf >/dev/null 2>&1; then
	needed() {
		readelf -d "$EDDY_SO" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
	}
	alone() {
		needed
		[ "$(needed)" = libc.so.6 ]
	}
	ok 'the shared library needs libc alone' alone
	no_text() {
		! readelf -d "$EDDY_SO" | grep TEXTREL
	}
	ok 'it has no text relocations' no_text
	no_exec() {
		readelf -lW "$EDDY_SO" | grep GNU_STACK
		! readelf -lW "$EDDY_SO" | grep GNU_STACK | grep -q RWE
	}
	ok 'its stack is not executable' no_exec
	nodelete() {
		readelf -d "$EDDY_SO" | grep FLAGS
		readelf -d "$EDDY_SO" | grep -q NODELETE
	}
	ok 'it cannot be unloaded' nodelete
else
	skip 'what the shared library needs' 'no readelf: install binutils'
fi
tap_end
