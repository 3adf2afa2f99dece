#!/bin/sh
# Builds libndbridge-heap.so: build.sh OUT.so [FLAGS...]
# Needs a C11 compiler (CC, default cc) for Linux with glibc; FLAGS are for tests and sanitizers.
set -eu

out=$1
shift
cd "$(dirname "$0")"
: "${CC:=cc}"

# The library asks for dlsym by its oldest version, which before glibc 2.34 lived in libdl.so.2:
# naming that file lets a library built with a newer glibc load with an older one.
libdl=
if echo 'int main(void){return 0;}' |
	"$CC" -x c - -o /dev/null -Wl,--no-as-needed -l:libdl.so.2 2>/dev/null; then
	libdl='-Wl,--no-as-needed -l:libdl.so.2'
fi

# enter.c embeds this file, which zig's cache of objects does not know of, unlike the macros.
module=../../../hostplugin/bootstrap/python/ndbridge.py
# shellcheck disable=SC2086 # libdl is several words
exec "$CC" -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -fPIC -shared -fvisibility=hidden \
	-ftls-model=initial-exec -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc \
	-fno-builtin-free -ffile-prefix-map="$PWD=." -pthread -DEMBEDDED="$(cksum <"$module" | tr -d ' ')" "$@" -o "$out" ./*.c \
	-Wl,-z,now -Wl,-z,relro -Wl,-z,defs $libdl
