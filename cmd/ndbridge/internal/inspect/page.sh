#!/usr/bin/env bash
# page.sh others WORK OUT: get what the page is made with from the registry of npm, as package-lock.json says, into WORK, and write those
# files that the page needs to OUT. They are committed, so that nobody needs npm to build ndbridge.
# page.sh check WORK: compare them with what is committed, and check the types of the page's JavaScript.
set -euo pipefail

task=$1 work=$(realpath -m "$2")
here=$(realpath "$(dirname "$0")")
command -v npm >/dev/null || { echo "page.sh: this needs Node.js with npm" >&2 && exit 1; }

if ! cmp -s "$here/package-lock.json" "$work/package-lock.json" || [[ ! -e $work/.done ]]; then
	rm -rf "$work"
	mkdir -p "$work"
	cp "$here"/package*.json "$work"
	npm ci --prefix "$work" --ignore-scripts --no-audit --no-fund --loglevel=error >"$work/npm.log" 2>&1 || { tail -n 5 "$work/npm.log" >&2 && exit 1; }
	touch "$work/.done"
fi
case $task in
others) out=$(realpath -m "$3") ;;
check) out=$work/check/others ;;
esac
rm -rf "$out"
mkdir -p "$out"
cp "$work/node_modules/uplot/dist/uPlot.esm.js" "$out/uplot.js"
cp "$work/node_modules/uplot/dist/uPlot.min.css" "$out/uplot.css"
cp "$work/node_modules/uplot/LICENSE" "$out/uplot.LICENSE"
if [[ $task == check ]]; then
	diff -r "$here/web/others" "$out"
	cp "$here"/web/*.js "$here/tsconfig.json" "$work/check"
	cp "$work/node_modules/uplot/dist/uPlot.d.ts" "$out/uplot.d.ts"
	"$work/node_modules/.bin/tsc" -p "$work/check"
fi
