package pages

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/server/pages/call"
	"github.com/holdfast-dev/holdfast/server/pages/words"
)

const (
	// linesOnPage is how many lines of a log a page begins with.
	linesOnPage = 400
	// linesMost bounds what one request for lines gets.
	linesMost = 2000
	// hitsMost is how many lines a search finds.
	hitsMost = 50
)

// Headers of an answer with a part of a log.
const (
	headerTotal = "Holdfast-Lines"
	headerLive  = "Holdfast-Live"
)

// logOf is the log of one attempt, as the API has it.
type logOf struct {
	*call.API
	run     string
	attempt int
}

// read is pour with what is after the last end of a line.
func (l logOf) read(offset int64, to *scanner) error {
	err := l.pour(offset, to)
	if err == nil {
		to.end()
	}
	return err
}

// pour passes the log from an offset on to a scanner, until that has enough.
func (l logOf) pour(offset int64, to *scanner) error {
	q := url.Values{"attempt": {strconv.Itoa(l.attempt)}, "offset": {strconv.FormatInt(offset, 10)}}
	err := l.Pour("/runs/"+url.PathEscape(l.run)+"/log", q, to)
	var problem *call.ProblemError
	if errors.As(err, &problem) {
		return call.Refusal(problem.Status, "the log cannot be read", "")
	}
	return err
}

// logView is the part of a run's log that its address asks for: from a line, around the
// first match of a search, or the end.
func (v *visit) logView(run v1.Run) (console.LogView, error) {
	live := run.Status == holdfast.RunRunning
	if run.Attempt == 0 {
		why := "No log yet: it starts when an agent claims the run."
		if run.Status == holdfast.RunCanceled {
			why = "No log: no agent has claimed the run."
		}
		return console.LogView{Empty: why, Run: run.ID}, nil
	}
	q := v.r.URL.Query()
	attempt := number(q.Get("attempt"), run.Attempt, run.Attempt)
	of := logOf{v.API, run.ID, attempt}
	view := console.LogView{
		There: true, Run: run.ID, Attempt: attempt, Attempts: attemptsOf(run, attempt), Live: live && attempt == run.Attempt, Query: q.Get("find"),
		Raw:    words.With(words.RunHref(run.ID)+"/log.txt", url.Values{"attempt": {strconv.Itoa(attempt)}}),
		Window: words.With(words.RunHref(run.ID)+"/lines", url.Values{"attempt": {strconv.Itoa(attempt)}}),
	}
	index, err := v.pages.logs.current(of)
	if err != nil {
		if call.Is(err, http.StatusNotFound) {
			return console.LogView{Empty: "The log is no longer kept.", Run: run.ID}, nil
		}
		return view, err
	}
	view.Total, view.Size = index.extent()
	from := max(1, view.Total-linesOnPage+1)
	if view.Query != "" {
		hits, err := index.find(of, view.Query)
		if err != nil {
			return view, err
		}
		for _, n := range hits[:min(len(hits), hitsMost)] {
			view.Hits = append(view.Hits, console.Option{Label: "line " + strconv.Itoa(n), Href: v.lineHref(run.ID, attempt, n, view.Query)})
		}
		view.HitsMore = len(hits) > hitsMost
		if len(hits) > 0 {
			from = max(1, hits[0]-10)
		}
	}
	view.First = number(q.Get("from"), from, max(1, view.Total))
	if view.Lines, err = index.lines(of, view.First, linesOnPage); err != nil {
		return view, err
	}
	mark(view.Lines, view.Query)
	view.Start = v.lineHref(run.ID, attempt, 1, "")
	if view.First > 1 {
		view.Before = v.lineHref(run.ID, attempt, max(1, view.First-linesOnPage), "")
	}
	if next := view.First + len(view.Lines); next <= view.Total {
		view.After = v.lineHref(run.ID, attempt, next, "")
		view.Latest = words.With(words.RunHref(run.ID), url.Values{"attempt": {strconv.Itoa(attempt)}}) + "#log-panel"
	}
	return view, nil
}

func (v *visit) lineHref(run string, attempt, line int, find string) string {
	q := url.Values{"attempt": {strconv.Itoa(attempt)}, "from": {strconv.Itoa(max(1, line-5))}}
	if find == "" {
		q.Set("from", strconv.Itoa(line))
	} else {
		q.Set("find", find)
	}
	if line == 1 {
		return words.With(words.RunHref(run), q) + "#log-panel"
	}
	return words.With(words.RunHref(run), q) + "#L" + strconv.Itoa(line)
}

// mark says which lines have what is searched for.
func mark(lines []console.LogLine, search string) {
	if search == "" {
		return
	}
	for i := range lines {
		lines[i].Hit = strings.Contains(strings.ToLower(unpainted(lines[i].Text)), strings.ToLower(search))
	}
}

// number reads a number from 1 to most; anything else becomes the given default.
func number(text string, unsaid, most int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return min(unsaid, most)
	}
	return min(n, most)
}

// logWindow answers with some lines of a log, for a page that is open.
func (p *Pages) logWindow(w http.ResponseWriter, r *http.Request) {
	v := p.visit(r)
	var run v1.Run
	if err := v.Get("/runs/"+url.PathEscape(r.PathValue("run")), nil, &run); err != nil {
		p.failPart(w, err)
		return
	}
	q := r.URL.Query()
	attempt := number(q.Get("attempt"), run.Attempt, max(1, run.Attempt))
	of := logOf{v.API, run.ID, attempt}
	index, err := p.logs.current(of)
	total, _ := index.extent()
	var lines []console.LogLine
	if err == nil {
		lines, err = index.lines(of, number(q.Get("from"), 1, total+1), number(q.Get("n"), linesOnPage, linesMost))
	}
	if err != nil {
		p.failPart(w, err)
		return
	}
	w.Header().Set(headerTotal, strconv.Itoa(total))
	w.Header().Set(headerLive, strconv.FormatBool(run.Status == holdfast.RunRunning && attempt == run.Attempt))
	p.respond(w, r, http.StatusOK, v.frame, console.LogWindowView{Lines: lines})
}

// failPart answers a script that asked for a part of a page.
func (p *Pages) failPart(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	for _, known := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusServiceUnavailable} {
		if call.Is(err, known) {
			status = known
		}
	}
	Guard(w.Header())
	http.Error(w, "no lines", status)
}

// rawLog answers with the log as it is: a text for other programs.
func (p *Pages) rawLog(w http.ResponseWriter, r *http.Request) {
	Guard(w.Header())
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="run-%s.log"`, strings.Map(plainName, r.PathValue("run"))))
	v := p.visit(r)
	if err := v.Stream("/runs/"+url.PathEscape(r.PathValue("run"))+"/log", call.Query("attempt", r.URL.Query().Get("attempt")), w); err != nil {
		panic(http.ErrAbortHandler) // cut off, so that nobody takes it for all of it
	}
}

func plainName(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
		return r
	}
	return -1
}

// unpainted is a line without the sequences that colour it.
func unpainted(line string) string {
	if !strings.ContainsRune(line, 0x1b) {
		return line
	}
	return painted.ReplaceAllString(line, "")
}
