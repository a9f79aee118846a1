#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# env_prefix.sh - builds with --with-jemalloc-prefix: two of them, in programs
# that keep the C library's malloc, side by side, in plugins, in C++.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
src=${EDDY_SRCDIR:-$(dirname "$here")}
cc=${CC:-cc}
[ -x "$src/configure" ] || skip_all 'no configure: run autogen.sh'
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL LD_PRELOAD

# build FOLDER ARGUMENT... - a build, installed in FOLDER/root.
build() {
	mkdir -p "$1" && cd "$1" && shift &&
	"$src/configure" CC="$cc" CFLAGS='-O2 -g0' --prefix="$PWD/root" \
		--disable-shared "$@" &&
	make -j2 libeddy.la && make install-data &&
	make install-libLTLIBRARIES
}

je=$tap_work/je rjem=$tap_work/rjem
ok 'a build with the prefix je_' build "$je" --with-jemalloc-prefix=je_
ok 'one with _rjem_, TLS of any kind, a quantum of 8' build "$rjem" \
	--with-jemalloc-prefix=_rjem_ --disable-initial-exec-tls \
	--with-lg-quantum=3 --enable-experimental-smallocx
[ "$tap_failed" -eq 0 ] || { tap_end; exit; }

# Every name of the map but those that are the C library's or C++'s.
names() {
	sed -n '/global:/,/local:/s/^[[:blank:]]*\([a-z][a-z0-9_]*\);/\1/p' \
		"$src/lib/eddy.map" |
		grep -vxE 'pthread_create|thrd_create|vfork' |
		sed "s/^/$1/"
}
shown() {
	nm -g --defined-only "$1/root/lib/libeddy.a" |
		awk 'NF == 3 { print $3 }' | sort
}
shows() {
	names "$2" >"$tap_work/want"
	[ -z "${3:-}" ] || echo "$2$3" >>"$tap_work/want"
	sort -o "$tap_work/want" "$tap_work/want"
	shown "$1" | diff "$tap_work/want" -
}
ok 'the archive shows the names of the map with je_, and no others' \
	shows "$je" je_
ok 'and with _rjem_, and smallocx' shows "$rjem" _rjem_ \
	smallocx_0000000000000000000000000000000000000000

client() {
	"$cc" -O1 -fPIC -pthread -fno-builtin -DP="$1" \
		-I"$2/root/include/eddy" -c "$here/prefix_client.c" \
		-o "$tap_work/$1.o"
}
clients() {
	client je_ "$je" && client _rjem_ "$rjem"
}
ok 'a client of each' clients

cat >"$tap_work/both.c" <<'END'
#include <stdio.h>
int client_je_(void);
int client__rjem_(void);
int
main(void)
{
	int a = client_je_();
	int b = client__rjem_();
	int c = client_je_();

	printf("lines %d %d %d\n", a, b, c);
	return a != 0 || b != 0 || c != 0;
}
END
both() {
	"$cc" -pthread "$@" "$tap_work/both.c" "$tap_work/je_.o" \
		"$tap_work/_rjem_.o" "$je/root/lib/libeddy.a" \
		"$rjem/root/lib/libeddy.a" -o "$tap_work/both" -ldl &&
	"$tap_work/both"
}
ok 'two copies and the C library in one program' both
ok 'and in a static one' both -static
ok 'without rseq' env JE_EDDY_CONF=rseq:false _RJEM_EDDY_CONF=rseq:false \
	"$tap_work/both"

# What each reads is its own.
cat >"$tap_work/conf.c" <<'END'
#include <jemalloc/jemalloc.h>
int
main(void)
{
	je_free(je_malloc(1));
	return 0;
}
END
variables() {
	"$cc" -pthread -I"$je/root/include/eddy" "$tap_work/conf.c" \
		"$je/root/lib/libeddy.a" -o "$tap_work/conf" || return
	MALLOC_CONF=odd:1 EDDY_CONF=odd:1 "$tap_work/conf" \
		2>"$tap_work/err" || return
	[ ! -s "$tap_work/err" ] || return
	for v in JE_MALLOC_CONF JE_EDDY_CONF; do
		env "$v=odd:1" "$tap_work/conf" 2>"$tap_work/err" || return
		cat "$tap_work/err"
		grep -q "^<eddy>: $v: " "$tap_work/err" || return
	done
}
ok 'options come from JE_MALLOC_CONF and JE_EDDY_CONF alone' variables
linked() {
	strings -a "$tap_work/conf" | grep -x /etc/je_malloc.conf &&
	! strings -a "$tap_work/conf" | grep -x /etc/malloc.conf
}
ok 'and from the link /etc/je_malloc.conf' linked

# Macros of the header.
cat >"$tap_work/mangle.c" <<'END'
#define JEMALLOC_MANGLE
#include <jemalloc/jemalloc.h>
#include <string.h>
const char *malloc_conf = "narenas:1";
int
main(void)
{
	void *p = malloc(100);

	if (malloc_usable_size(p) != _rjem_malloc_usable_size(p) ||
	    je_sallocx(p, 0) != sallocx(p, 0))
		return 1;
	free(p);
	p = calloc(1, 24);
	/* The quantum of 8. */
	if (malloc_usable_size(p) != 24 || nallocx(40, 0) != 40)
		return 2;
	return strcmp(_rjem_malloc_conf, malloc_conf) != 0;
}
END
cat >"$tap_work/raw.c" <<'END'
#define JEMALLOC_NO_RENAME
#include <jemalloc/jemalloc.h>
/* As another translation: the declarations kept je_. */
void *
je_mallocx(size_t size, int flags)
{
	return flags == 7 ? malloc(size) : 0;
}
int
main(void)
{
	free(je_mallocx(1, 7));
	return 0;
}
END
header() {
	"$cc" -Wall -Werror -fno-builtin -pthread \
		-I"$rjem/root/include/eddy" "$@" "$rjem/root/lib/libeddy.a" \
		-o "$tap_work/header" && "$tap_work/header"
}
ok 'JEMALLOC_MANGLE' header "$tap_work/mangle.c"
ok 'JEMALLOC_NO_RENAME' header "$tap_work/raw.c"

# As Rust declares them.
cat >"$tap_work/ffi.c" <<'END'
#include <stddef.h>
#include <stdint.h>
typedef struct {
	void *ptr;
	size_t size;
} smallocx_return_t;
extern void *_rjem_mallocx(size_t, int);
extern void *_rjem_rallocx(void *, size_t, int);
extern size_t _rjem_xallocx(void *, size_t, size_t, int);
extern size_t _rjem_nallocx(size_t, int);
extern void _rjem_sdallocx(void *, size_t, int);
extern int _rjem_mallctl(const char *, void *, size_t *, void *, size_t);
extern smallocx_return_t
_rjem_smallocx_0000000000000000000000000000000000000000(size_t, int);
int
main(void)
{
	uint64_t e = 1;
	smallocx_return_t r;
	char *p = _rjem_mallocx(100, 4);

	p = _rjem_rallocx(p, 5000, 4);
	if (p == NULL || (uintptr_t)p % 16 != 0 ||
	    _rjem_xallocx(p, 5000, 0, 0) != _rjem_nallocx(5000, 0))
		return 1;
	_rjem_sdallocx(p, 5000, 4);
	r = _rjem_smallocx_0000000000000000000000000000000000000000(41, 0);
	if (r.ptr == NULL || r.size != 48)
		return 2;
	_rjem_sdallocx(r.ptr, 41, 0);
	return _rjem_mallctl("epoch", NULL, NULL, &e, sizeof(e));
}
END
ok 'used by declarations of the program' header "$tap_work/ffi.c"

# Plugins: all names stay inside, unloaded they are not.
cat >"$tap_work/load.c" <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static void *
run(void *arg)
{
	int (*f)(void) = (int (*)(void))arg;
	static __thread char tls[64];

	tls[0] = 1;
	return f() != 0 ? arg : NULL;
}
int
main(int argc, char **argv)
{
	pthread_t t;
	void *bad = NULL;

	for (int i = 1; i + 1 < argc; i += 2) {
		void *h = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		void *f = h != NULL ? dlsym(h, argv[i + 1]) : NULL;

		if (f == NULL) {
			puts(dlerror());
			return 2;
		}
		if (run(f) != NULL || pthread_create(&t, NULL, run, f) != 0 ||
		    pthread_join(t, &bad) != 0 || bad != NULL)
			return 1;
	}
	return 0;
}
END
plugin() {
	"$cc" -shared -pthread "$tap_work/$1.o" "$2/root/lib/libeddy.a" \
		-Wl,--exclude-libs,ALL -Wl,-Bsymbolic -Wl,-z,defs \
		-Wl,-z,nodelete -Wl,-z,text -o "$tap_work/$1.so" -ldl
}
plugins() {
	plugin je_ "$je" && plugin _rjem_ "$rjem" &&
	"$cc" -pthread "$tap_work/load.c" -o "$tap_work/load" -ldl &&
	"$tap_work/load" "$tap_work/je_.so" client_je_ \
		"$tap_work/_rjem_.so" client__rjem_
}
ok 'two plugins with a copy each' plugins
static_tls() {
	readelf -d "$tap_work/$1.so" | grep -q STATIC_TLS
}
dynamic_tls() {
	! static_tls _rjem_
}
ok 'one needs static TLS' static_tls je_
ok 'and one does not' dynamic_tls

cxx=${CXX:-g++}
if command -v "$cxx" >/dev/null 2>&1; then
	cat >"$tap_work/cxx.cc" <<'END'
#include <eddy/eddy.hpp>
#include <jemalloc/jemalloc.h>
#include <cstring>
#include <vector>

int
main()
{
	eddy::arena a;
	eddy::arena_resource r(a);
	std::pmr::vector<int> v(&r);
	unsigned n;
	size_t len = sizeof(n);
	void *p = new char[100];

	v.resize(1000);
	void *q = v.data();
	/* new is libstdc++'s, the arena's block is eddy's. */
	if (je_mallctl("arenas.lookup", &n, &len, &p, sizeof(p)) == 0 ||
	    je_mallctl("arenas.lookup", &n, &len, &q, sizeof(q)) != 0)
		return 1;
	delete[] static_cast<char *>(p);
	try {
		throw std::vector<int>(100);
	} catch (const std::vector<int> &) {
	}
	return 0;
}
END
	cxx_program() {
		"$cxx" -std=c++17 -pthread -I"$je/root/include" \
			-I"$je/root/include/eddy" "$tap_work/cxx.cc" \
			"$je/root/lib/libeddy.a" -o "$tap_work/cxx" &&
		"$tap_work/cxx"
	}
	ok 'a C++ program keeps its operator new' cxx_program
else
	skip 'a C++ program keeps its operator new' 'no g++'
fi
tap_end
