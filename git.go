package holdfast

// Refs are the heads of a repository's branches and tags, by full name:
// refs/heads/main, refs/tags/v1.2.3 (annotated tags peeled to their commit).
type Refs map[string]Revision

// PullRequestRefs are the commits that a forge publishes for a pull request.
type PullRequestRefs struct {
	Head  Revision
	Merge Revision // the forge's own merge of head into base; empty if there is none
	Refs  Refs     // the branches and tags that the repository had at the same moment
}

// TreeChange is one file that differs between two trees.
type TreeChange struct {
	Path string `json:"path"` // in the new tree; in the old one if it was deleted
	From string `json:"from,omitempty"`
	Kind string `json:"kind"` // added, modified, deleted or renamed
}
