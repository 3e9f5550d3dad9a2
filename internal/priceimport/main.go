package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	from := flag.String("from", "", "folder with the data files")
	to := flag.String("to", "cost/prices/tables", "folder of the tables")
	flag.Parse()
	if *from == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(os.Stdout, *from, *to); err != nil {
		fmt.Fprintln(os.Stderr, "import prices:", err)
		os.Exit(1)
	}
}

// run writes the table of each cloud, and says what was left out.
func run(out io.Writer, from, to string) error {
	for _, cloud := range []string{"aws", "azure", "digitalocean", "gcp", "linode"} {
		data, err := os.ReadFile(filepath.Join(from, cloud+".json"))
		if err != nil {
			return err
		}
		table, left, err := convert(data)
		if err != nil {
			return fmt.Errorf("%s: %w", cloud, err)
		}
		if table.Cloud != cloud {
			return fmt.Errorf("%s.json is of %q", cloud, table.Cloud)
		}
		if err := os.WriteFile(filepath.Join(to, cloud+".json"), table.encode(), 0o644); err != nil {
			return err
		}
		for _, line := range left {
			fmt.Fprintf(out, "%s: left out: %s\n", cloud, line)
		}
	}
	return nil
}

// encode writes a table with one SKU on a line, so that changes can be read.
func (t *table) encode() []byte {
	var b bytes.Buffer
	b.WriteString("{\n")
	field := func(indent, name string, v any, end string) {
		text, _ := json.Marshal(v) // texts and numbers only
		fmt.Fprintf(&b, "%s%q: %s%s\n", indent, name, bytes.ReplaceAll(text, []byte(`\u003c`), []byte("<")), end)
	}
	field(" ", "cloud", t.Cloud, ",")
	b.WriteString(" \"origins\": [\n")
	for i, o := range t.Origins {
		text, _ := json.Marshal(o)
		fmt.Fprintf(&b, "  %s%s\n", text, comma(i, len(t.Origins)))
	}
	b.WriteString(" ],\n \"notFound\": [\n")
	for i, line := range t.NotFound {
		text, _ := json.Marshal(line)
		fmt.Fprintf(&b, "  %s%s\n", text, comma(i, len(t.NotFound)))
	}
	b.WriteString(" ],\n \"blocks\": [\n")
	for i, block := range t.Blocks {
		b.WriteString("  {\n")
		field("   ", "kind", block.Kind, ",")
		field("   ", "unit", block.Unit, ",")
		field("   ", "currency", block.Currency, ",")
		if block.Hours != 0 {
			field("   ", "hours", block.Hours, ",")
		}
		field("   ", "origin", block.Origin, ",")
		if block.Note != "" {
			field("   ", "note", block.Note, ",")
		}
		field("   ", "regions", block.Regions, ",")
		if len(block.Caps) > 0 {
			b.WriteString("   \"caps\": {\n")
			rows(&b, block.Caps)
			b.WriteString("   },\n")
		}
		b.WriteString("   \"prices\": {\n")
		rows(&b, block.Prices)
		fmt.Fprintf(&b, "   }\n  }%s\n", comma(i, len(t.Blocks)))
	}
	b.WriteString(" ]\n}\n")
	return b.Bytes()
}

func comma(i, n int) string {
	if i < n-1 {
		return ","
	}
	return ""
}
