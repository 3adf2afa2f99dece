#!/usr/bin/env bash
# cuda-stand-ins.sh DIR: put libraries into DIR that stand in for those of CUDA which the libraries there
# need and which nobody has installed. PyPI has PyTorch for CUDA only, and loads 3 GB of NVIDIA's libraries
# that are of no use without a GPU. Each function of a stand-in returns 1, an error in all of CUDA's interfaces.
set -euo pipefail
shopt -s nullglob

cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

libraries=(*.so *.so.*)
for library in "${libraries[@]}"; do
	# NAME, or NAME@VERSION
	nm --dynamic --undefined-only --with-symbol-versions "$library" | awk '{ print $NF }' >>"$work/undefined"
	objdump --private-headers "$library" | awk '
		/^[^ ]/ { section = $0 }
		/^  required from / { sub(/:$/, "", $3); from = $3 }
		/^    / && section ~ /^Version References/ { print from, $4 }' >>"$work/versions"
done
# The driver's library comes with a GPU, or from the tests that simulate one.
ldd "${libraries[@]}" | awk '/=> not found/ && $1 != "libcuda.so.1" { print $1 }' | sort -u >"$work/missing"

while read -r library; do
	version=$(awk -v library="$library" '$1 == library { print $2; exit }' "$work/versions")
	prefix=$(sed 's/^lib//; s/\.so.*//' <<<"$library")
	# What has no version is told by its name: ncclAllReduce is of libnccl.
	if [[ $version ]]; then sed -n "s/@$version\$//p" "$work/undefined"; else grep -i "^${prefix}[a-z0-9]*$" "$work/undefined"; fi |
		sort -u >"$work/functions"
	{
		echo 'int refuse(void) { return 1; }'
		sed 's/.*/int &(void) __attribute__((alias("refuse")));/' "$work/functions"
	} >"$work/stand-in.c"
	printf '%s { global: *; };\n' "$version" >"$work/map"
	"${CC:-cc}" -shared -w -o "$library" -Wl,-soname,"$library" -Wl,--version-script,"$work/map" "$work/stand-in.c"
done <"$work/missing"
