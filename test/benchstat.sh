#!/usr/bin/env bash
# Compares the benchmarks of a package with those of another commit, in turns: benchstat.sh GO BENCHSTAT COMMIT PACKAGE.
set -euo pipefail
go=$1 benchstat=$2 commit=$3 package=$4
work=$(mktemp -d)
trap 'git worktree remove --force "$work/before" 2>/dev/null; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/before" "$commit"
"$go" test -c -o "$work/now.test" "$package"
if ! (cd "$work/before" && "$go" test -c -o "$work/before.test" "$package"); then
	echo "$commit has no tests of $package" >&2
	exit 1
fi
for _ in 1 2 3 4 5 6; do
	for side in before now; do
		(cd "$package" && "$work/$side.test" -test.run '^$' -test.bench . -test.benchtime 0.3s -test.benchmem) >>"$work/$side.txt"
	done
done
cd "$work" && "$benchstat" before.txt now.txt
