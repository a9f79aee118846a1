#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - boots one virtual machine and runs one command in it.
#
#   run.sh [OPTION]... COMMAND...
#     -k LABEL      kernel, a label of kernels.sh (amd64-6.12)
#     -t TOPOLOGY   nodes and CPUs, see below (one)
#     -m MIB        memory of each node (512)
#     -s SECONDS    the machine is ended then, as failed (300)
#     -f FILE[=NAME]  FILE, and the libraries it needs, lies in the guest's /t
#     -p WORDS      parameters of the guest's kernel
#     -c FILE       keeps the console
#
# The guest is a busybox in an initramfs: the command runs under its shell as
# root in /t, with /proc, /sys, /tmp and cgroup v2 mounted.  What it printed is
# printed, its status is the status; 125 if it did not come to its end, 77 with
# the reason as last line if no machine can be had.  All of qemu's devices but
# the console are off, and it emulates in software: slow, the same everywhere.
#
# A guest whose kernel dies before the command began says nothing about the
# library: it is booted again, three times at most.
#
# Topologies, of 4 CPUs:
#   one          1 node
#   two          2 nodes of 2 CPUs
#   four         4 nodes of 1 CPU, unequal distances
#   memory-only  2 nodes of 2 CPUs, a third node of memory alone
#   cpu-only     1 node of 2 CPUs, a second one of 2 CPUs without memory
#   interleaved  2 nodes of 2 CPUs, numbered 0 2 and 1 3
#   small        2 nodes of 2 CPUs, the second has 96 MiB
set -u

here=$(cd "$(dirname "$0")" && pwd)
label=amd64-6.12
topology=one
mib=512
seconds=300
parameters=
console=
files=

usage()
{
	sed -n '3,/^set -u$/s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

lacking()
{
	echo "SKIP: $*"
	exit 77
}

while getopts k:t:m:s:f:p:c: option; do
	case $option in
	k) label=$OPTARG ;;
	t) topology=$OPTARG ;;
	m) mib=$OPTARG ;;
	s) seconds=$OPTARG ;;
	f) files="$files $OPTARG" ;;
	p) parameters=$OPTARG ;;
	c) console=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage

case $label in
amd64-*)
	machine=x86_64
	qemu='qemu-system-x86_64'
	package='qemu-system-x86'
	cc=${CC:-cc}
	;;
arm64-*)
	machine=aarch64
	qemu='qemu-system-aarch64'
	package='qemu-system-arm'
	cc=aarch64-linux-gnu-gcc
	;;
*) usage ;;
esac
command -v $qemu >/dev/null || lacking "no $qemu: install $package"
command -v cpio >/dev/null || lacking 'no cpio: install cpio'
command -v readelf >/dev/null || lacking 'no readelf: install binutils'

work=$(mktemp -d) || exit 99
guest=
# shellcheck disable=SC2317 # the trap calls it
ended()
{
	[ -z "$guest" ] || kill "$guest" 2>/dev/null
	rm -rf "$work"
}
trap ended EXIT
trap 'exit 99' HUP INT TERM
root=$work/root
mkdir -p "$root/bin" "$root/lib" "$root/t"

# had LABEL - the folder that kernels.sh has for it
had()
{
	sh "$here/kernels.sh" "$1" >"$work/had" 2>&1 || {
		status=$?
		cat "$work/had"
		exit $status
	}
	tail -n 1 "$work/had"
}

# In the shell's own words, so that a skip inside ends all.
kernel=$(had "$label") || {
	status=$?
	echo "$kernel"
	exit $status
}
busybox=$(had "${label%%-*}-busybox") || {
	status=$?
	echo "$busybox"
	exit $status
}
cp "$busybox/busybox" "$root/bin/busybox" || exit 99

# add_needed FILE - the loader and the libraries that FILE asks for
add_needed()
{
	readelf -lW "$1" 2>/dev/null |
		sed -n 's/.*interpreter: \(.*\)\]/\1/p' >"$work/loader"
	readelf -dW "$1" 2>/dev/null |
		sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >"$work/needed"
	while read -r loader; do
		mkdir -p "$root$(dirname "$loader")"
		[ -e "$root$loader" ] ||
			cp -L "$($cc -print-file-name="${loader##*/}")" \
				"$root$loader" || exit 99
	done <"$work/loader"
	# A process that cancels a thread loads the last one by name.
	for library in $(cat "$work/needed") libgcc_s.so.1; do
		[ ! -e "$root/lib/$library" ] || continue
		cp -L "$($cc -print-file-name="$library")" \
			"$root/lib/$library" || exit 99
		add_needed "$root/lib/$library"
	done
}

for file in $files; do
	name=${file#*=}
	[ "$name" != "$file" ] || name=${file##*/}
	mkdir -p "$(dirname "$root/t/$name")"
	cp -L "${file%%=*}" "$root/t/$name" || exit 99
	if readelf -h "$root/t/$name" >/dev/null 2>&1; then
		add_needed "$root/t/$name"
	fi
done

echo "$*" >"$root/t/.command"
cat >"$root/init" <<'END'
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /sbin /usr/bin /usr/sbin /etc
/bin/busybox --install -s
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/t
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
ln -s /proc/self/fd /dev/fd
echo 'root:x:0:0:root:/t:/bin/sh' >/etc/passwd
cd /t
echo '@@begin'
sh /t/.command </dev/null 2>&1
echo "@@end $?"
poweroff -f
END
chmod +x "$root/init"
# Not compressed: to unpack it would cost the guest more than it saves.
(cd "$root" && find . | cpio -o -H newc --quiet) >"$work/initramfs" || exit 99

set -- "$qemu"
# node ID MIB [CPUS...] - a node; without memory if MIB is 0
total=0
nodes=
node()
{
	node_id=$1
	node_mib=$2
	shift 2
	nodes="$nodes -numa node,nodeid=$node_id"
	for node_cpus; do
		nodes="$nodes,cpus=$node_cpus"
	done
	[ "$node_mib" -gt 0 ] || return 0
	nodes="$nodes,memdev=m$node_id"
	nodes="$nodes -object memory-backend-ram,id=m$node_id,size=${node_mib}M"
	total=$((total + node_mib))
}
distance()
{
	nodes="$nodes -numa dist,src=$1,dst=$2,val=$3"
}
case $topology in
one) total=$mib ;;
two)
	node 0 "$mib" 0-1
	node 1 "$mib" 2-3
	distance 0 1 21
	;;
four)
	for i in 0 1 2 3; do
		node $i "$mib" $i
	done
	distance 0 1 12
	distance 0 2 20
	distance 0 3 32
	distance 1 2 32
	distance 1 3 20
	distance 2 3 12
	;;
memory-only)
	node 0 "$mib" 0-1
	node 1 "$mib" 2-3
	node 2 "$mib"
	distance 0 1 21
	distance 0 2 28
	distance 1 2 35
	;;
cpu-only)
	node 0 "$mib" 0-1
	node 1 0 2-3
	distance 0 1 21
	;;
interleaved)
	node 0 "$mib" 0 2
	node 1 "$mib" 1 3
	distance 0 1 21
	;;
small)
	node 0 "$mib" 0-1
	node 1 96 2-3
	distance 0 1 21
	;;
*) usage ;;
esac
case $machine in
x86_64)
	set -- "$@" -M q35 -cpu max
	parameters="console=ttyS0 no_timer_check tsc=reliable $parameters"
	;;
aarch64)
	# Signed pointers in a cheap way: the exact one takes half of the time.
	set -- "$@" -M virt,gic-version=3 -cpu max,pauth-impdef=on
	parameters="console=ttyAMA0 $parameters"
	;;
esac
# shellcheck disable=SC2086 # a list of arguments
set -- "$@" $nodes -accel tcg,thread=multi -smp 4 -m "${total}M" \
	-nodefaults -no-user-config -display none -monitor none \
	-serial stdio -no-reboot \
	-kernel "$kernel/vmlinuz" -initrd "$work/initramfs" \
	-append "quiet loglevel=3 panic=-1 rdinit=/init nowatchdog psi=1 \
cryptomgr.notests mitigations=off $parameters"

# until_begin - whether the guest comes up before a third of the time is gone
until_begin()
{
	left=$((seconds / 3))
	until grep -q '^@@begin' "$work/raw" || ! kill -0 "$guest" 2>/dev/null
	do
		left=$((left - 1))
		[ $left -gt 0 ] || return 1
		sleep 1
	done
}

for try in 1 2 3; do
	# Behind, so that a signal finds this shell awake.
	timeout -k 5 "$seconds" "$@" </dev/null >"$work/raw" 2>&1 &
	guest=$!
	until_begin || kill "$guest"
	wait "$guest"
	status=$?
	guest=
	tr -d '\r' <"$work/raw" >"$work/console"
	[ -z "$console" ] || cp "$work/console" "$console"
	# 1 is qemu's own: it cannot make such a machine.
	if grep -q '^@@begin' "$work/console" || [ "$status" -eq 1 ]; then
		break
	fi
	echo "# boot $try of $label did not come up (status $status)"
done

sed -n '/^@@begin/,/^@@end/p' "$work/console" | grep -v '^@@'
end=$(sed -n 's/.*@@end \([0-9]*\)$/\1/p' "$work/console" | tail -n 1)
if [ -z "$end" ]; then
	echo "# run.sh: $label, topology $topology: no end (status $status)"
	tail -n 20 "$work/console" | sed 's/^/# /'
	exit 125
fi
exit "$end"
