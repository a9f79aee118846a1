#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh - the long stress: EDDY_TIME seconds of mixed and of each pattern of
# flow, a tenth for others.
#
#	run.sh [PROGRAM...]
#
# PROGRAM:claim runs it without restartable sequences, PROGRAM:homes with two
# homes; flow then has a tenth as well.  Prints what each program says and a
# summary; exits 1 if any has failed.
# EDDY_SO is the library, EDDY_BUILDDIR holds stress/.
set -u
dir=${EDDY_BUILDDIR:-.}/stress
time=${EDDY_TIME:-600}
tenth=$((time / 10))
[ "$tenth" -ge 5 ] || tenth=5
bad=
[ $# -gt 0 ] || set -- freeze freeze_step ring_steps kill threads fork_any \
	pool_stack pool_stack:claim \
	freeze:claim freeze_step:claim kill:claim flow:claim mixed:claim \
	freeze:homes freeze_step:homes kill:homes flow:homes mixed:homes \
	mixed flow
for program; do
	seconds=$tenth
	conf=${EDDY_CONF:-}
	case $program in
	mixed | flow) seconds=$time ;;
	*:claim) conf=${conf:+$conf,}rseq:false ;;
	*:homes) conf=${conf:+$conf,}topology:2x1x1 ;;
	esac
	echo "== $program, $seconds s"
	EDDY_CONF=$conf EDDY_TIME=$seconds "$dir/${program%:*}"
	status=$?
	case $status in
	0 | 77) ;;
	*) bad="$bad $program($status)" ;;
	esac
done
if [ -n "$bad" ]; then
	echo "== failed:$bad"
	exit 1
fi
echo "== all passed"
