#!/bin/sh
# Provides cuda.h of CUDA 12.4 to 12.9: header.sh PYTHON CUDA_HOME OUT
# It is taken from the toolkit at CUDA_HOME if that is one of these, else from the package that
# header.txt pins. gorgonia.org/cu does not compile with the header of CUDA 13; older ones lack what we
# call. NVIDIA's licence does not let us keep the header with our source.
set -eu

python=$1
home=$2
out=$3
here=$(cd "$(dirname "$0")" && pwd)

mkdir -p "$(dirname "$out")"
if grep -Eqs '^#define CUDA_VERSION 120[4-9]0' "$home/include/cuda.h"; then
	cp "$home/include/cuda.h" "$out"
	exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/venv" # not every Python has pip
"$work/venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-input --no-deps \
	--only-binary :all: --platform manylinux2014_x86_64 --require-hashes \
	--requirement "$here/header.txt" --dest "$work"
"$python" -m zipfile -e "$work"/*.whl "$work/wheel"
cp "$work/wheel/nvidia/cuda_runtime/include/cuda.h" "$out"
