#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# arch_cross.sh - the library of aarch64, built and run on another machine: its
# assembly by arch_sections and arch_codegen, and whole, in claim mode, since
# the emulator has no restartable sequences.  And the C that stands in for
# assembly elsewhere.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
src=${EDDY_SRCDIR:-$here/..}
target=aarch64-linux-gnu
[ "$(uname -m)" != aarch64 ] || skip_all 'not a cross build on aarch64'
needs $target-gcc gcc-aarch64-linux-gnu
needs qemu-aarch64 qemu-user
cd "$src" || exit 99

made=$tap_work/made
mkdir -p "$made/lib/ctl" || exit 99
for out in h c names-h names-c; do
	case $out in
	h) to=ctl_gen.h ;;
	c) to=ctl_gen.inc ;;
	names-h) to=ctl_gen_names.h ;;
	names-c) to=ctl_gen_names.inc ;;
	esac
	"${AWK:-awk}" -v out=$out -f scripts/gen-names.awk \
		-f scripts/gen-ctl.awk lib/ctl/ctl.tab \
		>"$made/lib/ctl/$to" || exit 99
done
cat >"$made/eddy_config.h" <<'END'
#define EDDY_BUILD_CONF ""
#define EDDY_VERSION "0"
END

# compile COMPILER SOURCE OBJECT, as the build does it
compile() {
	"$1" -std=gnu17 -D_GNU_SOURCE -O2 -fPIC -fvisibility=hidden \
		-ftls-model=initial-exec -fno-builtin-malloc \
		-fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free \
		-Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
		-Wmissing-prototypes -I. -I"$made" -Iinclude \
		-c "$2" -o "$3"
}

compile_all() {
	for f in lib/*/*.c numa/*.c lib/arch/aarch64/*.S; do
		# A library of its own, on headers of this machine.
		case $f in lib/urcu/*) continue ;; esac
		compile $target-gcc "$f" \
			"$made/$(echo "$f" | tr / _).o" || return 1
	done
}

link_all() {
	$target-gcc -shared -o "$made/libeddy.so" "$made"/lib_*.o \
		"$made"/numa_*.o \
		-Wl,-soname,libeddy.so.0 -Wl,-z,now -Wl,-z,relro \
		-Wl,-z,defs -Wl,--version-script=lib/eddy.map \
		-Wl,--defsym=pthread_create=eddy_thread_create \
		-Wl,--defsym=thrd_create=eddy_thread_create_c11
}

notes() {
	for f in "$made"/lib_arch_aarch64_*.o; do
		readelf -nW "$f" | grep -q 'BTI, PAC' || return 1
		readelf -SW "$f" | grep -q '\.note\.GNU-stack' || return 1
	done
}

# Conditional branches have no veneers: they must not leave the file.
branches() {
	readelf -rW "$made/lib_arch_aarch64_sections.S.o" >"$made/relocations"
	grep -q R_AARCH64_JUMP26 "$made/relocations" &&
		! grep -E 'R_AARCH64_(CONDBR19|TSTBR14)' "$made/relocations"
}

emulated() {
	timeout -k 1 60 qemu-aarch64 -L /usr/$target "$@"
}

sections() {
	$target-gcc -std=gnu17 -D_GNU_SOURCE -O1 -g -I. \
		tests/arch_sections.c lib/arch/aarch64/sections.S \
		-o "$made/sections" && emulated "$made/sections"
}

codegen() {
	EDDY_SO=$made/libeddy.so OBJDUMP=$target-objdump \
		sh tests/arch_codegen.sh
}

cat >"$made/program.c" <<'END'
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *
work(void *arg)
{
	static __thread unsigned char *p[100];
	long bad = 0;

	for (unsigned i = 0; i < 5000; i++) {
		unsigned k = i * 7919u % 100;
		size_t n = 1 + i * 31u % (i % 64 != 0 ? 900 : 90000);

		bad += p[k] != NULL && p[k][0] != k;
		free(p[k]);
		p[k] = malloc(n);
		memset(p[k], (int)k, n);
	}
	for (unsigned k = 0; k < 100; k++)
		free(p[k]);
	return arg == NULL ? NULL : (void *)bad;
}

int
main(void)
{
	pthread_t t[2];
	void *bad;
	int status;

	/* 112: eddy's class for 100 */
	if (malloc_usable_size(malloc(100)) != 112)
		return 1;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, work, &bad) != 0)
			return 2;
	for (int i = 0; i < 2; i++)
		if (pthread_join(t[i], &bad) != 0 || bad != NULL)
			return 3;
	for (int i = 0; i < 3; i++) {
		pid_t child = vfork();

		if (child == 0) {
			free(malloc(100));
			_exit(7);
		}
		if (waitpid(child, &status, 0) != child ||
		    !WIFEXITED(status) || WEXITSTATUS(status) != 7)
			return 4;
	}
	return 0;
}
END

# A small range, since the emulator keeps books of every page of it.
run_dynamic() {
	$target-gcc -O1 -fno-builtin -pthread "$made/program.c" \
		-o "$made/dynamic" &&
		emulated -E EDDY_CONF=lg_range:30 \
			-E LD_PRELOAD="$made/libeddy.so" "$made/dynamic"
}

run_static() {
	rm -f "$made/libeddy.a"
	$target-ar rcs "$made/libeddy.a" "$made"/lib_*.o "$made"/numa_*.o &&
		$target-gcc -O1 -fno-builtin -pthread -static \
			"$made/program.c" "$made/libeddy.a" \
			-o "$made/static" &&
		emulated -E EDDY_CONF=lg_range:30 "$made/static"
}

# Every name that the assembly defines, from C.
generic() {
	compile "${CC:-cc}" lib/arch/generic/front.c "$made/front.o" &&
		nm "$made/front.o" | sed -n 's/.* T //p' | sort >"$made/has" &&
		sed -n 's/.*NAME(\([A-Za-z_][A-Za-z0-9_]*\), eddy_.*/\1/p' \
			lib/arch/names.h | sort >"$made/wants" &&
		[ "$(wc -l <"$made/wants")" -ge 20 ] &&
		[ -z "$(comm -13 "$made/has" "$made/wants")" ]
}

ok 'the C for other machines has every name' generic
ok 'the sections of aarch64 do what they should' sections
if ok 'the library of aarch64 compiles' compile_all; then
	ok 'its assembly carries its notes' notes
	ok 'its conditional branches stay in their file' branches
	if ok 'it links' link_all; then
		ok 'its hit paths are short' codegen
		ok 'a program runs under it' run_dynamic
	fi
	ok 'a program runs with it inside' run_static
fi
tap_end
