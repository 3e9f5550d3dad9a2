package proposals

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// PullRequest is a pull request that we make: a branch with one commit on top of
// Base.
type PullRequest struct {
	Branch     string            `json:"branch"`
	Base       holdfast.Revision `json:"base"`          // head of the tracked branch
	BaseBranch string            `json:"baseBranch"`    // the tracked branch
	Files      map[string][]byte `json:"files"`         // new contents by path, nil: it is removed; the files are there already, unless New
	New        bool              `json:"new,omitempty"` // files that are not there are made
	Message    string            `json:"message"`       // of the commit
	Title      string            `json:"title"`
	Body       string            `json:"body"`
	Labels     []string          `json:"labels,omitempty"`
	// Head is our last commit on Branch; empty: none that we know of. A branch
	// that is elsewhere is somebody's work, an ErrConflict, unless its head says
	// that we made it: then the answer was lost. See IdentityOf.
	Head holdfast.Revision `json:"head,omitempty"`
}

// Identity distinguishes proposals: by branch, message and the paths of the files.
// Another base, or other content of the files, does not make another proposal: whoever
// closed the pull request has declined both.
func (p PullRequest) Identity() holdfast.Digest {
	var b strings.Builder
	for _, part := range append([]string{p.Branch, strings.TrimSpace(p.Message)}, slices.Sorted(maps.Keys(p.Files))...) {
		fmt.Fprintf(&b, "%d:%s", len(part), part)
	}
	return holdfast.DigestOf([]byte(b.String()))
}

// CommitMessage is Message with a line at its end by which the commit, whose tree
// has this id, is known to be ours: see IdentityOf.
func (p PullRequest) CommitMessage(tree string) string {
	return strings.TrimSpace(p.Message) + "\n\n" + proposalTrailer + string(p.Identity()) + " " + tree + "\n"
}

// proposalTrailer is the key of the line by which a commit of ours is known.
const proposalTrailer = "Holdfast-Proposal: "

// IdentityOf returns the Identity of the proposal that a commit with this message and
// tree was made for. It is empty if the commit is not ours, or no longer what we made:
// an amended commit keeps the message and changes the tree.
func IdentityOf(message, tree string) holdfast.Digest {
	message = strings.TrimSpace(message)
	last, ok := strings.CutPrefix(message[strings.LastIndexByte(message, '\n')+1:], proposalTrailer)
	identity, of, two := strings.Cut(last, " ")
	if !ok || !two || tree == "" || of != tree {
		return ""
	}
	return holdfast.Digest(identity)
}
