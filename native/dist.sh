#!/usr/bin/env bash
# dist.sh PYTHON GO NFPM ARCH LIB OUT: make what is downloaded for amd64 or arm64: an archive, a wheel, a .deb and an .rpm, each with
# the command line. LIB is what build.sh made, which the native modules embed. The same commit gives the same bytes.
set -euo pipefail

python=$1 go=$2 nfpm=$(realpath "$3") lib=$(realpath "$5")
export ARCH=$4
mkdir -p "$6"
out=$(realpath "$6")
cd "$(dirname "$0")/.."
here=$PWD

declare -A machines=([amd64]=x86_64 [arm64]=aarch64)
VERSION=$(sed -n 's/^const Release = "\(.*\)"$/\1/p' internal/wire/release.go)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export VERSION SOURCE_DATE_EPOCH
name=ndbridge-$VERSION-linux-$ARCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# command OUT FLAG...: build the command line.
command() {
	GOOS=linux GOARCH=$ARCH CGO_ENABLED=0 GOFLAGS= "$go" build -trimpath -buildvcs=false -ldflags '-s -w' -o "$@" ./cmd/ndbridge
}

mkdir -p "$work/$name/lib" "$work/packages"
command "$work/$name/ndbridge"
cp -r "$lib"/{ndbridge-all.so,libndbridge-heap.so,python} "$work/$name/lib/"
cp LICENSE README.md CHANGELOG.md "$work/$name/"
native/licences.sh "$go" >"$work/$name/THIRD-PARTY-LICENSES"
"$go" test -count=1 -run '^TestManuals$' ./cmd/ndbridge -manuals "$work/$name" >"$work/log" || { cat "$work/log" >&2 && exit 1; }
gzip -9n "$work/$name"/man/*.1
"$python" native/wheel/build.py "$work/$name" "${machines[$ARCH]}" "$out"

# What a package installs beside the command, the command need not embed.
cp -r "$work/$name/." "$work/packages/"
command "$work/packages/command/ndbridge" -tags ndbridge_nonative
chmod -R u=rwX,go=rX "$work"
find "$work" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
for packager in deb rpm; do
	(cd "$work/packages" && "$nfpm" package --config "$here/native/nfpm.yaml" --packager "$packager" --target "$out" >"$work/log") ||
		{ cat "$work/log" >&2 && exit 1; }
done

tar --create --directory "$work" --sort name --owner 0 --group 0 --numeric-owner "$name" | gzip -n >"$out/$name.tar.gz"
echo "$out/$name.tar.gz"
