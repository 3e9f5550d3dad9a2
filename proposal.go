package holdfast

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The changes of a cluster's document that can be proposed.
const (
	ProposeCreate = "create"
	ProposeUpdate = "update"
	ProposeDelete = "delete"
)

// ClusterProposal asks for a pull request that changes the document of a cluster.
type ClusterProposal struct {
	Name     string
	Change   string   // create, update or delete
	Document string   // the whole document, YAML; empty: as it is, or a new one, with what is Set
	Set      []string // changes of single keys below spec: "variables.node_count=6"
	Repo     string   // where to create one; empty: the only repository that defines clusters
	Path     string   // in which file to create one; empty: one of its own
	By       string   // who asks
	Projects []string // of which the cluster must be, before and after; none: any
	DryRun   bool     // only say what it would be
}

// ProposedCluster is what came of a ClusterProposal.
type ProposedCluster struct {
	PullRequest PullRequest // zero: none was made
	Repo        string
	Path        string // of the file that it changes
	Line        int    // of the file, from 1, at which the document begins
	Document    string // as it would be; empty: it would be gone
	Faults      Faults // what is wrong with it; with any, no pull request is made
}

// proposalTrailer is the key of the line by which a commit of ours is known.
const proposalTrailer = "Holdfast-Proposal: "

// Identity tells proposals apart: by branch, message and the paths of the files.
// Another base, or other content of the files, does not make another proposal: whoever
// closed the pull request has declined both.
func (p Proposal) Identity() Digest {
	var b strings.Builder
	for _, part := range append([]string{p.Branch, strings.TrimSpace(p.Message)}, slices.Sorted(maps.Keys(p.Files))...) {
		fmt.Fprintf(&b, "%d:%s", len(part), part)
	}
	return DigestOf([]byte(b.String()))
}

// CommitMessage is Message with a line at its end by which the commit, whose tree
// has this id, is known to be ours: see ProposedBy.
func (p Proposal) CommitMessage(tree string) string {
	return strings.TrimSpace(p.Message) + "\n\n" + proposalTrailer + string(p.Identity()) + " " + tree + "\n"
}

// ProposedBy returns the Identity of the proposal that a commit with this message
// and tree was made for. It is empty if the commit is not ours, or no longer
// what we made: who amends it keeps the message and changes the tree.
func ProposedBy(message, tree string) Digest {
	message = strings.TrimSpace(message)
	last, ok := strings.CutPrefix(message[strings.LastIndexByte(message, '\n')+1:], proposalTrailer)
	identity, of, two := strings.Cut(last, " ")
	if !ok || !two || tree == "" || of != tree {
		return ""
	}
	return Digest(identity)
}
