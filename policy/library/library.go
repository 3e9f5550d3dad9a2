package library

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/policy"
)

//go:embed policies
var files embed.FS

// from is what the paths of the shipped policies are shown behind, so that they are not taken
// for files of an organisation.
const from = "holdfast"

// Sources are the files of the shipped policies, without tests, in order.
func Sources() []policy.Source {
	return slices.DeleteFunc(WithTests(), func(s policy.Source) bool { return policy.IsTest(s.Path) })
}

// WithTests are the files of the shipped policies and of their tests.
func WithTests() []policy.Source {
	var all []policy.Source
	err := fs.WalkDir(files, "policies", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		all = append(all, policy.Source{From: from, Path: strings.TrimPrefix(name, "policies/"), Text: string(text)})
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("read embedded policies: %v", err)) // they are in the program
	}
	return all
}

// Page is the reference page of the shipped policies, in Markdown.
func Page() string {
	var b strings.Builder
	b.WriteString("# The policies that Holdfast ships\n\n<!-- Written by `make docs` from policy/library. -->\n\n" +
		"They are evaluated together with your own policies if holdfast.yaml enables them ([policies](policies.md)).\n" +
		"They cover the resources of the [library](templates.md), and a few others of the same providers.\n\n" +
		"| Policy | Severity | Requirement |\n|---|---|---|\n")
	policies := policy.Compile(Sources(), nil).Policies()
	for _, p := range policies {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", p.ID, p.ID, p.Severity, p.Title)
	}
	for _, p := range policies {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n%s\n", p.ID, p.Title, wrapped(p))
	}
	return b.String()
}

// wrapped is what a policy says of itself, in lines of readable length.
func wrapped(p holdfast.Policy) string {
	var b strings.Builder
	length := 0
	for i, word := range strings.Fields(p.Description) {
		switch {
		case i == 0:
		case length+1+len(word) > 118:
			b.WriteByte('\n')
			length = 0
		default:
			b.WriteByte(' ')
			length++
		}
		b.WriteString(word)
		length += len(word)
	}
	return b.String()
}
