#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# git.sh - a repository made, packed and checked under the library.
# tap.sh has what is not found here.
# shellcheck disable=SC1091,SC2034,SC2154
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
needs git git

HOME=$tap_work
GIT_CONFIG_NOSYSTEM=1
GIT_AUTHOR_NAME=eddy GIT_AUTHOR_EMAIL=eddy@localhost
GIT_COMMITTER_NAME=eddy GIT_COMMITTER_EMAIL=eddy@localhost
GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
export HOME GIT_CONFIG_NOSYSTEM GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL \
	GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_AUTHOR_DATE \
	GIT_COMMITTER_DATE
repo=$tap_work/repo
g() {
	eddy git -C "$repo" -c init.defaultBranch=main -c pack.threads=4 "$@"
}

# files ROUND - 300 files, some of which change from round to round
files() {
	awk -v round="$1" -v dir="$repo" 'BEGIN {
		for (i = 0; i < 300; i++) {
			f = sprintf("%s/file%03d", dir, i)
			for (k = 0; k < 40 + i; k++)
				printf "line %d of file %d, %s\n", k, i, \
				    (i * 7 + k) % 11 == round % 11 ? \
				    "round " round : "as ever" >f
			close(f)
		}
	}'
}

mkdir "$repo"
ok 'git init' g init -q
commits() {
	for round in 1 2 3 4 5 6 7 8; do
		files $round && g add . && g commit -q -m "round $round" ||
			return
	done
}
ok 'eight commits of 300 files' commits
# The ids depend on content alone, so git without the library agrees.
same_ids() {
	g log --format=%H --stat >"$tap_work/with" &&
		git -C "$repo" log --format=%H --stat >"$tap_work/without" &&
		cmp "$tap_work/with" "$tap_work/without" &&
		[ "$(grep -c '^[0-9a-f]\{40\}$' "$tap_work/with")" -eq 8 ]
}
ok 'the log is the same as without' same_ids
ok 'git gc with four threads' g gc -q --aggressive --prune=now
ok 'git fsck' g fsck --strict --full
ok 'git fsck without the library agrees' git -C "$repo" fsck --strict --full
ok 'git clone' eddy git clone -q --no-local "$repo" "$tap_work/clone"
clone_same() {
	[ "$(eddy git -C "$tap_work/clone" rev-parse HEAD)" = \
		"$(git -C "$repo" rev-parse HEAD)" ] &&
		cmp "$repo/file299" "$tap_work/clone/file299"
}
ok 'the clone is the same' clone_same
blame() {
	g blame file200 >"$tap_work/with" &&
		git -C "$repo" blame file200 >"$tap_work/without" &&
		cmp "$tap_work/with" "$tap_work/without"
}
ok 'git blame is the same as without' blame
grep_same() {
	g grep -n --threads 4 'round 8' >"$tap_work/with" &&
		git -C "$repo" grep -n 'round 8' >"$tap_work/without" &&
		cmp "$tap_work/with" "$tap_work/without"
}
ok 'git grep with four threads is the same as without' grep_same

# This project's own repository, where there is one: copied, then repacked.
src=${EDDY_SRCDIR:-$here/../..}
if git -C "$src" rev-parse --git-dir >/dev/null 2>&1; then
	own() {
		eddy git clone -q --bare --no-local "$src" "$tap_work/own" &&
			eddy git -C "$tap_work/own" gc -q --aggressive &&
			eddy git -C "$tap_work/own" fsck --strict
	}
	ok 'a copy of this repository is repacked and sound' own
else
	skip 'a copy of this repository' 'no repository here'
fi
tap_end
