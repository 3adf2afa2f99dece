#!/bin/sh
# Packs frameworks that a GPU machine lacks, and that are too large for the bundle: extras.sh BUILD
# PYTHON [NAME...] makes BUILD/gpu-extras/NAME/0, 1, ..., parts of one archive that can be carried one by
# one. Without names it packs all:
#
#   warp, dali  what is tested
#   dali-old    a version that has one of the founding problems, and needs a GPU to show it
#
# What a run on a GPU of one generation (ARCHITECTURE, or 90) does not need is left out: device code for
# other GPUs, Warp's compiler for CPUs, examples, other Pythons' modules.
set -eu

build=$(cd "$1" && pwd)
python=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
architecture=${ARCHITECTURE:-90}
part=56 # MiB: the project's sources are carried with it

packages() {
	case $1 in
	warp) echo warp-lang==1.19.0 ;;
	dali) echo nvidia-dali-cuda130==2.4.0 astunparse==1.6.3 gast==0.7.0 six==1.17.0 optree==0.20.0 \
		makefun==1.16.0 nvtx==0.2.17 libcst==1.9.0 ;;
	dali-old) echo nvidia-dali-cuda120==1.35.0 astunparse==1.6.3 gast==0.7.0 six==1.17.0 dm-tree==0.1.10 \
		attrs absl-py wrapt ;;
	*)
		echo "no extra $1" >&2
		exit 1
		;;
	esac
}

pack() {
	work=$(mktemp -d)
	# shellcheck disable=SC2046 # words
	"$python" -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.12 \
		--platform manylinux2014_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_28_x86_64 \
		--dest "$work/wheels" $(packages "$1")
	for wheel in "$work"/wheels/*.whl; do
		"$python" -m zipfile -e "$wheel" "$work/site"
	done
	find "$work/site" \( -name 'warp-clang.so' -o -path '*/warp/examples' -o -path '*/warp/tests' \
		-o -path '*/dali/include' -o -path '*/dali/test' \) -prune -exec rm -rf {} +
	find "$work/site" -name '*.cpython-*' ! -name '*.cpython-312-*' -delete
	find "$work/site" -name '*.so*' -type f -exec "$python" "$here/thin.py" "$architecture" {} +
	rm -rf "$build/gpu-extras/$1"
	mkdir -p "$build/gpu-extras/$1"
	tar -C "$work/site" -c . | xz -T0 --x86 --lzma2=preset=6,dict=64MiB |
		split -b "${part}m" -d -a 1 - "$build/gpu-extras/$1/"
	rm -rf "$work"
	ls -l "$build/gpu-extras/$1"
}

for name in "${@:-warp dali dali-old}"; do
	for one in $name; do pack "$one"; done
done
