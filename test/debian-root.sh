#!/usr/bin/env bash
# debian-root.sh SUITE DIR: make DIR/root, a small installation of a release of Debian or Ubuntu, as an image for containers is: dpkg,
# apt, rpm, Python and NumPy, nothing else. Needs root, or sudo that asks for no password.
set -euo pipefail

suite=$1 dir=$(realpath -m "$2")
here=$(realpath "$(dirname "$0")")
[[ $dir/.done -nt $here/debian-root.sh ]] && exit
as_root=()
((EUID == 0)) || as_root=(sudo -n)

echo "making $dir"
"${as_root[@]}" rm -rf "$dir"
mkdir -p "$dir"
exec 3>&2 >"$dir.log" 2>&1
trap '[[ -e $dir/.done ]] || { tail -n 5 "$dir.log" && echo "debian-root.sh: no root of $suite: see $dir.log"; } >&3' EXIT

. "$here/debian-apt.sh"
"${apt[@]}" update
( # of this machine's release: that of an old one may not know its keys
	root=$dir suite=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME") dir=$dir/own
	. "$here/debian-apt.sh"
	"${apt[@]}" update
	cd "$root"
	"${apt[@]}" download mmdebstrap
	dpkg -x mmdebstrap_*.deb tools
)
packages=rpm,python3-numpy
[[ $suite != bionic ]] || packages=rpm,python3,python3.8 # its NumPy is for Python 3.6
sed 's/ \[[^]]*\]//' "$dir/sources.list" >"$dir/mirrors"
"${as_root[@]}" env "PATH=$dir/tools/usr/bin:$PATH" mmdebstrap --mode=root --variant=apt --include="$packages" \
	--keyring="$keyring" --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/locale/*' "$suite" "$dir/root" "$dir/mirrors"
if [[ $suite == bionic ]]; then
	echo numpy==1.24.4 --hash=sha256:dd80e219fd4c71fc3699fc1dadac5dcf4fd882bfc6f7ec53d30fa197b8ee22dc >"$dir/numpy.txt"
	python3 -m pip download --disable-pip-version-check --only-binary :all: --no-deps --platform manylinux2014_x86_64 \
		--python-version 3.8 --require-hashes --dest "$dir" -r "$dir/numpy.txt"
	"${as_root[@]}" python3 -m zipfile -e "$dir"/numpy-*.whl "$dir/root/usr/local/lib/python3.8/dist-packages"
	"${as_root[@]}" chroot "$dir/root" python3.8 -m compileall -q /usr/local/lib/python3.8/dist-packages # as pip does
fi
rm -rf "$dir"/{cache,state,status,sources.list,mirrors,keys,own,tools,mmdebstrap_*,numpy*}
touch "$dir/.done"
