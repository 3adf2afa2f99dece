# debian-apt.sh: for scripts to source, with the variables suite and dir. It sets mirror, keyring, components and apt: an apt-get for a
# release of Debian or Ubuntu, with all that it remembers under dir. It installs nothing. For this machine's distribution it uses the
# machine's mirror and keys. The keys of the other one come from a package of this machine's, which apt has verified.
case $suite in
bionic | focal | jammy | noble) distribution=ubuntu components="main universe" other=http://archive.ubuntu.com/ubuntu keys=ubuntu-keyring keys_suite=trixie ;;
*) distribution=debian components=main other=http://deb.debian.org/debian keys=debian-archive-keyring keys_suite=noble ;;
esac
keyring=/usr/share/keyrings/$distribution-archive-keyring.gpg
if [[ $(. /etc/os-release && printf '%s' "$ID") == "$distribution" ]]; then
	mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' | sed -n "s/^${distribution^} //p" | sort -u | head -n 1)
	[[ -n $mirror ]] || { echo "${0##*/}: this machine has no mirror of ${distribution^}" >&2 && exit 1; }
else
	mirror=$other
	(
		suite=$keys_suite dir=$dir/keys package=$keys
		. "$(dirname "${BASH_SOURCE[0]}")/debian-apt.sh"
		"${apt[@]}" update
		cd "$dir"
		"${apt[@]}" download "$package"
		dpkg -x "$package"_*.deb .
	) >&2
	keyring=$dir/keys$keyring
fi
apt=(apt-get -q -o "Dir::State=$dir/state" -o "Dir::Cache=$dir/cache" -o "Dir::State::Status=$dir/status"
	-o "Dir::Etc::SourceList=$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root)
mkdir -p "$dir"/{state/lists/partial,cache/archives/partial}
echo "deb [signed-by=$keyring] $mirror $suite $components" >"$dir/sources.list"
if [[ $suite == bionic ]]; then # Python 3.8 came as an update
	echo "deb [signed-by=$keyring] $mirror bionic-updates $components" >>"$dir/sources.list"
fi
touch "$dir/status"
