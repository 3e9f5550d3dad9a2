package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// changeRow is instances of a resource to which the same happens.
type changeRow struct {
	first   holdfast.ResourceChange
	changes []holdfast.ResourceChange // with the first
	why     string
}

func changeRows(plan *holdfast.Plan) []changeRow {
	return instanceRows(byDanger(plan.Changes), whyCell)
}

// instanceRows puts instances of a resource together to which the same happens for the
// same cause, at the place of the first: instances of the resource itself, or of a module
// that it is in.
func instanceRows(changes []holdfast.ResourceChange, why func(holdfast.ResourceChange) string) []changeRow {
	var rows []changeRow
	at := map[string]int{}
	for _, c := range changes {
		row := changeRow{first: c, changes: []holdfast.ResourceChange{c}, why: why(c)}
		before, _, after, ok := splitInstance(c.Address)
		if !ok || c.PreviousAddress+c.Importing != "" {
			rows = append(rows, row)
			continue
		}
		key := fmt.Sprintf("%q %q %q %q %v %v %q %q %q", before, after, c.Action, c.Provider, c.Forgets, c.CreateFirst, c.Reason, c.ReplacePaths, row.why)
		if i, known := at[key]; known {
			rows[i].changes = append(rows[i].changes, c)
			continue
		}
		at[key] = len(rows)
		rows = append(rows, row)
	}
	return rows
}

// rowCell is the resource of a row: one, or its instances in one address, such as
// `aws_subnet.a[0–5]`. All is false if keys are left out; of what is lost none are.
func rowCell(row changeRow) (cell string, all bool) {
	if len(row.changes) == 1 {
		return resourceCell(row.first), true
	}
	before, _, after, _ := splitInstance(row.first.Address)
	var numbers []int
	var keys []string
	for _, c := range row.changes {
		_, key, _, _ := splitInstance(c.Address)
		if n, err := strconv.Atoi(key); err == nil {
			numbers = append(numbers, n)
		} else {
			keys = append(keys, visible(key))
		}
	}
	const most = 10
	parts := append(ranges(numbers), keys...)
	if more := len(parts) - most; more > 0 && !loses(row.first) {
		parts, all = append(parts[:most:most], fmt.Sprintf("… %d more", more)), false
	} else {
		all = true
	}
	address := codeSpan(visible(before) + strings.Join(parts, ", ") + visible(after))
	return fmt.Sprintf("%s (%d)", addressCell(row.first, address), len(row.changes)), all
}

// ranges writes numbers in their order, those that follow one another as one: 0–5, 7.
func ranges(numbers []int) []string {
	slices.Sort(numbers)
	var parts []string
	for i := 0; i < len(numbers); {
		n := 1
		for i+n < len(numbers) && numbers[i+n] == numbers[i]+n {
			n++
		}
		part := strconv.Itoa(numbers[i])
		if n > 1 {
			part += "–" + strconv.Itoa(numbers[i+n-1])
		}
		parts = append(parts, part)
		i += n
	}
	return parts
}

// splitInstance splits an address at its last key, which is a number or a text in quotes;
// false if it has none.
func splitInstance(address string) (before, key, after string, ok bool) {
	begin, end := -1, -1
	for i := 0; i < len(address); i++ {
		if address[i] != '[' {
			continue
		}
		if n := keyLength(address[i+1:]); n > 0 {
			begin, end = i+1, i+1+n
			i = end
		}
	}
	if begin < 0 {
		return "", "", "", false
	}
	return address[:begin], address[begin:end], address[end:], true
}

// keyLength is how long a key in brackets is that s begins with; zero if there is none.
func keyLength(s string) int {
	n := digits(s)
	if n == 0 && strings.HasPrefix(s, `"`) {
		for n = 1; n < len(s) && s[n] != '"'; n++ {
			if s[n] == '\\' {
				n++
			}
		}
		n++
	}
	if n == 0 || n >= len(s) || s[n] != ']' || s[0] == '0' && n > 1 || s[0] != '"' && n > 9 {
		return 0
	}
	return n
}
