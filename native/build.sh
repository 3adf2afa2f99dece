#!/usr/bin/env bash
# build.sh PYTHON GO ARCH INCLUDE OUT: build what a native module embeds: the plugin and the shared heap for amd64 or arm64,
# stripped, and the Python module, into OUT. PYTHON has native/requirements.txt, INCLUDE is where cuda.h is. The compiler is zig,
# so that the C library of this machine does not matter: the same source, Go and zig give the same bytes everywhere.
set -euo pipefail

python=$1 go=$2 arch=$3
include=$(realpath "$4")
mkdir -p "$5/python"
out=$(realpath "$5")
cd "$(dirname "$0")/.."

declare -A machines=([amd64]=x86_64 [arm64]=aarch64)
# The oldest glibc that arm64 has had.
export ZIG_PYTHON=$python ZIG_TARGET=${machines[$arch]}-linux-gnu.2.17
export CC=$PWD/native/zcc

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp hostplugin/bootstrap/python/ndbridge.py "$out/python/"
internal/sharedheap/preload/build.sh "$out/libndbridge-heap.so" -s
internal/gpu/driver/stub/build.sh "$include" "$work/libcuda.a"
# zig warns of the folders of toolkits that gorgonia.org/cu names and this machine lacks.
GOOS=linux GOARCH=$arch CGO_ENABLED=1 GOFLAGS= CGO_CFLAGS="-O2 -I$include" CGO_LDFLAGS="-O2 -L$work" \
	"$go" build -trimpath -buildvcs=false -tags cuda,grpcnotrace -buildmode=c-shared -ldflags '-s -w -buildid=' \
	-o "$work/ndbridge-all.so" ./adapters/all/plugin 2> >(grep -Ev '^(warning: unable to open library directory|#)' >&2)
mv "$work/ndbridge-all.so" "$out/"
