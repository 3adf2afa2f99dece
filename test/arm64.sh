#!/usr/bin/env bash
# arm64.sh DIR NDBRIDGE LIB DIST: run a program under an emulated arm64 Python with NumPy, with the arm64 libraries in LIB, and look at
# its arrays, with pages of 4 KiB and of 64 KiB. Then do so with what DIST has for arm64, where the host is emulated, too. DIR keeps what
# is downloaded. Needs qemu-aarch64-static, and Debian's apt-get,
# whose mirror and keys it uses; nothing is installed.
#
# Arrays outside the shared heap cannot be looked at here: the emulator shows mappings as they were when they were first asked for.
set -euo pipefail

dir=$(realpath -m "$1") ndbridge=$(realpath "$2") lib=$(realpath "$3") dist=$(realpath "$4")
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

fail() { echo "arm64.sh: $1" >&2 && exit 1; }

# interpreter PAGE: make $dir/python, an emulated arm64 Python with pages of PAGE bytes.
interpreter() {
	cat >"$dir/python" <<-END
		#!/bin/sh
		exec qemu-aarch64-static -p $1 -L "$dir/root" -E PYTHONPATH="$dir/site" -E PYTHONHOME="$dir/root/usr" \\
			"$dir/root/usr/bin/python3.11" "\$@"
	END
	chmod +x "$dir/python"
}

for page in 4096 65536; do
	interpreter "$page"
	for name in pages before after; do
		out=$(NDBRIDGE_LIB=$dir/lib "$ndbridge" view --timeout 10m --script arm64.py --python "$dir/python" "$name" 2>"$dir/log") ||
			{ tail "$dir/log" >&2 && exit 1; }
		case $name in
		pages) want="$page to $page," route=shared-heap: ;;
		before) want="1 to 1," route=staged: ;; # the fork took it out of shared memory
		after) want="3 to 3," route=shared-heap: ;;
		esac
		if ! [[ $out =~ route\ +$route && $out =~ values\ +$want ]]; then
			fail "with pages of $page bytes, $name is $out"
		fi
		echo "pages of $page bytes: $name is right, by ${route%:}"
	done
done

# The packages, unpacked: dpkg would not install them here, and could not run a thing in a root of theirs.
rm -rf "$dir/installed"
mkdir -p "$dir/installed"/{deb,archive,wheel}
[[ $(dpkg-deb --field "$dist"/ndbridge_*_arm64.deb Architecture) == arm64 ]] || fail "the .deb is not for arm64"
dpkg-deb -x "$dist"/ndbridge_*_arm64.deb "$dir/installed/deb"
tar -xf "$dist"/ndbridge-*-linux-arm64.tar.gz -C "$dir/installed/archive" --strip-components 1
python3 -m zipfile -e "$dist"/ndbridge-*manylinux_2_17_aarch64.whl "$dir/installed/wheel"
[[ $(tail -c +11 "$dist"/ndbridge-*.aarch64.rpm | head -c 66 | tr -d '\0') == ndbridge-* ]] || fail "there is no .rpm for arm64"

interpreter 4096
sed -i "s|-E PYTHONPATH=\"[^\"]*\"|-E PYTHONPATH=$dir/site:$dir/installed/wheel|" "$dir/python"
[[ $("$dir/python" -c 'import ndbridge; print(ndbridge.connected)') == False ]] || fail "the wheel does not work without a host"
commands=("$dir/installed/deb/usr/bin/ndbridge" "$dir/installed/archive/ndbridge" "$dir/installed/wheel/ndbridge/bin/ndbridge")
for command in "${commands[@]}"; do
	chmod +x "$command"
	out=$(env -u NDBRIDGE_LIB XDG_CACHE_HOME="$dir/cache" qemu-aarch64-static "$command" view --timeout 10m --script arm64.py --python "$dir/python" pages 2>"$dir/log") ||
		{ tail "$dir/log" >&2 && fail "${command#"$dir/installed/"} fails"; }
	[[ $out =~ route\ +shared-heap && $out =~ values\ +4096\ to\ 4096 ]] || fail "${command#"$dir/installed/"} says $out"
	echo "${command#"$dir/installed/"}, emulated: pages is right, by shared-heap"
done
