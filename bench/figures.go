package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// figure is a row of the results. Floor is what the machine does without
// Holdfast, measured in the same run; Ratio is Value divided by Floor. Both are
// zero where there is nothing to compare with.
type figure struct {
	Part  string  `json:"part"`
	Name  string  `json:"name"`
	N     int     `json:"n"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Floor float64 `json:"floor,omitempty"`
	Ratio float64 `json:"ratio,omitempty"`

	Measured string `json:"measured"` // the day, such as 2026-11-29
}

// against completes a figure by what it is compared with. A floor that was too small to
// measure is left out.
func (f figure) against(floor float64) figure {
	if floor > 0 {
		f.Floor, f.Ratio = floor, f.Value/floor
	}
	return f
}

// merged returns the former figures with those of the parts that were measured. A part
// that was disturbed, or failed, leaves its former figures as they are, and one that was
// cut those that it did not measure again. Of one that was measured as a whole, former
// figures of other sizes stay, and those of names that it no longer has go.
func merged(former []figure, outcomes []outcome, parts []part) []figure {
	var all []figure
	for _, p := range parts {
		var kept, fresh []figure
		for _, f := range former {
			if f.Part == p.name {
				kept = append(kept, f)
			}
		}
		i := slices.IndexFunc(outcomes, func(o outcome) bool { return o.part == p.name })
		if i < 0 || !outcomes[i].written() {
			all = append(all, kept...)
			continue
		}
		fresh = slices.Clone(outcomes[i].figures)
		for _, f := range kept {
			last, again := -1, false
			for i, g := range fresh {
				if g.Name == f.Name {
					last, again = i, again || g.N == f.N
				}
			}
			switch {
			case again || last < 0 && outcomes[i].cut == "":
			case last < 0:
				fresh = append(fresh, f)
			default:
				fresh = slices.Insert(fresh, last+1, f)
			}
		}
		all = append(all, fresh...)
	}
	return all
}

// readFigures reads what was written before.
func readFigures(path string) ([]figure, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read figures: %w", err)
	}
	var figures []figure
	if err := json.Unmarshal(data, &figures); err != nil {
		return nil, fmt.Errorf("read figures: %s: %w", path, err)
	}
	return figures, nil
}

func writeFigures(path string, figures []figure) error {
	var text strings.Builder
	text.WriteString("[\n")
	for i, f := range figures {
		f.Value, f.Floor, f.Ratio = rounded(f.Value), rounded(f.Floor), rounded(f.Ratio)
		line, err := json.Marshal(f)
		if err != nil {
			return fmt.Errorf("encode figures: %w", err)
		}
		text.WriteString("  " + string(line))
		if i < len(figures)-1 {
			text.WriteString(",")
		}
		text.WriteString("\n")
	}
	text.WriteString("]\n")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}

// rounded leaves three digits, which is more than the machine repeats.
func rounded(v float64) float64 {
	var out float64
	_, _ = fmt.Sscan(fmt.Sprintf("%.3g", v), &out)
	return out
}

// printTable prints what was measured, also what is not written.
func printTable(out io.Writer, outcomes []outcome) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tn\tmeasured\tfloor\tratio\taim\t")
	for _, o := range outcomes {
		for _, f := range o.figures {
			fmt.Fprintln(w, strings.Join(append(f.cells(), f.aims(), o.mark()), "\t"))
		}
	}
	return w.Flush()
}

func printMarkdown(out io.Writer, figures []figure) error {
	curves, rest := curvesOf(figures)
	var lines []string
	if len(rest) > 0 {
		lines = append(lines, "| What | N | Measured | Floor | Ratio | Aim | On |", "|---|--:|--:|--:|--:|---|---|")
	}
	for _, f := range rest {
		lines = append(lines, "| "+strings.Join(append(f.cells(), f.aims(), f.Measured), " | ")+" |")
	}
	if len(curves) > 0 {
		if len(rest) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, markdown(curves)...)
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// shownHeadlines is how many figures README.md shows.
const shownHeadlines = 5

// headlines are the figures that README.md shows, in its words: the first ones that were
// ever measured.
var headlines = []struct {
	name  string
	n     int
	words string
}{
	{"pull request, two providers", 50, "Plan a pull request of 50 clusters, two providers each"},
	{"apply, two providers", 50, "Apply its merge"},
	{"fleet: push of one document to decision", 10_000, "Push of one document in a fleet of 10,000 clusters, to the decision; floor: the fetch"},
	{"fleet: start to ready", 10_000, "Start of the server with that fleet; floor: reading its records"},
	{"fleet: memory at rest, resident", 10_000, "Memory at rest with that fleet"},
	{"idle memory of server and agents, proportional", fleetSize, "Memory of server and agents at rest, with a fleet of 10 clusters"},
}

func printHeadlines(out io.Writer, figures []figure) error {
	lines := []string{"| | Measured | Floor | Ratio |", "|---|--:|--:|--:|"}
	for _, h := range headlines {
		i := slices.IndexFunc(figures, func(f figure) bool { return f.Name == h.name && f.N == h.n })
		if i < 0 || len(lines) == 2+shownHeadlines {
			continue
		}
		cells := figures[i].cells()
		lines = append(lines, "| "+strings.Join([]string{h.words, cells[2], cells[3], cells[4]}, " | ")+" |")
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

func (f figure) cells() []string {
	cells := []string{f.Name, "", strings.TrimSpace(number(f.Value) + " " + f.Unit), "", ""}
	if f.N > 0 {
		cells[1] = fmt.Sprint(f.N)
	}
	if f.Floor != 0 {
		cells[3], cells[4] = strings.TrimSpace(number(f.Floor)+" "+f.Unit), fmt.Sprintf("%.2f", f.Ratio)
	}
	return cells
}

func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
