#!/usr/bin/env bash
# licences.sh GO: print the licences of the modules that the command line and the plugin are linked with, and of Go.
set -euo pipefail

go=$1
cd "$(dirname "$0")/.."
show() {
	local files=("$2"/LICEN[CS]E* "$2"/COPYING*)
	for file in "${files[@]}"; do
		printf '\n==== %s\n\n' "$1"
		cat "$file"
		return
	done
	echo "licences.sh: $1 has no licence in $2" >&2
	return 1
}
shopt -s nullglob
echo "ndbridge is linked with the following, under these licences."
show "Go, $("$go" env GOVERSION)" "$("$go" env GOROOT)"
CGO_ENABLED=1 GOFLAGS= "$go" list -deps -tags cuda -f '{{with .Module}}{{if not .Replace}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}{{end}}' \
	./cmd/ndbridge ./adapters/all/plugin | sort -u | while read -r path version dir; do show "$path $version" "$dir"; done
