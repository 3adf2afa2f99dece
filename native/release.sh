#!/usr/bin/env bash
# release.sh VERSION: make the commit of a release and its tags, from this clone's HEAD and the native modules that
# "make native" has built. The commit holds the built files, and its go.mod no replace lines: both would be in the way of
# development, so the commit is no part of a branch. Nothing is pushed.
set -euo pipefail

version=$1
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
modules=(native/linux_amd64 native/linux_arm64)
bridges=(bridges/*/go.mod)
bridges=("${bridges[@]%/go.mod}")

die() {
	echo "release.sh: $*" >&2
	exit 1
}

[ -z "$(git status --porcelain)" ] || die "the tree is not clean"
grep -q "Release = \"${version#v}\"" internal/wire/*.go || die "internal/wire does not say ${version#v}"
for module in "${modules[@]}"; do
	[ -e "$module/files/SHA256SUMS" ] || die "$module is not built: run make native"
done

work=$(mktemp -d)
trap 'git worktree remove --force "$work/tree" 2>/dev/null || true; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/tree" HEAD
for module in "${modules[@]}"; do
	cp -r "$module/files" "$work/tree/$module/"
	cp LICENSE "$work/tree/$module/"
	native/licences.sh go >"$work/tree/$module/THIRD-PARTY-LICENSES"
done
cd "$work/tree"
for module in "${modules[@]}"; do
	path=github.com/ndbridge/ndbridge/$module
	go mod edit -dropreplace="$path" -require="$path@$version"
	git add --force "$module"
done
git add go.mod
# go.sum gets the checksums of the native modules as the world will see them.
(cd "$root" && go run ./native/proxy "$work/tree" "$version" "$work/proxy")
GOPROXY="file://$work/proxy,file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)" \
	GONOSUMDB="github.com/ndbridge/*" GOFLAGS="-mod=mod -modcacherw" GOMODCACHE="$work/cache" go mod tidy
git add go.mod go.sum
# So do the bridges get those of all three modules that they need, which they take from the clone otherwise.
(cd "$root" && go run ./native/proxy "$work/tree" "$version" "$work/proxy")
for bridge in "${bridges[@]}"; do
	for path in github.com/ndbridge/ndbridge{,/native/linux_amd64,/native/linux_arm64}; do
		go mod edit -dropreplace="$path" -require="$path@$version" "$bridge/go.mod"
	done
	LC_ALL=C sort --unique --output "$bridge/go.sum" "$bridge/go.sum" "$work/proxy/go.sum"
	git add "$bridge/go.mod" "$bridge/go.sum"
done
git commit --quiet --message "Release $version"
git tag "$version"
for module in "${modules[@]}" "${bridges[@]}"; do
	git tag "$module/$version"
done
git tag --list --points-at HEAD
