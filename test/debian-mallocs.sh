#!/usr/bin/env bash
# debian-mallocs.sh DIR: put other mallocs than the C library's under DIR, from Debian 12: jemalloc.so, mimalloc.so, tcmalloc.so. Nothing is
# installed. Needs Debian's apt-get, or Ubuntu's.
set -euo pipefail

suite=bookworm dir=$(realpath -m "$1")
here=$(realpath "$(dirname "$0")")

rm -rf "$dir"
mkdir -p "$dir"/debs
{
	. "$here/debian-apt.sh"
	"${apt[@]}" update
	cd "$dir/debs"
	"${apt[@]}" download libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4
	for deb in *.deb; do dpkg -x "$deb" .; done
	cp usr/lib/*/libjemalloc.so.2 "$dir/jemalloc.so"
	cp usr/lib/*/libmimalloc.so.2 "$dir/mimalloc.so"
	cp usr/lib/*/libtcmalloc_minimal.so.4 "$dir/tcmalloc.so"
} >"$dir.log" 2>&1 || { tail -n 5 "$dir.log" >&2 && echo "debian-mallocs.sh: no mallocs: see $dir.log" >&2 && exit 1; }
rm -rf "$dir"/{debs,cache,state,status,sources.list,keys}
touch "$dir/.done"
