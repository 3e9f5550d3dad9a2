package words

import (
	"net/url"
	"strconv"
	"strings"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/console"
)

// ClusterHref is the page of a cluster.
func ClusterHref(name string) string { return "/clusters/" + url.PathEscape(name) }

// RunHref is the page of a run; empty, without one.
func RunHref(id string) string {
	if id == "" {
		return ""
	}
	return "/runs/" + url.PathEscape(id)
}

// PullRequestHref is the page of a pull request.
func PullRequestHref(ref v1.PullRequestRef) string {
	return "/pullrequests/" + strconv.Itoa(ref.Number) + "/" + (&url.URL{Path: ref.Repo}).EscapedPath()
}

// With is an address with a query, without what is empty.
func With(path string, q url.Values) string {
	kept := url.Values{}
	for name, values := range q {
		for _, value := range values {
			if value != "" {
				kept.Add(name, value)
			}
		}
	}
	if len(kept) == 0 {
		return path
	}
	return path + "?" + kept.Encode()
}

// DocumentOf is what defines a cluster: what is desired, or what was applied last.
func DocumentOf(c v1.Cluster) v1.Document {
	if c.Desired.Document.Name == "" {
		return c.Applied.Document
	}
	return c.Desired.Document
}

// Sentence begins a text with a capital letter.
func Sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Unquoted removes Markdown marks from our own texts.
func Unquoted(s string) string { return strings.ReplaceAll(s, "`", "") }

// CountPills say what a plan changes, the dangerous first.
func CountPills(c v1.Counts) []console.CountPill {
	var pills []console.CountPill
	for _, one := range []console.CountPill{
		{Glyph: "±", Word: "replace", Tone: "violet", Count: c.Replace},
		{Glyph: "−", Word: "delete", Tone: "del", Count: c.Delete},
		{Glyph: "−", Word: "forget", Count: c.Forget},
		{Glyph: "~", Word: "change", Count: c.Update},
		{Glyph: "+", Word: "add", Tone: "add", Count: c.Create},
		{Glyph: "→", Word: "import", Count: c.Import},
		{Glyph: "→", Word: "move", Count: c.Move},
	} {
		if one.Count > 0 {
			pills = append(pills, one)
		}
	}
	return pills
}

// Sum is what two plans change together.
func Sum(a, b v1.Counts) v1.Counts {
	return v1.Counts{
		Create: a.Create + b.Create, Update: a.Update + b.Update, Replace: a.Replace + b.Replace, Delete: a.Delete + b.Delete, Import: a.Import + b.Import,
		Move: a.Move + b.Move, Forget: a.Forget + b.Forget, Outputs: a.Outputs + b.Outputs,
	}
}
