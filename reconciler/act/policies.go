package act

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/gate"
)

// Which policies plans are held against.

// evaluates reports whether policies are evaluated over the plan of a run. A sample is never
// applied.
func evaluates(run holdfast.Run) bool { return run.Kind.Plans() && !run.Sample }

// policiesOf are the policies of a run, with their context; nil if it has none. An
// apply has the same context as the plan of its merge.
func (s *starter) policiesOf(
	ctx context.Context, run holdfast.Run, last holdfast.Applied, documents []holdfast.Cluster,
) (*protocol.AssignedPolicies, error) {
	if !evaluates(run) {
		return nil, nil
	}
	assigned, err := s.Policies.For(ctx, documents...)
	if err != nil && run.Kind == holdfast.RunDrift {
		// The check is as good without them: what it finds is not reverted automatically
		// then.
		s.opts.Logger.WarnContext(ctx, "policies could not be read", "cluster", run.Cluster, "err", err)
		return nil, nil
	}
	if err != nil || assigned == nil {
		return nil, err
	}
	assigned.Context = protocol.PolicyContext{
		Run: protocol.PolicyRun{Kind: holdfast.RunPlan, Destroys: run.Destroys()}, Cluster: run.Document,
		Template: versionOf(run.Template, last.Template),
		Engine:   protocol.PolicyVersion{PreviousVersion: last.EngineVersion},
	}
	if assigned.Waived, err = s.waivedOf(ctx, run); err != nil {
		return nil, err
	}
	assigned.Context.PullRequest, err = s.proposalOf(ctx, run)
	return assigned, err
}

// waivedOf are the policies that do not hold an apply: those that were waived for the newest of
// its merges, whose plan is judged.
func (s *starter) waivedOf(ctx context.Context, run holdfast.Run) ([]string, error) {
	if !run.Kind.Writes() || len(run.Reviews) == 0 {
		return nil, nil
	}
	ref := run.Reviews[0].PullRequest
	pr, err := s.opts.Store.PullRequest(ctx, ref)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read pull request %s: %w", ref, err)
	}
	return gate.Waived(pr, run.Cluster), nil
}

// judgedBy returns the policies of a run, and the documents that waive some of them now. A
// waived policy holds no apply.
func (s *starter) judgedBy(
	ctx context.Context, run holdfast.Run, last holdfast.Applied, former holdfast.ClusterRecord, rec holdfast.ClusterRecord,
) (*protocol.AssignedPolicies, []holdfast.PolicyWaiver, error) {
	begun := last
	if former.Name != "" && !run.Destroys() { // it continues what that was
		begun = former.Applied
	}
	documents := withFormer(run.Document, rec.Applied, begun)
	policies, err := s.policiesOf(ctx, run, last, documents)
	if err != nil || policies == nil {
		return nil, nil, err
	}
	waivers, err := s.Policies.Waivers(ctx, s.opts.Now(), documents...)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range waivers {
		if !w.Expired && run.Kind.Writes() {
			policies.Waived = append(policies.Waived, w.Waives)
		}
	}
	return policies, waivers, nil
}

// withFormer is the document of a cluster with those that were last applied of it, or begun.
func withFormer(document holdfast.Cluster, last ...holdfast.Applied) []holdfast.Cluster {
	documents := []holdfast.Cluster{document}
	for _, applied := range last {
		if applied.Run != "" {
			former := applied.Document
			former.Name = document.Name // waivers name clusters as they are called now
			documents = append(documents, former)
		}
	}
	return documents
}

// versionOf takes apart what a run says of its template: "name@version (commit)".
func versionOf(template, last string) (v protocol.PolicyVersion) {
	v.Name, v.Version = nameAndVersion(template)
	if name, version := nameAndVersion(last); name == v.Name {
		v.PreviousVersion = version
	}
	return v
}

func nameAndVersion(template string) (name, version string) {
	first, _, _ := strings.Cut(template, " ")
	name, version, _ = strings.Cut(first, "@")
	return name, version
}

// proposalOf is the pull request that a run is of, or whose merge it applies.
func (s *starter) proposalOf(ctx context.Context, run holdfast.Run) (out protocol.PolicyPullRequest, err error) {
	ref := run.PullRequest
	for _, review := range run.Reviews {
		if ref.IsZero() {
			ref = review.PullRequest
		}
	}
	if ref.IsZero() {
		return out, nil
	}
	pr, err := s.opts.Store.PullRequest(ctx, ref)
	if errors.Is(err, holdfast.ErrNotFound) {
		return out, nil
	} else if err != nil {
		return out, fmt.Errorf("read pull request %s: %w", ref, err)
	}
	out = protocol.PolicyPullRequest{Repository: ref.Repo, Number: ref.Number, Author: pr.Author, Files: []string{}}
	if pr.Result == "" {
		return out, nil
	}
	changes, err := s.Catalogs.Changed(ctx, ref.Repo, pr.Base, holdfast.Revision(pr.Result))
	if err != nil && run.PullRequest.IsZero() {
		// The tree of a merge result is in the mirror that made it. A policy that would say
		// something of the files says less now, and the apply waits.
		s.opts.Logger.WarnContext(ctx, "files of a merged pull request could not be listed", "pull_request", ref.String(), "err", err)
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("list the files of %s: %w", ref, err)
	}
	for _, c := range changes {
		out.Files = append(out.Files, c.Path)
		if c.From != "" && c.From != c.Path {
			out.Files = append(out.Files, c.From)
		}
	}
	return out, nil
}

// observePolicies notes which policies a cluster of a pull request has now. If they
// cannot be read, it is decided all the same: the plan that is made then reports it.
func (o *observer) observePolicies(ctx context.Context, in *decision.Input) {
	want, ok := decision.Affected(*in)
	if !ok || want.Sample {
		return
	}
	document := want.Document
	if want.Removed { // what is destroyed is what was applied
		document = in.Last.Document
	}
	set, err := o.Policies.Digest(ctx, withFormer(document, in.Cluster.Applied, in.Last)...)
	if err != nil {
		o.opts.Logger.WarnContext(ctx, "policies could not be read", "cluster", want.Name, "err", err)
		return
	}
	in.Policies = set
}
