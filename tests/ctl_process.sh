#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# ctl_process.sh - options from where a process has them, and what it prints:
# one line a fault, otherwise nothing.
set -u

child=$EDDY_BUILDDIR/tests/ctl_child
linked=$EDDY_BUILDDIR/tests/ctl_child_static
own=$EDDY_BUILDDIR/tests/ctl_child_own
own_static=$EDDY_BUILDDIR/tests/ctl_child_own_static

tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
unset MALLOC_CONF EDDY_CONF

n=0
failed=0

# ok NAME STATUS LINE...: the program just run ended with STATUS and its
# standard error is these lines.
ok()
{
	name=$1 want=$2
	shift 2
	n=$((n + 1))
	: >"$tmp/want"
	[ $# -eq 0 ] || printf '%s\n' "$@" >"$tmp/want"
	if [ "$status" -eq "$want" ] && cmp -s "$tmp/want" "$tmp/err"; then
		echo "ok $n - $name"
		return
	fi
	echo "not ok $n - $name"
	failed=1
	echo "# status $status, stderr (<: wanted, >: got):"
	diff "$tmp/want" "$tmp/err" | sed 's/^/# /'
}

skip()
{
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

# run COMMAND...: with its standard error in $tmp/err, its end in $status.
run()
{
	# In a shell of its own, whose word of a signal is not the program's.
	(exec "$@" 2>"$tmp/err") 2>/dev/null
	status=$?
}

preloaded()
{
	run env LD_PRELOAD="$EDDY_SO" "$@"
}

maybe='tcache: "maybe" is not true or false'

preloaded "$child"
ok "no options: not a word" 0
run env -i LD_PRELOAD="$EDDY_SO" "$child"
ok "an empty environment: not a word" 0
preloaded MALLOC_CONF=tcache:false EDDY_CONF=zero:true,tcache:true "$child"
ok "good options: not a word" 0
preloaded MALLOC_CONF=narenas:1,background_thread:true,lg_tcache_max:16,prof:true,dirty_decay_ms:5000 "$child"
ok "options that only jemalloc has: not a word" 0
preloaded MALLOC_CONF=tcache:maybe "$child"
ok "a bad value in MALLOC_CONF: one line" 0 "<eddy>: MALLOC_CONF: $maybe"
preloaded EDDY_CONF=tcahce:true "$child"
ok "an unknown option in EDDY_CONF: one line" 0 \
	'<eddy>: EDDY_CONF: unknown option: "tcahce"'
preloaded MALLOC_CONF=tcache:maybe,zero:true,lg_range:1, EDDY_CONF=zero \
	"$child"
ok "four faults in two places: four lines" 0 \
	"<eddy>: MALLOC_CONF: $maybe" \
	'<eddy>: MALLOC_CONF: lg_range: "1" is outside 30 to 46' \
	'<eddy>: MALLOC_CONF: ends with a comma: "lg_range:1,"' \
	'<eddy>: EDDY_CONF: no "name:value" here: "zero"'
preloaded MALLOC_CONF=abort_conf:true,tcache:maybe "$child"
ok "abort_conf: the line, then SIGABRT" 134 "<eddy>: MALLOC_CONF: $maybe"
preloaded MALLOC_CONF=tcache:maybe EDDY_CONF=abort_conf:true "$child"
ok "abort_conf may come after the fault" 134 "<eddy>: MALLOC_CONF: $maybe"
preloaded MALLOC_CONF=abort_conf:true EDDY_CONF=abort_conf:false,x:1 "$child"
ok "abort_conf can be taken back" 0 '<eddy>: EDDY_CONF: unknown option: "x"'
preloaded EDDY_CONF=topology:2x2x2 "$child"
ok "a topology that is made up" 0
preloaded EDDY_CONF=topology:odd "$child"
ok "a topology that is none" 0 \
	'<eddy>: topology: "odd": not a topology, ignored'
preloaded EDDY_CONF=topology:odd,abort_conf:true "$child"
ok "abort_conf sees that, too" 134 \
	'<eddy>: topology: "odd": not a topology, ignored'
preloaded MALLOC_CONF=abort_conf:true "$child"
ok "abort_conf without a fault: nothing" 0
preloaded MALLOC_CONF=confirm_conf:true,zero:true "$child"
ok "confirm_conf: places and settings" 0 \
	'<eddy>: MALLOC_CONF: options "confirm_conf:true,zero:true"' \
	'<eddy>: MALLOC_CONF: confirm_conf set to "true"' \
	'<eddy>: MALLOC_CONF: zero set to "true"'

run "$own_static"
ok "the malloc_conf of a program that has the library in it" 0 \
	'<eddy>: malloc_conf: unknown option: "own"' \
	'<eddy>: malloc_conf_2_conf_harder: unknown option: "harder"'
run "$own"
ok "the malloc_conf of a program that links the library" 0 \
	'<eddy>: malloc_conf: unknown option: "own"' \
	'<eddy>: malloc_conf_2_conf_harder: unknown option: "harder"'
run env MALLOC_CONF=confirm_conf:true,junk:false "$own_static"
ok "the environment comes after the program" 0 \
	'<eddy>: malloc_conf: options "junk:true,own:1"' \
	'<eddy>: malloc_conf: junk set to "true"' \
	'<eddy>: malloc_conf: unknown option: "own"' \
	'<eddy>: MALLOC_CONF: options "confirm_conf:true,junk:false"' \
	'<eddy>: MALLOC_CONF: confirm_conf set to "true"' \
	'<eddy>: MALLOC_CONF: junk set to "false"' \
	'<eddy>: malloc_conf_2_conf_harder: options "harder:2"' \
	'<eddy>: malloc_conf_2_conf_harder: unknown option: "harder"'

# /etc/malloc.conf, in a mount namespace of its own.
name="the text of /etc/malloc.conf"
# shellcheck disable=SC2016 # for the inner shell
inside='mount -t tmpfs none /etc && ln -s zero:odd /etc/malloc.conf &&
	LD_PRELOAD=$1 exec "$2"'
if unshare -m true 2>/dev/null; then
	run unshare -m sh -c "$inside" sh "$EDDY_SO" "$child"
	ok "$name" 0 '<eddy>: /etc/malloc.conf: zero: "odd" is not true or false'
elif unshare -rm true 2>/dev/null; then
	run unshare -rm sh -c "$inside" sh "$EDDY_SO" "$child"
	ok "$name" 0 '<eddy>: /etc/malloc.conf: zero: "odd" is not true or false'
else
	skip "$name" "no mount namespaces here"
fi

# A set-user-id program, run by somebody else.
name="a secure-exec program does not hear the environment"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null 2>&1; then
	cp "$linked" "$tmp/set" && chmod 755 "$tmp" && chmod 4755 "$tmp/set"
	other="setpriv --reuid 65534 --regid 65534 --clear-groups"
	# shellcheck disable=SC2086 # a command with its arguments
	run $other env MALLOC_CONF=tcache:maybe EDDY_CONF=abort_conf:true,x:1 \
		"$tmp/set" secure
	if [ "$status" -eq 4 ]; then
		skip "$name" "the temporary folder is mounted nosuid"
	else
		ok "$name" 0
	fi
	chmod 755 "$tmp/set"
	# shellcheck disable=SC2086 # a command with its arguments
	run $other env MALLOC_CONF=tcache:maybe "$tmp/set"
	ok "the same program without the bit does" 0 \
		"<eddy>: MALLOC_CONF: $maybe"
else
	skip "$name" "only root can make one for somebody else"
fi

echo "1..$n"
exit "$failed"
