#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# autogen.sh - from a clone to a build.
#
#   ./autogen.sh             make ./configure, nothing else
#   ./autogen.sh TARGET...   the Debian packages that TARGET needs and that are
#                            missing, ./configure, its run, make TARGET...
#                            (all, check, demo, lint, bench, models, stress ...)
#
# Builds in ./build, unless this folder has been configured itself.
# CONFIGURE_ARGS holds further arguments of configure, JOBS the -j of make.
set -eu

cd "$(dirname "$0")"

say()
{
	printf 'autogen.sh: %s\n' "$*"
}

usage()
{
	cat <<-'EOF'
	./autogen.sh             make ./configure, nothing else
	./autogen.sh TARGET...   packages, ./configure, its run, make TARGET...
	                         (all, check, demo, lint, bench, models, stress ...)
	EOF
}

# What a target needs: package, the file that shows it is there without dpkg,
# and why.  "all" is needed by every target; bench-X needs what bench does.
packages()
{
	cat <<-'EOF'
	all autoconf autoreconf makes configure
	all automake automake makes Makefile.in
	all libtool libtoolize builds shared libraries
	all gcc gcc compiles
	all libc6-dev - headers of the C library
	all make make runs the build
	all libjansson-dev - eddyctl writes and reads JSON by it
	all libncurses-dev - eddyctl top draws by it
	all liburcu-dev - deferred frees, their tests and bench
	check chromium chromium draws the page of eddyctl map
	check tmux tmux a terminal for eddyctl top
	check g++ g++ tests operator new and delete
	check python3 python3 a program run on the library, and the tests' tool
	check redis-server redis-server a server run on the library
	check redis-tools redis-benchmark loads redis-server
	check memcached memcached a server run on the library
	check bind9 - a server run on the library, which calls mallocx
	check bind9-dnsutils dig asks it
	check varnish - a server run on the library
	check git git a program run on the library
	check sqlite3 sqlite3 a program run on the library
	check postgresql - a server run on the library
	check postgresql-contrib - pgbench, its load
	check binutils objdump looks at the instructions and symbols
	check valgrind valgrind an emulator that the library must bear
	check qemu-user qemu-x86_64 an emulator that the library must bear
	check strace strace counts system calls
	check gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc builds for aarch64
	check libc6-dev-arm64-cross - its headers and its C library
	check qemu-system-x86 qemu-system-x86_64 other kernels, nodes
	check qemu-system-arm qemu-system-aarch64 aarch64, its page sizes
	check cpio cpio packs what they boot
	check libjemalloc-dev jeprof reads heap profiles
	check google-perftools google-pprof reads heap profiles
	check python3-prometheus-client - reads what eddyctl exports
	check gnuplot-nox gnuplot eddyctl plots by it
	check zsh zsh parses the completion of eddyctl
	check libjemalloc2 - the peer that a test must see fail
	check libnuma-dev - sees the machine for itself, to compare
	check pkg-config pkg-config tests the installed package files
	check cmake cmake tests the installed package files
	demo redis-server redis-server a server run on the library
	demo redis-tools redis-benchmark loads redis-server
	demo python3 python3 a program run on the library
	vm gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc builds for aarch64
	vm libc6-dev-arm64-cross - its headers and its C library
	vm qemu-system-x86 qemu-system-x86_64 other kernels, nodes
	vm qemu-system-arm qemu-system-aarch64 aarch64, its page sizes
	vm cpio cpio packs what they boot
	vm binutils readelf tells which libraries a program needs
	lint clang-format clang-format checks the format
	lint shellcheck shellcheck checks the scripts
	lint mandoc mandoc checks the man pages
	lint g++ g++ compiles the headers as C++
	lint binutils readelf looks at the symbols
	models spin spin checks the models
	bench libjemalloc2 - a peer
	bench libmimalloc2.0 - a peer
	bench libtcmalloc-minimal4 - a peer
	bench python3 python3 compares
	bench gnuplot-nox gnuplot draws the plots
	bench strace strace counts system calls
	EOF
}

# Prints "package why" for what TARGET $1 needs and this system lacks.
missing()
{
	packages | while read -r target package _ why; do
		[ "$target" = all ] || [ "$target" = "${1%%-*}" ] || continue
		dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null |
			grep -q '^install ok installed$' ||
			printf '%s %s\n' "$package" "$why"
	done
}

# Names of the programs that TARGET $1 needs and that are nowhere on PATH.
missing_programs()
{
	packages | while read -r target _ program _; do
		[ "$target" = all ] || [ "$target" = "${1%%-*}" ] || continue
		[ "$program" = - ] ||
			command -v "$program" >/dev/null 2>&1 ||
			printf '%s ' "$program"
	done
}

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo "$@"
	else
		say "neither root nor sudo: cannot run $*" >&2
		exit 1
	fi
}

install_packages()
{
	if ! command -v dpkg-query >/dev/null 2>&1 ||
		! command -v apt-get >/dev/null 2>&1; then
		lacking=$(for t; do missing_programs "$t"; done |
			tr ' ' '\n' | sort -u | tr '\n' ' ')
		[ -z "$(printf %s "$lacking" | tr -d ' ')" ] ||
			say "no apt here; missing programs: $lacking"
		return
	fi
	lacking=$(for t; do missing "$t"; done | sort -u -k1,1)
	[ -n "$lacking" ] || return 0
	say "installing from Debian:"
	printf '%s\n' "$lacking" | while read -r package why; do
		printf '  %-24s %s\n' "$package" "$why"
	done
	names=$(printf '%s\n' "$lacking" | cut -d ' ' -f 1)
	# The package lists may be missing or old: renew them and try again.
	# shellcheck disable=SC2086 # a list of names
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -qy --no-install-recommends $names ||
	{
		as_root apt-get update -q
		# shellcheck disable=SC2086 # a list of names
		as_root env DEBIAN_FRONTEND=noninteractive \
			apt-get install -qy --no-install-recommends $names
	}
}

if [ $# -gt 0 ]; then
	case $1 in
	-*)
		usage
		exit 2
		;;
	esac
	install_packages "$@"
fi

if ! command -v autoreconf >/dev/null 2>&1; then
	say "autoreconf is missing; ./autogen.sh all installs it" >&2
	exit 1
fi
autoreconf -fi
[ $# -gt 0 ] || exit 0

if [ -f config.status ]; then
	say "building in place: this folder has been configured"
	configure=./configure
else
	say "building in ./build"
	mkdir -p build
	cd build
	configure=../configure
fi
# shellcheck disable=SC2086 # a list of arguments
$configure ${CONFIGURE_ARGS:-}
# Before a build of minutes; make's own database knows the targets.
make -rpq .PHONY >make.targets 2>/dev/null || :
for target; do
	case $target in
	-* | *=*) continue ;;
	esac
	if ! cut -d : -f 1 make.targets | grep -qxF -e "$target"; then
		rm make.targets
		say "no target is named $target" >&2
		usage >&2
		exit 2
	fi
done
rm make.targets
make -j"${JOBS:-$(nproc)}"
exec make "$@"
