package github

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
)

// maxRounds is how often Propose begins again when somebody else is at the same
// branch: another replica, most likely.
const maxRounds = 3

// errAgain: things have changed since they were read.
var errAgain = fmt.Errorf("the branch is changed by others all the time: %w", holdfast.ErrUnavailable)

// Propose makes a branch with one commit and a pull request for it, as
// reconciler.Forge says. The commit is made through the API, where GitHub signs
// it in an App's name. Files that have changed by much take a call each, and the
// others one for hundreds. Title and text of the pull request become what they
// should be; labels are put on when it is new, if we may, and belong to people
// then.
//
// GitHub moves branches without comparing: what somebody pushes to ours in the
// moment between our last look and our write is no longer on the branch, and
// is found in the pull request's history.
func (c *Client) Propose(ctx context.Context, repo string, p proposals.PullRequest) (holdfast.PullRequest, error) {
	for name := range p.Files {
		if !fs.ValidPath(name) || name == "." {
			return holdfast.PullRequest{}, fmt.Errorf("propose branch %q to %q: %q is not a path", p.Branch, repo, name)
		}
	}
	p.Title, p.Body = clip(p.Title, maxTitle), signed(p)
	var made holdfast.PullRequest
	err := c.do(ctx, repo, fmt.Sprintf("propose branch %q to %q", p.Branch, repo), func(gh *github.Client, on repository) error {
		w := proposer{Client: c, gh: gh, on: on, owner: on.owner, repo: repo, p: p}
		for range maxRounds {
			pr, err := w.propose(ctx)
			if err == nil {
				made = pr
			}
			if !errors.Is(err, errAgain) {
				return explain(ctx, err)
			}
		}
		return errAgain
	})
	if err != nil {
		return holdfast.PullRequest{}, err
	}
	return made, nil
}

// signed is a proposal's text with a line that people do not see: what the pull
// request proposes, whatever becomes of its branch.
func signed(p proposals.PullRequest) string {
	return fitWith(p.Body, "\n\n"+marker(p))
}

const markerStart = "<!-- holdfast:proposal "

func marker(p proposals.PullRequest) string {
	return markerStart + string(p.Identity()) + " -->"
}

// hasMarker reports whether a text is that of a proposal: by the last line of the
// kind, as what is quoted above it may have one, too.
func hasMarker(body string, p proposals.PullRequest) bool {
	at := strings.LastIndex(body, markerStart)
	return at >= 0 && strings.HasPrefix(body[at:], marker(p))
}

// explain says what we need if we may not.
func explain(ctx context.Context, err error) error {
	err = translate(ctx, err)
	if errors.Is(err, holdfast.ErrForbidden) {
		return fmt.Errorf("%w (to propose changes Holdfast needs the permissions Contents: write and Pull requests: write)", err)
	}
	return err
}

// proposer makes one proposal.
type proposer struct {
	*Client
	gh    *github.Client
	on    repository
	owner string // as GitHub names it: it may have been renamed since
	repo  string
	p     proposals.PullRequest
}

// propose is one round: it looks at what is there, and makes what is missing.
func (w *proposer) propose(ctx context.Context) (holdfast.PullRequest, error) {
	at, err := w.head(ctx)
	if err != nil {
		return holdfast.PullRequest{}, err
	}
	known, err := w.known(ctx)
	if err != nil {
		return holdfast.PullRequest{}, err
	}
	if known != nil && known.GetState() != "open" {
		// No longer open: what was proposed there is not proposed again.
		answered, err := w.isMadeFor(ctx, known)
		if err != nil {
			return holdfast.PullRequest{}, err
		}
		if answered {
			return toPullRequest(w.repo, known), nil
		}
		known = nil
	}
	head, err := w.commit(ctx, at)
	if err != nil {
		return holdfast.PullRequest{}, err
	}
	if head != at {
		if err := w.move(ctx, at, head); err != nil {
			return holdfast.PullRequest{}, err
		}
	}
	pr, err := w.pullRequest(ctx, known)
	if err != nil {
		return holdfast.PullRequest{}, err
	}
	out := toPullRequest(w.repo, pr)
	out.Head = head // GitHub may not have noticed yet
	return out, nil
}

func (w *proposer) ref() string { return "refs/heads/" + w.p.Branch }

// head returns what the branch is at; empty if it is not there.
func (w *proposer) head(ctx context.Context) (holdfast.Revision, error) {
	ref, _, err := w.gh.Git.GetRef(ctx, w.on.owner, w.on.name, w.ref())
	if hasStatus(err, http.StatusNotFound) {
		return "", nil
	}
	return holdfast.Revision(ref.GetObject().GetSHA()), err
}

// known returns a pull request of the branch: rather an open one than one that is
// closed, otherwise the newest; nil if there is none.
func (w *proposer) known(ctx context.Context) (*github.PullRequest, error) {
	opts := &github.PullRequestListOptions{
		State: "all", Head: w.owner + ":" + w.p.Branch, Sort: "created", Direction: "desc",
		ListOptions: github.ListOptions{PerPage: 100},
	}
	var best *github.PullRequest
	_, err := eachPage(&opts.ListOptions, func() (*github.Response, error) {
		found, resp, err := w.gh.PullRequests.List(ctx, w.on.owner, w.on.name, opts)
		for _, pr := range found {
			of := toPullRequest(w.repo, pr)
			if of.Fork || of.Branch != w.p.Branch {
				continue
			}
			open := pr.GetState() == "open"
			switch {
			case best == nil, open && best.GetState() != "open":
				best = pr
			case open == (best.GetState() == "open") && of.Number > best.GetNumber():
				best = pr
			}
		}
		return resp, err
	})
	return best, err
}

// isMadeFor reports whether a pull request was made for the proposal, on whatever base:
// by its text, or by its head if we had no chance to change the text.
func (w *proposer) isMadeFor(ctx context.Context, pr *github.PullRequest) (bool, error) {
	if hasMarker(pr.GetBody(), w.p) {
		return true, nil
	}
	commit, _, err := w.gh.Git.GetCommit(ctx, w.on.owner, w.on.name, pr.GetHead().GetSHA())
	if hasStatus(err, http.StatusNotFound) {
		return false, nil
	}
	return proposals.IdentityOf(commit.GetMessage(), commit.GetTree().GetSHA()) == w.p.Identity(), err
}

// commit returns the proposal's commit: that which the branch is at, if it is
// that one, or a new one. It is an ErrConflict if the branch is at something that
// is not ours.
func (w *proposer) commit(ctx context.Context, at holdfast.Revision) (holdfast.Revision, error) {
	var there *github.Commit
	if at != "" {
		var err error
		if there, _, err = w.gh.Git.GetCommit(ctx, w.on.owner, w.on.name, string(at)); err != nil {
			return "", err
		}
		if at != w.p.Head && proposals.IdentityOf(there.GetMessage(), there.GetTree().GetSHA()) == "" {
			return "", fmt.Errorf("it is at %s, which is not ours: %w", at.Short(), holdfast.ErrConflict)
		}
	}
	base, _, err := w.gh.Git.GetCommit(ctx, w.on.owner, w.on.name, string(w.p.Base))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", w.p.Base.Short(), translate(ctx, err))
	}
	if there != nil {
		if same, err := w.isSame(ctx, there); err != nil || same {
			return at, err
		}
	}
	tree, err := w.tree(ctx, base.GetTree().GetSHA())
	if err != nil {
		return "", err
	}
	if tree == base.GetTree().GetSHA() {
		return "", finalError("it changes nothing")
	}
	made, _, err := w.gh.Git.CreateCommit(ctx, w.on.owner, w.on.name, &github.Commit{
		Message: new(w.p.CommitMessage(tree)), Tree: &github.Tree{SHA: &tree}, Parents: []*github.Commit{{SHA: new(string(w.p.Base))}},
	}, nil)
	if err != nil {
		return "", writeError(ctx, "make a commit", err)
	}
	return holdfast.Revision(made.GetSHA()), nil
}

// isSame reports whether a commit of the branch is what would be made: the same
// message, parent and files.
func (w *proposer) isSame(ctx context.Context, there *github.Commit) (bool, error) {
	tree := there.GetTree().GetSHA()
	if len(there.Parents) != 1 || there.Parents[0].GetSHA() != string(w.p.Base) ||
		strings.TrimSpace(there.GetMessage()) != strings.TrimSpace(w.p.CommitMessage(tree)) {
		return false, nil
	}
	files, err := w.files(ctx, tree)
	if err != nil {
		return false, err
	}
	for name, data := range w.p.Files {
		if files[name].GetSHA() != blobID(data) {
			return false, nil
		}
	}
	return true, nil
}

// move makes the branch be at head, if it is still where it was.
func (w *proposer) move(ctx context.Context, at, head holdfast.Revision) error {
	ref := &github.Reference{Ref: new(w.ref()), Object: &github.GitObject{SHA: new(string(head))}}
	var err error
	if at == "" {
		_, _, err = w.gh.Git.CreateRef(ctx, w.on.owner, w.on.name, ref)
	} else {
		now, readErr := w.head(ctx)
		if readErr != nil {
			return readErr
		}
		if now != at {
			return errAgain
		}
		_, _, err = w.gh.Git.UpdateRef(ctx, w.on.owner, w.on.name, ref, true)
	}
	if hasStatus(err, http.StatusUnprocessableEntity) {
		return moveError(ctx, err)
	}
	return writeError(ctx, "move the branch", err)
}

// moveError says why GitHub does not move a branch; only the text of its answer says
// so.
func moveError(ctx context.Context, err error) error {
	var answer *github.ErrorResponse
	errors.As(err, &answer)
	said := strings.ToLower(words(answer))
	has := func(any ...string) bool {
		return slices.ContainsFunc(any, func(word string) bool { return strings.Contains(said, word) })
	}
	switch {
	case has("already exists", "reference does not exist", "cannot be updated"):
		return errAgain
	case has("reference update failed"): // which is all that it says when it could not just now
		return fmt.Errorf("%w: %w", holdfast.ErrUnavailable, translate(ctx, err))
	case has("protected", "rule violation", "force-push", "not a fast forward"):
		return fmt.Errorf("%w: %w", holdfast.ErrForbidden, translate(ctx, err))
	default:
		return translate(ctx, err)
	}
}

// pullRequest makes the pull request, or makes the one that is open say what it
// should.
func (w *proposer) pullRequest(ctx context.Context, known *github.PullRequest) (*github.PullRequest, error) {
	pr, err := known, error(nil)
	switch {
	case known == nil:
		pr, _, err = w.gh.PullRequests.Create(ctx, w.on.owner, w.on.name, &github.NewPullRequest{
			Title: &w.p.Title, Head: &w.p.Branch, Base: &w.p.BaseBranch, Body: &w.p.Body,
		})
		if hasStatus(err, http.StatusUnprocessableEntity) {
			err = createError(ctx, err)
		}
		if errors.Is(err, errAgain) {
			// It is there and was not found: by another name, if not made just now.
			if on, _, err := w.gh.Repositories.Get(ctx, w.on.owner, w.on.name); err == nil {
				w.owner = on.GetOwner().GetLogin()
			}
			return nil, errAgain
		}
	case !sameText(known.GetTitle(), w.p.Title) || !sameText(known.GetBody(), w.p.Body):
		pr, _, err = w.gh.PullRequests.Edit(ctx, w.on.owner, w.on.name, known.GetNumber(), &github.PullRequest{Title: &w.p.Title, Body: &w.p.Body})
	}
	if err != nil {
		return nil, writeError(ctx, "put the pull request", err)
	}
	// With a head that is not known yet, the answer to the creation got lost.
	if known == nil || w.p.Head == "" {
		w.label(ctx, pr)
	}
	return pr, nil
}

// sameText compares texts as GitHub keeps them: the ends of lines and of the text do
// not matter to it.
func sameText(a, b string) bool {
	return strings.TrimSpace(strings.ReplaceAll(a, "\r\n", "\n")) == strings.TrimSpace(strings.ReplaceAll(b, "\r\n", "\n"))
}

// createError says why GitHub makes no pull request.
func createError(ctx context.Context, err error) error {
	var answer *github.ErrorResponse
	errors.As(err, &answer)
	for _, detail := range answer.Errors {
		switch {
		case strings.Contains(detail.Message, "already exists"):
			return errAgain
		case strings.Contains(detail.Message, "No commits between"):
			return fmt.Errorf("what it proposes is in the base branch already: %w", holdfast.ErrUnavailable)
		case detail.Field == "head" && detail.Code == "invalid", strings.Contains(detail.Message, "sha can't be blank"):
			return fmt.Errorf("GitHub does not see the branch yet: %w", holdfast.ErrUnavailable)
		}
	}
	return translate(ctx, err)
}

// label adds what is missing of the labels. A pull request without them is one
// all the same.
func (w *proposer) label(ctx context.Context, pr *github.PullRequest) {
	missing := slices.DeleteFunc(slices.Clone(w.p.Labels), func(label string) bool {
		return slices.ContainsFunc(pr.Labels, func(l *github.Label) bool { return strings.EqualFold(l.GetName(), label) })
	})
	if len(missing) == 0 {
		return
	}
	if _, _, err := w.gh.Issues.AddLabelsToIssue(ctx, w.on.owner, w.on.name, pr.GetNumber(), missing); err != nil {
		w.opts.Logger.WarnContext(ctx, "labels were not added", "repo", w.repo, "pull_request", pr.GetNumber(), "err", translate(ctx, err))
	}
}

// writeError is translate for a write to what was read a moment ago: GitHub hides
// from some who may not write that it is there.
func writeError(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	hidden := hasStatus(err, http.StatusNotFound)
	err = translate(ctx, err)
	if hidden {
		return fmt.Errorf("%s: %w: %w", what, holdfast.ErrForbidden, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// withdrawn marks the comment that says why, so that a second try says it once.
const withdrawn = "<!-- holdfast:withdrawn -->\n"

// lastOurs returns what a branch is at if that is a commit of ours, an ErrConflict
// if it is not, and nothing if there is no such branch.
func (w *proposer) lastOurs(ctx context.Context) (holdfast.Revision, error) {
	at, err := w.head(ctx)
	if at == "" || err != nil {
		return "", err
	}
	there, _, err := w.gh.Git.GetCommit(ctx, w.on.owner, w.on.name, string(at))
	if err == nil && proposals.IdentityOf(there.GetMessage(), there.GetTree().GetSHA()) == "" {
		err = fmt.Errorf("its branch is at %s, which is not ours: %w", at.Short(), holdfast.ErrConflict)
	}
	return at, err
}

// Withdraw closes a pull request of ours with a comment that says why, and
// deletes its branch if that is still at head, as reconciler.Forge says. The
// branch of another pull request is left alone.
func (c *Client) Withdraw(
	ctx context.Context, ref holdfast.PullRequestRef, branch string, head holdfast.Revision, why string,
) error {
	what := fmt.Sprintf("withdraw pull request %s", ref)
	var found *github.PullRequest
	err := c.do(ctx, ref.Repo, what, func(gh *github.Client, on repository) (err error) {
		found, _, err = gh.PullRequests.Get(ctx, on.owner, on.name, ref.Number)
		if err == nil && head == "" && found.GetState() == "open" && found.GetHead().GetRef() == branch {
			w := proposer{Client: c, gh: gh, on: on, repo: ref.Repo, p: proposals.PullRequest{Branch: branch}}
			head, err = w.lastOurs(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	if found.GetState() == "open" {
		if _, err := c.PutComment(ctx, ref, "", withdrawn, withdrawn+why); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return c.do(ctx, ref.Repo, what, func(gh *github.Client, on repository) error {
		if found.GetState() == "open" {
			if _, _, err := gh.PullRequests.Edit(ctx, on.owner, on.name, ref.Number, &github.PullRequest{State: new("closed")}); err != nil {
				return explain(ctx, writeError(ctx, "close it", err))
			}
		}
		of := toPullRequest(ref.Repo, found)
		if of.Fork || of.Branch != branch || head == "" || branch == of.BaseBranch {
			return nil
		}
		w := proposer{Client: c, gh: gh, on: on, repo: ref.Repo, p: proposals.PullRequest{Branch: branch}}
		at, err := w.head(ctx)
		if err != nil || at != head {
			return err
		}
		_, err = gh.Git.DeleteRef(ctx, on.owner, on.name, w.ref())
		if hasStatus(err, http.StatusUnprocessableEntity) && strings.Contains(err.Error(), "does not exist") {
			return nil
		}
		return explain(ctx, writeError(ctx, "delete the branch", err))
	})
}
