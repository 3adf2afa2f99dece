#!/usr/bin/env bash
# musl-python.sh DIR: build CPython 3.11 that is linked with the C library musl, as that of Alpine is: root/bin/python3.11 in DIR. It has
# ctypes, but nothing that needs other libraries. Nothing is installed. The source and musl are Debian's, whose apt-get it uses
# (test/debian-apt.sh); the compiler is this machine's gcc.
set -euo pipefail

suite=bookworm dir=$(realpath -m "$1")
here=$(realpath "$(dirname "$0")")
root=$dir/root
[[ ! $dir/.done -nt $here/musl-python.sh ]] || exit 0
echo "making $dir"
rm -rf "$dir"
mkdir -p "$root"/{include,lib}
exec 3>&2 >"$dir.log" 2>&1
trap '[[ -e $dir/.done ]] || { tail -n 5 "$dir.log" && echo "musl-python.sh: no CPython with musl: see $dir.log"; } >&3' EXIT

# configure NAME OPTION...: unpack a source package, go there and configure it.
configure() {
	mkdir "$dir/$1"
	tar -xf "$dir/$1"_*.orig.tar.* -C "$dir/$1" --strip-components 1
	cd "$dir/$1"
	CC=$dir/cc CFLAGS=-O1 CPPFLAGS=-I$root/include LDFLAGS=-L$root/lib PKG_CONFIG=false \
		./configure --build=x86_64-linux-musl --prefix="$root" "${@:2}"
}

. "$here/debian-apt.sh"
sed 's/^deb /deb-src /' "$dir/sources.list" >"$dir/src" && cat "$dir/src" >>"$dir/sources.list"
"${apt[@]}" update
cd "$dir"
"${apt[@]}" source --download-only python3.11 libffi
"${apt[@]}" download musl musl-dev
for deb in *.deb; do dpkg -x "$deb" "$dir/musl"; done

# The loader is a file of this name on Alpine, too, and is the C library.
loader=$root/lib/ld-musl-x86_64.so.1
cp "$dir/musl/lib/x86_64-linux-musl/libc.so" "$loader"
ln -sf "$loader" "$dir/musl/usr/lib/x86_64-linux-musl/libc.so"
sed "s|/usr/|$dir/musl/usr/|g; s|/lib/ld-musl-x86_64.so.1|$loader|" "$dir/musl/usr/lib/x86_64-linux-musl/musl-gcc.specs" >"$dir/specs"
# What this machine has is for another C library, but Python asks for it.
cat >"$dir/cc" <<END
#!/bin/bash
[[ \$* != --print-multiarch ]] || exec echo x86_64-linux-musl
args=()
for arg in "\$@"; do
	[[ \$arg == -[IL]/usr/* || \$arg == -L/lib* ]] || args+=("\$arg")
done
exec gcc "\${args[@]}" -specs "$dir/specs"
END
chmod +x "$dir/cc"

configure libffi --disable-shared --with-pic --disable-docs --disable-exec-static-tramp
make -j"$(nproc)"
make install

configure python3.11 --without-ensurepip --disable-test-modules
cat >Modules/Setup.local <<END
*disabled*
_bz2 _crypt _curses _curses_panel _dbm _decimal _elementtree _gdbm _hashlib _lzma _sqlite3 _ssl _tkinter _uuid audioop nis ossaudiodev
pyexpat readline spwd xxlimited xxlimited_35 zlib _multibytecodec _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw
END
make -j"$(nproc)"
make altbininstall sharedinstall # and not what compiles all modules three times
cp -r Lib/. build/lib.*/_sysconfigdata_*.py "$root/lib/python3.11/"
"$root/bin/python3.11" -c 'import ctypes, socket, threading; ctypes.CDLL(None).pause'

cd "$dir"
rm -rf "$dir"/{musl,libffi,python3.11,cache,state,status,sources.list,src,keys,specs,cc} "$dir"/*.{deb,dsc,xz,gz}
touch "$dir/.done"
