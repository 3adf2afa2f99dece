#!/usr/bin/env bash
# arm64.sh DIR NDBRIDGE LIB: run a program under an emulated arm64 Python with NumPy, with the arm64 libraries in LIB, and look at
# its arrays, with pages of 4 KiB and of 64 KiB. DIR keeps what is downloaded. Needs qemu-aarch64-static, and Debian's apt-get,
# whose mirror and keys it uses; nothing is installed.
#
# Arrays outside the shared heap cannot be looked at here: the emulator shows mappings as they were when they were first asked for.
set -euo pipefail

dir=$(realpath -m "$1") ndbridge=$(realpath "$2") lib=$(realpath "$3")
cd "$(dirname "$0")"

if [[ ! $dir/.done -nt arm64.sh ]]; then
	rm -rf "$dir"
	mkdir -p "$dir"/{lists/partial,debs,root,site,wheels}
	apt=(apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State::Lists=$dir/lists"
		-o Dir::State::status=/dev/null -o APT::Sandbox::User=root)
	{
		"${apt[@]}" update
		cd "$dir/debs"
		"${apt[@]}" download python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 zlib1g libffi8 libexpat1 \
			libgcc-s1 libstdc++6 libbz2-1.0 liblzma5
		for deb in *.deb; do dpkg -x "$deb" "$dir/root"; done
		python3 -m pip download --disable-pip-version-check --only-binary :all: --no-deps --platform manylinux2014_aarch64 \
			--python-version 3.11 --dest "$dir/wheels" numpy==2.2.6
		python3 -m zipfile -e "$dir"/wheels/*.whl "$dir/site"
		cd - >/dev/null
	} >"$dir/log" 2>&1 || { tail -n 5 "$dir/log" >&2 && exit 1; }
	touch "$dir/.done"
fi

# Where pages are larger than this machine's, the emulator lacks what lies between a file's end and its last page's.
mkdir -p "$dir/lib/python"
cp "$lib"/*.so "$dir/lib/"
truncate --size %64K "$dir"/lib/*.so

for page in 4096 65536; do
	cat >"$dir/python" <<-END
		#!/bin/sh
		exec qemu-aarch64-static -p $page -L "$dir/root" -E PYTHONPATH="$dir/site" -E PYTHONHOME="$dir/root/usr" \\
			"$dir/root/usr/bin/python3.11" "\$@"
	END
	chmod +x "$dir/python"
	for name in pages before after; do
		out=$(NDBRIDGE_LIB=$dir/lib "$ndbridge" view --script arm64.py --python "$dir/python" "$name" 2>"$dir/log") ||
			{ tail "$dir/log" >&2 && exit 1; }
		case $name in
		pages) want="$page to $page," route=shared-heap: ;;
		before) want="1 to 1," route=staged: ;; # the fork took it out of shared memory
		after) want="3 to 3," route=shared-heap: ;;
		esac
		if ! [[ $out =~ route\ +$route && $out =~ values\ +$want ]]; then
			echo "arm64.sh: with pages of $page bytes, $name is $out" >&2
			exit 1
		fi
		echo "pages of $page bytes: $name is right, by ${route%:}"
	done
done
