package reconciler_test

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Values that tests of the package share.
const (
	oldDigest = holdfast.Digest("sha256:old")
	newDigest = holdfast.Digest("sha256:new")

	plan  = holdfast.RunPlan
	apply = holdfast.RunApply

	group = "aws_eks_node_group.main"
)

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	onePR = holdfast.PullRequestRef{Repo: "infra", Number: 1}
)

// change is a change of attributes, each "path before after"; an after of ?
// is known after the apply.
func change(address string, action holdfast.ChangeAction, attributes ...string) holdfast.ResourceChange {
	c := holdfast.ResourceChange{Address: address, Type: address[:strings.IndexByte(address, '.')], Action: action}
	for _, text := range attributes {
		words := strings.Fields(text)
		a := holdfast.AttributeChange{Path: words[0], Before: quoted(words[1]), After: quoted(words[2])}
		a.Unknown = words[2] == "?"
		c.Attributes = append(c.Attributes, a)
	}
	return c
}

func quoted(s string) json.RawMessage {
	raw, _ := json.Marshal(s)
	return raw
}

// drifted is a plan of what has drifted and of what an apply would do.
func drifted(drift []holdfast.ResourceChange, changes ...holdfast.ResourceChange) holdfast.Plan {
	return holdfast.Plan{Drift: drift, Changes: changes}
}

type changes = []holdfast.ResourceChange
