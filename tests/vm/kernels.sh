#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# kernels.sh - fetches what the virtual machines boot, and says where it is.
#
#   kernels.sh LABEL...      prints a folder for each, which holds vmlinuz and
#                            version, or busybox
#   kernels.sh -l            lists the labels
#
# They come from Debian's packages, which are unpacked and never installed, into
# EDDY_VM_CACHE (~/.cache/eddy-vm).  apt works on lists of its own in there: it
# needs no root, and packages of arm64 need no second architecture on this
# system.  Exits 77 with the reason as last line if something cannot be had;
# with EDDY_VM_OFFLINE=1, if it is not there already.
set -eu

cache=${EDDY_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/eddy-vm}

# label, architecture, package (of a kernel: the one that depends on it)
labels()
{
	cat <<-'END'
	amd64-6.1 amd64 linux-image-cloud-amd64
	amd64-6.12 amd64 linux-image-6.12-cloud-amd64
	arm64-6.1 arm64 linux-image-cloud-arm64
	arm64-6.12 arm64 linux-image-6.12-cloud-arm64
	arm64-6.12-16k arm64 linux-image-6.12-arm64-16k
	amd64-busybox amd64 busybox-static
	arm64-busybox arm64 busybox-static
	END
}

lacking()
{
	echo "SKIP: $*"
	exit 77
}

# apt TOOL ARCHITECTURE ARG...
apt()
{
	tool=$1
	arch=$2
	shift 2
	timeout -k 5 300 "$tool" -qq \
		-o Dir::State::lists="$cache/apt-$arch/lists" \
		-o Dir::State::status=/dev/null \
		-o Dir::Cache="$cache/apt-$arch" \
		-o APT::Architecture="$arch" -o APT::Architectures="$arch" \
		-o APT::Sandbox::User="$(id -un)" \
		-o Acquire::Languages=none -o APT::Update::Error-Mode=any \
		-o Acquire::http::Timeout=20 -o Acquire::Retries=1 "$@"
}

# The package that PACKAGE $2 stands for on ARCHITECTURE $1; a plain one stands
# for itself.
real_package()
{
	found=$(apt apt-cache "$1" depends --important "$2" 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[^ :]*\).*/\1/p' |
		head -n 1)
	echo "${found:-$2}"
}

# download ARCHITECTURE PACKAGE - into the current folder
download()
{
	apt apt-get "$1" download "$(real_package "$1" "$2")"
}

# fetch LABEL ARCHITECTURE PACKAGE - all or nothing
fetch()
{
	if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null
	then
		lacking "no apt-get here to fetch $3 with"
	fi
	[ "${EDDY_VM_OFFLINE:-0}" -ne 1 ] || lacking "$3 of $2 is not in $cache"
	scratch=$(mktemp -d "$cache/new.XXXXXX")
	mkdir -p "$cache/apt-$2/lists/partial" \
		"$cache/apt-$2/archives/partial" "$scratch/tree" "$scratch/made"
	# Old lists name versions that are gone: read them anew, once.  Some of
	# the sources may fail and the package come from another.
	if ! (cd "$scratch" && download "$2" "$3") >"$scratch/log" 2>&1; then
		apt apt-get "$2" update >"$scratch/update" 2>&1 || :
		if ! (cd "$scratch" && download "$2" "$3") \
			>"$scratch/log" 2>&1; then
			why=$(cat "$scratch/update" "$scratch/log" |
				grep '^E:' | head -n 1)
			rm -rf "$scratch"
			lacking "$3 of $2 cannot be downloaded: $why"
		fi
	fi
	dpkg-deb -x "$scratch"/*.deb "$scratch/tree"
	case $3 in
	busybox-static)
		cp "$scratch/tree/bin/busybox" "$scratch/made/busybox"
		;;
	*)
		cp "$scratch"/tree/boot/vmlinuz-* "$scratch/made/vmlinuz"
		cp "$scratch"/tree/boot/config-* "$scratch/made/config"
		;;
	esac
	basename "$scratch"/*.deb >"$scratch/made/version"
	rm -rf "${cache:?}/$1"
	mv "$scratch/made" "$cache/$1"
	rm -rf "$scratch"
}

if [ "${1:-}" = -l ]; then
	labels | cut -d ' ' -f 1
	exit 0
fi
mkdir -p "$cache" 2>/dev/null || lacking "$cache cannot be made"
for label; do
	line=$(labels | grep "^$label ") || {
		echo "kernels.sh: no label $label; they are:" >&2
		labels | cut -d ' ' -f 1 >&2
		exit 2
	}
	if [ ! -s "$cache/$label/version" ]; then
		exec 9>"$cache/lock"
		! command -v flock >/dev/null || flock 9
		# Another run may have fetched it meanwhile.
		# shellcheck disable=SC2086 # three words
		[ -s "$cache/$label/version" ] || fetch $line
		exec 9>&-
	fi
	echo "$cache/$label"
done
