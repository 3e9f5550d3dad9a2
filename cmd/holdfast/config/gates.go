package config

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// Gate is the least that applies of some clusters have to meet.
type Gate struct {
	Projects     []string `yaml:"projects" default:"[\"*\"]" doc:"Globs of the projects for whose clusters."`
	Environments []string `yaml:"environments" default:"[\"*\"]" doc:"Globs of environments, as projects."`
	Requires     []string `yaml:"requires" doc:"[Conditions](lifecycle.md#what-an-apply-requires) by name: approved, mergeable."`
	Approvals    int      `yaml:"approvals" doc:"How many people have to approve; more than 0 is the condition approved."`
	Destroys     int      `yaml:"destroyApprovals" doc:"How many people have to approve the destroy of a cluster: the condition destroy."`
	Cost         CostGate `yaml:"cost" doc:"The condition cost: what a plan may add to the monthly price of a cluster."`
}

// CostGate bounds what a plan may add to the monthly price.
type CostGate struct {
	MaxIncrease string   `yaml:"maxIncrease" doc:"The most, such as \"100\" or \"12.50\". Left out: any."`
	Currency    string   `yaml:"currency" default:"USD" doc:"Of maxIncrease. Amounts in another currency are not converted: they close the gate."`
	ApprovedBy  []string `yaml:"approvedBy" doc:"Of whom one may let a plan pass that adds more, by an approving review or /holdfast approve. Left out: nobody."`
	Unpriced    string   `yaml:"unpriced" default:"deny" doc:"deny: what has no price closes the gate. allow: it does not matter."`
}

// Terms are what the entry asks for.
func (g Gate) Terms() (names []string, terms holdfast.GateTerms) {
	names = slices.Clone(g.Requires)
	if terms.Approvals = g.Approvals; g.Approvals > 0 {
		names = append(names, holdfast.GateApproved)
	}
	if terms.Destroys = g.Destroys; g.Destroys > 0 {
		names = append(names, holdfast.GateDestroy)
	}
	if g.Cost.MaxIncrease != "" {
		names = append(names, holdfast.GateCost)
		terms.Costs = []holdfast.CostTerms{{
			MaxIncrease: holdfast.Amount(g.Cost.MaxIncrease), Currency: g.Cost.Currency, ApprovedBy: g.Cost.ApprovedBy,
			Unpriced: g.Cost.Unpriced == "allow",
		}}
	}
	return names, terms
}

var (
	amountPattern   = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,6})?$`)
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
)

const mostApprovals = 10

func (d contradictions) checkGates(gates []Gate) {
	for i, g := range gates {
		at := fmt.Sprintf("gates[%d]", i)
		d.globs(at+".projects", g.Projects)
		d.globs(at+".environments", g.Environments)
		for j, name := range g.Requires {
			d.oneOf(fmt.Sprintf("%s.requires[%d]", at, j), name, holdfast.GateApproved, holdfast.GateMergeable)
		}
		for key, number := range map[string]int{".approvals": g.Approvals, ".destroyApprovals": g.Destroys} {
			if number < 0 || number > mostApprovals {
				d.at(at+key, fmt.Sprintf("must be from 0 to %d", mostApprovals), "")
			}
		}
		if text := g.Cost.MaxIncrease; text != "" && !amountPattern.MatchString(text) {
			d.at(at+".cost.maxIncrease", fmt.Sprintf("%q is not a decimal number", text), "such as 100 or 12.50")
		}
		if !currencyPattern.MatchString(g.Cost.Currency) {
			d.at(at+".cost.currency", fmt.Sprintf("%q is not the three letters of a currency", g.Cost.Currency), "such as USD or EUR")
		}
		d.oneOf(at+".cost.unpriced", g.Cost.Unpriced, "deny", "allow")
		for j, name := range g.Cost.ApprovedBy {
			d.required(fmt.Sprintf("%s.cost.approvedBy[%d]", at, j), name)
		}
		if g.Cost.MaxIncrease == "" && len(g.Cost.ApprovedBy) > 0 {
			d.at(at+".cost.approvedBy", "is set, but maxIncrease is not", "set maxIncrease, or remove it")
		}
		if names, _ := g.Terms(); len(names) == 0 {
			d.at(at, "requires nothing", "set requires, approvals, destroyApprovals or cost.maxIncrease")
		}
	}
}
