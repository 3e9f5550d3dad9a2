package webhook

import "slices"

// hosted is a repository as GitHub has it: one or more entries of the
// configuration, which track a branch each.
type hosted struct {
	fullName string
	entries  []Repository
}

// signed reports whether a delivery has the secret of one of the entries: they have
// one webhook.
func (h hosted) signed(body, mac []byte) bool {
	good := false
	for _, entry := range h.entries {
		good = signed(body, mac, entry.Secret()) || good
	}
	return good
}

// concerned returns the entries that a delivery is for. A pull request is that of
// the branch that it is to be merged into; that one may have been changed, and then
// the delivery is for all.
func (h hosted) concerned(d delivery) []Repository {
	if d.base == "" {
		return h.entries
	}
	if i := slices.IndexFunc(h.entries, func(r Repository) bool { return r.Branch == d.base }); i >= 0 {
		return h.entries[i : i+1]
	}
	return h.entries
}
