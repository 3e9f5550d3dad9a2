// Command bench measures a Holdfast binary on this machine, over loopback only:
// how long a pull request takes from its delivery to its last status and
// comment, against the bare engine doing the same work; how many deliveries a
// second are accepted, against a bare HTTP server; and what an idle server
// costs. And how fleets of several sizes fare: what grows with the fleet, and what
// with the change; what a change of the template of all clusters takes. It prints a table and curves, and writes the figures as JSON.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == bareArg {
		serveBare()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == startsArg {
		exitOn(measureStarts(ctx, os.Args[2:], os.Stdout))
		return
	}
	syscall.Umask(0o022) // the agent may be another user, and has to read what we write
	exitOn(run(ctx, os.Args[1:], os.Stdout))
}

func exitOn(err error) {
	if err == nil {
		return
	}
	if !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	os.Exit(1)
}

// bench is how is measured.
type bench struct {
	binary   string
	repeat   int // rounds of each thing, if there is time for them
	parallel int
	sizes    []int
	keep     bool
	log      io.Writer // of progress
	loads    func() (load, error)
	began    time.Time
	limit    time.Duration // of each part; zero means its own

	fleetSizes   []int
	repositories int // that define the clusters of a fleet
	openSizes    []int
	cpuSizes     []int
	big          int  // clusters of a pull request next to a small one
	huge         bool // a fleet of 100,000 clusters, too
	whole        bool // simulate whole days
}

// options are what is asked for besides how it is measured.
type options struct {
	results, only       string
	markdown, headlines bool
}

func run(ctx context.Context, args []string, out io.Writer) error {
	b := &bench{log: os.Stderr, loads: machineLoad}
	asked, err := b.parse(args)
	if err != nil {
		return err
	}
	former, err := readFigures(asked.results)
	if err != nil && (asked.headlines || asked.markdown || !errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	switch {
	case asked.headlines:
		return printHeadlines(out, former)
	case asked.markdown:
		return printMarkdown(out, former)
	}
	parts := b.parts()
	if asked.only != "" {
		parts = slices.DeleteFunc(parts, func(p part) bool { return p.name != asked.only })
	}
	if len(parts) == 0 {
		return fmt.Errorf("-only %q: there is no such part", asked.only)
	}
	if err := b.find(); err != nil {
		return err
	}
	if err := adoptOrphans(); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	outcomes, failed := b.measure(ctx, parts)
	if asked.results != "" {
		if err := writeFigures(asked.results, merged(former, outcomes, b.parts())); err != nil {
			return errors.Join(failed, err)
		}
	}
	if err := printTable(out, outcomes); err != nil {
		return errors.Join(failed, err)
	}
	var figures []figure
	for _, o := range outcomes {
		figures = append(figures, o.figures...)
	}
	curves, _ := curvesOf(figures)
	printCurves(out, curves)
	return failed
}

// parse reads the command line.
func (b *bench) parse(args []string) (options, error) {
	var o options
	var names []string
	for _, p := range b.parts() {
		names = append(names, p.name)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&b.binary, "holdfast", "bin/holdfast", "the binary to measure")
	flags.StringVar(&o.results, "out", "", "file for the figures as JSON; empty writes none")
	flags.BoolVar(&o.markdown, "markdown", false, "only print the figures of -out as a Markdown table, without measuring")
	flags.BoolVar(&o.headlines, "headlines", false, "only print the few figures for README.md as a Markdown table, without measuring")
	flags.StringVar(&o.only, "only", "", "measure one part only: "+strings.Join(names, ", "))
	flags.IntVar(&b.repeat, "rounds", 3, "how often each thing is measured, if the part's limit leaves time; the median counts")
	flags.DurationVar(&b.limit, "limit", 0, "time limit of each part; 0: its own, and 14 minutes for all of them")
	flags.IntVar(&b.parallel, "parallel", 4, "runs at once, for Holdfast and for the floor")
	sizes := flags.String("sizes", "1,10,50", "clusters of the pull requests")
	processors := flags.String("cpu", "10,500", "clusters of the pull requests whose processor time is measured")
	fleets := flags.String("fleets", "100,1000,10000", "clusters of the fleets")
	flags.IntVar(&b.repositories, "repositories", 50, "repositories that define the clusters of a fleet")
	flags.BoolVar(&b.huge, "hundred-thousand", false, "also a fleet of 100,000 clusters, which takes longer than all the rest")
	open := flags.String("open", "15,120,1000", "open pull requests during a push")
	flags.IntVar(&b.big, "big", 20, "clusters of each pull request next to a small one")
	flags.BoolVar(&b.whole, "whole-days", false, "simulate whole days of large fleets, which takes long")
	flags.BoolVar(&b.keep, "keep", false, "keep the servers' folders, with their logs")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	b.repeat, b.parallel, b.big, b.repositories = max(1, b.repeat), max(1, b.parallel), max(1, b.big), max(1, b.repositories)
	for _, list := range []struct {
		flag, value string
		to          *[]int
	}{
		{"-sizes", *sizes, &b.sizes},
		{"-cpu", *processors, &b.cpuSizes},
		{"-fleets", *fleets, &b.fleetSizes},
		{"-open", *open, &b.openSizes},
	} {
		var err error
		if *list.to, err = sizesOf(list.flag, list.value); err != nil {
			return o, err
		}
	}
	if b.huge {
		b.fleetSizes = append(b.fleetSizes, 100_000)
	}
	return o, nil
}

// find finds the binary.
func (b *bench) find() error {
	path, err := filepath.Abs(b.binary)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return fmt.Errorf("find holdfast: %w", err)
	}
	b.binary = path
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

// median returns the middle of the values, of an even number the lower one.
func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}
