package plandiff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// Plan derives what people are shown from a document: all changes with all
// changed attributes and their whole values, most dangerous first. info is
// taken over as it is. The document must be valid.
func Plan(d plandoc.Document, info plandoc.Info) holdfast.Plan {
	plan := holdfast.Plan{
		Counts: d.Counts(), Fingerprint: d.Fingerprint(), Digest: d.Digest(),
		Warnings: info.Warnings, Text: info.Text,
	}
	for _, r := range d.Resources {
		plan.Changes = append(plan.Changes, changeOf(r))
	}
	for _, r := range info.Drift {
		if change := changeOf(r); change.Action != holdfast.ActionMove { // what only moves has not drifted
			plan.Drift = append(plan.Drift, change)
		}
	}
	for _, o := range d.Outputs {
		plan.OutputChanges = append(plan.OutputChanges, outputChange(o))
	}
	for _, r := range d.Reads {
		var f attributeFinder
		f.compare("", nil, Tree(r.Value))
		plan.Reads = append(plan.Reads, holdfast.PlanInput{Address: r.Address, Attributes: f.found})
	}
	sortByDanger(plan.Changes)
	sortByDanger(plan.Drift)
	return plan
}

func changeOf(r plandoc.Resource) holdfast.ResourceChange {
	change := holdfast.ResourceChange{
		Address: r.FullAddress(), PreviousAddress: r.Previous, Type: r.Type, Provider: r.Provider,
		Reason: r.Reason, ReplacePaths: slices.Clone(r.Replace),
	}
	change.Action, change.CreateFirst = r.Action()
	change.Forgets = change.Action == holdfast.ActionReplace && slices.Contains(r.Actions, string(holdfast.ActionForget))
	if r.Importing != nil {
		change.Importing = importText(Tree(r.Importing))
	}
	f := attributeFinder{forces: r.Replace}
	f.compare("", Tree(r.Before), Tree(r.After))
	slices.SortStableFunc(f.found, func(a, b holdfast.AttributeChange) int {
		if a.Forces != b.Forces {
			if a.Forces {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	change.Attributes = f.found
	return change
}

// importText is the id that is imported, or its identity as JSON: ids that look like
// one, or like what is shown of others, are quoted. Secret ones that differ do so in
// a few characters of their mark.
func importText(tree any) string {
	shown := shownTree(tree)
	id, ok := shown.(string)
	if literal, isText := tree.(string); !ok || isText && (strings.HasPrefix(id, "{") || literal != id) {
		id = string(shownJSON(tree))
	}
	if mark := markDigest(tree); mark != "" {
		id += " #" + strings.TrimPrefix(string(mark), "sha256:")[:8]
	}
	return id
}

func outputChange(o plandoc.Output) holdfast.OutputChange {
	before, after := Tree(o.Before), Tree(o.After)
	_, unknown := unknownMark(after)
	return holdfast.OutputChange{
		Name: o.Name, Action: o.Action(), Sensitive: isSecret(before) || isSecret(after), Unknown: unknown,
		Before: shownJSON(before), After: shownJSON(after), BeforeMark: markDigest(before), AfterMark: markDigest(after),
	}
}

// sortByDanger puts first what destroys the most.
func sortByDanger(changes []holdfast.ResourceChange) {
	slices.SortStableFunc(changes, func(a, b holdfast.ResourceChange) int {
		return cmp.Or(
			cmp.Compare(actionRank(a.Action), actionRank(b.Action)),
			cmp.Compare(DangerOf(b), DangerOf(a)),
			strings.Compare(a.Address, b.Address),
		)
	})
}

func actionRank(action holdfast.ChangeAction) int {
	switch action {
	case holdfast.ActionReplace, holdfast.ActionDelete:
		return 0 // both destroy
	case holdfast.ActionForget:
		return 1
	case holdfast.ActionUpdate:
		return 2
	case holdfast.ActionCreate:
		return 3
	case holdfast.ActionImport:
		return 4
	default:
		return 5
	}
}
