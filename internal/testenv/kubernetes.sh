#!/usr/bin/env bash
# Puts links to kube-apiserver and kube-controller-manager into a folder. They are built
# from the Go module of Kubernetes, once for each of its versions and each version of Go,
# into a cache folder of the user. Usage: kubernetes.sh FOLDER [VERSION]
#
# `go install` refuses the module, as its go.mod replaces what it needs by folders that the
# module does not contain: it is built with a copy of its go.mod that names the modules of
# the same version instead.
set -euo pipefail
folder=$1 version=${2:-v1.33.13}
module=k8s.io/kubernetes
go=${GO:-go}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast-test/tools/$($go env GOVERSION GOOS GOARCH | paste -sd- -)
dir=$cache/kubernetes@$version
mkdir -p "$folder"
if [[ ! -x $dir/kube-apiserver || ! -x $dir/kube-controller-manager ]]; then
  mkdir -p "$cache"
  temp=$(mktemp -d "$cache/tmp-kubernetes-XXXXXX")
  trap 'rm -rf "$temp"' EXIT
  mkdir "$temp/done"
  echo "building $module@$version into $dir: 5 to 20 minutes, once" >&2
  source=$(cd "$temp" && GOFLAGS=-mod=mod $go mod download -json "$module@$version" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",\{0,1\}$/\1/p')
  sed "s,=> \./staging/src/\(k8s\.io/.*\)$,=> \1 v0.${version#v1.}," "$source/go.mod" >"$temp/kubernetes.mod"
  cp "$source/go.sum" "$temp/kubernetes.sum"
  chmod u+w "$temp"/kubernetes.*
  IFS=. read -r major minor _ <<<"${version#v}"
  about=k8s.io/component-base/version
  (cd "$source" && GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0 $go build -modfile="$temp/kubernetes.mod" -trimpath -buildvcs=false \
    -ldflags "-s -w -X $about.gitVersion=$version -X $about.gitMajor=$major -X $about.gitMinor=$minor" \
    -o "$temp/done/" ./cmd/kube-apiserver ./cmd/kube-controller-manager)
  rm -rf "$dir"
  mv "$temp/done" "$dir"
fi
for program in kube-apiserver kube-controller-manager; do
  ln -f "$dir/$program" "$folder/" 2>/dev/null || cp -f "$dir/$program" "$folder/"
done
