#!/usr/bin/env bash
# build.sh PYTHON WHEELS HEADER DRIVER: builds PyCUDA, which comes as source only, into the folder WHEELS.
# It needs no CUDA toolkit: HEADER is cuda.h, DRIVER any libcuda.so.1. The wheel runs on a GPU as well.
set -euo pipefail

python=$1 wheels=$2 header=$3 driver=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$wheels"
version=$("$python" --version)
log=$wheels/pycuda-${version#Python }.log

echo "building PyCUDA for $version (two minutes)"
{
	"$python" -m venv "$work/venv"
	pip=("$work/venv/bin/python" -m pip --disable-pip-version-check --no-input)
	"${pip[@]}" install --only-binary :all: --requirement "$here/tools.txt"
	"${pip[@]}" download --no-deps --no-build-isolation --no-binary pycuda --require-hashes \
		--requirement "$here/source.txt" --dest "$work"

	mkdir "$work/include" "$work/lib" "$work/source"
	"$python" -m zipfile -e "$work"/nvidia_*.whl "$work/profiler"
	cp "$header" "$work"/profiler/nvidia/*/include/cudaProfiler.h "$work/include"
	ln -s "$driver" "$work/lib/libcuda.so"
	tar -xzf "$work"/pycuda-*.tar.gz -C "$work/source" --strip-components=1
	cat >"$work/source/siteconf.py" <<-END
		CUDA_ENABLE_CURAND = False # its library comes with the toolkit only
		CUDA_INC_DIR = ["$work/include"]
		CUDADRV_LIB_DIR = ["$work/lib"]
	END
	"${pip[@]}" wheel --no-deps --no-build-isolation --no-cache-dir --wheel-dir "$wheels" "$work/source"
} >"$log" 2>&1 || {
	tail -n 20 "$log" >&2
	printf 'build.sh: %s\n' "PyCUDA does not build for $version" "the whole log is $log" >&2
	exit 1
}
