// Command bench measures a Holdfast binary on this machine, over loopback only:
// how long a pull request takes from its delivery to its last status and
// comment, against the bare engine doing the same work; how many deliveries a
// second are accepted, against a bare HTTP server; and what an idle server
// costs. And how fleets of several sizes fare: what grows with the fleet, and what
// with the change; what a change of the template of all clusters takes. It prints a table and curves, and writes the figures as JSON.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// figure is a row of the results. Floor is what the machine does without
// Holdfast, measured in the same run; Ratio is Value divided by Floor. Both are
// zero where there is nothing to compare with.
type figure struct {
	Name  string  `json:"name"`
	N     int     `json:"n"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Floor float64 `json:"floor,omitempty"`
	Ratio float64 `json:"ratio,omitempty"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == bareArg {
		serveBare()
		return
	}
	syscall.Umask(0o022) // the agent may be another user, and has to read what we write
	if err := run(os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	binary := flags.String("holdfast", "bin/holdfast", "the binary to measure")
	results := flags.String("out", "", "file for the figures as JSON; empty writes none")
	markdown := flags.Bool("markdown", false, "only print the figures of -out as a Markdown table, without measuring")
	headlines := flags.Bool("headlines", false, "only print the few figures for README.md as a Markdown table, without measuring")
	rounds := flags.Int("rounds", 3, "how often each thing is measured; the median counts")
	sizes := flags.String("sizes", "1,10,50", "clusters of the pull requests")
	parallel := flags.Int("parallel", 4, "runs at once, for Holdfast and for the floor")
	fleets := flags.String("fleets", "100,1000,10000", "clusters of the fleets")
	huge := flags.Bool("hundred-thousand", false, "also a fleet of 100,000 clusters, which takes long")
	open := flags.String("open", "15,120,1000", "open pull requests during a push")
	big := flags.Int("big", 20, "clusters of each pull request next to a small one")
	only := flags.String("only", "", "measure one part only: pulls, providers, burst, neighbours, hanging, open, counts, hooks, strangers, fleets, days, templates")
	whole := flags.Bool("whole-days", false, "simulate whole days of large fleets, which takes long")
	keep := flags.Bool("keep", false, "keep the servers' folders, with their logs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *markdown || *headlines {
		figures, err := readFigures(*results)
		if err != nil {
			return err
		}
		if *headlines {
			return printHeadlines(out, figures)
		}
		return printMarkdown(out, figures)
	}
	path, err := filepath.Abs(*binary)
	if err != nil {
		return fmt.Errorf("find holdfast: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("find holdfast: %w", err)
	}
	b := &bench{binary: path, rounds: max(1, *rounds), parallel: *parallel, keep: *keep, whole: *whole, big: max(1, *big), log: os.Stderr}
	if b.sizes, err = sizesOf("-sizes", *sizes); err != nil {
		return err
	}
	if b.fleetSizes, err = sizesOf("-fleets", *fleets); err != nil {
		return err
	}
	if b.openSizes, err = sizesOf("-open", *open); err != nil {
		return err
	}
	if *huge {
		b.fleetSizes = append(b.fleetSizes, 100_000)
	}
	figures, err := b.measure(*only)
	if err != nil {
		return err
	}
	if err := writeFigures(*results, figures); err != nil {
		return err
	}
	if err := printTable(out, figures); err != nil {
		return err
	}
	curves, _ := curvesOf(figures)
	printCurves(out, curves)
	return nil
}

func sizesOf(flag, list string) ([]int, error) {
	var sizes []int
	for field := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s %q: not a list of numbers", flag, list)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

type bench struct {
	binary   string
	rounds   int
	parallel int
	sizes    []int
	keep     bool
	log      io.Writer // of progress
	began    time.Time

	fleetSizes []int
	openSizes  []int
	big        int  // clusters of a pull request next to a small one
	whole      bool // simulate whole days
}

// budget bounds the bench on a busy machine: beyond it each thing is measured
// once instead of several times.
const budget = 4 * time.Minute

// again reports whether there is another round, after those before.
func (b *bench) again(before int) bool {
	return before == 0 || before < b.rounds && time.Since(b.began) < budget
}

func (b *bench) measure(only string) ([]figure, error) {
	b.began = time.Now()
	fmt.Fprintf(b.log, "%d CPUs, %d runs at once, median of %d\n", runtime.NumCPU(), b.parallel, b.rounds)
	var figures []figure
	for _, part := range []struct {
		name    string
		measure func(*stage) []figure
	}{
		{"pulls", func(s *stage) []figure { return b.pullRequests(s, plainModule) }},
		{"providers", func(s *stage) []figure { return b.pullRequests(s, providerModule) }},
		{"burst", b.burst},
		{"neighbours", b.neighbours},
		{"hanging", b.hanging},
		{"open", b.open},
		{"counts", b.counts},
		{"hooks", b.deliveries},
		{"strangers", b.strangers},
		{"fleets", b.fleets},
		{"days", b.days},
		{"templates", b.blueprints},
	} {
		if only != "" && only != part.name {
			continue
		}
		err := onStage(b, func(s *stage) { figures = append(figures, part.measure(s)...) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if len(figures) == 0 {
		return nil, fmt.Errorf("-only %q: there is no such part", only)
	}
	fmt.Fprintf(b.log, "measured in %s\n", time.Since(b.began).Round(time.Second))
	return figures, nil
}

// median returns the middle of the values, of an even number the lower one.
func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}

// against completes a figure by what it is compared with.
func (f figure) against(floor float64) figure {
	f.Floor, f.Ratio = floor, f.Value/floor
	return f
}

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
	if path == "" {
		return nil
	}
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

func printTable(out io.Writer, figures []figure) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tn\tmeasured\tfloor\tratio")
	for _, f := range figures {
		fmt.Fprintln(w, strings.Join(f.cells(), "\t"))
	}
	return w.Flush()
}

func printMarkdown(out io.Writer, figures []figure) error {
	curves, rest := curvesOf(figures)
	var lines []string
	if len(rest) > 0 {
		lines = append(lines, "| What | N | Measured | Floor | Ratio |", "|---|--:|--:|--:|--:|")
	}
	for _, f := range rest {
		lines = append(lines, "| "+strings.Join(f.cells(), " | ")+" |")
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

// headlines are the figures that README.md shows, in its words.
var headlines = []struct {
	name  string
	n     int
	words string
}{
	{"pull request, two providers", 50, "Plan a pull request of 50 clusters, two providers each"},
	{"fleet: push of one document to decision", 10_000, "Push of one document in a fleet of 10,000 clusters, to the decision; floor: the fetch"},
	{"fleet: get clusters of a project", 10_000, "List the clusters of a project in that fleet; floor: the query"},
	{"fleet: start to ready", 10_000, "Start of the server with that fleet; floor: reading its records"},
	{"fleet: memory at rest, resident", 10_000, "Memory at rest with that fleet"},
}

func printHeadlines(out io.Writer, figures []figure) error {
	lines := []string{"| | Measured | Floor | Ratio |", "|---|--:|--:|--:|"}
	for _, h := range headlines {
		i := slices.IndexFunc(figures, func(f figure) bool { return f.Name == h.name && f.N == h.n })
		if i < 0 {
			return fmt.Errorf("there is no figure %q for %d: measure all sizes first", h.name, h.n)
		}
		cells := figures[i].cells()
		lines = append(lines, "| "+strings.Join([]string{h.words, cells[2], cells[3], cells[4]}, " | ")+" |")
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

func (f figure) cells() []string {
	cells := []string{f.Name, "", number(f.Value) + " " + f.Unit, "", ""}
	if f.N > 0 {
		cells[1] = fmt.Sprint(f.N)
	}
	if f.Floor != 0 {
		cells[3], cells[4] = number(f.Floor)+" "+f.Unit, fmt.Sprintf("%.2f", f.Ratio)
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
