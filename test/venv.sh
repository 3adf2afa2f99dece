#!/usr/bin/env bash
# venv.sh PYTHON DIR REQUIREMENTS: make a virtual environment that holds exactly those packages.
# DIR/.done is written last, so that an interrupted run starts over.
set -euo pipefail

python=$1 dir=$2 requirements=$3
log=$dir.log

die() {
	printf 'venv.sh: %s\n' "$@" >&2
	exit 1
}

mkdir -p "$(dirname "$dir")"
# A requirements file may say "# python >= 3.11".
minor=$(sed -n 's/^# python >= 3\.\([0-9]*\)$/\1/p' "$requirements")
"$python" -c "import sys; sys.exit(sys.version_info < (3, ${minor:-8}))" ||
	die "$python is not a Python of 3.${minor:-8} or newer, which $requirements needs" \
		"name another: make PYTHON=/path/to/python3"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
	die "$python cannot make virtual environments" \
		"install its venv module (Debian, Ubuntu: apt install python3-venv), or name another: make PYTHON=/path/to/python3"

rm -rf "$dir"
echo "making ${dir#"$PWD"/} ($("$python" --version), $(basename "$requirements"))"
"$python" -m venv "$dir"
if ! "$dir/bin/python" -m pip install --disable-pip-version-check --no-input --only-binary :all: \
	--requirement "$requirements" >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	die "pip could not install $requirements for $("$python" --version)" "the whole log is $log"
fi
touch "$dir/.done"
