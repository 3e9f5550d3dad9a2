package document

import (
	"fmt"
	"regexp"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Bounds of what conditions ask for.
const (
	maxApprovals = 10
	maxApprovers = 50 // who may let a cost pass
	maxLimits    = 10 // of costs
)

// requires reads the conditions of an apply: names, and mappings of one name to what it asks for.
func (r clusterReader) requires(o *decode.Object, c *holdfast.Cluster) {
	for i, item := range o.Items("requires") {
		label := fmt.Sprintf("spec.apply.requires[%d]", i)
		if item.Kind == yaml.MappingNode {
			r.requirement(r.Object(item, label), item, label, c)
			continue
		}
		allowed := holdfast.GateNames()
		name, ok := o.Entry(item, label)
		switch {
		case !ok:
		case !slices.Contains(allowed, name):
			r.Add(item, fmt.Sprintf("spec.apply.requires has %q", wording.Clip(name)), wording.DidYouMean(name, allowed))
		case name == holdfast.GateCost:
			r.Add(item, label+" has no limit", "write - cost: {maxIncrease: 100, currency: USD}")
		default:
			require(c, name)
		}
	}
}

func require(c *holdfast.Cluster, name string) {
	if !slices.Contains(c.Apply.Requires, name) {
		c.Apply.Requires = append(c.Apply.Requires, name)
	}
}

// requirement reads a condition with what it asks for.
func (r clusterReader) requirement(o *decode.Object, at *yaml.Node, label string, c *holdfast.Cluster) {
	switch {
	case len(at.Content) > 2:
		r.Add(at, label+" has several conditions", "write each as an entry of the list")
		return
	case o.Has("approvals"):
		count := r.people(o.Child("approvals"), "count")
		require(c, holdfast.GateApproved)
		c.Apply.Terms = c.Apply.Terms.With(holdfast.GateTerms{Approvals: count})
	case o.Has("destroy"):
		count := r.people(o.Child("destroy"), "approvals")
		require(c, holdfast.GateDestroy)
		c.Apply.Terms = c.Apply.Terms.With(holdfast.GateTerms{Destroys: count})
	case o.Has("cost"):
		r.cost(o, c)
	default:
		for _, key := range []string{"approvals", "cost", "destroy"} {
			o.Get(key)
		}
	}
	o.Done()
}

// people reads how many people have to approve.
func (r clusterReader) people(o *decode.Object, key string) (count int) {
	defer o.Done()
	n := o.Get(key)
	if n == nil {
		o.Missing(key)
		return 0
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || n.Decode(&count) != nil || count < 1 || count > maxApprovals {
		r.Add(n, fmt.Sprintf("%s must be a number from 1 to %d, not %s", o.Label(key), maxApprovals, decode.Describe(n)), "")
	}
	return count
}

var (
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
	amountPattern   = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,6})?$`)
)

func (r clusterReader) cost(o *decode.Object, c *holdfast.Cluster) {
	before := len(r.Faults)
	terms := o.Child("cost")
	limit := holdfast.CostTerms{Currency: terms.Text("currency"), Unpriced: terms.Choice("unpriced", "deny", "allow") == "allow"}
	if !terms.Has("currency") {
		limit.Currency = "USD"
	} else if limit.Currency != "" && !currencyPattern.MatchString(limit.Currency) {
		r.Add(terms.Get("currency"), fmt.Sprintf("%s is %q", terms.Label("currency"), wording.Clip(limit.Currency)), "write the three letters of ISO 4217, such as USD or EUR")
	}
	switch n := terms.Get("maxIncrease"); {
	case n == nil:
		terms.Missing("maxIncrease")
	case n.Kind != yaml.ScalarNode || !amountPattern.MatchString(n.Value):
		r.Add(n, fmt.Sprintf("%s must be a decimal number, not %s", terms.Label("maxIncrease"), decode.Describe(n)), "write one such as 100 or 12.50")
	default:
		limit.MaxIncrease = holdfast.Amount(n.Value)
	}
	names, nodes := terms.Strings("approvedBy")
	for i, name := range names {
		if name == "" || i >= maxApprovers {
			r.Add(nodes[i], fmt.Sprintf("%s[%d] is empty, or there are more than %d", terms.Label("approvedBy"), i, maxApprovers), "")
			break
		}
	}
	limit.ApprovedBy = names
	terms.Done()
	if len(r.Faults) > before { // half a limit would let more pass than was meant
		return
	}
	if len(c.Apply.Terms.Costs) == maxLimits {
		r.Add(o.Get("cost"), fmt.Sprintf("spec.apply.requires has more than %d limits of costs", maxLimits), "")
		return
	}
	require(c, holdfast.GateCost)
	c.Apply.Terms = c.Apply.Terms.With(holdfast.GateTerms{Costs: []holdfast.CostTerms{limit}})
}
