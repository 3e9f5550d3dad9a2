package webhook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/webhook"
)

func TestParseCommands(t *testing.T) {
	t.Parallel()
	plan := func(text string, clusters ...string) holdfast.Command {
		return holdfast.Command{Verb: holdfast.VerbPlan, Clusters: clusters, Text: text}
	}
	unknown := func(text string) holdfast.Command {
		return holdfast.Command{Verb: holdfast.VerbUnknown, Text: text}
	}
	tests := map[string]struct {
		body string
		want []holdfast.Command
	}{
		"none":                {"Looks good to me.", nil},
		"empty":               {"", nil},
		"plan":                {"/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"carriage returns":    {"Hello\r\n\r\n/holdfast plan\r\n", []holdfast.Command{plan("/holdfast plan")}},
		"verb in capitals":    {"/holdfast PLAN", []holdfast.Command{plan("/holdfast PLAN")}},
		"three spaces before": {"   /holdfast plan  ", []holdfast.Command{plan("/holdfast plan")}},
		"without a verb":      {"/holdfast", []holdfast.Command{{Verb: holdfast.VerbHelp, Text: "/holdfast"}}},
		"clusters":            {"/holdfast plan a b a", []holdfast.Command{plan("/holdfast plan a b a", "a", "b")}},
		"cluster flags":       {"/holdfast plan -c a --cluster b --cluster=c,d", []holdfast.Command{plan("/holdfast plan -c a --cluster b --cluster=c,d", "a", "b", "c", "d")}},
		"backticks":           {"/holdfast plan `prod-eu`", []holdfast.Command{plan("/holdfast plan `prod-eu`", "prod-eu")}},
		"force":               {"/holdfast unlock a --force", []holdfast.Command{{Verb: holdfast.VerbUnlock, Clusters: []string{"a"}, Force: true, Text: "/holdfast unlock a --force"}}},
		"a keyboard's dash":   {"/holdfast unlock —force", []holdfast.Command{{Verb: holdfast.VerbUnlock, Force: true, Text: "/holdfast unlock —force"}}},
		"all":                 {"/holdfast plan --all", []holdfast.Command{{Verb: holdfast.VerbPlan, All: true, Text: "/holdfast plan --all"}}},
		"all by a long dash":  {"/holdfast plan —all", []holdfast.Command{{Verb: holdfast.VerbPlan, All: true, Text: "/holdfast plan —all"}}},
		"all to be applied":   {"/holdfast apply --all", []holdfast.Command{unknown("/holdfast apply --all")}},
		"all and a cluster":   {"/holdfast plan a --all", []holdfast.Command{unknown("/holdfast plan a --all")}},
		"all with a value":    {"/holdfast plan --all=yes", []holdfast.Command{unknown("/holdfast plan --all=yes")}},
		"waive": {"/holdfast waive few-nodes --reason until the new region is up", []holdfast.Command{{
			Verb: holdfast.VerbWaive, Waiver: holdfast.Waiver{Waives: "few-nodes", Why: "until the new region is up"},
			Text: "/holdfast waive few-nodes --reason until the new region is up",
		}}},
		"waive of a cluster": {"/holdfast waive `a/b` -c prod —reason=\"agreed -c x\"", []holdfast.Command{{
			Verb: holdfast.VerbWaive, Clusters: []string{"prod"}, Waiver: holdfast.Waiver{Waives: "a/b", Why: "agreed -c x"},
			Text: "/holdfast waive `a/b` -c prod —reason=\"agreed -c x\"",
		}}},
		"waive without a reason": {"/holdfast waive few-nodes", []holdfast.Command{unknown("/holdfast waive few-nodes")}},
		"waive for no reason":    {"/holdfast waive few-nodes --reason ' '", []holdfast.Command{unknown("/holdfast waive few-nodes --reason ' '")}},
		"waive nothing":          {"/holdfast waive --reason x", []holdfast.Command{unknown("/holdfast waive --reason x")}},
		"misspelt":               {"/holdfast aply", []holdfast.Command{unknown("/holdfast aply")}},
		"unknown flag":           {"/holdfast apply --dry-run", []holdfast.Command{unknown("/holdfast apply --dry-run")}},
		"flag without a value":   {"/holdfast apply -c", []holdfast.Command{unknown("/holdfast apply -c")}},
		"flag for a value":       {"/holdfast apply -c --force", []holdfast.Command{unknown("/holdfast apply -c --force")}},
		"empty value":            {"/holdfast apply --cluster=", []holdfast.Command{unknown("/holdfast apply --cluster=")}},
		"another tool's":         {"/holdfastly apply\natlantis apply\n/hold fast", nil},
		"in a sentence":          {"Then write /holdfast apply", nil},
		"two":                    {"/holdfast plan\nand\n/holdfast cancel", []holdfast.Command{plan("/holdfast plan"), {Verb: holdfast.VerbCancel, Text: "/holdfast cancel"}}},

		"fenced":                     {"```\n/holdfast apply\n```\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"fenced with an info":        {"~~~sh\n/holdfast apply\n~~~", nil},
		"fence that does not end":    {"```\n/holdfast apply", nil},
		"shorter fence inside":       {"````\n```\n/holdfast apply\n````\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"other fence inside":         {"```\n~~~\n/holdfast apply\n```\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"fence with words after it":  {"```\n``` go\n/holdfast apply\n```", nil},
		"inline code is not a fence": {"```x``` is code\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"indented code":              {"text\n\n    /holdfast apply", nil},
		"indented by a tab":          {"\t/holdfast apply", nil},
		"quoted":                     {"> /holdfast apply\n>> /holdfast apply", nil},
		"quote that continues":       {"> as they said\n/holdfast apply\n\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"hidden":                     {"<!-- say:\n/holdfast apply\n-->\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"hidden in a line":           {"Hi <!-- x --> there <!--\n/holdfast apply", nil},
		"preformatted":               {"<pre>\n/holdfast apply\n</pre>\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"ours":                       {"<!-- holdfast:pull-request app#7 -->\n### Plan\n\n/holdfast apply", nil},
		"ours, quoted":               {"> <!-- holdfast:pull-request app#7 -->\n\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"in a details block":         {"<details>\n\n/holdfast apply\n\n</details>\n\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},

		"code over lines":          {"they wrote `this:\n/holdfast apply\nand more`\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"code that it begins with": {"`/holdfast` apply\n`/holdfast apply`", nil},
		"a blockquote in HTML":     {"<blockquote>\n\n/holdfast apply\n\n</blockquote>\n\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"code in HTML":             {"<code>\n\n/holdfast apply\n</code>\n\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"code in a line of HTML":   {"say <code>\n/holdfast apply\n</code>", nil},
		"struck out":               {"~~I said\n/holdfast apply\nand did not mean it~~", nil},
		"struck out in HTML":       {"<del>no:\n/holdfast apply\n</del>", nil},
		"emphasis":                 {"*as they say\n/holdfast apply\nand so on*", nil},
		"the title of a link":      {"[docs](https://example.com \"\n/holdfast apply\n\")", nil},
		"the title of a reference": {"[docs]\n\n[docs]: https://example.com '\n/holdfast apply\n'", nil},
		"the text of an image":     {"![\n/holdfast apply\n](https://example.com/x.png)", nil},
		"the text of a link":       {"[see\n/holdfast apply\n](https://example.com/x)", nil},
		"an attribute":             {"<a title=\"\n/holdfast apply\n\">x</a>", nil},
		"an attribute over blocks": {"<div title=\"\n\n/holdfast apply\n\n\">x</div>\n\n/holdfast plan", nil},
		"a quote in a list":        {"- > quoted\n/holdfast apply\n\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"a list":                   {"- done\n/holdfast apply\n\n  /holdfast apply", nil},
		"a table":                  {"/holdfast apply | x\n---|---\n/holdfast apply | y", nil},
		"a heading":                {"/holdfast apply\n---\n\n# /holdfast apply", nil},
		"a footnote":               {"See[^1].\n\n[^1]: they said\n/holdfast apply", nil},
		"a formula":                {"$$\n/holdfast apply\n$$", nil},
		"a script":                 {"<script>\n/holdfast apply\n</script>", nil},
		"a template":               {"<template>\n\n/holdfast apply\n\n</template>", nil},
		"a text area":              {"<textarea>\n\n/holdfast apply", nil},
		"with a backslash":         {"\\/holdfast apply", nil},
		"as entities":              {"&#47;holdfast apply", nil},
		"a declaration":            {"<!X\n/holdfast apply\n>", nil},
		"character data":           {"<![CDATA[\n/holdfast apply\n]]>", nil},
		"an instruction":           {"<?php\n/holdfast apply\n?>", nil},
		"after a name in brackets": {"Replace <name> by the cluster's.\n\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"a hard line break":        {"Please  \n/holdfast plan  \nthanks", []holdfast.Command{plan("/holdfast plan")}},
		"after a list":             {"- one\n- two\n\n/holdfast plan", []holdfast.Command{plan("/holdfast plan")}},
		"names with underscores":   {"/holdfast plan a_b_c -c d*e", []holdfast.Command{plan("/holdfast plan a_b_c -c d*e", "a_b_c", "d*e")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, webhook.ParseCommands(test.body)); diff != "" {
				t.Errorf("ParseCommands(%q) (-want +got):\n%s", test.body, diff)
			}
		})
	}
}

func TestParseCommandsIsBounded(t *testing.T) {
	t.Parallel()
	if got := webhook.ParseCommands(strings.Repeat("/holdfast plan\n", 10)); len(got) != 10 || got[9].Barred != "" {
		t.Errorf("got %+v of a comment with 10 commands, want them", got)
	}
	got := webhook.ParseCommands(strings.Repeat("/holdfast plan\n", 10) + strings.Repeat("/holdfast apply prod-eu\n", 90))
	if len(got) != 11 || got[9].Barred != "" || !strings.Contains(got[10].Barred, "first 10") || got[10].Text != "/holdfast apply prod-eu" {
		t.Errorf("got %+v of a comment with 100 commands, want ten and one that is refused for the others", got)
	}
	got = webhook.ParseCommands("/holdfast " + strings.Repeat("é", 6_000))
	if len(got) != 1 || len([]rune(got[0].Text)) != 500 {
		t.Errorf("got a text of %d characters, want 500", len([]rune(got[0].Text)))
	}
	got = webhook.ParseCommands(strings.Repeat("a long log\n", 10_000) + "/holdfast plan")
	if len(got) != 1 || !strings.Contains(got[0].Barred, "long") {
		t.Errorf("got %+v of a long comment, want one that is refused", got)
	}
}

func FuzzParseCommands(f *testing.F) {
	f.Add("/holdfast plan -c a\n```\n/holdfast apply\n```")
	f.Add("<!-- \n--> <pre>\n</pre>\n> x\n/holdfast apply --force")
	f.Add("~~~~\n~~~\n\t/holdfast")
	f.Add("/holdfast plan --all -c a\n/holdfast apply --all")
	f.Add("say `x\n/holdfast apply\n` [a](b \"\n/holdfast\n\")")
	f.Add("<details>\n\n/holdfast approve\n\n</details>\n<code>\n\n/holdfast plan")
	f.Add("- > a\n/holdfast apply\n\n1. b\n   /holdfast apply\n")
	f.Fuzz(func(t *testing.T, body string) {
		for way, quoted := range quotes(body) {
			if got := webhook.ParseCommands(quoted); len(got) > 0 {
				t.Errorf("%s, %q commands %+v", way, quoted, got)
			}
		}
		for _, command := range webhook.ParseCommands(body) {
			if command.All && (command.Verb != holdfast.VerbPlan || len(command.Clusters) > 0) {
				t.Errorf("ParseCommands(%q) = %+v", body, command)
			}
			if !strings.Contains(body, "/holdfast") || command.Verb == "" || len([]rune(command.Text)) > 500 {
				t.Errorf("ParseCommands(%q) = %+v", body, command)
			}
		}
	})
}

// quotes are ways to quote all of a comment.
func quotes(body string) map[string]string {
	body = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(body)
	fence := "```"
	for strings.Contains(body, fence) {
		fence += "`"
	}
	lines := func(before string) string {
		return before + strings.ReplaceAll(body, "\n", "\n"+before)
	}
	return map[string]string{
		"with angle brackets": lines("> "),
		"as code":             fence + "\n" + body + "\n" + fence,
		"indented":            "\n\n" + lines("    "),
	}
}

// BenchmarkParseCommands measures comments of the greatest length that somebody writes
// who wants to keep us busy, beside a plain one of that length.
func BenchmarkParseCommands(b *testing.B) {
	for name, text := range map[string]string{
		"plain": "some words ", "quotes": ">", "brackets": "[", "images": "![", "code": "`a ``", "stars": "*a_", "tags": "<b>",
		"divisions": "<div>\n", "lists": "- ", "links": "[a](", "tables": "|-", "references": "[a]: b\n", "entities": "&",
		"open comments": "<!--", "footnotes": "[^1]: ",
	} {
		body := "/holdfast plan\n\n" + strings.Repeat(text, 16000/len(text))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				webhook.ParseCommands(body)
			}
		})
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	written := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	comment := holdfast.Comment{
		ID: "4711", PullRequest: holdfast.PullRequestRef{Repo: "app", Number: 7}, Author: "alice",
		Body: "/holdfast plan\n/holdfast apply prod-eu", CreatedAt: written, UpdatedAt: written,
	}
	got := webhook.Commands(comment)
	want := []holdfast.Command{
		{
			ID: holdfast.CommandID("app", "4711", 0), PullRequest: comment.PullRequest, CommentID: "4711", Author: "alice", Said: written,
			Verb: holdfast.VerbPlan, Text: "/holdfast plan", Status: holdfast.CommandReceived, CreatedAt: written,
		},
		{
			ID: holdfast.CommandID("app", "4711", 1), PullRequest: comment.PullRequest, CommentID: "4711", Author: "alice", Said: written,
			Verb: holdfast.VerbApply, Clusters: []string{"prod-eu"}, Text: "/holdfast apply prod-eu",
			Status: holdfast.CommandReceived, CreatedAt: written.Add(time.Millisecond),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Commands (-want +got):\n%s", diff)
	}

	comment.UpdatedAt = written.Add(time.Minute)
	for editor, edited := range map[string]bool{"Alice": false, "mallory": true, "": true} {
		comment.Editor = editor
		got := webhook.Commands(comment)
		if len(got) != 1 || (got[0].Barred != "") != edited || edited && !strings.Contains(got[0].Barred, "edited") {
			t.Errorf("a comment that %q edited has %+v", editor, got)
			continue
		}
		got[0].Barred, got[0].Said = "", written
		if diff := cmp.Diff(want[:1], got); diff != "" {
			t.Errorf("of a comment that %q edited (-want +got):\n%s", editor, diff)
		}
	}
	comment.Bot = true
	if got := webhook.Commands(comment); got != nil {
		t.Errorf("a bot commanded %v", got)
	}
}
