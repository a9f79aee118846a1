#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# urcu_install.sh - what `make install` leaves of libeddy-urcu can be found,
# linked and used by other builds: by pkg-config, by CMake, statically, from C++,
# with two flavours of liburcu in one process.
set -u

: "${EDDY_BUILDDIR:?}" "${CC:?}"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
# Of the make that runs this test, if any.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL LD_PRELOAD

n=0
failed=0
ok()
{
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/# /' "$tmp/log"
		failed=1
	fi
}

skip()
{
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

# Part of a program, of one flavour: hands over, waits, counts.
part()
{
	cat <<-EOF
	#include <stdlib.h>
	#include <$2>
	#include <eddy/urcu.h>

	void $1_enter(void)
	{
		rcu_register_thread();
		rcu_read_lock();
	}

	void $1_leave(void)
	{
		rcu_read_unlock();
		rcu_unregister_thread();
	}

	int $1_hand(int n)
	{
		while (n-- > 0)
			if (eddy_free_rcu(malloc(40)) != 0)
				return 0;
		return 1;
	}

	int $1_wait(void)
	{
		return eddy_rcu_barrier() == 0;
	}

	unsigned long $1_freed(void)
	{
		struct eddy_urcu_stats s;

		return eddy_rcu_stats(&s, sizeof(s)) == 0 ? s.freed_objects
							  : ~0ul;
	}
	EOF
}
part memb urcu.h >"$tmp/memb.c"
part qsbr urcu-qsbr.h >"$tmp/qsbr.c"

cat >"$tmp/one.c" <<'EOF'
int memb_hand(int n), memb_wait(void);
unsigned long memb_freed(void);

int main(void)
{
	return !memb_hand(1000) || !memb_wait() || memb_freed() != 1000;
}
EOF
# A reader of one flavour is not waited for in the other.
cat >"$tmp/two.c" <<'EOF'
void memb_enter(void), memb_leave(void);
int memb_hand(int n), memb_wait(void), qsbr_hand(int n), qsbr_wait(void);
unsigned long memb_freed(void), qsbr_freed(void);

int main(void)
{
	memb_enter();
	if (!memb_hand(100) || !qsbr_hand(70))
		return 2;
	if (!qsbr_wait() || qsbr_freed() != 70)
		return 3;
	if (memb_freed() != 0)
		return 4;
	memb_leave();
	return !memb_wait() || memb_freed() != 100 || qsbr_freed() != 70;
}
EOF
# That malloc is eddy's.
cat >"$tmp/eddy.c" <<'EOF'
#include <stddef.h>
int mallctl(const char *, void *, size_t *, void *, size_t);

__attribute__((constructor)) static void look(void)
{
	unsigned n = 0;
	size_t size = sizeof n;

	if (mallctl("eddy.homes", &n, &size, NULL, 0) != 0 || n == 0)
		__builtin_trap();
}
EOF

root=$tmp/root
make -C "$EDDY_BUILDDIR" install DESTDIR="$root" >"$tmp/log" 2>&1
ok $? "make install"
pc=$(find "$root" -name eddy-urcu.pc)
libdir=$(dirname "$(dirname "$pc")")
include=$(dirname "$(dirname "$(find "$root" -path '*/eddy/urcu.h')")")

# liburcu does not lie there, so that its flags come without this root.
flags()
{
	PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$libdir/pkgconfig \
		pkg-config "$@"
}

# build_and_run NAME SOURCES AND FLAGS: these are split where they have spaces.
build_and_run()
{
	what=$1
	shift
	{
		# shellcheck disable=SC2068
		$CC $@ -o "$tmp/prog" &&
		LD_LIBRARY_PATH=$libdir timeout 60 "$tmp/prog"
	} >"$tmp/log" 2>&1
	ok $? "$what"
}

one="$tmp/one.c $tmp/memb.c"
two="$tmp/two.c $tmp/memb.c $tmp/qsbr.c"
if command -v pkg-config >/dev/null 2>&1; then
	build_and_run "pkg-config finds the shared library" "$one" \
		"$(flags --cflags --libs eddy-urcu)" \
		"$(pkg-config --cflags --libs liburcu)"
	build_and_run "and eddy beside it" "$one" "$tmp/eddy.c" \
		"$(flags --cflags --libs eddy eddy-urcu)" \
		"$(pkg-config --cflags --libs liburcu)"
	build_and_run "two flavours in one process by one library" "$two" \
		"$(flags --cflags --libs eddy-urcu)" \
		"$(pkg-config --cflags --libs liburcu liburcu-qsbr)"
	archive=$($CC -print-file-name=liburcu-qsbr.a)
	for with in "" eddy; do
		name="all of it is linked statically${with:+, and eddy}"
		if [ ! -f "$archive" ]; then
			skip "$name" "liburcu has no archives"
			continue
		fi
		# shellcheck disable=SC2086
		build_and_run "$name" -static "$two" ${with:+"$tmp/eddy.c"} \
			"$(flags --static --cflags --libs $with eddy-urcu)" \
			"$(pkg-config --static --libs liburcu liburcu-qsbr)"
	done
else
	skip "pkg-config finds the libraries" "pkg-config is not here"
fi
build_and_run "it is found by hand, too" "$one" "-I$include" "-L$libdir" \
	-leddy-urcu -lurcu

name="the header is C++'s too"
if command -v "${CXX:-c++}" >/dev/null 2>&1; then
	printf '#include <%s>\n' urcu-qsbr.h eddy/urcu.h >"$tmp/a.cc"
	echo 'int f(void *p) { return eddy_free_rcu(p); }' >>"$tmp/a.cc"
	"${CXX:-c++}" -Wall -Werror "-I$include" -c "$tmp/a.cc" \
		-o "$tmp/a.o" >"$tmp/log" 2>&1
	ok $? "$name"
else
	skip "$name" "there is no C++ compiler"
fi

name="CMake finds the library, shared and static"
if command -v cmake >/dev/null 2>&1; then
	cat >"$tmp/CMakeLists.txt" <<-'EOF'
	cmake_minimum_required(VERSION 3.16)
	project(find_eddy_urcu C)
	find_package(eddy 0.1 REQUIRED)
	add_executable(shared two.c memb.c qsbr.c)
	target_link_libraries(shared eddy::urcu urcu urcu-qsbr)
	add_executable(fixed two.c memb.c qsbr.c)
	target_link_libraries(fixed eddy::urcu_static urcu urcu-qsbr)
	EOF
	{
		cmake -S "$tmp" -B "$tmp/c" -DCMAKE_C_COMPILER="${CC%% *}" \
			-DCMAKE_PREFIX_PATH="$(dirname "$libdir")" &&
		cmake --build "$tmp/c" &&
		timeout 60 "$tmp/c/shared" && timeout 60 "$tmp/c/fixed" &&
		ldd "$tmp/c/shared" | grep libeddy-urcu &&
		! ldd "$tmp/c/fixed" | grep libeddy-urcu
	} >"$tmp/log" 2>&1
	ok $? "$name"
else
	skip "$name" "cmake is not here"
fi

echo "1..$n"
exit "$failed"
