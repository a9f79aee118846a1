#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# lint.sh [CHECK...] - what can be judged without running it; `make lint` calls
# it with the variables below, `make lint LINT_CHECKS=CHECK` runs one.  Prints "ok" or
# "FAIL" a check and exits 1 if one failed.
#
#   format   clang-format agrees          headers  each compiles alone
#   shell    shellcheck has no word       orders   memory orders are argued
#   man      mandoc has no word           layers   no room includes a higher one
#   words    nothing stands where it must not
#   symbols  the library shows its map, needs libc alone, is hardened
#   options  each option is read somewhere
#   awk      the table's faults stop the build
#   version  is the same wherever it is written
#   listed   every source is in a module.mk.am, so in a tarball
#   doc      what the documents name exists
# The checks are called by their names; awk programs are in single quotes.
# shellcheck disable=SC2317,SC2016
set -u

src=$(cd "$(dirname "$0")/.." && pwd)
build=${EDDY_BUILDDIR:-$src/build}
so=${EDDY_SO:-$build/.libs/libeddy.so}
CC=${CC:-cc}
AWK=${AWK:-awk}
arch=${EDDY_ARCH:-$(uname -m)}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

cd "$src" || exit 99

# Files of the tree under the folders given; nothing that a build made.
files()
{
	pattern=$1
	shift
	for d; do
		[ ! -d "$d" ] || find "$d" -name "$pattern" -type f
	done | sort
}

c_files()
{
	for p in '*.c' '*.h'; do
		files "$p" lib numa include tests stress bench tools
	done
}

# A program that is not there is a failure: a check that checks nothing must
# not look like one.
need()
{
	command -v "$1" >/dev/null 2>&1 && return 0
	echo "$1 is missing; ./autogen.sh lint installs it"
	return 1
}

check_format()
{
	need clang-format || return 1
	c_files | xargs clang-format --dry-run --Werror
}

check_shell()
{
	need shellcheck || return 1
	{
		echo autogen.sh
		echo .ci/run
		for d in scripts tests stress bench tools; do
			[ ! -d "$d" ] || find "$d" -type f -exec sh -c '
				for f; do
					head -n 1 "$f" |
					grep -qE "^#!.*[/ ](ba)?sh( |$)" &&
					echo "$f"
				done' sh {} +
		done
	} | sort -u | xargs shellcheck -x -P SCRIPTDIR
}

check_man()
{
	need mandoc || return 1
	{
		files '*.[1-9]' man
		[ "$build" = "$src" ] || files '*.[1-9]' "$build/man"
	} >"$tmp/pages"
	[ -s "$tmp/pages" ] || { echo "no page"; return 1; }
	# Pages name each other and those of other projects.
	xargs mandoc -T lint -W warning <"$tmp/pages" |
		grep -v 'referenced manual not found' >"$tmp/man"
	cat "$tmp/man"
	[ ! -s "$tmp/man" ]
}

check_headers()
{
	bad=0
	for h in $(files '*.h' lib numa include); do
		# Other machines' assembly is not for this compiler.
		case $h in
		lib/arch/"$arch"/*) ;;
		lib/arch/*/*) continue ;;
		esac
		# Twice, so that a missing guard shows.
		printf '#include "%s"\n#include "%s"\n' "$h" "$h" >"$tmp/h.c"
		"$CC" -std=gnu17 -Wall -Wextra -Wundef -Werror -fsyntax-only \
			-Wno-unused-function \
			-include "$build/eddy_config.h" \
			-I. -Iinclude -I"$build" -I"$build/include" \
			"$tmp/h.c" || bad=1
	done
	for h in $(files '*.h' include); do
		printf '#include <%s>\n' "${h#include/}" >"$tmp/h.c"
		cp "$tmp/h.c" "$tmp/h.cc"
		"$CC" -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only \
			-Iinclude -I"$build/include" "$tmp/h.c" || bad=1
		"$CC" -x c++ -std=c++11 -pedantic -Wall -Wextra -Werror \
			-fsyntax-only -Iinclude -I"$build/include" \
			"$tmp/h.cc" || bad=1
	done
	return "$bad"
}

check_orders()
{
	{ files '*.c' lib numa; files '*.h' lib numa; } |
		xargs "$AWK" -f scripts/check-orders.awk
}

check_layers()
{
	{ files '*.c' lib numa; files '*.h' lib numa; } | xargs "$AWK" '
	BEGIN {
		n = split("base arch os data heap prof ctl front", room, " ")
		for (i = 1; i <= n; i++)
			level[room[i]] = i
		# Beside data: none of them includes another.
		level["numa"] = level["policy"] = level["data"]
		# A library of its own, on os.
		level["urcu"] = level["data"]
		# The options and their reader stand on os alone.
		free["lib/ctl/ctl_gen.h"] = free["lib/ctl/conf.h"] = 1
	}
	function fault(m) { print FILENAME ":" FNR ": " m; bad++ }
	match($0, /^#[ \t]*include "[^"]+"/) {
		split($0, q, "\"")
		split(FILENAME, me, "/")
		if (q[2] ~ /\.c$/)
			fault("includes a .c")
		n = split(q[2], it, "/")
		if (q[2] in free || (it[1] != "numa" &&
		    (n < 3 || it[1] != "lib")))
			next
		# A room is a folder of lib/, or numa/.
		to = it[1] == "lib" ? it[2] : it[1]
		from = me[1] == "lib" ? me[2] : me[1]
		if (!(to in level))
			fault("no room " to)
		else if (level[to] > level[from])
			fault(from " includes " to ", which is above it")
		else if (level[to] == level[from] && to != from)
			fault(from " includes " to ", which is beside it")
	}
	END { exit bad > 0 }'
	status=$?
	# A file is known by its name; headers of programs are <FOLDER/NAME>.
	twice=$({ files '*.c' lib numa; files '*.h' lib numa; } |
		grep -v '^lib/arch/[^/]*/' | sed 's|.*/||' | sort | uniq -d)
	[ -z "$twice" ] || { echo "two files named $twice"; status=1; }
	return "$status"
}

# forbid WHY PATTERN FILE...: no line of the files has the pattern, comments
# included, unless what follows in ALLOW says so.
forbid()
{
	why=$1 pattern=$2
	shift 2
	[ $# -gt 0 ] || return 0
	grep -nEH -e "$pattern" "$@" >"$tmp/hits" || return 0
	if [ -n "${ALLOW:-}" ]; then
		grep -vE -e "$ALLOW" "$tmp/hits" >"$tmp/left"
	else
		cp "$tmp/hits" "$tmp/left"
	fi
	[ -s "$tmp/left" ] || return 0
	sed "s|\$|   <- $why|" "$tmp/left"
	return 1
}

check_words()
{
	bad=0
	ALLOW=
	lib=$({ files '*.c' lib numa; files '*.h' lib numa include; })
	all=$(c_files; files '*.sh' scripts tests stress bench tools
		files '*.S' lib; files '*.am' . ; files '*.awk' scripts)
	all=$(printf '%s\n' "$all" | grep -vxF scripts/lint.sh)
	# shellcheck disable=SC2086 # lists of files
	{
		forbid "finish it" 'TODO|FIXME|(^|[^X])XXX([^X]|$)' $all || bad=1
		forbid "a path of one machine" \
			'(^|[^A-Za-z0-9_.])/(home|root|Users)/' $all || bad=1
		ALLOW='^lib/os/os\.c:.*FUTEX_WAIT_BITSET_PRIVATE'
		forbid "nobody waits here" \
			'pthread_(mutex|spin|rwlock|cond)_|sched_yield *\(|nanosleep *\(|usleep *\(|FUTEX_WAIT' \
			$lib || bad=1
		ALLOW='^lib/(os/os|heap/wake|urcu/helper)\.[ch]:'
		forbid "background threads alone sleep" \
			'eddy_os_futex_wait' $lib || bad=1
		ALLOW='^lib/(arch|os)/'
		forbid "assembly and system calls live in lib/arch, lib/os" \
			'(^|[^a-z_])(__)?asm(__)?[ (]|__volatile__|[^a-z_]syscall *\(|[^a-z_](mmap|munmap|madvise|mprotect|mremap|mbind) *\(' \
			$lib || bad=1
		ALLOW='__volatile__'
		forbid "atomic.h instead" \
			'(^|[^a-z_])volatile([^a-z_]|$)|__sync_|__atomic_' \
			$lib || bad=1
		ALLOW='^lib/base/atomic\.h:'
		forbid "atomic.h instead" \
			'atomic_[a-z_]+_explicit|memory_order_' $lib || bad=1
		# Calls, and format attributes and comments are none.
		ALLOW='__attribute__|^[^:]*:[0-9]+:[[:blank:]]*/?\*'
		forbid "allocates or locks" \
			'(^|[^a-z_])(v|f|s|vf|sn|vsn|d)?printf *\(|(^|[^a-z_])(getenv|strtou?ll?|perror|strerror) *\(' \
			$lib || bad=1
	}
	ALLOW=
	# Each source names its licence.
	for f in $all; do
		case $f in
		*Makefile.in) continue ;;
		esac
		head -n 3 "$f" | grep -q 'SPDX-License-Identifier' ||
			{ echo "$f: no SPDX line"; bad=1; }
	done
	return "$bad"
}

# The names that map $1 makes global.
map_names()
{
	sed -e 's/#.*//' -e 's|/\*.*\*/||' "$1" |
		tr ';' '\n' |
		"$AWK" '/global:/ { on = 1; sub(/.*global:/, "") }
			/local:/ { on = 0 }
			on && NF { print $1 }' | sort
}

# symbols_of LIBRARY MAP - what it shows, what it needs.
symbols_of()
{
	[ -f "$1" ] || { echo "$1 is not built"; bad=1; return; }
	readelf -W --dyn-syms "$1" |
		"$AWK" '$5 ~ /GLOBAL|WEAK|UNIQUE/ && $7 != "UND" &&
			$7 ~ /[0-9]|ABS/ {
			sub(/@.*/, "", $8)
			# The version of the interface itself.
			if ($8 !~ /^EDDY_/) print $8 }' | sort >"$tmp/have"
	map_names "$2" >"$tmp/want"
	diff "$tmp/want" "$tmp/have" >"$tmp/diff" || {
		echo "$2 (<) and what ${1##*/} shows (>) differ:"
		grep '^[<>]' "$tmp/diff"
		bad=1
	}
	readelf -dW "$1" >"$tmp/dyn"
	needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$tmp/dyn")
	[ "$needed" = libc.so.6 ] ||
		{ echo "$1 needs more than libc.so.6:" "$needed"; bad=1; }
	grep -q TEXTREL "$tmp/dyn" && { echo "$1: text relocations"; bad=1; }
	grep -q NODELETE "$tmp/dyn" || { echo "$1: not -z nodelete"; bad=1; }
	readelf -lW "$1" | grep GNU_STACK | grep -q RWE &&
		{ echo "$1: executable stack"; bad=1; }
}

check_symbols()
{
	need readelf || return 1
	bad=0
	symbols_of "$so" lib/eddy.map
	# Where there is no liburcu, there is no such library.
	! grep -q '^URCU_TRUE = *$' "$build/Makefile" ||
		symbols_of "${so%libeddy.so}libeddy-urcu.so" \
			lib/urcu/eddy-urcu.map
	# What is assembled must carry the notes that the compiler writes.
	for s in $(files '*.S' "lib/arch/$arch"); do
		base=${s##*/}
		found=$(find "$build" -name "*-${base%.S}.o" -o \
			-name "${base%.S}.o" | grep -F arch | head -n 1)
		[ -n "$found" ] || { echo "$s: no object"; bad=1; continue; }
		readelf -SW "$found" >"$tmp/sections"
		grep -qF .note.GNU-stack "$tmp/sections" ||
			{ echo "$s: no .note.GNU-stack"; bad=1; }
		readelf -nW "$found" | grep -qE 'IBT, SHSTK|BTI' ||
			{ echo "$s: no CET or BTI property"; bad=1; }
	done
	return "$bad"
}

check_options()
{
	bad=0
	sources=$(files '*.c' lib numa; files '*.h' lib numa)
	sources=$(printf '%s\n' "$sources" | grep -v '^lib/ctl/conf[a-z_]*\.[ch]$')
	fields=$(sed -n 's/^field: *//p' lib/ctl/ctl.tab | sort -u)
	for f in $fields; do
		case $f in
		abort_conf | confirm_conf) continue ;;
		esac
		# shellcheck disable=SC2086 # a list of files
		grep -qE "(->|\.)$f([^a-z0-9_]|$)" $sources ||
			{ echo "nothing reads option $f"; bad=1; }
	done
	return "$bad"
}

# The generator refuses a table with a fault in it.
check_awk()
{
	bad=0
	gen="$AWK -v out=names-c -f scripts/gen-names.awk -f scripts/gen-ctl.awk"
	$gen lib/ctl/ctl.tab >"$tmp/good" || bad=1
	for edit in '/^since: /d' 's/^kind: opt/kind: odd/' \
		's/^type: bool/type: boolean/' 's/^default: 44/default: 47/' \
		's/^name: zero$/name: abort/' 's/^name: check/name: xcheck/' \
		's/^unit:/units:/' 's/^field: zero$/field: junk/' \
		's/ stats_interval_opts$/& zzz aaa/' \
		's/ stats_interval_opts$/ tcache/' \
		's/^access: rw/access: wr/' 's/^answer: fixed//' \
		's/^name: stats.active/name: stats.zactive/' \
		's/^name: opt.narenas/name: opt.zero/' \
		's/^name: arenas.bin.<i>$/name: arenas.bin.<j>/' \
		's/opt.metadata_thp=disabled/opt.metadata_thp/' 's/opt.retain=true/opt.retain=1/' \
		's/opt.retain=/opt.tcache=/'; do
		sed "$edit" lib/ctl/ctl.tab >"$tmp/tab"
		cmp -s "$tmp/tab" lib/ctl/ctl.tab &&
			{ echo "$edit changes nothing"; bad=1; }
		$gen "$tmp/tab" >"$tmp/out" 2>"$tmp/err" &&
			{ echo "a table after $edit passes"; bad=1; }
		grep -q '^ctl.tab: ' "$tmp/err" ||
			{ echo "$edit: no word why"; bad=1; }
	done
	return "$bad"
}

check_version()
{
	header=include/eddy/eddy.h
	want=$(sed -n 's/^AC_INIT(\[eddy\], \[\(.*\)\].*/\1/p' configure.ac)
	have=$(sed -n 's/^#define EDDY_VERSION_STRING *"\(.*\)"/\1/p' "$header")
	for part in MAJOR MINOR PATCH; do
		sed -n "s/^#define EDDY_VERSION_$part *//p" "$header"
	done | paste -sd . >"$tmp/parts"
	[ "$have" = "$want" ] && [ "$(cat "$tmp/parts")" = "$want" ] && return
	echo "configure.ac has $want, $header $have and $(cat "$tmp/parts")"
	return 1
}

check_listed()
{
	bad=0
	[ -n "${EDDY_DISTFILES:-}" ] || { echo "only under make"; return 1; }
	for d in lib numa include tests stress bench tools scripts man; do
		[ ! -d "$d" ] || find "$d" -type f ! -name '*.mk.am' \
			! -path '*/__pycache__/*'
	done | grep -v '/\.' | sort >"$tmp/files"
	printf '%s\n' "$EDDY_DISTFILES" | tr ' ' '\n' |
		sed "s|^$EDDY_SRCDIR/||" | sort -u >"$tmp/named"
	# What git ignores is made, in a build in place.
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files -o -i --exclude-standard | sort >"$tmp/made"
		comm -23 "$tmp/files" "$tmp/made" >"$tmp/sources"
	else
		grep -v -e '\.l\{0,1\}o$' -e '/\.' "$tmp/files" >"$tmp/sources"
	fi
	while read -r f; do
		grep -qxF -e "$f" "$tmp/named" ||
			{ echo "no module.mk.am names $f"; bad=1; }
	done <"$tmp/sources"
	return "$bad"
}

check_doc()
{
	sh scripts/check-doc.sh
}

[ $# -gt 0 ] || set -- format shell man headers orders layers words symbols \
	options awk version listed doc
failed=0
for check; do
	if "check_$check" >"$tmp/report" 2>&1; then
		echo "ok   $check"
	else
		echo "FAIL $check"
		sed 's/^/     /' "$tmp/report"
		failed=1
	fi
done
exit "$failed"
