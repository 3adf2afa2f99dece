#!/usr/bin/env bash
# debian-root.sh SUITE DIR PACKAGE...: make DIR/root, a small installation of a release of Debian or Ubuntu, as an image for
# containers is: dpkg, apt and the packages named, nothing else. Needs root, or sudo that asks for no password.
set -euo pipefail

suite=$1 dir=$(realpath -m "$2")
here=$(dirname "$0")
[[ $dir/.done -nt $here/debian-root.sh ]] && exit
as_root=()
((EUID == 0)) || as_root=(sudo -n)

echo "making $dir"
"${as_root[@]}" rm -rf "$dir"
mkdir -p "$dir"
{
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
	packages=("${@:3}")
	"${as_root[@]}" env "PATH=$dir/tools/usr/bin:$PATH" mmdebstrap --mode=root --variant=apt --include="$(IFS=, && echo "${packages[*]}")" \
		--components="${components/ /,}" --keyring="$keyring" --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/locale/*' \
		"$suite" "$dir/root" "$mirror"
} >"$dir.log" 2>&1 || { tail -n 5 "$dir.log" >&2 && echo "debian-root.sh: no root of $suite: see $dir.log" >&2 && exit 1; }
rm -rf "$dir"/{cache,state,status,sources.list,keys,own,tools,mmdebstrap_*}
touch "$dir/.done"
