package cost

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/plandoc"
)

//go:embed free.txt
var freeTypes string

// free are the types that are billed by nothing.
var free = sync.OnceValue(func() map[string]bool { //nolint:gochecknoglobals // read once, never changed
	all := make(map[string]bool)
	for line := range strings.Lines(freeTypes) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			all[line] = true
		}
	}
	return all
})

// freeProviders are those of no cloud: what they keep is in the state, on a disk or in the
// cluster, which is billed by its nodes.
var freeProviders = map[string]bool{ //nolint:gochecknoglobals // a constant table
	"terraform.io/builtin/terraform": true,
	"hashicorp/archive":              true,
	"hashicorp/cloudinit":            true,
	"hashicorp/external":             true,
	"hashicorp/helm":                 true,
	"hashicorp/http":                 true,
	"hashicorp/kubernetes":           true,
	"hashicorp/local":                true,
	"hashicorp/null":                 true,
	"hashicorp/random":               true,
	"hashicorp/time":                 true,
	"hashicorp/tls":                  true,
	"alekc/kubectl":                  true,
	"gavinbunney/kubectl":            true,
}

// isFree reports whether a resource is billed by nothing. Rights are not, whatever they are
// rights to.
func isFree(r *plandoc.Resource) bool {
	provider := r.Provider
	if host, rest, ok := strings.Cut(provider, "/"); ok && strings.Contains(host, ".") && host != "terraform.io" {
		provider = rest
	}
	if freeProviders[provider] || free()[r.Type] {
		return true
	}
	cloud := cloudOf(r.Type)
	return cloud != "" && (strings.HasPrefix(r.Type, "aws_iam_") || strings.HasSuffix(r.Type, "_iam_member") ||
		strings.HasSuffix(r.Type, "_iam_binding") || strings.HasSuffix(r.Type, "_iam_policy"))
}
