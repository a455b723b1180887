#!/usr/bin/env bash
# The tests of the decompiler on CPythons other than the one that everything runs on, each in a venv of its own.
#
#   tools/check/check_pythons.sh [--quick | --all] [VERSION...]
#
# Without VERSIONs: all that pyproject.toml has as classifiers, except the Makefile's MAIN. A VERSION that is named (3.9)
# is tested whether it has one or not. --quick: only the modules of the corpus, proved and run; a few seconds a version.
# Each version runs an eighth of the tests marked "shared" (random programs, mutants, modules of the standard library); all
# versions together, with MAIN, run all of them. --all: every version runs all.
# Pythons are found by .ci/pythons; PYTHONS="/path/to/python3.14 ..." names more, and tools/check/debian_pythons.sh fetches
# those that are missing. One that isn't there is skipped, with a line that says so, unless it was named. The venvs are in
# .venvs beside the main worktree's .git, for all worktrees.
set -euo pipefail
cd "$(dirname "$0")/../.."

quick=
shares=8
versions=()
for argument in "$@"; do
    case "$argument" in
        --quick) quick=1 ;;
        --all) shares=1 ;;
        3.*) versions+=("$argument") ;;
        *) echo "usage: tools/check/check_pythons.sh [--quick | --all] [VERSION...]" >&2; exit 2 ;;
    esac
done
supported=" $(.ci/pythons --supported | tr '\n' ' ')"
main=$(sed -n 's/^MAIN := //p' Makefile)

found=$(.ci/pythons)
declare -A paths
while read -r version path; do
    paths[$version]=$path
done <<<"$found"

if [ ${#versions[@]} -eq 0 ]; then
    for version in $supported; do
        if [ "$version" = "$main" ]; then continue; fi
        if [ -n "${paths[$version]:-}" ]; then versions+=("$version"); else
            echo "skipped: CPython $version: not on this machine (tools/check/debian_pythons.sh, or PYTHONS=/path/to/python$version)"
        fi
    done
    for version in "${!paths[@]}"; do
        if [[ "$supported" != *" $version "* ]]; then
            echo "skipped: CPython $version (${paths[$version]}): no classifier in pyproject.toml yet"
        fi
    done | sort -V
fi

venvs=.venvs
if common=$(git rev-parse --path-format=absolute --git-common-dir 2>/dev/null); then
    venvs=$(dirname "$common")/.venvs
fi
mkdir -p "$venvs"

# A venv with what the tests need, made again when pyproject.toml is another one. It has no depyf: that would be the one of
# the worktree that made it, which other worktrees would run, or not find once it is gone.
prepare() {
    local version=$1 venv=$venvs/$1
    exec 8>"$venv.lock"
    flock 8
    if cmp -s pyproject.toml "$venv/made-for.toml"; then return; fi
    echo "CPython $version: making $venv with ${paths[$version]}"
    "${paths[$version]}" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[test]'
    "$venv/bin/python" -m pip uninstall --quiet --yes depyf
    cp pyproject.toml "$venv/made-for.toml"
}

# Those of tests/decompiler.
DECOMPILED="corpus readability text_alone author_text combinations missing modes random_programs
    syntax_found_by_random_programs"
SWEPT="bisect colorsys copy fnmatch heapq html keyword sched shlex string textwrap"

# All tests of one version, one process: several versions run side by side.
check() {
    local version=$1 python=$venvs/$1/bin/python
    export PYTHONPATH=$PWD/src PYTHONDONTWRITEBYTECODE=1
    if [ -n "$quick" ]; then
        "$python" -m pytest -q --tb=short -p no:cacheprovider tests/decompiler/test_corpus.py -k whole_module
    else
        # By the number of the version, so that neighbours run different shares.
        export DEPYF_TESTS_SHARE=$((${version#3.} % shares))/$shares
        # shellcheck disable=SC2086
        "$python" -m pytest -q --tb=short -p no:cacheprovider -m "not slow" \
            $(printf 'tests/decompiler/test_%s.py ' $DECOMPILED) \
            $(printf 'tests/decompiler/%s ' bytecode normal flow source structure verify)
        # shellcheck disable=SC2086
        "$python" -m depyf sweep -j 1 --top 5 $SWEPT
    fi
}

log=$(mktemp -d)
trap 'jobs -p | xargs -r kill 2>/dev/null || true; rm -rf "$log"' EXIT
one() {
    local version=$1
    if [ -z "${paths[$version]:-}" ]; then
        echo "CPython $version is not on this machine" >&2
        return 1
    fi
    prepare "$version"
    check "$version"
}

failed=()
finish() { # the oldest run
    local version=${running[0]%% *} process=${running[0]#* } state=passed
    running=("${running[@]:1}")
    wait "$process" || state=failed
    if [ "$state" = failed ]; then
        failed+=("$version")
        cat "$log/$version"
    fi
    echo "CPython $version: $state: $(grep -E '^[0-9]+ (passed|failed)|^ +all ' "$log/$version" | paste -sd ';')"
}

jobs=$(nproc)
running=()
for version in "${versions[@]}"; do
    while [ ${#running[@]} -ge "$jobs" ]; do finish; done
    (set -e; one "$version") >"$log/$version" 2>&1 &
    running+=("$version $!")
done
while [ ${#running[@]} -gt 0 ]; do finish; done
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed on CPython: ${failed[*]}" >&2
    exit 1
fi
