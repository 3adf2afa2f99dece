#!/bin/sh
# Runs the GPU tests of the bundle beside this file: run.sh OUT [section...]. The report is then in
# OUT/gpu.md and OUT/gpu.json, and what the tests printed in OUT/SECTION.log.
#
# It needs Python 3.12 (PYTHON, or python3) with the frameworks that it has: numpy, torch, cupy, jax,
# numba-cuda, cuda.core. PyCUDA is in the bundle. Others come in folders EXTRAS/NAME, each with an
# archive in parts 0, 1, ...: those that are there are unpacked too. No Go, no compiler, no network; it
# writes to OUT and to a temporary folder, which it removes.
set -eu

out=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
python=$(command -v "${PYTHON:-python3}")
extras=${EXTRAS:-$here/../gpu-extras}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/site" "$out"
"$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2], filter="tar")' "$here/bundle.tar.xz" "$work"

for wheel in "$work"/bundle/wheels/*.whl; do
	"$python" -m zipfile -e "$wheel" "$work/site"
done
for extra in "$extras"/*/; do
	[ -e "${extra}0" ] || continue
	name=$(basename "$extra")
	echo "unpacking $name"
	site=$work/site
	case $name in *-old)
		# A version of its own, for an interpreter of its own.
		site=$work/$name
		printf '#!/bin/sh\nPYTHONPATH="%s" exec "%s" "$@"\n' "$site" "$python" >"$work/python-$name"
		chmod +x "$work/python-$name"
		;;
	esac
	mkdir -p "$site"
	cat "$extra"* | "$python" -c 'import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode="r|xz").extractall(sys.argv[1], filter="tar")' "$site"
done
[ ! -e "$work/python-dali-old" ] || export NDBRIDGE_TEST_PYTHON_DALI_OLD="$work/python-dali-old"
export PYTHONPATH="$work/site${PYTHONPATH:+:$PYTHONPATH}"

frameworks=driver,pycuda
for pair in torch:torch cupy:cupy jax:jax numba:numba.cuda cudacore:cuda.core warp:warp dali:nvidia.dali; do
	if "$python" -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec(sys.argv[1]))' "${pair#*:}" 2>"$work/why"; then
		frameworks=$frameworks,${pair%%:*}
	else
		echo "not here, so not tested: ${pair%%:*}"
	fi
done

# Compilers of the frameworks keep what they made; those of the tests go with them.
export CUPY_CACHE_DIR="$work/cupy" NUMBA_CACHE_DIR="$work/numba" WARP_CACHE_PATH="$work/warp"
"$work/bundle/run" -bundle "$work/bundle" -out "$out" -python "$python" -frameworks "$frameworks" \
	-command "run.sh OUT${*:+ $*}" "$@"
