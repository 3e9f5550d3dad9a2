package costs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// Text is a cost for people: what is added, for which resources, and by which prices.
func Text(a *cli.App, c holdfast.Cost) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Monthly price: %s\n", PriceText(c.Totals, c.UnpricedResources()))
	b.WriteString(a.Section("Changes", []table.Column{{Title: "RESOURCE"}, {Title: "A MONTH"}, {Title: "FOR", Min: 20}}, changeRows(c.Resources)))
	b.WriteString(a.Section("Not priced", []table.Column{{Title: "RESOURCE"}, {Title: "WHAT", Yields: 1}, {Title: "WHY", Min: 20}}, unpricedRows(c.Unpriced)))
	b.WriteString(a.Section("On top, by usage", []table.Column{{Title: "RESOURCE"}, {Title: "PRICE"}, {Title: "FOR", Min: 20}}, usageRows(c.Usage)))
	fmt.Fprintf(&b, "\n%s\n", pricesText(a, c.Prices))
	return b.String()
}

// PriceText is what is added, with what has no price.
func PriceText(totals []holdfast.CostTotal, unpriced int) string {
	resources := table.Count(unpriced, "resource") + " without a price"
	switch {
	case unpriced == 0 && len(totals) == 0:
		return "no change"
	case unpriced == 0:
		return holdfast.CostChange(totals)
	case len(totals) == 0:
		return "not known; " + resources
	}
	return holdfast.CostChange(totals) + ", and " + resources
}

func changeRows(resources []holdfast.ResourceCost) (rows [][]table.Cell) {
	for _, r := range resources {
		rows = append(rows, []table.Cell{{Text: r.Address}, {Text: holdfast.CostChange(r.Totals), Colour: colourOf(r.Totals)}, {Text: itemsText(r.Items)}})
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

// pricesText says which prices these are, and how old.
func pricesText(a *cli.App, p holdfast.CostPrices) string {
	var names []string
	for _, part := range p.Parts {
		names = append(names, part.Name+" "+part.ID)
	}
	text := "Prices: " + strings.Join(names, ", ")
	switch p.Oldest {
	case "":
		return text
	case p.Newest:
		return text + "; as of " + dated(a, p.Oldest)
	}
	return text + "; as of " + dated(a, p.Oldest) + " to " + dated(a, p.Newest)
}

// dated is a date with its age.
func dated(a *cli.App, date string) string {
	for _, layout := range []string{time.DateOnly, "2006-01", "2006"} {
		if t, err := time.Parse(layout, date); err == nil {
			return date + " (" + a.Age(t) + " ago)"
		}
	}
	return date
}
