#!/usr/bin/env bash
# venv.sh PYTHON DIR REQUIREMENTS: make a virtual environment that holds exactly those packages, which
# name all that they need. DIR/.done is written last, so that an interrupted run starts over.
#
# uv installs: it unpacks a package once, beside the environments, and links its files into each.
set -euo pipefail

python=$1 dir=$2 requirements=$3
log=$dir.log
tools=$(dirname "$0")/requirements/uv.txt
# An environment of a folder such as matrix/ shares what is unpacked with those outside it.
shared=$(realpath -m "$dir/..")
[[ $(basename "$shared") == venv ]] || shared=$(dirname "$shared")
uv=$shared/uv

die() {
	printf 'venv.sh: %s\n' "$@" >&2
	exit 1
}

# pip_setting NAME: what this machine's pip is told, by a variable or else by its configuration, or nothing.
pip_setting() {
	sed -n "s/^\(:env:\|global\)\.$1='\(.*\)'\$/\2/p" <<<"$settings" | head -n 1
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

if [[ ! $uv/.done -nt $tools ]]; then
	rm -rf "$uv"
	"$python" -m venv "$uv"
	"$uv/bin/python" -m pip install --disable-pip-version-check --no-input --only-binary :all: --no-cache-dir \
		--requirement "$tools" >"$uv.log" 2>&1 || { tail -n 20 "$uv.log" >&2 && die "pip could not install $tools" "the whole log is $uv.log"; }
	touch "$uv/.done"
fi
# What pip is told of its index and its certificates holds for uv, too.
settings=$("$uv/bin/python" -m pip config list)
index=$(pip_setting index-url) links=$(pip_setting find-links) cert=$(pip_setting cert)
[[ -z $index ]] || export UV_DEFAULT_INDEX=$index
[[ -z $links ]] || export UV_FIND_LINKS=$links
[[ -z $cert ]] || export SSL_CERT_FILE=$cert

rm -rf "$dir"
echo "making ${dir#"$PWD"/} ($("$python" --version), $(basename "$requirements"))"
"$python" -m venv "$dir"
if ! "$uv/bin/uv" pip install --python "$dir/bin/python" --no-config --cache-dir "$uv/cache" --native-tls --no-build --no-deps \
	--compile-bytecode --requirement "$requirements" >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	die "uv could not install $requirements for $("$python" --version)" "the whole log is $log"
fi
# A requirements file may say "# stand-ins FOLDER": libraries of CUDA are not installed for what lies there.
for folder in $(sed -n 's/^# stand-ins //p' "$requirements"); do
	"$(dirname "$0")/cuda-stand-ins.sh" "$dir"/lib/python3.*/site-packages/"$folder" >>"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		die "nothing could stand in for the libraries of CUDA that $folder needs" "the whole log is $log"
	}
done
touch "$dir/.done"
