#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# ctl_install.sh - what `make install` leaves can be found and linked by other
# builds: by pkg-config, by CMake, statically.
set -u

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
	echo "ok $n - $1 # SKIP $2 is not here"
}

root=$tmp/root
make -C "$EDDY_BUILDDIR" install DESTDIR="$root" >"$tmp/log" 2>&1
ok $? "make install"

pc=$(find "$root" -name eddy.pc)
libdir=$(dirname "$(dirname "$pc")")
cat >"$tmp/a.c" <<'EOF'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char *const eddy_version;

/* Whether the version is argv[1] and malloc lives in a file of name argv[2]. */
int main(int argc, char **argv)
{
	const char *file;
	Dl_info where;
	void *p = malloc(100);

	if (argc != 3 || p == NULL ||
	    dladdr(dlsym(RTLD_DEFAULT, "malloc"), &where) == 0)
		return 2;
	free(p);
	file = strrchr(where.dli_fname, '/');
	file = file != NULL ? file + 1 : where.dli_fname;
	printf("%s, malloc of %s\n", eddy_version, file);
	return strcmp(eddy_version, argv[1]) != 0 ||
	    strncmp(file, argv[2], strlen(argv[2])) != 0;
}
EOF
version=$(sed -n 's/^Version: //p' "$pc")

name="pkg-config finds the shared library"
if command -v pkg-config >/dev/null 2>&1; then
	export PKG_CONFIG_SYSROOT_DIR="$root"
	export PKG_CONFIG_PATH="$libdir/pkgconfig"
	# shellcheck disable=SC2046 # flags
	{
		$CC $(pkg-config --cflags eddy) "$tmp/a.c" -o "$tmp/a" \
			-Wl,--no-as-needed $(pkg-config --libs eddy) -ldl &&
		LD_LIBRARY_PATH=$libdir "$tmp/a" "$version" libeddy.so
	} >"$tmp/log" 2>&1
	ok $? "$name"
else
	skip "$name" pkg-config
fi

$CC -rdynamic "$tmp/a.c" -o "$tmp/b" "$libdir/libeddy.a" -ldl >"$tmp/log" \
	2>&1 && "$tmp/b" "$version" b >>"$tmp/log" 2>&1
ok $? "the archive links, and serves malloc"

name="CMake finds both libraries, and not of another version"
if command -v cmake >/dev/null 2>&1; then
	cat >"$tmp/CMakeLists.txt" <<-'EOF'
	cmake_minimum_required(VERSION 3.16)
	project(find_eddy C)
	find_package(eddy 9 QUIET)
	if(eddy_FOUND)
	  message(FATAL_ERROR "version 9 found")
	endif()
	find_package(eddy 0.1 REQUIRED)
	add_executable(shared a.c)
	target_link_libraries(shared -Wl,--no-as-needed eddy::eddy dl)
	add_executable(fixed a.c)
	set_target_properties(fixed PROPERTIES ENABLE_EXPORTS ON)
	target_link_libraries(fixed eddy::static dl)
	EOF
	{
		cmake -S "$tmp" -B "$tmp/c" -DCMAKE_C_COMPILER="${CC%% *}" \
			-DCMAKE_PREFIX_PATH="$(dirname "$libdir")" &&
		cmake --build "$tmp/c" &&
		"$tmp/c/shared" "$version" libeddy.so &&
		"$tmp/c/fixed" "$version" fixed
	} >"$tmp/log" 2>&1
	ok $? "$name"
else
	skip "$name" cmake
fi

make -C "$EDDY_BUILDDIR" uninstall DESTDIR="$root" >"$tmp/log" 2>&1
find "$root" ! -type d >>"$tmp/log"
[ -z "$(find "$root" ! -type d)" ]
ok $? "make uninstall leaves no file"

echo "1..$n"
exit "$failed"
