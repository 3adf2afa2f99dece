#!/usr/bin/env bash
# matrix.sh DIR: make one environment with an old and one with a new numpy for every CPython 3.8 to
# 3.14 of this machine (on PATH, or under pyenv), and list their interpreters in DIR/pythons,
# separated by colons. The newest comes from a later release of Debian where the machine has none; in CI
# it must be there.
set -euo pipefail

dir=$1
here=$(dirname "$0")
mkdir -p "$dir"

# usable PYTHON MINOR: is it a CPython 3.MINOR that can make environments?
usable() {
	"$1" -c "import ensurepip, sys, venv
sys.exit(sys.version_info[:2] != (3, $2) or sys.implementation.name != 'cpython')" 2>/dev/null
}

find_python() {
	local minor=$1 candidate
	for candidate in "$(command -v "python3.$minor" || true)" \
		"${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor."*/bin/python; do
		if [[ -x $candidate ]] && usable "$candidate" "$minor"; then
			printf '%s\n' "$candidate"
			return
		fi
	done
}

pythons=()
for minor in 8 9 10 11 12 13 14; do
	python=$(find_python "$minor")
	if [[ -z $python && $minor == 14 ]]; then
		python=$("$here/debian-python.sh" forky 14 "$dir/../debian-3.14") || [[ ${CI:-} != true ]]
	fi
	[[ -n $python ]] || continue
	for age in old new; do
		venv=$dir/3.$minor-$age
		requirements=$here/requirements/matrix-$age.txt
		[[ $venv/.done -nt $requirements ]] || "$here/venv.sh" "$python" "$venv" "$requirements"
		pythons+=("$venv/bin/python")
	done
done

(IFS=: && printf '%s\n' "${pythons[*]-}") >"$dir/pythons"
