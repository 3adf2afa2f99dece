#!/usr/bin/env bash
# Compares the benchmarks of a package with those of another commit, in turns: benchstat.sh GO BENCHSTAT COMMIT PACKAGE.
set -euo pipefail
go=$1 benchstat=$2 commit=$3 package=$4
work=$(mktemp -d)
trap 'rm -rf "$work"; git worktree prune' EXIT
git worktree add --quiet --detach "$work/before" "$commit"
"$go" test -c -o "$work/now.test" "$package"
(cd "$work/before" && "$go" test -c -o "$work/before.test" "$package")
for _ in 1 2 3 4 5 6; do
	for side in before now; do
		(cd "$package" && "$work/$side.test" -test.run '^$' -test.bench . -test.benchtime 0.3s -test.benchmem) >>"$work/$side.txt"
	done
done
"$benchstat" before="$work/before.txt" now="$work/now.txt"
