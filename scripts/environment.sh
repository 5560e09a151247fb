# Sourced by the other scripts, which stand in the repository's root. `prepare [EXTRAS]` leaves in $python an
# interpreter that has Mnemoscope and these extras: the active virtual environment's, or that of .venv, made if needed.

find_python() {
    for name in python3 python python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$name"
            return
        fi
    done
    echo "error: Python 3.11 or newer is needed, and none was found on the PATH" >&2
    return 1
}

make_venv() {
    echo "Making the virtual environment $1" >&2
    "$2" -m venv --clear "$1" >/dev/null 2>&1 && return
    # Debian splits ensurepip off from Python: let the pip that there is install another one.
    "$2" -m venv --clear --without-pip "$1" && "$2" -m pip --python "$1/bin/python" install --quiet pip
}

prepare() {
    extras=${1:-}
    python=$(find_python) || exit 1
    if "$python" -c 'import sys; sys.exit(sys.prefix != sys.base_prefix)'; then
        if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
            make_venv .venv "$python" || exit 1
        fi
        python=$PWD/.venv/bin/python
    fi
    "$python" -m pip --version >/dev/null 2>&1 || "$python" -m ensurepip >/dev/null || exit 1
    bin=$("$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))')
    stamp=$bin/.mnemoscope-${extras:-plain}
    wanted="$PWD $(cat pyproject.toml constraints.txt | cksum)"
    if [ ! -x "$bin/mnemoscope" ] || [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
        echo "Installing Mnemoscope into $(dirname "$bin"): a minute or a few, most of it torch" >&2
        "$python" -m pip install --quiet --constraint constraints.txt --editable ".${extras:+[$extras]}" || exit 1
        echo "$wanted" >"$stamp"
    fi
}
