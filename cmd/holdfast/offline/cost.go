package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/costs"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/cost"
	"github.com/holdfast-dev/holdfast/cost/book"
	"github.com/holdfast-dev/holdfast/cost/price"
	"github.com/holdfast-dev/holdfast/cost/prices"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/runner/plan"
)

// NewCostCommand returns the command cost.
func NewCostCommand(base *cli.App) *cobra.Command {
	a := &app{base}
	var region, bookFile, format string
	c := &cobra.Command{
		Use:   "cost PLAN...",
		Short: "Show how plans change the monthly price, without a server",
		Long: `Show how plans change the monthly price, without a server and without a network.

A PLAN is a file with the output of "terraform show -json" or "tofu show -json", a plan
document of Holdfast, or a folder with such files (*.json). Prices are from the embedded
table, and from a price book if --prices names one.`,
		Args: cli.AtLeast(1, "files with plans, or folders"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.cost(args, region, bookFile, format)
		},
	}
	c.Flags().StringVar(&region, "region", "", "region of resources that do not name one (default: that of the others in the plan)")
	c.Flags().StringVar(&bookFile, "prices", "", "a price book: a YAML file with your own prices and discounts")
	cli.AddFormatFlag(c, &format)
	return c
}

// PlanCost is what a plan costs.
type PlanCost struct {
	Plan string        `json:"plan"` // its file
	Cost holdfast.Cost `json:"cost"`
}

// CostReport is what several plans cost.
type CostReport struct {
	Plans  []PlanCost           `json:"plans"`
	Totals []holdfast.CostTotal `json:"totals"` // one for each currency
}

func (a *app) cost(paths []string, region, bookFile, format string) error {
	chain, err := priceChain(bookFile)
	if err != nil {
		return err
	}
	files, err := planFiles(paths)
	if err != nil {
		return err
	}
	var report CostReport
	var estimates []holdfast.Cost
	for _, name := range files {
		in, err := readPlan(name)
		if err != nil {
			return err
		}
		in.Region = region
		estimate := cost.Estimate(in, chain)
		report.Plans = append(report.Plans, PlanCost{Plan: name, Cost: estimate})
		estimates = append(estimates, estimate)
	}
	report.Totals = table.NotNil(cost.Sum(estimates...))
	return a.Print(format, report, func() string { return a.costText(report) })
}

// priceChain is the table of the program, behind a price book if there is one.
func priceChain(bookFile string) (price.Chain, error) {
	if bookFile == "" {
		return price.Chain{prices.Embedded{}}, nil
	}
	data, err := os.ReadFile(bookFile)
	if err != nil {
		return nil, fmt.Errorf("read price book: %w", err)
	}
	b, faults := book.Parse(bookFile, data)
	if len(faults) > 0 {
		return nil, fmt.Errorf("price book is not valid:\n%w", faults)
	}
	return b.Chain(prices.Embedded{}), nil
}

// planFiles are the files that paths name, with those of folders.
func planFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("find plan: %w", err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		found, err := filepath.Glob(filepath.Join(globEscaped(path), "*.json"))
		if err != nil {
			return nil, fmt.Errorf("read folder: %w", err)
		}
		if len(found) == 0 {
			return nil, hint.New(fmt.Errorf("%s has no plan", path), "plans are files that end in .json: write them with terraform show -json")
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// globEscaped is a path in which no character stands for others.
func globEscaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// readPlan reads a plan document, or what an engine says of a plan.
func readPlan(name string) (in cost.Input, err error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return in, fmt.Errorf("read plan: %w", err)
	}
	var head struct {
		FormatVersion string          `json:"format_version"`
		Version       json.RawMessage `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil || head.FormatVersion == "" && head.Version == nil {
		return in, hint.New(fmt.Errorf("%s is not a plan", name), "write it with terraform show -json PLANFILE, or tofu show -json PLANFILE")
	}
	if head.FormatVersion == "" {
		if in.Document, err = plandoc.Decode(bytes.NewReader(data)); err != nil {
			return in, fmt.Errorf("read %s: %w", name, err)
		}
		return in, nil
	}
	read, err := plan.Read(bytes.NewReader(data), plan.Options{Key: []byte("offline: nothing is compared")})
	if err != nil {
		return in, fmt.Errorf("read %s: %w", name, err)
	}
	in.Document = read.Document
	in.Unchanged, err = unchanged(data)
	if err != nil {
		return in, fmt.Errorf("read %s: %w", name, err)
	}
	return in, nil
}

// unchanged are the resources that a plan leaves as they are and that what it changes may
// refer to.
func unchanged(data []byte) (all []plandoc.Resource, err error) {
	var p struct {
		Changes []struct {
			Address  string `json:"address"`
			Mode     string `json:"mode"`
			Type     string `json:"type"`
			Provider string `json:"provider_name"`
			Change   struct {
				Actions []string        `json:"actions"`
				Before  json.RawMessage `json:"before"`
			} `json:"change"`
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, errors.New("its changes cannot be read")
	}
	for _, rc := range p.Changes {
		if rc.Mode != "managed" || !slices.Equal(rc.Change.Actions, []string{"no-op"}) || !slices.Contains(cost.ContextTypes(), rc.Type) {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(rc.Change.Before))
		dec.UseNumber()
		var tree any
		if err := dec.Decode(&tree); err != nil {
			return nil, errors.New("its changes cannot be read")
		}
		r := plandoc.Resource{Address: rc.Address, Type: rc.Type, Provider: rc.Provider}
		if r.Before, err = plandoc.NewValue(tree); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// costText is a report for people: the plans, and what they are together.
func (a *app) costText(r CostReport) string {
	var b strings.Builder
	for i, p := range r.Plans {
		if i > 0 {
			b.WriteString("\n")
		}
		if len(r.Plans) > 1 {
			fmt.Fprintf(&b, "== %s\n\n", table.Clean(p.Plan))
		}
		b.WriteString(costs.Text(a.App, p.Cost))
		if slices.ContainsFunc(p.Cost.Unpriced, func(u holdfast.UnpricedCost) bool { return u.Gap == holdfast.CostNoPrice && u.Region == "" }) {
			b.WriteString("The plan does not say in which region it is: name it with --region.\n")
		}
	}
	if len(r.Plans) > 1 {
		unpriced := 0
		for _, p := range r.Plans {
			unpriced += p.Cost.UnpricedResources()
		}
		fmt.Fprintf(&b, "\n%s together: %s\n", table.Count(len(r.Plans), "plan"), costs.PriceText(r.Totals, unpriced))
	}
	return b.String()
}
