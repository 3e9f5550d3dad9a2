package offline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
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
	var costs []holdfast.Cost
	for _, name := range files {
		in, err := readPlan(name)
		if err != nil {
			return err
		}
		in.Region = region
		estimate := cost.Estimate(in, chain)
		report.Plans = append(report.Plans, PlanCost{Plan: name, Cost: estimate})
		costs = append(costs, estimate)
	}
	report.Totals = table.NotNil(cost.Sum(costs...))
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
		b.WriteString(a.planCostText(p.Cost))
	}
	if len(r.Plans) > 1 {
		unpriced := 0
		for _, p := range r.Plans {
			unpriced += p.Cost.UnpricedResources()
		}
		fmt.Fprintf(&b, "\n%s together: %s\n", table.Count(len(r.Plans), "plan"), priceText(r.Totals, unpriced))
	}
	return b.String()
}

func (a *app) planCostText(c holdfast.Cost) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Monthly price: %s\n", priceText(c.Totals, c.UnpricedResources()))
	b.WriteString(a.Section("Changes", []table.Column{{Title: "RESOURCE"}, {Title: "A MONTH"}, {Title: "FOR", Min: 20}}, changeRows(c.Resources)))
	b.WriteString(a.Section("Not priced", []table.Column{{Title: "RESOURCE"}, {Title: "WHAT", Yields: 1}, {Title: "WHY", Min: 20}}, unpricedRows(c.Unpriced)))
	b.WriteString(a.Section("On top, by usage", []table.Column{{Title: "RESOURCE"}, {Title: "PRICE"}, {Title: "FOR", Min: 20}}, usageRows(c.Usage)))
	fmt.Fprintf(&b, "\n%s\n", a.pricesText(c.Prices))
	if slices.ContainsFunc(c.Unpriced, func(u holdfast.UnpricedCost) bool { return u.Gap == holdfast.CostNoPrice && u.Region == "" }) {
		b.WriteString("The plan does not say in which region it is: name it with --region.\n")
	}
	return b.String()
}

// priceText is what is added, with what has no price.
func priceText(totals []holdfast.CostTotal, unpriced int) string {
	resources := table.Count(unpriced, "resource") + " without a price"
	switch {
	case unpriced == 0 && len(totals) == 0:
		return "no change"
	case unpriced == 0:
		return changesText(totals)
	case len(totals) == 0:
		return "not known; " + resources
	}
	return changesText(totals) + ", and " + resources
}

func changeRows(resources []holdfast.ResourceCost) (rows [][]table.Cell) {
	for _, r := range resources {
		rows = append(rows, []table.Cell{{Text: r.Address}, {Text: changesText(r.Totals), Colour: colourOf(r.Totals)}, {Text: itemsText(r.Items)}})
	}
	return rows
}

// colourOf is red for what costs more in any case, and green for what saves.
func colourOf(totals []holdfast.CostTotal) table.Colour {
	for _, t := range totals {
		switch {
		case strings.HasPrefix(string(t.Change.High), "-"):
			return table.Green
		case !strings.HasPrefix(string(t.Change.Low), "-"):
			return table.Red
		}
	}
	return table.Plain
}

// itemsText is what a resource is billed by after the change, and what no longer. What is
// there on both sides, in another number, is named once.
func itemsText(items []holdfast.CostItem) string {
	var now, gone []string
	for _, i := range items {
		twin := slices.IndexFunc(items, func(o holdfast.CostItem) bool { return o.Name == i.Name && o.SKU == i.SKU && o.Gone != i.Gone })
		switch {
		case i.Gone && twin < 0:
			gone = append(gone, itemText(i, ""))
		case !i.Gone && twin < 0:
			now = append(now, itemText(i, ""))
		case !i.Gone:
			now = append(now, itemText(i, items[twin].Quantity))
		}
	}
	switch {
	case len(gone) == 0:
		return strings.Join(now, ", ")
	case len(now) == 0:
		return "no longer " + strings.Join(gone, ", ")
	}
	return strings.Join(now, ", ") + "; before: " + strings.Join(gone, ", ")
}

// itemText is one item: "nodes: 3 → 5 × m7i.large".
func itemText(i holdfast.CostItem, before string) string {
	quantity := i.Quantity
	switch {
	case before != "":
		quantity = before + " → " + quantity
	case quantity == "1":
		return i.Name + ": " + i.SKU
	}
	if strings.ContainsAny(i.Quantity[len(i.Quantity)-1:], "0123456789") {
		quantity += " ×"
	}
	return i.Name + ": " + quantity + " " + i.SKU
}

// unpricedRows name each resource once.
func unpricedRows(unpriced []holdfast.UnpricedCost) (rows [][]table.Cell) {
	last := ""
	for _, u := range unpriced {
		detail := u.Detail
		if u.Gap == holdfast.CostNoPrice {
			detail = "no price of " + detail
		}
		address := u.Address
		if address == last {
			address = ""
		}
		last = u.Address
		name := cmp.Or(u.Name, "all of it")
		if u.Gone {
			name = "no longer: " + name
		}
		rows = append(rows, table.Cells(address, name, detail))
	}
	return rows
}

func usageRows(usage []holdfast.UsageCost) (rows [][]table.Cell) {
	for _, u := range usage {
		text := "not known"
		if u.Price != "" {
			text = fmt.Sprintf("%s %s per %s", u.Price, u.Currency, u.Unit)
		}
		rows = append(rows, table.Cells(u.Address, text, u.Name))
	}
	return rows
}

// changesText is what is added, in each currency.
func changesText(totals []holdfast.CostTotal) string {
	parts := make([]string, len(totals))
	for i, t := range totals {
		low, high := signed(t.Change.Low), signed(t.Change.High)
		parts[i] = low + " " + t.Currency
		if low != high {
			parts[i] = low + " to " + high + " " + t.Currency
		}
	}
	return strings.Join(parts, " and ")
}

func signed(a holdfast.Amount) string {
	text := a.Rounded()
	if text == "0.00" || strings.HasPrefix(text, "-") {
		return text
	}
	return "+" + text
}

// pricesText says which prices these are, and how old.
func (a *app) pricesText(p holdfast.CostPrices) string {
	var names []string
	for _, part := range p.Parts {
		names = append(names, part.Name+" "+part.ID)
	}
	text := "Prices: " + strings.Join(names, ", ")
	switch p.Oldest {
	case "":
		return text
	case p.Newest:
		return text + "; as of " + a.dated(p.Oldest)
	}
	return text + "; as of " + a.dated(p.Oldest) + " to " + a.dated(p.Newest)
}

// dated is a date with its age.
func (a *app) dated(date string) string {
	for _, layout := range []string{time.DateOnly, "2006-01", "2006"} {
		if t, err := time.Parse(layout, date); err == nil {
			return date + " (" + a.Age(t) + " ago)"
		}
	}
	return date
}
