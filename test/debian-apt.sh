# debian-apt.sh: for scripts to source, with the variables suite and dir. It sets mirror, keyring and apt: an apt-get for a release
# of this machine's distribution, Debian or Ubuntu, with all that it remembers under dir. It uses the machine's mirror and keys, and
# installs nothing.
distribution=$(. /etc/os-release && printf '%s' "$ID")
mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' | sed -n "s/^${distribution^} //p" | sort -u | head -n 1)
[[ -n $mirror ]] || { echo "${0##*/}: this machine has no mirror of Debian or Ubuntu" >&2 && exit 1; }
keyring=/usr/share/keyrings/$distribution-archive-keyring.gpg
components=main
[[ $distribution != ubuntu ]] || components="main universe"
apt=(apt-get -q -o "Dir::State=$dir/state" -o "Dir::Cache=$dir/cache" -o "Dir::State::Status=$dir/status"
	-o "Dir::Etc::SourceList=$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root)
mkdir -p "$dir"/{state/lists/partial,cache/archives/partial}
echo "deb [signed-by=$keyring] $mirror $suite $components" >"$dir/sources.list"
touch "$dir/status"
