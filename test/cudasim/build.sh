#!/bin/sh
# Builds the simulated driver: build.sh OUT/libcuda.so.1 INCLUDE [FLAGS...]
# INCLUDE holds cuda.h; FLAGS are for sanitizers. Every function of that header which the simulated
# driver lacks is there too, and answers CUDA_ERROR_NOT_SUPPORTED.
set -eu

mkdir -p "$(dirname "$1")"
out=$(realpath "$1") include=$(realpath "$2")
shift 2
cd "$(dirname "$0")"
: "${CC:=cc}"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

sed -n 's/^ *\(CUDA_SUCCESS\|CUDA_ERROR_[A-Z0-9_]*\) *= *[0-9]*,*.*/{\1, "\1"},/p' "$include/cuda.h" |
	sort -u >"$made/errors.inc"

compile() {
	"$CC" -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -fPIC -fvisibility=hidden \
		-ffile-prefix-map="$PWD=." -pthread -isystem "$include" -I "$made" "$@"
}

for source in *.c; do
	compile "$@" -c "$source" -o "$made/${source%.c}.o"
done

functions() {
	grep -v '^#' | tr '\n' ' ' | grep -o 'CUresult  *cu[A-Z][A-Za-z0-9_]* *(' | sed 's/CUresult *//; s/ *(//'
}

# The header's functions: as they are today, and with the names that older programs know; and those of
# cudaProfiler.h.
{
	printf '%s\n' cuProfilerInitialize cuProfilerStart cuProfilerStop
	echo '#include <cuda.h>' | "$CC" -E -isystem "$include" - | functions
	echo '#include <cuda.h>' | "$CC" -E -D__CUDA_API_VERSION_INTERNAL -isystem "$include" - | functions
} | grep -v '_pt[ds][sz]$' | sort -u >"$made/declared"
nm --defined-only "$made"/*.o | sed -n 's/.* T \(cu[A-Z].*\)/\1/p' | sort -u >"$made/defined"
comm -23 "$made/declared" "$made/defined" >"$made/missing"

# Where only the name has changed, the older one is the same function.
same='cuStreamWaitValue32 cuStreamWaitValue64 cuStreamWriteValue32 cuStreamWriteValue64 cuStreamBatchMemOp
	cuDevicePrimaryCtxRelease cuDevicePrimaryCtxReset cuDevicePrimaryCtxSetFlags cuMemHostRegister
	cuIpcOpenMemHandle cuCtxDestroy cuCtxPopCurrent cuCtxPushCurrent cuEventDestroy cuStreamDestroy'
aliases=
for name in $same; do
	aliases="$aliases -Wl,--defsym=$name=${name}_v2"
	sed -i "/^$name\$/d" "$made/missing"
done

sed 's/.*/__attribute__((visibility("default"))) int &(void) { return 801; }/' "$made/missing" >"$made/missing.c"
"$CC" -fPIC -c "$made/missing.c" -o "$made/missing.o"

# shellcheck disable=SC2086 # aliases are several words
"$CC" -shared -pthread "$@" -o "$made/library" "$made"/*.o $aliases -lm -Wl,-soname,libcuda.so.1 -Wl,-z,now
mv "$made/library" "$out" # at once: a program may be loading it
