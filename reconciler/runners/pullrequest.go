package runners

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
)

// Assess adds to a pull request's record what merging it would change of runners and
// rules, with the environments on which that bears, and what is wrong with it.
func (k *Keeper) Assess(ctx context.Context, from, to *catalog.Catalog, rec *holdfast.PullRequestRecord) error {
	before, after := treeOf(from, ""), treeOf(to, "")
	changes := differences(before.docs, after.docs)
	if len(changes) == 0 && slices.Equal(before.unnamed, after.unnamed) {
		return nil
	}
	is, err := k.known(ctx)
	if err != nil {
		return err
	}
	v, err := k.judge(ctx, after, is)
	if err != nil {
		return err
	}
	for _, fault := range v.faults {
		if concerns(fault, changes, before, after) {
			rec.Faults = append(rec.Faults, fault)
		}
	}
	decided := &judging{Keeper: k, known: is, verdict: v}
	for _, c := range changes {
		change := holdfast.RunnerChange{Kind: c.kind(), Name: c.name(), Change: c.change()}
		if c.isRule() {
			change.Environments, err = k.moved(ctx, is, rulesOf(is), decided.rulesAfter(), c)
		} else {
			change.Environments, err = k.pinnedTo(ctx, is, c.name())
		}
		if err != nil {
			return err
		}
		rec.Runners = append(rec.Runners, change)
	}
	return nil
}

// difference is a document that two trees have differently.
type difference struct{ before, after *runnerdoc.Document }

func (d difference) doc() *runnerdoc.Document {
	if d.after != nil {
		return d.after
	}
	return d.before
}

func (d difference) kind() string { return d.doc().Kind() }
func (d difference) name() string { return d.doc().Name() }
func (d difference) isRule() bool { return d.doc().Rule != nil }

func (d difference) change() string {
	switch {
	case d.before == nil:
		return "added"
	case d.after == nil:
		return "removed"
	default:
		return "changed"
	}
}

// differences are the documents that differ, by kind and name.
func differences(before, after []runnerdoc.Document) []difference {
	find := func(docs []runnerdoc.Document, like runnerdoc.Document) *runnerdoc.Document {
		i := slices.IndexFunc(docs, func(d runnerdoc.Document) bool { return d.Kind() == like.Kind() && d.Name() == like.Name() })
		if i < 0 {
			return nil
		}
		return &docs[i]
	}
	var out []difference
	for i, doc := range after {
		was := find(before, doc)
		if was == nil || !reflect.DeepEqual(was.Runner, doc.Runner) || !reflect.DeepEqual(was.Rule, doc.Rule) || !slices.Equal(was.Faults, doc.Faults) {
			out = append(out, difference{was, &after[i]})
		}
	}
	for i, doc := range before {
		if find(after, doc) == nil {
			out = append(out, difference{before: &before[i]})
		}
	}
	slices.SortFunc(out, func(a, b difference) int {
		return strings.Compare(a.kind()+" "+a.name(), b.kind()+" "+b.name())
	})
	return out
}

// concerns reports whether a fault is of what a pull request changes.
func concerns(fault holdfast.Fault, changes []difference, before, after tree) bool {
	if slices.Contains(after.unnamed, fault) {
		return !slices.Contains(before.unnamed, fault)
	}
	return slices.ContainsFunc(changes, func(c difference) bool {
		if c.after == nil {
			return fault.Line == 0 && fault.File == c.before.Path
		}
		return fault.File == c.after.Path && fault.Line >= c.after.Line && fault.Line < c.after.Line+c.after.Lines
	})
}

func rulesOf(is known) []runnerspec.Rule {
	rules := make([]runnerspec.Rule, len(is.rules))
	for i, rec := range is.rules {
		rules[i] = rec.Document
	}
	return rules
}

// pinnedTo are the environments of a runner.
func (k *Keeper) pinnedTo(ctx context.Context, is known, runner string) (out []holdfast.AffectedEnvironment, err error) {
	for _, env := range is.environments {
		if env.Runner != runner {
			continue
		}
		affected := holdfast.AffectedEnvironment{EnvironmentKey: env.EnvironmentKey, Runner: env.Runner}
		if affected.Clusters, err = k.clustersOf(ctx, env.EnvironmentKey); err != nil {
			return nil, err
		}
		out = append(out, affected)
	}
	return out, nil
}

// moved are the environments that a changed rule is about, and of which a refresh would
// mean something else than before.
func (k *Keeper) moved(ctx context.Context, is known, before, after []runnerspec.Rule, c difference) (out []holdfast.AffectedEnvironment, err error) {
	about := func(doc *runnerdoc.Document, env holdfast.EnvironmentKey) bool {
		return doc != nil && doc.Rule.Matches(env)
	}
	for _, env := range is.environments {
		was, _ := runnerspec.RuleFor(before, env.EnvironmentKey)
		next, _ := runnerspec.RuleFor(after, env.EnvironmentKey)
		if was.Runner == next.Runner || next.Runner == env.Runner || !about(c.before, env.EnvironmentKey) && !about(c.after, env.EnvironmentKey) {
			continue
		}
		affected := holdfast.AffectedEnvironment{EnvironmentKey: env.EnvironmentKey, Runner: env.Runner, Next: next.Runner}
		if affected.Clusters, err = k.clustersOf(ctx, env.EnvironmentKey); err != nil {
			return nil, err
		}
		out = append(out, affected)
	}
	return out, nil
}

func (k *Keeper) clustersOf(ctx context.Context, env holdfast.EnvironmentKey) ([]string, error) {
	names, err := k.opts.Store.ClusterNames(ctx, holdfast.ClusterFilter{Project: env.Project, Environment: env.Name})
	if err != nil {
		return nil, fmt.Errorf("list clusters of environment %s: %w", env, err)
	}
	return names, nil
}
