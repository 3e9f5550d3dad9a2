package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	all := flag.Bool("all", false, "show the largest within the bounds, too")
	falls := flag.Bool("lower", false, "write lower numbers to the list of what is allowed")
	whole := flag.Bool("figures", false, "only print what all code together is like")
	root := flag.String("root", ".", "the folder of the code, such as an older worktree")
	flag.Parse()
	var err error
	if *whole {
		err = printFigures(os.Stdout, *root)
	} else {
		err = run(os.Stdout, *root, *all, *falls)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func printFigures(w io.Writer, root string) error {
	measures, err := measureAll(root)
	if err != nil {
		return err
	}
	// Of those that are equally large the first by name is shown.
	slices.SortFunc(measures, func(a, b measure) int { return cmp.Compare(a.name, b.name) })
	f, err := figuresOf(root)
	if err != nil {
		return err
	}
	f.show(w, measures)
	return nil
}

// listFile is the path in the repository of the list of what is allowed.
const listFile = "internal/house/allowed.txt"

func run(w io.Writer, root string, all, falls bool) error {
	measures, err := measureAll(root)
	if err != nil {
		return err
	}
	file := filepath.Join(root, listFile)
	if falls {
		if err := lower(file, measures); err != nil {
			return err
		}
	}
	list, err := readAllowed(file)
	if err != nil {
		return err
	}
	show(w, measures, list, all)
	v := judge(measures, list)
	for _, line := range v.falls {
		fmt.Fprintln(w, "can be lowered (-lower):", line)
	}
	for _, line := range v.stale {
		fmt.Fprintln(w, "not needed (-lower):", line)
	}
	for _, line := range v.beyond {
		fmt.Fprintln(w, "beyond its bound:", line)
	}
	if len(v.beyond) > 0 {
		return fmt.Errorf("%d beyond their bounds, and not in %s", len(v.beyond), listFile)
	}
	return nil
}

// largest is how many are shown that are within their bound.
const largest = 5

func show(w io.Writer, measures []measure, list []allowance, all bool) {
	slices.SortFunc(measures, func(a, b measure) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) })
	for _, b := range bounds {
		beyond, within := 0, 0
		var lines []string
		for _, m := range measures {
			if m.kind != b.kind {
				continue
			}
			why := ""
			if i := slices.IndexFunc(list, func(a allowance) bool { return a.kind == m.kind && a.name == m.name }); i >= 0 {
				why = list[i].why
			}
			switch {
			case m.n > b.most:
				beyond++
			case all && within < largest && b.most > 0:
				within++
			default:
				continue
			}
			lines = append(lines, fmt.Sprintf("  %6d  %-42s %s", m.n, m.name, why))
		}
		fmt.Fprintf(w, "%s: %d beyond %d\n", b.title, beyond, b.most)
		for _, line := range lines {
			fmt.Fprintln(w, line)
		}
	}
}
