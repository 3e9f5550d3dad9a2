package reconciler_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/forge/local"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/rollout"
)

// upgradeFleet is a fleet on the local forge, whose repository also publishes the
// template web.
type upgradeFleet struct {
	*fleet
	host  *flakyForge
	files map[string]string // on the tracked branch, as they were pushed
}

// flakyForge is a forge that loses answers, and remembers what it was asked for.
type flakyForge struct {
	reconciler.Forge

	mu        sync.Mutex
	before    error // refuse the next calls to Propose
	after     error // lose the answers of the next calls to Propose
	closing   error // lose the answers of the next calls to Withdraw
	calls     int   // of Propose
	last      map[string]proposals.PullRequest
	withdrawn []string
}

func (h *flakyForge) Propose(ctx context.Context, repo string, p proposals.PullRequest) (holdfast.PullRequest, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	if h.before != nil {
		return holdfast.PullRequest{}, h.before
	}
	pr, err := h.Forge.Propose(ctx, repo, p)
	if err != nil {
		return pr, err
	}
	h.last[p.Branch] = p
	if h.after != nil {
		return holdfast.PullRequest{}, h.after
	}
	return pr, nil
}

func (h *flakyForge) Withdraw(ctx context.Context, ref holdfast.PullRequestRef, branch string, head holdfast.Revision, why string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.Forge.Withdraw(ctx, ref, branch, head, why); err != nil {
		return err
	}
	h.withdrawn = append(h.withdrawn, fmt.Sprintf("%d: %s", ref.Number, why))
	return h.closing
}

func (h *flakyForge) breaks(before, after, closing error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before, h.after, h.closing = before, after, closing
}

// body is what the last proposal on a branch told.
func (h *flakyForge) body(branch string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last[branch].Body
}

// newUpgradeFleet returns a fleet with clusters of template web, which has
// version 1.0.0, in the files clusters/NAME.yaml.
func newUpgradeFleet(t *testing.T, clusters map[string]string, with ...func(*reconciler.Options)) *upgradeFleet {
	t.Helper()
	files := webVersion("1.0.0")
	for name, text := range clusters {
		files["clusters/"+name+".yaml"] = text
	}
	u := &upgradeFleet{host: &flakyForge{last: make(map[string]proposals.PullRequest)}, files: files}
	onLocal := func(o *reconciler.Options) {
		forge, err := local.New(local.Options{
			Git: o.Sources.Git.(local.Git), Store: o.Store.(*datastore.Store), Branches: map[string]string{infra: master}, Now: o.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		u.host.Forge = forge
		o.Sources.Forges = map[string]reconciler.Forge{infra: u.host}
		o.Sources.Repositories = slices.Clone(o.Sources.Repositories)
		o.Sources.Repositories[0].Local = true
	}
	u.fleet = newFleet(t, files, append([]func(*reconciler.Options){onLocal}, with...)...)
	u.repo.Tag("web/v1.0.0", master)
	u.r.HurryUpgrades()
	return u
}

func groupedBy(labels ...string) func(*reconciler.Options) {
	return func(o *reconciler.Options) { o.Sources.Repositories[0].UpgradeGroups = labels }
}

// webVersion are the files of template web; needs are variables that are
// required.
func webVersion(version string, needs ...string) map[string]string {
	files := webTemplate(version)
	properties := "{}"
	if len(needs) > 0 {
		properties = "{" + strings.Join(needs, ": {type: string}, ") + ": {type: string}}"
	}
	files["templates/web/template.yaml"] += fmt.Sprintf("  variables: {type: object, required: [%s], properties: %s}\n",
		strings.Join(needs, ", "), properties)
	files["templates/web/CHANGELOG.md"] = "# Changelog\n\n## " + version + "\n\n- what is new in " + version + "\n"
	return files
}

// release publishes a version of template web, and has everything looked at.
func (u *upgradeFleet) release(version string, needs ...string) {
	u.t.Helper()
	u.push("Release web "+version, webVersion(version, needs...))
	u.repo.Tag("web/v"+version, master)
	u.look()
}

// push adds a commit to the tracked branch.
func (u *upgradeFleet) push(message string, files map[string]string) {
	u.t.Helper()
	u.repo.Commit(master, message, files)
	maps.Copy(u.files, files)
}

// again is the same after a crash.
func (u *upgradeFleet) again(with ...func(*reconciler.Options)) {
	u.t.Helper()
	u.restart(with...)
	u.r.HurryUpgrades()
	u.look()
}

// webCluster is a cluster of a version of template web, with what it says beside.
func webCluster(name, version, upgrades string, labels ...string) string {
	more := ""
	if upgrades != "" {
		more = fmt.Sprintf(", upgrades: %q", upgrades)
	}
	text := strings.Replace(templated(name, "{name: web, version: "+version+more+"}"), "provider: any", "provider: any # as ever", 1)
	if len(labels) > 0 {
		text = strings.Replace(text, "{name: "+name+"}", "{name: "+name+", labels: {"+strings.Join(labels, ", ")+"}}", 1)
	}
	return text
}

func (u *upgradeFleet) upgrades() []rollout.Upgrade {
	u.t.Helper()
	list, err := u.store.Upgrades(u.t.Context(), infra)
	u.must(err)
	return list
}

// tell is the records in lines, such as "web #1 open: a 1.0.0 1.1.0".
func (u *upgradeFleet) tell() string {
	u.t.Helper()
	var lines []string
	for _, rec := range u.upgrades() {
		parts := make([]string, 0, len(rec.Clusters))
		for _, c := range rec.Clusters {
			parts = append(parts, c.Name+" "+c.From+" "+c.To)
		}
		line := fmt.Sprintf("%s #%d %s: %s", rec.Key, rec.PullRequest, rec.State, strings.Join(parts, ", "))
		if rec.Trouble != "" {
			line += " (" + rec.Trouble + ")"
		}
		lines = append(lines, strings.TrimSuffix(line, ": "))
	}
	return strings.Join(lines, "\n")
}

func (u *upgradeFleet) expect(want ...string) {
	u.t.Helper()
	if got := u.tell(); got != strings.Join(want, "\n") {
		u.t.Fatalf("upgrades are\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// open are the pull requests that are open, as "#1 title".
func (u *upgradeFleet) expectPullRequests(state holdfast.PullRequestState, want ...string) {
	u.t.Helper()
	prs, err := u.host.PullRequests(u.t.Context(), infra, noon.AddDate(-1, 0, 0))
	u.must(err)
	got := []string{}
	for _, pr := range prs {
		if pr.State == state {
			got = append(got, fmt.Sprintf("#%d %s", pr.Number, pr.Title))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		u.t.Fatalf("%s pull requests are %q, want %q", state, got, want)
	}
}

// at returns a file of a branch.
func (u *upgradeFleet) at(branch, path string) string {
	u.t.Helper()
	return u.repo.Git("show", branch+":"+path)
}

const upgradeBranch = "holdfast/upgrade/web"
