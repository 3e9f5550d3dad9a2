package github_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/proposals"
)

func TestProposeRefuses(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for name, test := range map[string]struct {
		change func(p *proposals.PullRequest)
		word   string
	}{
		"a file that is not":    {func(p *proposals.PullRequest) { p.Files["clusters/none.yaml"] = []byte("x") }, "no such file"},
		"a folder that is not":  {func(p *proposals.PullRequest) { p.Files["none/none.yaml"] = []byte("x") }, "no such file"},
		"a folder":              {func(p *proposals.PullRequest) { p.Files["clusters"] = []byte("x") }, "not an ordinary file"},
		"a link":                {func(p *proposals.PullRequest) { p.Files["link"] = []byte("x") }, "not an ordinary file"},
		"not a path":            {func(p *proposals.PullRequest) { p.Files["/x"] = []byte("x") }, "not a path"},
		"a base that is not":    {func(p *proposals.PullRequest) { p.Base = head }, "not found"},
		"a base branch that is": {func(p *proposals.PullRequest) { p.BaseBranch = "none" }, "base"},
		"what changes nothing": {func(p *proposals.PullRequest) {
			p.Files = map[string][]byte{"README.md": []byte("hello\n")}
		}, "nothing"},
	} {
		p := h.upgrade("1.5.0")
		test.change(&p)
		if pr, err := h.c.Propose(t.Context(), "app", p); err == nil || !strings.Contains(err.Error(), test.word) {
			t.Errorf("Propose() of %s = %+v, %v; want a word about %q", name, pr, err, test.word)
		}
	}
	if prs := h.repo.PullRequests(); len(prs) != 0 {
		t.Errorf("pull requests %+v", prs)
	}
	if _, err := h.c.Propose(t.Context(), "none", h.upgrade("1.5.0")); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("Propose() to no repository = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.c.Propose(ctx, "app", h.upgrade("1.5.0")); !errors.Is(err, context.Canceled) {
		t.Errorf("Propose() after the end = %v", err)
	}
}

// A fleet's worth of files, in as many folders, some of them large or no text.
func TestProposeManyFiles(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	const many = 700
	before := map[string]string{}
	p := h.upgrade("1.5.0")
	p.Files = map[string][]byte{}
	for i := range many {
		name := fmt.Sprintf("clusters/%d/%d.yaml", i%30, i)
		before[name], p.Files[name] = "version: 1.4.2\n", []byte("version: 1.5.0\n")
	}
	for name, data := range map[string][]byte{
		"clusters/large.yaml":  []byte(strings.Repeat("# 0123456789\n", 100<<10)),
		"clusters/binary.yaml": {0xff, 0xfe, 0, 1}, "clusters/empty.yaml": {},
		"clusters/crlf ü #1.yaml": []byte("version: 1.5.0\r\n\r\n# <b>&amp; \u2028 x"),
	} {
		before[name], p.Files[name] = gitserver.Executable+"x", data
	}
	p.Base = holdfast.Revision(h.git.Commit("main", "many", before))
	pr := h.propose(p)
	if n := h.s.CallCount(); n > 20 {
		t.Errorf("%d calls: %v", n, h.s.Calls())
	}
	diff := h.git.Git("diff", "--raw", "--abbrev=40", "--no-renames", "-z", string(p.Base), string(pr.Head))
	changed := 0
	for fields := strings.Split(strings.Trim(diff, "\x00"), "\x00"); len(fields) > 1; fields = fields[2:] {
		meta := strings.Fields(fields[0])
		if meta[0] != ":"+meta[1] || p.Files[fields[1]] == nil {
			t.Errorf("changed: %v", fields[:2])
		}
		changed++
	}
	if changed != len(p.Files) {
		t.Errorf("%d files changed, want %d", changed, len(p.Files))
	}
	for name, want := range p.Files {
		if len(want) > 0 && strings.Contains(name, "/l") || strings.Contains(name, "crlf") || strings.Contains(name, "binary") {
			if got := h.git.Git("cat-file", "-s", ours+":"+name); got != fmt.Sprint(len(want)) {
				t.Errorf("%s has %s bytes, want %d", name, got, len(want))
			}
		}
	}
}

func TestProposeCutsWhatIsTooLong(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	p := h.upgrade("1.5.0")
	p.Title, p.Body = strings.Repeat("ü", 300), strings.Repeat("ö", 70_000)
	pr := h.propose(p)
	h.s.ResetCalls()
	p.Head = pr.Head
	if h.propose(p); writes(h.s) != 0 {
		t.Errorf("wrote what is there: %v", h.s.Calls())
	}
	h.repo.Close(1)
	if pr := h.propose(p); pr.Number != 1 {
		t.Errorf("declined and proposed again as %d", pr.Number)
	}
}
