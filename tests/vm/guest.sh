#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# guest.sh - what is done in a virtual machine: guest.sh SUITE...
#
# A suite is a function of this file.  Each of its points is a line "ok - NAME"
# or "not ok - NAME", with what was said as "# " lines after the latter.  The
# shell is a busybox.  EDDY_VM=all: long, and everything.
#
# No point depends on time: machines are slow, and slower when others work.
# What has to happen is waited for.  Points that have not begun when half of
# EDDY_VM_SECONDS are gone are skipped; by the end of them the host ends all.
export EDDY_SO=/t/libeddy.so EDDY_PATIENCE=50
export EDDY_TIME=0.1
control=/sys/fs/cgroup
said=/tmp/said

if [ "${EDDY_VM:-}" = all ]; then
	EDDY_TIME=1
	operations=10000000
else
	operations=100000
fi

all()
{
	[ "${EDDY_VM:-}" = all ]
}

# Seconds until the host ends it all.
left()
{
	echo $((${EDDY_VM_SECONDS:-1000} - $(cut -d . -f 1 /proc/uptime)))
}

late()
{
	[ "$(left)" -lt $((${EDDY_VM_SECONDS:-1000} / 2)) ]
}

# verdict STATUS NAME - a point, from what lies in $said
verdict()
{
	case $1 in
	0) echo "ok - $2" ;;
	77) echo "ok - $2 # SKIP $(tail -n 1 $said | sed 's/^.*SKIP:* *//')" ;;
	*)
		echo "not ok - $2 (status $1)"
		grep -v '^ok ' $said | tail -n 30 | sed 's/^/# /'
		;;
	esac
}

# point NAME CMD...
point()
{
	name=$1
	shift
	if late; then
		skip "$name" 'no time left'
		return
	fi
	timeout -s KILL $(($(left) - 5)) "$@" >$said 2>&1
	verdict $? "$name"
}

# tell NAME CMD... - a point whose figures are worth a look in any case
tell()
{
	point "$@"
	sed -n -e '/EDDY_SEED/d' -e 's/^ok [0-9]* - /# /' -e '/^# /p' $said
}

skip()
{
	echo "ok - $1 # SKIP $2"
}

# ---- the tests of the functions and of surroundings ----

fronts()
{
	for program in /t/front_*; do
		case ${program#/t/front_} in
		aligned | errors | glibc_info | large | override | start_end) ;;
		*) all || continue ;;
		esac
		point "${program##*/}" "$program"
	done
}

environs()
{
	for program in /t/env_*; do
		case ${program#/t/env_} in
		dlopen | rseq) ;;
		*) all || continue ;;
		esac
		point "${program##*/}" "$program"
	done
}

sections()
{
	point arch_sections /t/arch_sections
	point 'pages move whole or not at all' /t/moves
}

mixed()
{
	LD_PRELOAD=$EDDY_SO EDDY_TIME=${EDDY_TIME}0 point 'mixed stress' \
		/t/mixed
}

# Huge pages that come unasked for.
huge()
{
	tell 'what is given back stays so beside khugepaged' \
		/t/khugepaged stays
	EDDY_CONF=thp:always tell 'thp:always: khugepaged takes it again' \
		/t/khugepaged fills
}

# Arenas in huge pages; khugepaged is given a minute to take back what they gave.
huge_arenas()
{
	tell 'pages of 2 MiB that were set aside' /t/huge_arenas 2M
	point 'huge pages lie on their node' /t/huge_arenas nodes
	seconds=5
	! all || seconds=60
	tell 'what arenas in huge pages give back stays so' \
		/t/huge_arenas thp $seconds
}

giant()
{
	tell 'a page of 1 GiB that was set aside' /t/huge_arenas 1G
}

# Without restartable sequences.
claims()
{
	export EDDY_CONF=rseq:false
	point 'front_large in claim mode' /t/front_large
	point 'front_aligned in claim mode' /t/front_aligned
	LD_PRELOAD=$EDDY_SO EDDY_TIME=${EDDY_TIME}0 \
		point 'mixed stress in claim mode' /t/mixed
	if all; then
		point 'front_sizes in claim mode' /t/front_sizes
		point 'front_threads in claim mode' /t/front_threads
		point 'env_signals in claim mode' /t/env_signals
	fi
	unset EDDY_CONF
}

# ---- nodes ----

pages()
{
	tell 'pages lie on the nodes of those who called' \
		/t/numa_pages $operations
	! all || EDDY_CONF=rseq:false tell 'so they do in claim mode' \
		/t/numa_pages $operations
}

# That the program can tell: one arena for all nodes must not pass.
blind()
{
	late && return
	EDDY_CONF=numa:off /t/numa_pages 100000 >$said 2>&1
	[ $? -eq 1 ]
	verdict $? 'with numa:off they do not'
}

arenas()
{
	point 'arenas of programs lie on their nodes, and move' /t/node_arenas
}

# Node 1 has less than that.
full_node()
{
	tell 'an arena that outgrows its node gets memory of others' \
		/t/node_arenas full 1 200
	taskset -c 2,3 /t/limits eat 200 >$said 2>&1
	[ $? -eq 3 ]
	verdict $? 'threads that outgrow their node get memory of others'
}

# Rooms of the library on their own, where /sys has several nodes.  Others make
# up their homes and take it that all memory lies on one node.
rooms()
{
	for program in numa_oracle numa_placement numa_policy numa_topology \
		numa_usable heap_homes ctl_bleed ctl_stats; do
		[ ! -x /t/$program ] || point $program /t/$program
	done
}

# By a policy that the process came with.
policies()
{
	point 'bound by its parent, a process stays on that node' \
		/t/policy bind 2 /t/numa_pages $operations 990 1
	point 'preferring a node by its parent, a process gets it' \
		/t/policy preferred 2 /t/numa_pages $operations 990 1
	point 'interleaved by its parent, a process works' \
		/t/policy interleave 3 /t/numa_pages $operations 0
}

# ---- the machine changes ----

groups()
{
	for controller in cpuset cpu memory; do
		echo +$controller >$control/cgroup.subtree_control || return 1
	done
}

# group NAME FILE=VALUE... - a cgroup, made or changed
group()
{
	mkdir -p "$control/$1"
	group_name=$1
	shift
	for setting; do
		echo "${setting#*=}" >"$control/$group_name/${setting%%=*}" ||
			return 1
	done
}

# within GROUP CMD... - a program, since timeout runs no functions
cat >/bin/within <<'END'
#!/bin/sh
echo $$ >"/sys/fs/cgroup/$1/cgroup.procs" || exit 99
shift
exec "$@"
END
chmod +x /bin/within

# churning [GROUP] - threads at work in the background
churning()
{
	: >/tmp/churn
	${1:+within "$1"} /t/churn >/tmp/churn 2>&1 &
	churn=$!
	churn_ok=0
	go_on
}

# Until each thread has done something since.
go_on()
{
	go_from=$(grep -c '^round' /tmp/churn)
	until [ "$(grep -c '^round' /tmp/churn)" -gt $((go_from + 1)) ]; do
		if [ "$(left)" -lt 10 ] || ! kill -0 "$churn"; then
			echo '# no progress' >>/tmp/churn
			churn_ok=1
			return 1
		fi
		usleep 100000
	done
}

# churned NAME - ends it
churned()
{
	kill -TERM "$churn"
	wait "$churn"
	churn_status=$?
	[ $churn_status -ne 0 ] || churn_status=$churn_ok
	grep -v '^round' /tmp/churn >$said
	verdict "$churn_status" "$1"
}

# Of two nodes with two CPUs each.
cpusets()
{
	late && return
	groups || {
		skip cpusets 'no cgroup v2 with cpuset'
		return
	}
	group set cpuset.mems=0 cpuset.cpus=0-1
	churning set
	rounds='1'
	! all || rounds='1 2 3 4'
	for _ in $rounds; do
		group set cpuset.mems=1 cpuset.cpus=2-3
		go_on
		group set cpuset.mems=0-1 cpuset.cpus=0-3
		go_on
		group set cpuset.mems=0 cpuset.cpus=3
		go_on
		group set cpuset.cpus=0-1
		go_on
	done
	churned 'threads go on while their cpuset changes'
	group set cpuset.mems=1 cpuset.cpus=2-3
	point 'in a cpuset of one node pages lie there' \
		within set /t/numa_pages $operations
	point 'arenas cannot be had on a node outside' \
		within set /t/node_arenas excluded 0
	group set cpuset.mems=0 cpuset.cpus=2-3
	point 'in a cpuset of distant memory pages lie there' \
		within set /t/numa_pages $operations
}

hotplug()
{
	late && return
	[ -w /sys/devices/system/cpu/cpu1/online ] || {
		skip hotplug 'CPUs cannot be taken offline'
		return
	}
	churning
	cpus='1 3'
	! all || cpus='1 2 3 1 2 3'
	for cpu in $cpus; do
		echo 0 >/sys/devices/system/cpu/cpu"$cpu"/online
		go_on
		echo 1 >/sys/devices/system/cpu/cpu"$cpu"/online
		go_on
	done
	churned 'threads go on while CPUs go and come'
	for cpu in 1 2 3; do
		echo 0 >/sys/devices/system/cpu/cpu"$cpu"/online
	done
	churning
	for cpu in 3 2 1; do
		echo 1 >/sys/devices/system/cpu/cpu"$cpu"/online
		go_on
	done
	churned 'CPUs may come that were offline at the start'
}

# ---- memory ends ----

overcommit()
{
	echo 60 >/proc/sys/vm/overcommit_ratio
	echo 2 >/proc/sys/vm/overcommit_memory
	tell 'without overcommit malloc says when memory ends' \
		/t/limits eat 4000
	tell 'so it does for blocks of 3 MiB' /t/limits eat 4000 3000000
	tell 'so it does for blocks of 100 bytes' /t/limits eat 1500 100
	if all; then
		point 'front_sizes without overcommit' /t/front_sizes
		point 'front_fork without overcommit' /t/front_fork
	fi
	churning
	churned 'threads go on without overcommit'
	echo 0 >/proc/sys/vm/overcommit_memory
}

killed_by_limit()
{
	within small /t/limits eat 400
	status=$?
	echo "# status $status, $(grep oom_kill $control/small/memory.events |
		tr '\n' ' ')"
	case $status in
	0) ;;
	137) grep -q '^oom_kill [1-9]' $control/small/memory.events ;;
	*) return 1 ;;
	esac
}

memory_limit()
{
	late && return
	groups || {
		skip memory.max 'no cgroup v2 with memory'
		return
	}
	group other memory.max=max
	group small memory.max=67108864 memory.swap.max=0
	churning other
	killed_by_limit >$said 2>&1
	verdict $? 'a process beyond memory.max is told or killed'
	grep '^# status' $said
	go_on
	churned 'its sibling goes on'
	point 'a process that keeps within memory.max lives' \
		within small /t/limits steady 16 14
	group small memory.high=33554432
	point 'so it does when memory.high presses' \
		within small /t/limits steady 16 7
	group small memory.high=max memory.max=67108864
	point 'heap_limit_share follows memory.max' \
		within small env EDDY_CONF=heap_limit_share:50 \
		/t/limits share $control/small/memory.max
	group small memory.max=268435456 memory.high=16777216
	point 'a program is told that its cgroup stalls for memory' \
		within small /t/limits pressure 64
	group small memory.high=max
}

cpu_limit()
{
	late && return
	groups || {
		skip cpu.max 'no cgroup v2 with cpu'
		return
	}
	group slow 'cpu.max=20000 100000'
	churning slow
	go_on
	group slow 'cpu.max=max 100000'
	go_on
	group slow 'cpu.max=150000 100000'
	go_on
	churned 'threads go on under changing cpu.max'
}

for suite; do
	$suite
done
