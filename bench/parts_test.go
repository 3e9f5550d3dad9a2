package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain makes the program of the tests an agent that only starts something, as main does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == startsArg {
		exitOn(measureStarts(context.Background(), os.Args[2:], os.Stdout))
		return
	}
	os.Exit(m.Run())
}

// calm is a machine on which nobody else does anything.
func calm() (load, error) { return load{}, nil }

// busier is a machine on which others use that share of the processors all the time.
func busier(share float64) func() (load, error) {
	var l load
	return func() (load, error) {
		l.capacity, l.busy = l.capacity+10_000, l.busy+int64(share*10_000)
		return l, nil
	}
}

// measured measures parts and returns what is in the file then, one figure a line.
func measured(t *testing.T, b *bench, former []figure, parts ...part) (written, said string, err error) {
	t.Helper()
	var log strings.Builder
	b.log, b.repeat = &log, 3
	outcomes, err := b.measure(t.Context(), parts)
	path := filepath.Join(t.TempDir(), "results.json")
	if err := writeFigures(path, merged(former, outcomes, parts)); err != nil {
		t.Fatal(err)
	}
	figures, readErr := readFigures(path)
	if readErr != nil {
		t.Fatal(readErr)
	}
	var table strings.Builder
	if err := errors.Join(printMarkdown(&table, figures), printTable(&log, outcomes)); err != nil {
		t.Fatal(err)
	}
	return table.String(), log.String(), err
}

func row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

func TestMeasuredFiguresReplaceFormerOnes(t *testing.T) {
	t.Parallel()
	former := []figure{
		{Part: "a", Name: "plan", N: 1, Value: 7, Unit: "s", Measured: "2020-01-01"},
		{Part: "a", Name: "plan", N: 100, Value: 7, Unit: "s", Measured: "2020-01-01"},
		{Part: "a", Name: "gone", N: 1, Value: 7, Unit: "s", Measured: "2020-01-01"},
		{Part: "b", Name: "other", N: 1, Value: 7, Unit: "s", Measured: "2020-01-01"},
	}
	a := part{"a", time.Hour, func(s *stage) {
		s.add(figure{Name: "plan", N: 1, Value: 8, Unit: "s"}, figure{Name: "apply", N: 1, Value: 9, Unit: "s"})
	}}
	b := part{"b", time.Hour, func(s *stage) { s.add(figure{Name: "other", N: 1, Value: 3, Unit: "s"}) }}
	today := time.Now().Format(time.DateOnly)
	written, _, err := measured(t, &bench{loads: busier(quiet)}, former, a, b)
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(written, "|---|---|\n")
	want := row("plan", "1", "8.00 s", "", "", "", today) + // measured again
		row("plan", "100", "7.00 s", "", "", "", "2020-01-01") + // a size that was not measured
		row("apply", "1", "9.00 s", "", "", "", today) +
		row("other", "1", "3.00 s", "", "", "", today)
	if got != want {
		t.Errorf("written:\n%swant:\n%s", got, want)
	}
}

func TestFiguresOfOneDisturbedPartStay(t *testing.T) {
	t.Parallel()
	former := []figure{{Part: "a", Name: "plan", N: 1, Value: 7, Unit: "s", Measured: "2020-01-01"}}
	a := part{"a", time.Hour, func(s *stage) { s.add(figure{Name: "plan", N: 1, Value: 8, Unit: "s"}) }}
	written, said, err := measured(t, &bench{loads: busier(0.061)}, former, a)
	if err != nil {
		t.Fatal(err)
	}
	if want := row("plan", "1", "7.00 s", "", "", "", "2020-01-01"); !strings.HasSuffix(written, want) || strings.Contains(written, "8.00") {
		t.Errorf("written:\n%swant:\n%s", written, want)
	}
	if !strings.Contains(said, "a: DISTURBED: others used 6.1 % of the processors, and at most 5 % are quiet; its figures are not written\n") {
		t.Errorf("the log says %s", said)
	}
	if i := strings.Index(said, "8.00 s"); i < 0 || !strings.Contains(said[i:], "disturbed\n") {
		t.Errorf("the table does not mark what is not written: %s", said)
	}
}

func TestPartIsCutAtItsLimit(t *testing.T) {
	t.Parallel()
	former := []figure{
		{Part: "a", Name: "plan", N: 1, Value: 7, Unit: "s", Measured: "2020-01-01"},
		{Part: "a", Name: "apply", N: 1, Value: 7, Unit: "s", Measured: "2020-01-01"},
	}
	a := part{"a", time.Nanosecond, func(s *stage) {
		s.add(figure{Name: "plan", N: 1, Value: 8, Unit: "s"})
		s.within(time.Hour, "the apply is over", func() bool { return false })
		s.add(figure{Name: "apply", N: 1, Value: 8, Unit: "s"})
	}}
	b := part{"b", time.Hour, func(s *stage) { s.add(figure{Name: "other", N: 1, Value: 3, Unit: "s"}) }}
	today := time.Now().Format(time.DateOnly)
	written, said, err := measured(t, &bench{loads: calm}, former, a, b)
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(written, "|---|---|\n")
	want := row("plan", "1", "8.00 s", "", "", "", today) +
		row("apply", "1", "7.00 s", "", "", "", "2020-01-01") +
		row("other", "1", "3.00 s", "", "", "", today)
	if got != want {
		t.Errorf("written:\n%swant:\n%s", got, want)
	}
	if !strings.Contains(said, "a: CUT after ") || !strings.Contains(said, "waited in vain until the apply is over") {
		t.Errorf("the log says %s", said)
	}
}

func TestPartThatFailsLeavesTheOthers(t *testing.T) {
	t.Parallel()
	former := []figure{{Part: "a", Name: "plan", N: 1, Value: 7, Unit: "s", Measured: "2020-01-01"}}
	a := part{"a", time.Hour, func(s *stage) {
		s.add(figure{Name: "plan", N: 1, Value: 8, Unit: "s"})
		s.Fatal("the plan failed")
	}}
	b := part{"b", time.Hour, func(s *stage) { s.add(figure{Name: "other", N: 1, Value: 3, Unit: "s"}) }}
	written, said, err := measured(t, &bench{loads: calm}, former, a, b)
	if err == nil || err.Error() != "a: the plan failed" {
		t.Errorf("the error is %v", err)
	}
	if !strings.Contains(written, "7.00 s") || strings.Contains(written, "8.00 s") || !strings.Contains(written, "3.00 s") {
		t.Errorf("written: %s", written)
	}
	if !strings.Contains(said, "a: FAILED after ") {
		t.Errorf("the log says %s", said)
	}
}

func TestAllPartsEndInTime(t *testing.T) {
	t.Parallel()
	b := &bench{log: io.Discard, loads: calm}
	if wholeLimit >= 15*time.Minute {
		t.Errorf("all parts together may take %s", wholeLimit)
	}
	b.began = time.Now()
	var all time.Duration
	for _, p := range b.parts() {
		if got := b.allowed(p); got != p.limit || got <= 0 || got > wholeLimit/4 {
			t.Errorf("%s may take %s, and its limit is %s", p.name, got, p.limit)
		}
		all += p.limit
	}
	if all > wholeLimit {
		t.Errorf("the limits of the parts are %s together, and all may take %s", all, wholeLimit)
	}
	b.began = time.Now().Add(-wholeLimit)
	o := b.measurePart(t.Context(), part{"late", time.Hour, func(*stage) { t.Error("a part begins after the end") }})
	if o.cut == "" || o.err != nil || len(o.figures) > 0 {
		t.Errorf("a part after the end is %+v", o)
	}
	for name, args := range map[string][]string{"a limit": {"-limit", "1h"}, "a huge fleet": {"-hundred-thousand"}} {
		b := &bench{began: b.began}
		if _, err := b.parse(args); err != nil {
			t.Fatal(err)
		}
		if got := b.allowed(part{"long", time.Minute, nil}); got < time.Hour {
			t.Errorf("with %s a part may take %s", name, got)
		}
	}
}

// The page says of each part how long it may take.
func TestPageShowsLimits(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]string)
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if len(cells) == 1 {
			continue
		}
		names := strings.Split(strings.TrimPrefix(cells[0], "| "), ", ")
		limits := strings.Split(strings.Trim(cells[len(cells)-1], " |\n"), ", ")
		for i := range min(len(names), len(limits)) {
			rows[names[i]] = limits[i]
		}
	}
	for _, p := range new(bench).parts() {
		if got, want := rows["`"+p.name+"`"], fmt.Sprintf("%.0f s", p.limit.Seconds()); got != want {
			t.Errorf("README.md says that %s may take %q, and it may take %q", p.name, got, want)
		}
	}
}

func TestRoundsEndWithTheTime(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		want []int
	}{"time enough": {t.Context(), []int{0, 1, 2}}, "no time": {over, []int{0}}} {
		s := &stage{bench: &bench{repeat: 3, log: io.Discard}, ctx: test.ctx}
		if got := slices.Collect(s.rounds()); !slices.Equal(got, test.want) {
			t.Errorf("%s: rounds %v, want %v", name, got, test.want)
		}
	}
}

// What a command has started ends with its part.
func TestCommandsEndWithThePart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := &stage{ctx: ctx}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := s.command("sh", "-c", "sleep 3600 & echo started; wait")
	cmd.Stdout = write
	if err := errors.Join(cmd.Start(), write.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(read, make([]byte, len("started\n"))); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("a command that was ended ended well")
	}
	if _, err := io.ReadAll(read); err != nil { // returns when nobody has the other end
		t.Error(err)
	}
}

func TestFloorIsTheBetterOne(t *testing.T) {
	t.Parallel()
	b := &bench{parallel: 4}
	for n, want := range map[int][]int{1: {1}, 2: {2}, 3: {2, 3}, 50: {2, 4}} {
		if got := b.widths(n); !slices.Equal(got, want) {
			t.Errorf("%d root modules are tried with %v at once, want %v", n, got, want)
		}
	}
	took := map[int]time.Duration{2: 5 * time.Second, 4: 7 * time.Second}
	least, best := fastest(b.widths(50), func(width int) time.Duration { return took[width] })
	if least != 5*time.Second || best != 2 {
		t.Errorf("the floor is %s with %d at once", least, best)
	}
	took[2] = 9 * time.Second
	if least, best = fastest(b.widths(50), func(width int) time.Duration { return took[width] }); least != 7*time.Second || best != 4 {
		t.Errorf("the floor is %s with %d at once", least, best)
	}
}

func TestPullRequestsAreMediansAgainstTheirFloors(t *testing.T) {
	t.Parallel()
	if got := (pullSize{}).figures(plainModule, 10); len(got) > 0 {
		t.Errorf("nothing was measured, and the figures are %v", got)
	}
	at := func(seconds ...int) pullRound {
		var d []time.Duration
		for _, s := range seconds {
			d = append(d, time.Duration(s)*time.Second)
		}
		return pullRound{planFloor: d[0], applyFloor: d[1], first: d[2], later: d[3], applied: d[4]}
	}
	size := pullSize{rounds: []pullRound{at(10, 20, 30, 5, 10), at(10, 20, 10, 4, 40), at(12, 18, 20, 6, 30)}}
	want := []figure{
		{Name: "pull request, terraform_data, first", N: 10, Unit: "s", Value: 20, Floor: 10, Ratio: 2},
		{Name: "pull request, terraform_data", N: 10, Unit: "s", Value: 5, Floor: 10, Ratio: 0.5},
		{Name: "apply, terraform_data", N: 10, Unit: "s", Value: 30, Floor: 20, Ratio: 1.5},
	}
	if got := size.figures(plainModule, 10); !slices.Equal(got, want) {
		t.Errorf("figures %v, want %v", got, want)
	}
}

func TestProcessorTimeOfManyAgainstFew(t *testing.T) {
	t.Parallel()
	few := usage{server: 40 * time.Millisecond, agents: 60 * time.Millisecond, started: time.Second}.plus(usage{server: 60 * time.Millisecond, agents: 40 * time.Millisecond}).by(20)
	figures := perCluster(planTime, 10, few, nil)
	many := usage{server: 4 * time.Second, agents: 2 * time.Second, started: 30 * time.Second}.since(usage{server: time.Second}).by(500)
	figures = append(figures, perCluster(planTime, 500, many, figures)...)
	want := []string{
		"processor time of a plan: server and agents | 10 | 10.0 ms |  |  | ≤ 10 ms met",
		"processor time of a plan: server | 10 | 5.00 ms |  |  | ",
		"processor time of a plan: agents | 10 | 5.00 ms |  |  | ",
		"processor time of a plan: sandboxes and engines | 10 | 50.0 ms |  |  | ",
		"processor time of a plan: server and agents | 500 | 10.0 ms | 10.0 ms | 1.00 | ≤ 10 ms met, ≤ 1.20 met",
		"processor time of a plan: server | 500 | 6.00 ms | 5.00 ms | 1.20 | ",
		"processor time of a plan: agents | 500 | 4.00 ms | 5.00 ms | 0.80 | ",
		"processor time of a plan: sandboxes and engines | 500 | 60.0 ms | 50.0 ms | 1.20 | ",
	}
	expectRows(t, figures, want)
}

// expectRows compares the rows that figures have in a table.
func expectRows(t *testing.T, figures []figure, want []string) {
	t.Helper()
	var got []string
	for _, f := range figures {
		got = append(got, strings.Join(append(f.cells(), f.aims()), " | "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("figures:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What plans took counts, whether or not the part is cut before an apply has ended.
func TestPlansCountWithoutApplies(t *testing.T) {
	t.Parallel()
	var plan, apply spent
	plan.add(10, usage{server: 40 * time.Millisecond, agents: 60 * time.Millisecond}, 2*time.Second)
	plan.add(10, usage{server: 60 * time.Millisecond, agents: 40 * time.Millisecond}, time.Second)
	want := []string{
		"processor time of a plan: server and agents | 10 | 10.0 ms |  |  | ≤ 10 ms met",
		"processor time of a plan: server | 10 | 5.00 ms |  |  | ",
		"processor time of a plan: agents | 10 | 5.00 ms |  |  | ",
		"processor time of a plan: sandboxes and engines | 10 | 0.00 ms |  |  | ",
		"last plan of a pull request, from its end to comment and status | 10 | 2.00 s |  |  | ≤ 2 s met",
	}
	expectRows(t, append(plan.figures(planTime, planShown, 10, nil), apply.figures(applyTime, applyShown, 10, nil)...), want)
}

// How soon an end is shown counts from the last one that the server has logged.
func TestSinceLastEnd(t *testing.T) {
	t.Parallel()
	const log = `time=2026-07-01T12:00:00.000Z level=INFO msg="attempt has ended" run=run-1
time=2026-07-01T12:00:01.500Z level=INFO msg="attempt has ended" run=run-2
time=2026-07-01T12:00:02.000Z level=INFO msg=decided cluster="attempt has ended"
`
	now := time.Date(2026, 7, 1, 12, 0, 2, 0, time.UTC)
	for text, want := range map[string]time.Duration{log: 500 * time.Millisecond, "": 0, `time=noon level=INFO msg="attempt has ended"`: 0} {
		if got := sinceLastEnd(text, now); got != want {
			t.Errorf("%s before, want %s, of %q", got, want, text)
		}
	}
}

// Each mode that this machine has is measured as its agents have it.
func TestStartsAreMeasuredInEveryMode(t *testing.T) {
	t.Parallel()
	b := &bench{log: t.Output()}
	s, err := onStage(t.Context(), b, func(s *stage) { s.startsOf(1) })
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{"none"}
	if os.Geteuid() == 0 {
		wanted = []string{"slots", "range", "users", "none"}
	}
	for _, mode := range wanted {
		i := slices.IndexFunc(s.figures, func(f figure) bool { return f.Name == "start in a sandbox, "+mode })
		if i < 0 || s.figures[i].Value <= 0 || s.figures[i].Floor <= 0 {
			t.Errorf("mode %s is not measured: %v", mode, s.figures)
		}
	}
}

// Each aim is of a figure.
func TestAimsAreOfFigures(t *testing.T) {
	t.Parallel()
	figures, err := readFigures("results.json")
	if err != nil {
		t.Fatal(err)
	}
	measured := pullSize{rounds: make([]pullRound, 1)}
	figures = slices.Concat(figures, measured.figures(plainModule, 10), measured.figures(providerModule, 10),
		perCluster(planTime, 10, usage{}, nil), perCluster(applyTime, 10, usage{}, nil))
	known := map[string]bool{besideBigOnes: true, pushWithOpen: true, planShown: true, applyShown: true, "pull request" + startsPerCluster: true, "merge" + startsPerCluster: true}
	for _, f := range figures {
		known[f.Name] = true
	}
	for _, a := range aims {
		if !known[a.name] {
			t.Errorf("there is no figure %q", a.name)
		}
	}
}

func TestAims(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]figure{
		"≤ 0.85 met":              {Name: "pull request, terraform_data", N: 10, Floor: 1, Ratio: 0.8504},
		"≤ 0.85 missed":           {Name: "pull request, terraform_data", N: 50, Floor: 1, Ratio: 0.86},
		"":                        {Name: "pull request, terraform_data", N: 1, Floor: 1, Ratio: 2},
		"≤ 0.62 missed":           {Name: "pull request, two providers", N: 1, Floor: 1, Ratio: 0.64},
		"≤ 1.00 met":              {Name: "apply, two providers", N: 50, Floor: 1, Ratio: 1},
		"≤ 15 ms missed":          {Name: "processor time of an apply: server and agents", N: 10, Value: 15.2, Unit: "ms"},
		"≤ 15 ms met, ≤ 1.20 met": {Name: "processor time of an apply: server and agents", N: 500, Value: 14, Unit: "ms", Floor: 13, Ratio: 1.08},
		"≤ 3 met":                 {Name: "merge: engine starts per cluster", N: 10, Value: 3},
		"≤ 1024 MiB met":          {Name: "fleet: memory at rest, resident", N: 10_000, Value: 200, Unit: "MiB"},
		"≤ 3.00 met":              {Name: besideBigOnes, N: 20, Floor: 1, Ratio: 2.9},
		"≤ 1.20 missed":           {Name: pushWithOpen, N: 1000, Value: 50, Unit: "ms", Floor: 10, Ratio: 5},
	} {
		if got := f.aims(); got != want {
			t.Errorf("%s of %d: %q, want %q", f.Name, f.N, got, want)
		}
	}
}
