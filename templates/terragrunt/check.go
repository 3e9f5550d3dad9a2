package terragrunt

import (
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast"
)

// refusal is why something in a configuration is refused, and what to do instead.
type refusal struct{ message, hint string }

// refusedBlocks are blocks that would have a run do something else than what is reviewed,
// or that need more than a run has.
var refusedBlocks = map[string]refusal{ //nolint:gochecknoglobals // a constant list
	"dependency": {
		"a dependency reads outputs from the state of another unit, which a run cannot see",
		"name the other cluster in spec.dependsOn for the order, and give its outputs as inputs, or read them by a data source",
	},
	"engine":  {"an engine of Terragrunt is not started", "remove it: Holdfast starts Terraform or OpenTofu itself (spec.engine)"},
	"exclude": {"exclude is not known to Holdfast: which units are planned is for their documents to say", "remove it, or the cluster's document"},
	"stack":   {"a stack is not a unit", "write a document for each of its units"},
	"unit":    {"a stack is not a unit", "write a document for each of its units"},
}

// refusedSettings are blocks of terraform { }.
var refusedSettings = map[string]refusal{ //nolint:gochecknoglobals // a constant list
	"extra_arguments": {"extra_arguments would go past what is reviewed", "write values as inputs, and variables of the environment as credentials of the project"},
	"before_hook":     {hookMessage, hookHint},
	"after_hook":      {hookMessage, hookHint},
	"error_hook":      {hookMessage, hookHint},
}

const (
	hookMessage = "hooks are not executed: a plan would not show what they do"
	hookHint    = "remove it; checks belong in policies"
)

// refusedAttributes are attributes of a unit.
var refusedAttributes = map[string]refusal{ //nolint:gochecknoglobals // a constant list
	"iam_role":                     {roleMessage, roleHint},
	"iam_assume_role_duration":     {roleMessage, roleHint},
	"iam_assume_role_session_name": {roleMessage, roleHint},
	"iam_web_identity_token":       {roleMessage, roleHint},
	"remote_state":                 {"remote_state is not a block", "write it as a block: where the state is has to be known before Terragrunt runs"},
	"generate":                     {"generate is not a block", "write each file as a generate block"},
	"skip":                         {"skip is not known to Holdfast: which units are planned is for their documents to say", "remove it, or the cluster's document"},
}

const (
	roleMessage = "Terragrunt's role does not reach the engine"
	roleHint    = "give the project credentials for it (credentials in holdfast.yaml)"
)

// known are the blocks and attributes that Terragrunt goes by when it renders a unit, or
// that mean nothing to a run.
var known = map[string]bool{ //nolint:gochecknoglobals // a constant list
	"locals": true, "include": true, "terraform": true, "remote_state": true, "generate": true, "inputs": true,
	"feature": true, "errors": true, "catalog": true, "dependencies": true, "prevent_destroy": true,
	"terraform_version_constraint": true, "terragrunt_version_constraint": true, "terraform_binary": true, "download_dir": true,
}

// inCode is of generated code that says where the state is.
var inCode = regexp.MustCompile(`\bbackend\s*\\?"|\bcloud\s*\{|"(backend|cloud)\\?"\s*:`)

// check refuses what a run would not do as the configuration says it.
func (r *reader) check(c *config) {
	for _, attribute := range sortedAttributes(c.body) {
		at := placeOf(c.file, attribute.NameRange)
		why, refused := refusedAttributes[attribute.Name]
		switch {
		case refused:
			r.faults = append(r.faults, at.Fault(why.message, why.hint))
		case !known[attribute.Name]:
			r.faults = append(r.faults, at.Fault("unknown key "+attribute.Name, ""))
		case attribute.Name == "prevent_destroy" && !isFalse(attribute.Expr) && r.unit.Protected == nil:
			r.unit.Protected = &at
		}
	}
	for _, block := range c.body.Blocks {
		at := placeOf(c.file, block.DefRange())
		why, refused := refusedBlocks[block.Type]
		switch {
		case refused:
			r.faults = append(r.faults, at.Fault(why.message, why.hint))
		case !known[block.Type]:
			r.faults = append(r.faults, at.Fault("unknown block "+block.Type, ""))
		case block.Type == "dependencies" && r.unit.Ordered == nil:
			r.unit.Ordered = &at
		case block.Type == "terraform":
			r.checkSettings(c, block)
		case block.Type == "generate":
			r.checkGenerated(c, block)
		}
	}
}

func (r *reader) checkSettings(c *config, block *hclsyntax.Block) {
	for _, inner := range block.Body.Blocks {
		if why, refused := refusedSettings[inner.Type]; refused {
			r.faults = append(r.faults, placeOf(c.file, inner.DefRange()).Fault(why.message, why.hint))
		}
	}
}

// checkGenerated refuses generated code that says where the state is: that is only known
// of a remote_state block.
func (r *reader) checkGenerated(c *config, block *hclsyntax.Block) {
	contents := block.Body.Attributes["contents"]
	if contents == nil {
		return
	}
	span := contents.Expr.Range()
	if text := c.code[span.Start.Byte:span.End.Byte]; inCode.Match(text) {
		r.faults = append(r.faults, placeOf(c.file, block.DefRange()).Fault(
			"the generated code says where the state is", "write a remote_state block with generate, or none: the state is kept by Holdfast then"))
	}
}

func isFalse(expr hclsyntax.Expression) bool {
	literal, ok := expr.(*hclsyntax.LiteralValueExpr)
	return ok && literal.Val.Type() == cty.Bool && !literal.Val.IsNull() && literal.Val.False()
}

// Faults are of what the cluster's document must set in place of the configuration.
func (u *Unit) Faults(c holdfast.Cluster) holdfast.Faults {
	var faults holdfast.Faults
	if u.Ordered != nil && len(c.DependsOn) == 0 {
		faults = append(faults, u.Ordered.Fault("dependencies says an order that Holdfast does not read", "name the other clusters in spec.dependsOn"))
	}
	if u.Protected != nil && !c.Deletion.Protected {
		faults = append(faults, u.Protected.Fault("prevent_destroy does not keep a cluster whose document is removed", "set spec.deletion.protected"))
	}
	return faults
}

// words makes code one line.
func words(code []byte) string { return strings.Join(strings.Fields(string(code)), " ") }
