#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ctl_compat.sh - --enable-jemalloc-compat: programs that link -ljemalloc, ask
# pkg-config or jemalloc-config, or were linked to libjemalloc.so.2 elsewhere,
# run on eddy by the folder's name alone.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
src=${EDDY_SRCDIR:-$(dirname "$here")}
cc=${CC:-cc}
[ -x "$src/configure" ] || skip_all 'no configure: run autogen.sh'
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL LD_PRELOAD

root=$tap_work/root
lib=$root/lib/eddy/jemalloc
build() {
	mkdir -p "$tap_work/b" && cd "$tap_work/b" &&
	"$src/configure" CC="$cc" CFLAGS='-O2 -g0' --prefix="$root" \
		--libdir="$root/lib" --enable-jemalloc-compat &&
	make -j2 libeddy.la libjemalloc.la && make install-data &&
	make install-exec
}
ok 'it builds and installs' build || { tap_end; exit; }
apart() {
	[ "$(readelf -d "$lib/libjemalloc.so" |
		sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" = libjemalloc.so.2 ] &&
	[ -f "$lib/libjemalloc.so.2" ] && [ -f "$lib/libjemalloc.a" ] &&
	[ -z "$(find "$root" -name '*jemalloc*' ! -path '*/eddy/*' \
		! -name 'eddy-*')" ]
}
ok 'as libjemalloc.so.2, in a folder of its own' apart

cat >"$tap_work/a.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jemalloc/jemalloc.h>
#include <stdio.h>
#include <string.h>

/* Whether it runs on eddy, out of a file of name argv[1]. */
int
main(int argc, char **argv)
{
	const char *s = NULL;
	size_t n = sizeof(s);
	unsigned cpus;
	size_t m = sizeof(cpus);
	Dl_info where;
	void *p = mallocx(100, MALLOCX_ALIGN(64));

	if (p == NULL || sallocx(p, 0) != 128 ||
	    dladdr(dlsym(RTLD_DEFAULT, "mallctl"), &where) == 0)
		return 2;
	sdallocx(p, 100, MALLOCX_ALIGN(64));
	if (mallctl("version", &s, &n, NULL, 0) != 0 ||
	    strcmp(s, JEMALLOC_VERSION) != 0)
		return 3;
	/* jemalloc has no such name. */
	if (mallctl("eddy.cpus", &cpus, &m, NULL, 0) != 0)
		return 4;
	puts(where.dli_fname);
	return argc != 2 || strstr(where.dli_fname, argv[1]) == NULL;
}
END
linked() {
	"$cc" "$tap_work/a.c" -I"$root/include/eddy" -L"$lib" -ljemalloc \
		-o "$tap_work/a" -ldl &&
	LD_LIBRARY_PATH=$lib "$tap_work/a" libjemalloc.so.2
}
ok '-ljemalloc, with the folder first' linked
asked() {
	# shellcheck disable=SC2046 # flags
	PKG_CONFIG_PATH=$lib/pkgconfig "$cc" "$tap_work/a.c" \
		$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs \
			"jemalloc >= 5") -o "$tap_work/p" -ldl &&
	LD_LIBRARY_PATH=$lib "$tap_work/p" libjemalloc.so.2
}
if command -v pkg-config >/dev/null 2>&1; then
	ok 'pkg-config, by PKG_CONFIG_PATH' asked
else
	skip 'pkg-config, by PKG_CONFIG_PATH' 'no pkg-config'
fi
config() {
	config=$lib/bin/jemalloc-config
	for o in version revision config prefix bindir datadir includedir \
		libdir mandir cc cflags cppflags cxxflags ldflags libs help; do
		"$config" "--$o" || return
	done
	! "$config" --odd && ! "$config" || return
	[ "$("$config" --revision)" = 2 ] || return
	"$cc" "$tap_work/a.c" -I"$("$config" --includedir)" \
		-L"$("$config" --libdir)" -Wl,-rpath,"$("$config" --libdir)" \
		-ljemalloc -o "$tap_work/c" -ldl && "$tap_work/c" libjemalloc.so.2
}
ok 'jemalloc-config' config
inside() {
	"$cc" -rdynamic "$tap_work/a.c" -I"$root/include/eddy" \
		"$lib/libjemalloc.a" -o "$tap_work/in" -ldl &&
	"$tap_work/in" "$tap_work/in"
}
ok 'libjemalloc.a' inside

cat >"$tap_work/plain.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
int
main(void)
{
	Dl_info where;

	return dladdr(dlsym(RTLD_DEFAULT, "malloc"), &where) == 0 ||
	    strstr(where.dli_fname, "libjemalloc.so.2") == NULL;
}
END
wrapped() {
	"$cc" "$tap_work/plain.c" -o "$tap_work/plain" -ldl || return
	! "$tap_work/plain" && "$lib/bin/jemalloc.sh" "$tap_work/plain"
}
ok 'jemalloc.sh preloads it into a program that knows nothing of it' wrapped

# A client of Debian's libjemalloc2, as it comes.
server() {
	port=$(free_port)
	(cd "$tap_work" && exec env LD_LIBRARY_PATH="$lib" redis-server \
		--port "$port" --bind 127.0.0.1 --save '' --logfile \
		"$tap_work/log") &
	server=$!
	tap_started $server
	wait_for 10 sh -c "[ \"\$(redis-cli -p $port ping)\" = PONG ]"
}
on_eddy() {
	grep jemalloc "/proc/$server/maps"
	grep -qF "$lib/libjemalloc.so.2" "/proc/$server/maps" &&
	! grep jemalloc "/proc/$server/maps" | grep -qvF "$lib/"
}
at_work() {
	redis-cli -p "$port" eval \
		"for i = 1, 20000 do redis.call('set', 'k' .. i, i) end" 0 &&
	redis-cli -p "$port" memory purge | grep OK &&
	redis-cli -p "$port" memory stats | grep allocator.allocated &&
	redis-cli -p "$port" memory malloc-stats | grep eddy
}
if command -v redis-server >/dev/null 2>&1 &&
	ldd "$(command -v redis-server)" | grep -q libjemalloc.so.2; then
	ok 'redis-server starts by LD_LIBRARY_PATH alone' server
	ok 'and has no other libjemalloc.so.2' on_eddy
	ok 'and works, purges, and shows statistics of eddy' at_work
else
	skip 'redis-server by LD_LIBRARY_PATH' 'no redis-server on libjemalloc'
fi

gone() {
	make -C "$tap_work/b" uninstall && find "$root" ! -type d &&
	[ -z "$(find "$root" ! -type d)" ]
}
ok 'make uninstall leaves no file' gone
tap_end
