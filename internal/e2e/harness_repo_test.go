package e2e_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// The people of the stories.
const (
	dev      = "dev"      // may write, and opens the pull requests
	lead     = "lead"     // may write
	stranger = "stranger" // may read
)

// repo is a repository on GitHub: its Git and its API.
type repo struct {
	w      *world
	name   string
	git    *gitserver.Repo
	hub    *githubserver.Repo
	config map[string]any
	pulls  []*pull
	branch string // the tracked one
	suffix string // of the contexts of its statuses
}

// addRepo makes a repository with a README, and watches it with these settings next to
// the usual ones.
func (w *world) addRepo(name string, more settings) *repo {
	w.t.Helper()
	r := &repo{w: w, name: name, git: w.git.CreateRepo(name), hub: w.hub.Repo(name), branch: "main"}
	r.hub.ServeGit(r.git.Path)
	r.hub.SetPermission(dev, "write")
	r.hub.SetPermission(lead, "write")
	r.hub.SetPermission(stranger, "read")
	r.config = map[string]any{
		"name": name, "forge": "github", "url": r.git.URL, "poll": "1h",
		"clusters": []string{"clusters/**/*.yaml"}, "webhookSecret": map[string]any{"file": "webhook-secret"},
	}
	maps.Copy(r.config, more)
	w.repos = append(w.repos, r)
	r.git.Commit("main", "Begin", files{"README.md": "A fleet.\n"})
	return r
}

// alsoTrack makes a branch of the repository, from the tracked one, and watches it as a
// further entry with these settings next to the usual ones.
func (r *repo) alsoTrack(branch, name string, more settings) *repo {
	r.w.t.Helper()
	other := &repo{w: r.w, name: name, git: r.git, hub: r.hub, branch: branch, suffix: "/" + branch, config: maps.Clone(r.config)}
	maps.Copy(other.config, map[string]any{"name": name, "repository": r.name, "branch": branch})
	maps.Copy(other.config, more)
	delete(other.config, "webhookSecret") // they have one webhook
	r.git.SetRef("refs/heads/"+branch, r.git.Rev(r.branch))
	r.w.repos = append(r.w.repos, other)
	return other
}

// fleet is the world's first repository.
func (w *world) fleet() *repo { return w.repos[0] }

// files are contents by path.
type files = map[string]string

// deleted as a content takes the file away.
const deleted = gitserver.Delete

// join puts files together; later ones win.
func join(all ...files) files {
	out := make(files)
	for _, f := range all {
		maps.Copy(out, f)
	}
	return out
}

// document is the document of a cluster with its own root module, with more lines of
// its spec.
func document(name string, spec ...string) files {
	text := "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata:\n  name: " + name + "\nspec:\n" +
		"  project: shop\n  environment: production\n"
	if !strings.Contains(strings.Join(spec, "\n"), "template:") {
		text += "  module: {path: infra/" + name + "}\n"
	}
	for _, line := range spec {
		text += "  " + line + "\n"
	}
	return files{"clusters/" + name + ".yaml": text}
}

// moduleFile is a root module for a cluster that has nodes, and whatever code is
// given besides.
func moduleFile(name, code string) files {
	return files{"infra/" + name + "/main.tf": "# " + name + `
variable "nodes" {
  type    = number
  default = 1
}

resource "terraform_data" "node" {
  count = var.nodes
  input = count.index
}
` + code}
}

// cluster is a cluster with its module; variables are as in YAML: "nodes: 2".
func cluster(name, variables string, spec ...string) files {
	return join(document(name, append(spec, "variables: {"+variables+"}")...), moduleFile(name, ""))
}

// commit writes to the tracked branch without telling anybody.
func (r *repo) commit(f files) string {
	r.w.t.Helper()
	return r.git.Commit(r.branch, "Change "+strings.Join(slices.Sorted(maps.Keys(f)), ", "), f)
}

// push writes to the tracked branch, and GitHub delivers it.
func (r *repo) push(f files) string {
	r.w.t.Helper()
	before := r.git.Rev(r.branch)
	sha := r.commit(f)
	r.pushed(before)
	return sha
}

// pushed lets GitHub see the tracked branch as it is: it merges the open pull
// requests again, to try, and delivers the push.
func (r *repo) pushed(before string) {
	r.w.t.Helper()
	for _, p := range r.pulls {
		if !p.closed {
			p.publish()
			r.hub.SetBase(p.number, r.branch, r.git.Rev(r.branch))
		}
	}
	r.hub.Push("refs/heads/"+r.branch, before, r.git.Rev(r.branch))
}

// pull is a pull request.
type pull struct {
	r      *repo
	number int
	branch string
	head   string
	closed bool
	merged string // the merge commit

	beforeTold func() // called when a merge is on the branch and GitHub has not said so
}

// open opens a pull request with one commit on the tracked branch.
func (r *repo) open(f files) *pull {
	r.w.t.Helper()
	return r.openAs(githubserver.PullRequest{}, f)
}

// openAs is open with more to say about the pull request.
func (r *repo) openAs(pr githubserver.PullRequest, f files) *pull {
	r.w.t.Helper()
	p := &pull{r: r, number: r.hub.NextNumber()}
	p.branch = "change-" + strconv.Itoa(p.number)
	p.head = r.git.CommitOn(p.branch, r.branch, "Change something", f)
	p.publish()
	pr.Number, pr.Branch, pr.Head, pr.BaseSHA = p.number, p.branch, p.head, r.git.Rev(r.branch)
	if pr.Base == "" {
		pr.Base = r.branch
	}
	if pr.Author == "" {
		pr.Author = dev
	}
	r.pulls = append(r.pulls, p)
	r.hub.OpenPullRequest(pr)
	return p
}

// reuse opens a pull request of the same head as another one, into this branch.
func (r *repo) reuse(of *pull) *pull {
	r.w.t.Helper()
	p := &pull{r: r, number: r.hub.NextNumber(), branch: of.branch, head: of.head}
	p.publish()
	r.pulls = append(r.pulls, p)
	r.hub.OpenPullRequest(githubserver.PullRequest{
		Number: p.number, Branch: p.branch, Head: p.head, Base: r.branch, BaseSHA: r.git.Rev(r.branch), Author: dev,
	})
	return p
}

// retarget has the pull request merged into another branch than before.
func (p *pull) retarget(to *repo) {
	p.r.w.t.Helper()
	p.r.pulls = slices.DeleteFunc(p.r.pulls, func(other *pull) bool { return other == p })
	p.r, to.pulls = to, append(to.pulls, p)
	p.publish()
	to.hub.SetBase(p.number, to.branch, to.git.Rev(to.branch))
}

// publish sets the refs of the pull request as GitHub does. There is no merge
// of what conflicts.
func (p *pull) publish() {
	p.r.w.t.Helper()
	merge := ""
	if _, err := p.r.git.MergeTree(p.r.branch, p.head); err == nil {
		merge = p.r.git.MergeCommit(p.r.branch, p.head)
	}
	p.r.git.SetPullRequest(p.number, p.head, merge)
}

// push adds a commit to the pull request.
func (p *pull) push(f files) {
	p.r.w.t.Helper()
	p.head = p.r.git.CommitOn(p.branch, p.head, "Change more", f)
	p.publish()
	p.r.hub.PushHead(p.number, p.head)
}

// rewrite makes the pull request one new commit on the tracked branch, by a
// forced push.
func (p *pull) rewrite(f files) {
	p.r.w.t.Helper()
	p.head = p.r.git.CommitOn(p.branch, p.r.branch, "Change something", f)
	p.publish()
	p.r.hub.PushHead(p.number, p.head)
}

// merge merges the pull request by a merge commit.
func (p *pull) merge() {
	p.r.w.t.Helper()
	p.mergedBy(func() []string { return []string{p.r.git.Merge(p.r.branch, p.head)} })
}

// squash merges the pull request as one new commit.
func (p *pull) squash() {
	p.r.w.t.Helper()
	p.mergedBy(func() []string { return []string{p.r.git.Squash(p.r.branch, p.head, "Squash")} })
}

// rebase merges the pull request by copies of its commits, each on the last.
func (p *pull) rebase() {
	p.r.w.t.Helper()
	p.mergedBy(func() []string {
		g, base := p.r.git, p.r.git.Rev(p.r.branch)
		var copies []string
		for _, sha := range strings.Fields(g.Git("rev-list", "--reverse", p.r.branch+".."+p.head)) {
			g.Git("read-tree", "--empty")
			g.Git("read-tree", "-i", "-m", "--aggressive", sha+"^", base, sha)
			base = g.Git("commit-tree", g.Git("write-tree"), "-p", base, "-m", "Copy of "+sha)
			copies = append(copies, base)
		}
		g.SetRef("refs/heads/"+p.r.branch, base)
		return copies
	})
}

func (p *pull) mergedBy(how func() []string) {
	p.r.w.t.Helper()
	before := p.r.git.Rev(p.r.branch)
	commits := how()
	p.merged, p.closed = commits[len(commits)-1], true
	if p.beforeTold != nil {
		p.beforeTold()
	}
	p.r.hub.Merge(p.number, commits...)
	p.r.pushed(before)
}

// close closes the pull request without a merge.
func (p *pull) close() {
	p.r.w.t.Helper()
	p.closed = true
	p.r.hub.Close(p.number)
}

// reopen opens the closed pull request again.
func (p *pull) reopen() {
	p.r.w.t.Helper()
	p.closed = false
	p.r.hub.Reopen(p.number)
}

// laterSecond waits until a later second than that of every comment and review
// on the pull request: the stamps of GitHub have seconds, and what was done in
// one counts as done at once.
func (p *pull) laterSecond() {
	p.r.w.t.Helper()
	p.r.w.until("a second has passed", func() (bool, string) {
		now := time.Now().Truncate(time.Second)
		return !slices.ContainsFunc(p.r.hub.Comments(p.number), func(c githubserver.Comment) bool {
			return !c.UpdatedAt.Before(now)
		}), ""
	})
}

// say writes a comment on the pull request and returns its id. Somebody who
// commands has read what is there, which takes a moment.
func (p *pull) say(login, body string) int64 {
	p.r.w.t.Helper()
	if strings.Contains(body, "/holdfast") {
		p.laterSecond()
	}
	return p.r.hub.Comment(p.number, login, body)
}

// review reviews the head, as somebody who has read what is there.
func (p *pull) review(login, state string) {
	p.r.w.t.Helper()
	p.laterSecond()
	p.r.hub.Review(p.number, login, state)
}

// comment returns our comment on the pull request, empty if there is none. A
// second one is an error.
func (p *pull) comment() string {
	p.r.w.t.Helper()
	var ours []string
	for _, c := range p.r.hub.Comments(p.number) {
		if c.Author == p.r.w.robot && !strings.Contains(c.Body, "<!-- holdfast:reply:") {
			ours = append(ours, c.Body)
		}
	}
	if len(ours) > 1 {
		p.r.w.t.Fatalf("pull request %d has %d comments of ours, want one:\n%s", p.number, len(ours), strings.Join(ours, "\n---\n"))
	}
	return strings.Join(ours, "")
}

// said returns all that our comment has said, oldest first.
func (p *pull) said() []string {
	var said []string
	for _, c := range p.r.hub.Comments(p.number) {
		if c.Author == p.r.w.robot && !strings.Contains(c.Body, "<!-- holdfast:reply:") {
			said = append(said, p.r.hub.Bodies(c.ID)...)
		}
	}
	return said
}

// replies returns our answers to commands on the pull request.
func (p *pull) replies() []string {
	var out []string
	for _, c := range p.r.hub.Comments(p.number) {
		if c.Author == p.r.w.robot && strings.Contains(c.Body, "<!-- holdfast:reply:") {
			out = append(out, c.Body)
		}
	}
	return out
}

// untilComment waits until our comment says all of that.
func (p *pull) untilComment(says ...string) {
	p.r.w.t.Helper()
	p.r.w.until(fmt.Sprintf("the comment of %d says %q", p.number, says), func() (bool, string) {
		body := p.comment()
		for _, word := range says {
			if !strings.Contains(body, word) {
				return false, body
			}
		}
		return true, ""
	})
}

// untilReply waits until a reply says all of that.
func (p *pull) untilReply(says ...string) {
	p.r.w.t.Helper()
	p.r.w.until(fmt.Sprintf("a reply on %d says %q", p.number, says), func() (bool, string) {
		for _, reply := range p.replies() {
			if !slices.ContainsFunc(says, func(word string) bool { return !strings.Contains(reply, word) }) {
				return true, ""
			}
		}
		return false, strings.Join(p.replies(), "\n")
	})
}

// untilReacted waits until we have reacted to a comment: +eyes, rocket, -1.
func (p *pull) untilReacted(comment int64, reaction holdfast.Reaction) {
	p.r.w.t.Helper()
	p.r.w.until(fmt.Sprintf("comment %d has the reaction %s", comment, reaction), func() (bool, string) {
		all := p.r.hub.Reactions(comment)
		return slices.Contains(all, string(reaction)), fmt.Sprintf("%v, and these replies: %q", all, p.replies())
	})
}

// untilPlanned waits until the head's holdfast/plan is a success, with these
// words in its description, and our comment shows the plan of that head.
func (p *pull) untilPlanned(says ...string) {
	p.r.w.t.Helper()
	p.r.untilStatus(p.head, holdfast.ContextPlan+p.r.suffix, holdfast.StatusSuccess, says...)
	p.untilComment("Plan for `" + holdfast.Revision(p.head).Short() + "`") // and not: Planning
}

// untilApplied waits until the merge commit's holdfast/apply is a success. From
// then on the records of its clusters, with their outputs and resources, say so.
func (p *pull) untilApplied(says ...string) {
	p.r.w.t.Helper()
	p.r.untilStatus(p.merged, holdfast.ContextApply+p.r.suffix, holdfast.StatusSuccess, says...)
}

// untilStatus waits until the newest status of a commit is that, with all these
// words in its description.
func (r *repo) untilStatus(sha, context string, state holdfast.StatusState, says ...string) {
	r.w.t.Helper()
	what := fmt.Sprintf("%s of %s is %s %q", context, holdfast.Revision(sha).Short(), state, says)
	r.w.until(what, func() (bool, string) {
		status, ok := r.hub.LatestStatus(sha, context)
		for _, word := range says {
			ok = ok && strings.Contains(status.Description, word)
		}
		return ok && status.State == string(state), fmt.Sprintf("%s %q", status.State, status.Description)
	})
}

// everSaid reports whether a commit ever had a status with that state.
func (r *repo) everSaid(sha, context string, state holdfast.StatusState) bool {
	return slices.ContainsFunc(r.hub.Statuses(sha), func(s githubserver.Status) bool {
		return s.Context == context && s.State == string(state)
	})
}

// record returns what the server knows of a cluster, the zero record if it
// knows nothing.
func (w *world) record(name string) (rec v1.Cluster) {
	w.t.Helper()
	w.getJSON("clusters/"+name, nil, &rec)
	return rec
}

// runs returns all runs of a cluster, newest first.
func (w *world) runs(cluster string) (all []v1.Run) {
	w.t.Helper()
	query := url.Values{"cluster": {cluster}}
	for {
		var page v1.List[v1.Run]
		w.until("the API lists runs of "+cluster, func() (bool, string) {
			page = v1.List[v1.Run]{}
			return w.getJSON("runs", query, &page), "no answer"
		})
		all = append(all, page.Items...)
		if page.Next == "" {
			return all
		}
		query.Set("cursor", page.Next)
	}
}

// pullRequest returns what the server knows of a pull request of the first
// repository, the zero record if it knows nothing.
func (w *world) pullRequest(number int) v1.PullRequest {
	w.t.Helper()
	var answer struct{ PullRequest v1.PullRequest }
	w.getJSON("pullrequests/get", url.Values{"repo": {w.fleet().name}, "number": {strconv.Itoa(number)}}, &answer)
	return answer.PullRequest
}

// untilShown waits until the server knows that a comment shows the newest run on
// the branch: it notes that after the forge has shown it, and a command that comes
// in between is refused. People are slower.
func (w *world) untilShown(cluster string) {
	w.t.Helper()
	w.until("the newest run of "+cluster+" is known to be shown", func() (bool, string) {
		run := w.newestOnBranch(cluster)
		return run.ID != "" && !run.PostedAt.IsZero(), fmt.Sprintf("%s %s", run.ID, run.Status)
	})
}

// untilWaiting waits until a cluster waits for that reason; an empty one means
// until it does not wait.
func (w *world) untilWaiting(cluster string, reason holdfast.Reason) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s waits: %q", cluster, reason), func() (bool, string) {
		rec := w.record(cluster)
		return rec.Name != "" && rec.Waiting == reason, fmt.Sprintf("%q", rec.Waiting)
	})
}

// untilIdle waits until no run is queued or executed. What the last one has brought
// about may not be on record by then: who reads that waits for it, or for a status,
// a comment or an issue, which come after it.
func (w *world) untilIdle() {
	w.t.Helper()
	w.until("nothing is queued or running", func() (bool, string) {
		var list struct{ Items []v1.Run }
		ok := w.getJSON("runs", url.Values{"status": {"queued", "running", "retrying"}}, &list)
		return ok && len(list.Items) == 0, fmt.Sprintf("%d runs", len(list.Items))
	})
}
