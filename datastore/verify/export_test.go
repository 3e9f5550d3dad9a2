package verify

import (
	"slices"
	"strings"
)

// Tables are those that are checked.
func Tables() []string {
	var tables []string
	for _, k := range kinds() {
		_, table, _ := strings.Cut(k.query, " FROM ")
		tables = append(tables, table)
	}
	slices.Sort(tables)
	return tables
}
