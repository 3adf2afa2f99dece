#!/usr/bin/env bash
# dist.sh PYTHON GO ARCH LIB OUT: make what is downloaded for amd64 or arm64: an archive and a wheel, each with the command line. LIB
# is what build.sh made, which the native modules embed. The same files give the same bytes.
set -euo pipefail

python=$1 go=$2 arch=$3 lib=$(realpath "$4")
mkdir -p "$5"
out=$(realpath "$5")
cd "$(dirname "$0")/.."

declare -A machines=([amd64]=x86_64 [arm64]=aarch64)
version=$(sed -n 's/^const Release = "\(.*\)"$/\1/p' internal/wire/release.go)
name=ndbridge-$version-linux-$arch
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/$name/lib"
GOOS=linux GOARCH=$arch CGO_ENABLED=0 GOFLAGS= "$go" build -trimpath -buildvcs=false -ldflags '-s -w' -o "$work/$name/ndbridge" ./cmd/ndbridge
cp -r "$lib/." "$work/$name/lib/"
cp LICENSE README.md CHANGELOG.md "$work/$name/"
native/licences.sh "$go" >"$work/$name/THIRD-PARTY-LICENSES"
"$python" native/wheel/build.py "$work/$name" "${machines[$arch]}" "$out"
chmod -R u=rwX,go=rX "$work/$name"
tar --create --directory "$work" --sort name --mtime @0 --owner 0 --group 0 --numeric-owner "$name" | gzip -n >"$out/$name.tar.gz"
echo "$out/$name.tar.gz"
