#!/usr/bin/env bash
# licences.sh GO: print the licences and notices of Go and of the modules that the command line and the plugin are linked with, and
# of the packages in them that have licences of their own.
set -euo pipefail

go=$1
cd "$(dirname "$0")/.."
shopt -s nullglob
declare -A shown # files

# show TITLE ROOT DIR...: print what has not been printed yet of the module in ROOT and of its packages, DIR.
show() {
	local title=$1 root=$2 dir file
	local licences=("$root"/{LICEN[CS]E,COPYING}*)
	[[ ${#licences[@]} -gt 0 ]] || { echo "licences.sh: $title has no licence in $root" >&2 && return 1; }
	for dir in "${@:2}"; do
		while [[ $dir == "$root"* ]]; do
			for file in "$dir"/{LICEN[CS]E,COPYING,NOTICE,PATENTS}{,[-.]*}; do
				[[ -f $file && -z ${shown[$file]-} ]] || continue
				shown[$file]=1
				printf '\n==== %s: %s\n\n' "$title" "${file#"$root/"}"
				cat "$file"
			done
			dir=${dir%/*}
		done
	done
}

echo "ndbridge is linked with the following, under these licences."
show "Go, $("$go" env GOVERSION)" "$("$go" env GOROOT)"
for arch in amd64 arm64; do
	GOOS=linux GOARCH=$arch CGO_ENABLED=1 GOFLAGS= "$go" list -deps -tags cuda \
		-f '{{$dir := .Dir}}{{with .Module}}{{if not .Replace}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}} {{$dir}}{{end}}{{end}}{{end}}' \
		./cmd/ndbridge ./adapters/all/plugin
done | sort -u | {
	while read -r path version root dir; do show "$path $version" "$root" "$dir"; done
}
