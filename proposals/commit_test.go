package proposals_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
)

func TestProposedBy(t *testing.T) {
	t.Parallel()
	const tree, other = "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "b825dc642cb6eb9a060e54bf8d69288fbee49044"
	p := proposals.PullRequest{
		Branch: "holdfast/kubernetes", Message: "Upgrade kubernetes to 1.5.0\n\nNotes.\n",
		Files: map[string][]byte{"a.yaml": []byte("1"), "b.yaml": []byte("2")},
	}
	message := p.CommitMessage(tree)
	if !strings.HasPrefix(message, "Upgrade kubernetes to 1.5.0\n\nNotes.\n\nHoldfast-Proposal: sha256:") {
		t.Errorf("CommitMessage() = %q", message)
	}
	for name, test := range map[string]struct {
		message, tree string
		want          holdfast.Digest
	}{
		"ours":                {message, tree, p.Identity()},
		"with other newlines": {strings.TrimSpace(message), tree, p.Identity()},
		"amended":             {message, other, ""},
		"without a tree":      {message, "", ""},
		"quoted in another":   {message + "\nCo-authored-by: Ada <ada@example.com>\n", tree, ""},
		"somebody's":          {"Upgrade kubernetes", tree, ""},
		"empty":               {"", tree, ""},
		"cut":                 {"Holdfast-Proposal: sha256:abc", tree, ""},
	} {
		if got := proposals.IdentityOf(test.message, test.tree); got != test.want {
			t.Errorf("%s: ProposedBy() = %q, want %q", name, got, test.want)
		}
	}

	same := p
	same.Base, same.Head, same.Title, same.Files = "abc", "def", "another", map[string][]byte{"b.yaml": nil, "a.yaml": nil}
	if same.Identity() != p.Identity() {
		t.Error("another base or other contents make another proposal")
	}
	for name, change := range map[string]func(p *proposals.PullRequest){
		"branch":  func(p *proposals.PullRequest) { p.Branch = "x" },
		"message": func(p *proposals.PullRequest) { p.Message = "Upgrade kubernetes to 1.5.1" },
		"files":   func(p *proposals.PullRequest) { p.Files = map[string][]byte{"a.yaml": nil} },
		"split":   func(p *proposals.PullRequest) { p.Files = map[string][]byte{"a.yaml6:b.yaml": nil} },
	} {
		changed := p
		change(&changed)
		if changed.Identity() == p.Identity() {
			t.Errorf("another %s makes no other proposal", name)
		}
	}
}
