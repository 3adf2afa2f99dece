#!/bin/sh
# Makes the bundle that runs the GPU tests where there is no Go: make.sh BUILD GO PYTHON, where BUILD holds
# lib (the plugins) and wheels (PyCUDA's). It makes BUILD/gpu/{run.sh,bundle.tar.xz}.
#
# The packages whose tests run on a GPU are those that the command run knows.
set -eu

build=$(cd "$1" && pwd)
go=$2 python=$3
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=$build/gpu.work
limit=60 # MiB that can be carried to such a machine at once

cd "$root"
rm -rf "$work" "$build/gpu"
mkdir -p "$work/bundle/lib" "$work/bundle/wheels" "$build/gpu"

CGO_ENABLED=0 "$go" build -trimpath -ldflags='-s -w' -o "$work/bundle/run" ./test/gpu/run
for package in $("$work/bundle/run" -packages); do
	folder=$work/bundle/tests/$package
	mkdir -p "$folder"
	"$go" test -c -tags cuda,gpu -trimpath -ldflags='-s -w' -o "$folder/$(basename "$package").test" "./$package"
	git ls-files -co --exclude-standard -- "$package" | grep -v '\.go$' | while read -r file; do
		mkdir -p "$work/bundle/tests/$(dirname "$file")"
		cp "$file" "$work/bundle/tests/$file"
	done
done
for library in ndbridge-all.so libndbridge-heap.so; do
	strip -g -o "$work/bundle/lib/$library" "$build/lib/$library"
done
# PyCUDA, for the Python of such a machine, and what it needs that is not there.
cp "$build"/wheels/pycuda-*-cp312-*.whl "$work/bundle/wheels/"
grep -iE '^(mako|platformdirs|pytools|siphash24)==' test/requirements/pycuda.txt >"$work/wheels.txt"
"$python" -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.12 \
	--platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 --dest "$work/bundle/wheels" -r "$work/wheels.txt"

tar -C "$work" -c bundle | xz -T0 --lzma2=preset=0,dict=64MiB >"$build/gpu/bundle.tar.xz"
cp "$here/run.sh" "$build/gpu/run.sh"
rm -rf "$work"
size=$(du -sm "$build/gpu" | cut -f1)
echo "$build/gpu: $size MiB"
[ "$size" -le "$limit" ] || {
	echo "more than $limit MiB: too much to carry at once" >&2
	exit 1
}
