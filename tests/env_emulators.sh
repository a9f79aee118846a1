#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# env_emulators.sh - under valgrind and qemu-user, where rseq is missing and
# madvise may lie, a program still gets right answers; so it does in a process
# that may execute setuid programs and under an empty environment.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
[ -n "${EDDY_SO:-}" ] || skip_all 'no EDDY_SO'

cat >"$tap_work/prog.c" <<'END'
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *
work(void *arg)
{
	static __thread unsigned char *p[200];
	long bad = 0;

	for (unsigned i = 0; i < 20000; i++) {
		unsigned k = i * 7919u % 200;
		size_t n = 1 + i * 31u % (i % 64 != 0 ? 900 : 90000);

		if (p[k] != NULL)
			bad += p[k][0] != k;
		free(p[k]);
		if (i % 2 != 0) {
			p[k] = malloc(n);
		} else {
			p[k] = calloc(1, n);
			for (size_t j = 0; j < n; j += 1 + n / 64)
				bad += p[k][j] != 0;
		}
		memset(p[k], 0xff, n);
		p[k][0] = (unsigned char)k;
	}
	for (int i = 0; i < 200; i++)
		free(p[i]);
	return arg == NULL ? NULL : (void *)bad;
}

/* Memory that was used before is zero, whatever tells of its pages. */
static int
is_zero_again(size_t n)
{
	unsigned char *p = malloc(n);

	if (p == NULL)
		return 0;
	memset(p, 0xff, n / 3);
	memset(p + n - 5000, 0xff, 5000);
	free(p);
	p = calloc(1, n);
	for (size_t i = 0; i < n; i++)
		if (p == NULL || p[i] != 0)
			return 0;
	free(p);
	return 1;
}

int
main(void)
{
	pthread_t t[3];
	void *bad;

	if (!is_zero_again(1500000) || !is_zero_again(3000000) ||
	    !is_zero_again(9000000))
		return 4;

	for (int i = 0; i < 3; i++)
		if (pthread_create(&t[i], NULL, work, &bad) != 0)
			return 1;
	for (int i = 0; i < 3; i++) {
		(void)pthread_join(t[i], &bad);
		if (bad != NULL)
			return 2;
	}
	/* 112: eddy's class for 100, so the library does serve */
	if (malloc_usable_size(malloc(100)) != 112)
		return 3;
	puts("done");
	return 0;
}
END
"${CC:-cc}" -O1 -fno-builtin -pthread "$tap_work/prog.c" \
	-o "$tap_work/prog" || exit 99

says_done() {
	"$@" >"$tap_work/out" 2>"$tap_work/err"
	said=$?
	cat "$tap_work/err"
	[ "$said" -eq 0 ] && [ "$(cat "$tap_work/out")" = "done" ]
}

silent() {
	says_done "$@" && [ ! -s "$tap_work/err" ]
}

ok 'runs plainly, and is silent' silent env LD_PRELOAD="$EDDY_SO" \
	"$tap_work/prog"
ok 'runs with an empty environment' silent env -i LD_PRELOAD="$EDDY_SO" \
	"$tap_work/prog"
if command -v valgrind >/dev/null 2>&1; then
	for tool in none 'callgrind --callgrind-out-file=/dev/null'; do
		# shellcheck disable=SC2086 # the tool and its option
		ok "runs under valgrind --tool=${tool%% *}" says_done \
			timeout 60 env LD_PRELOAD="$EDDY_SO" \
			valgrind -q --tool=$tool "$tap_work/prog"
	done
else
	skip 'runs under valgrind' 'no valgrind: install valgrind'
fi
qemu=qemu-$(uname -m)
if command -v "$qemu" >/dev/null 2>&1; then
	# It keeps books of each page that is reserved; bounded, lest that take
	# the machine.
	emulated() {
		# shellcheck disable=SC3045 # dash and bash know it
		(ulimit -d 3000000; exec timeout -s KILL 60 "$qemu" \
			-E LD_PRELOAD="$EDDY_SO" "$tap_work/prog")
	}
	ok "runs under $qemu" says_done emulated
else
	skip "runs under $qemu" "no $qemu: install qemu-user"
fi
if command -v strace >/dev/null 2>&1; then
	ok 'runs under strace' says_done env strace -f -o /dev/null \
		-E LD_PRELOAD="$EDDY_SO" "$tap_work/prog"
else
	skip 'runs under strace' 'no strace: install strace'
fi
tap_end
