#!/usr/bin/env bash
# Installs what a make target needs and this machine does not have, and says so.
# Usage: setup.sh demo|scale|test|browser
#
# Packages come from apt-get (as root, or where sudo asks for no password) or from
# Homebrew; elsewhere, and with SETUP=no, the one command that installs them is printed
# and the script fails. Without Terraform and OpenTofu, OpenTofu is put into the user's
# cache by opentofu.sh: with-engine.sh finds it there.
set -euo pipefail
cd "$(dirname "$0")/../.."
goal=${1:?usage: setup.sh demo|scale|test|browser}

system=$(uname -s)
programs=(git curl)
if [[ $goal == test ]]; then
  programs+=(ssh redis-server node npm "${CC:-gcc}")
  [[ $system == Linux ]] && programs+=(ip nft postgres etcd)
fi

[[ $goal != browser ]] || programs+=(chromium npm)
[[ $goal != scale ]] || programs+=(redis-server postgres)

# package_of PROGRAM: the packages that have it, by the names of the package manager.
package_of() {
  case $system:$1 in
    Linux:ssh) echo openssh-client ;;
    Linux:chromium) echo chromium fonts-noto-color-emoji ;;
    Linux:gcc) echo gcc libc6-dev ;;
    Linux:ip) echo iproute2 ;;
    Linux:nft) echo nftables ;;
    Linux:postgres) echo postgresql ;;
    Linux:etcd) echo etcd-server ;;
    Linux:node) echo nodejs ;;
    Darwin:redis-server) echo redis ;;
    Darwin:npm) echo node ;;
    *) echo "$1" ;;
  esac
}

# has PROGRAM: it is installed, on PATH or not.
has() {
  command -v "$1" || command -v "/usr/sbin/$1" || compgen -G "/usr/lib/postgresql/*/bin/$1"
} >/dev/null

packages=()
for program in "${programs[@]}"; do
  if ! has "$program"; then
    read -ra more <<<"$(package_of "$program")"
    packages+=("${more[@]}")
  fi
done

# say_how COMMAND...: what a person has to run, as this script may not.
say_how() {
  [[ $goal != browser ]] || goal=test-console
  echo "make $goal needs ${packages[*]}. Install with:" >&2
  echo >&2
  echo "  $*" >&2
  exit 1
}

install_packages() {
  local apt=(apt-get install -y --no-install-recommends "${packages[@]}") sudo=()
  if command -v apt-get >/dev/null; then
    if ((EUID != 0)); then
      if [[ ${SETUP:-} == no ]] || ! sudo -n true 2>/dev/null; then
        say_how "sudo apt-get update && sudo ${apt[*]}"
      fi
      sudo=(sudo -n)
    elif [[ ${SETUP:-} == no ]]; then
      say_how "apt-get update && ${apt[*]}"
    fi
    echo "setup: installing ${packages[*]} with apt-get" >&2
    "${sudo[@]}" apt-get update -qq >&2
    # A machine that has just started may be installing updates.
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive "${apt[@]}" -o DPkg::Lock::Timeout=300 -qq >/dev/null
  elif command -v brew >/dev/null; then
    [[ ${SETUP:-} != no ]] || say_how "brew install ${packages[*]}"
    echo "setup: installing ${packages[*]} with brew" >&2
    brew install --quiet "${packages[@]}" >&2
  elif [[ $system == Darwin ]]; then
    say_how "brew install ${packages[*]}    # Homebrew: https://brew.sh"
  else
    say_how "your package manager, for ${packages[*]}"
  fi
  echo "setup: installed ${packages[*]}" >&2
}

if ((${#packages[@]})); then install_packages; fi

if ! command -v terraform >/dev/null && ! command -v tofu >/dev/null; then
  dir=$(internal/testenv/opentofu.sh)
  echo "setup: OpenTofu is in $dir" >&2
fi
