#!/bin/sh
# Builds libcuda.a: build.sh INCLUDE OUT.a, where INCLUDE holds a cuda.h of CUDA 12.
#
# A binary that is linked with it, instead of with the driver's libcuda.so, starts on machines without
# a driver. It has each function that cuda.h declares. The first call of one loads libcuda.so.1; without
# that, each answers CUDA_ERROR_STUB_LIBRARY, and a function that the driver lacks answers
# CUDA_ERROR_NOT_SUPPORTED. The symbols are hidden: a library that is linked with them exports none, so
# other users of the driver in its process never meet them.
set -eu

include=$1
out=$2
here=$(cd "$(dirname "$0")" && pwd)
: "${CC:=cc}" "${AR:=ar}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$CC" -E -P -I"$include" "$here/stub.h" >"$work/stub.i"
awk -f "$here/stubs.awk" "$work/stub.i" >"$work/stubs.c"
for source in "$here/stub.c" "$work/stubs.c"; do
	"$CC" -std=gnu11 -O2 -g -Wall -Wextra -Wno-deprecated-declarations -fPIC -fvisibility=hidden \
		-ffile-prefix-map="$here=." -ffile-prefix-map="$work=." -pthread -I"$here" -I"$include" \
		-c -o "$work/$(basename "$source" .c).o" "$source"
done
rm -f "$out"
"$AR" rcsD "$out" "$work/stub.o" "$work/stubs.o"
