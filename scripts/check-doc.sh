#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# check-doc.sh [FOLDER] - what the documents name exists; `make lint` calls it.
#  - Paths of the tree in *.md and in the comments of lib/, numa/ and include/,
#    with "*" as in the shell; tests and programs without their .c or .sh.
#  - Links from page to page.
#  - Identifiers in `quotes` that have a "_", and all in ARCHITECTURE.md.
#  - Each name of lib/eddy.map and eddy-urcu.map that is no operator is in a manual page.
# Prints what does not, and exits 1.
set -u

cd "${1:-$(dirname "$0")/..}" || exit 99
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0

fault()
{
	echo "$*"
	bad=1
}

pages()
{
	ls ./*.md stress/*.md bench/*.md tests/*.md tests/*/*.md 2>/dev/null
}

folders='lib|numa|include|tests|stress|bench|man|scripts|tools|cmake|build-aux'

paths()
{
	{
		pages
		find lib numa include -name '*.[chS]' -type f
	} | xargs grep -oHE "(^|[^A-Za-z0-9_./<-])($folders)/[A-Za-z0-9_./*-]*" |
		sed -E "s#:.*[^A-Za-z0-9_./*-](($folders)/)#:\1#; s#[.-]+\$##" |
		sort -u
}

paths | while IFS=: read -r where path; do
	found=
	# shellcheck disable=SC2086 # a pattern
	for try in $path $path.c $path.sh; do
		[ ! -e "$try" ] || found=yes
	done
	case $path in
	*/ctl_gen*) found=yes ;; # made
	esac
	[ -n "$found" ] || echo "$where: no $path"
done >"$tmp/paths"

for page in $(pages); do
	dir=$(dirname "$page")
	grep -oE '\]\([^)#:]+' "$page" | cut -c 3- | while read -r to; do
		[ -e "$dir/$to" ] || echo "$page: no page $to"
	done
done >"$tmp/links"

# Words of the tree, so that one look at it is enough.
find lib numa include man stress tests bench scripts -type f \
	! -name '*.md' -print0 |
	xargs -0 grep -ohE '[A-Za-z_][A-Za-z0-9_]*' |
	cat - configure.ac Makefile.am autogen.sh |
	tr -cs 'A-Za-z0-9_' '\n' | sort -u >"$tmp/words"
for page in $(pages); do
	# shellcheck disable=SC2016 # not for the shell
	grep -oE '`[^`]+`' "$page" | tr -d '`' |
		grep -E '^[a-z][a-z0-9_]*$' | sort -u |
		case $page in
		./ARCHITECTURE.md) cat ;;
		*) grep _ ;;
		esac |
		comm -23 - "$tmp/words" | sed "s|^|$page: nothing is named |"
done >"$tmp/names"

sed -n '/global:/,/local:/s/^[[:blank:]]*\([a-z][a-z0-9_]*\);.*/\1/p' \
	lib/eddy.map lib/urcu/eddy-urcu.map >"$tmp/map"
while read -r name; do
	# shellcheck disable=SC2086 # a pattern
	grep -qwF -e "$name" man/*.[0-9] man/*.[0-9].in ||
		echo "man/: no word of $name"
done <"$tmp/map" >"$tmp/manual"

for report in paths links names manual; do
	while read -r line; do
		fault "$line"
	done <"$tmp/$report"
done
[ -s "$tmp/map" ] || fault "lib/eddy.map: no name found"
exit "$bad"
