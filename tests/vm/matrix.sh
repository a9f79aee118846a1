#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# matrix.sh - the virtual machines, and what each of them does.
#
#   matrix.sh [-a] [NAME...]   the quick ones; -a: all, at length; NAMEs: these
#   matrix.sh -l               lists them
#
# One point per behaviour, named after its machine.  Two machines at a time
# (EDDY_VM_JOBS).  EDDY_SO, EDDY_BUILDDIR and EDDY_SRCDIR as for every test.
# The quick ones come to their end in two minutes on two idle processors; those
# that have not begun after EDDY_VM_BUDGET seconds (240) are skipped.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
src=$(cd "${EDDY_SRCDIR:-$here/../..}" && pwd)
build=$(cd "${EDDY_BUILDDIR:-.}" && pwd)

# NAME KERNEL TOPOLOGY MIB KIND SUITE...   KIND: quick, or all for all alone
#
# MIB of each node.  The tests of the functions want 2 GiB in all; with less
# than 512 MiB a kernel makes no huge pages.
machines()
{
	cat <<-'END'
	old amd64-6.1 two 640 quick sections fronts environs pages hotplug mixed huge huge_arenas
	memory-only amd64-6.12 memory-only 512 quick pages blind cpusets arenas
	arm64-16k arm64-6.12-16k two 640 quick sections fronts claims pages
	four amd64-6.12 four 384 quick pages blind memory_limit cpu_limit
	arm64-4k arm64-6.12 two 640 quick sections environs mixed pages
	cpu-only amd64-6.12 cpu-only 1024 quick pages arenas overcommit
	small amd64-6.12 small 768 quick full_node policies
	two amd64-6.12 two 1024 all pages blind cpusets hotplug arenas rooms
	four-rooms amd64-6.12 four 640 all rooms arenas
	interleaved amd64-6.12 interleaved 768 all pages hotplug
	old-one amd64-6.1 one 2560 all fronts environs mixed claims
	new-one amd64-6.12 one 2560 all fronts environs mixed claims huge huge_arenas
	giant amd64-6.12 one 5120 all giant
	limits amd64-6.1 one 2048 all overcommit memory_limit cpu_limit
	arm64-16k-one arm64-6.12-16k one 2560 all fronts environs mixed
	arm64-16k-two arm64-6.12-16k two 1280 all blind hotplug cpusets arenas
	arm64-4k-one arm64-6.12 one 2560 all fronts environs mixed claims huge huge_arenas
	arm64-old arm64-6.1 one 2560 all sections fronts environs
	END
}

if [ "${1:-}" = -l ]; then
	machines
	exit 0
fi
EDDY_VM=quick
budget=${EDDY_VM_BUDGET:-240}
seconds=300
if [ "${1:-}" = -a ]; then
	EDDY_VM=all
	budget=${EDDY_VM_BUDGET:-100000}
	seconds=5000
	shift
fi
export EDDY_VM
started=$(date +%s)

[ "$(uname -m)" = x86_64 ] || skip_all 'written for builds on x86-64'
[ -n "${EDDY_SO:-}" ] || skip_all 'no EDDY_SO'
needs qemu-system-x86_64 qemu-system-x86
needs cpio cpio
needs readelf binutils

# programs FOLDER - an option for each program of a folder that goes along
programs()
{
	for program in "$1"/front_* "$1"/env_* "$1"/numa_* "$1"/heap_* \
		"$1"/ctl_* "$1"/arch_sections "$1"/mixed "$1"/churn \
		"$1"/huge_arenas "$1"/khugepaged "$1"/limits "$1"/moves "$1"/node_arenas \
		"$1"/policy; do
		case ${program##*/} in
		*.* | ctl_child*) continue ;;
		esac
		[ ! -f "$program" ] || printf ' -f %s' "$program"
	done
}

# The programs of this system, gathered from where they were built.
native()
{
	mkdir "$tap_work/native"
	for program in "$build"/tests/* "$build"/tests/vm/* \
		"$build/stress/mixed"; do
		[ ! -x "$program" ] || [ ! -f "$program" ] ||
			ln -s "$program" "$tap_work/native/${program##*/}"
	done
	native_files="$(programs "$tap_work/native") -f $EDDY_SO=libeddy.so"
}

arm64_files=
arm64_lacks=
arm64()
{
	made=$build/tests/vm/arm64
	for program in qemu-system-aarch64:qemu-system-arm \
		aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu; do
		command -v "${program%:*}" >/dev/null || {
			arm64_lacks="no ${program%:*}: install ${program#*:}"
			return
		}
	done
	if ! make -s -j2 -f "$here/cross.mk" SRC="$src" OUT="$made" \
		AWK="${AWK:-awk}" >"$tap_work/cross" 2>&1; then
		sed 's/^/# /' "$tap_work/cross"
		arm64_lacks='FAILED'
		return
	fi
	arm64_files="$(programs "$made") -f $made/libeddy.so"
}

# fetch_kernels LABEL... - before the lanes; where one cannot be downloaded, no
# other is tried.
fetch_kernels()
{
	for label; do
		timeout 240 sh "$here/kernels.sh" "$label" \
			"${label%%-*}-busybox" >"$tap_work/fetched" 2>&1 &&
			continue
		EDDY_VM_OFFLINE=1
		export EDDY_VM_OFFLINE
		tail -n 1 "$tap_work/fetched" | sed 's/^SKIP: //' \
			>"$tap_work/lacks-$label"
	done
}

# run_machine NAME KERNEL TOPOLOGY MIB KIND SUITE... - what it does goes to
# standard output, its console to a file of its name
run_machine()
{
	name=$1
	kernel=$2
	topology=$3
	mib=$4
	files=$native_files
	lacks=
	more=
	# Later there is often no such page to be had.
	[ "$name" != giant ] || more=' hugepagesz=1G hugepages=1'
	[ ! -f "$tap_work/lacks-$kernel" ] ||
		lacks=$(cat "$tap_work/lacks-$kernel")
	case $kernel in
	arm64-*)
		files=$arm64_files
		lacks=${arm64_lacks:-$lacks}
		;;
	esac
	if [ "$lacks" = FAILED ]; then
		echo 'not ok - the cross build'
		return
	elif [ -n "$lacks" ]; then
		echo "ok - all # SKIP $lacks"
		return
	fi
	shift 5
	began=$(date +%s)
	if [ $((began - started)) -gt "$budget" ]; then
		echo "ok - all # SKIP no time: $((began - started)) s are gone"
		return
	fi
	# shellcheck disable=SC2086 # a list of options
	sh "$here/run.sh" -k "$kernel" -t "$topology" -m "$mib" \
		-s "$seconds" -c "$tap_work/$name.console" \
		-p "numa_balancing=disable$more" -f "$here/guest.sh" $files \
		"EDDY_VM=$EDDY_VM EDDY_VM_SECONDS=$seconds sh /t/guest.sh $*" &
	booted=$!
	wait $booted
	status=$?
	booted=
	if [ "$status" -ne 0 ]; then
		echo "not ok - it comes to its end (status $status)"
	fi
	echo "# $(($(date +%s) - began)) s"
}

# One of the lanes: takes the next machine that no other has taken.
lane()
{
	booted=
	trap 'kill $booted 2>/dev/null; exit 99' TERM
	while read -r name rest; do
		mkdir "$tap_work/taken-$name" 2>/dev/null || continue
		# shellcheck disable=SC2086 # a list of words
		run_machine "$name" $rest >"$tap_work/$name.out" 2>&1
	done <"$tap_work/machines"
}

# Numbers the points of a machine.
publish()
{
	while IFS= read -r line; do
		case $line in
		'ok - '*)
			tap_n=$((tap_n + 1))
			echo "ok $tap_n - $1: ${line#ok - }"
			;;
		'not ok - '*)
			tap_n=$((tap_n + 1))
			tap_failed=$((tap_failed + 1))
			echo "not ok $tap_n - $1: ${line#not ok - }"
			;;
		'# '*) echo "# $1: ${line#\# }" ;;
		*) echo "# $1: $line" ;;
		esac
	done <"$tap_work/$1.out"
}

machines | while read -r name kernel topology mib kind suites; do
	if [ $# -gt 0 ]; then
		case " $* " in *" $name "*) ;; *) continue ;; esac
	elif [ "$EDDY_VM" = quick ] && [ "$kind" = all ]; then
		continue
	fi
	echo "$name $kernel $topology $mib $kind $suites"
done >"$tap_work/machines"
[ -s "$tap_work/machines" ] || skip_all "no machine is named $*"

native
# shellcheck disable=SC2046 # a list of labels
fetch_kernels $(cut -d ' ' -f 2 "$tap_work/machines" | sort -u)
! grep -q ' arm64-' "$tap_work/machines" || arm64
jobs=${EDDY_VM_JOBS:-2}
while [ "$jobs" -gt 0 ]; do
	lane &
	tap_started $!
	lanes="${lanes:-} $!"
	jobs=$((jobs - 1))
done
# shellcheck disable=SC2086 # a list of ids
wait $lanes
# They are gone: their ids may be others' now.
tap_pids=
while read -r name _; do
	publish "$name"
done <"$tap_work/machines"
tap_end
