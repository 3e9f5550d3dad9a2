// Package authoring is what the authors of templates work with: it opens a
// template with its examples and tests, runs the tests, writes its page of
// documentation, the schema that editors complete cluster documents with, and
// the beginnings of a new template.
//
// It owns what drafts, test cases and that page are. The commands for authors of
// templates call it. It reads trees and returns text: it writes nothing but the golden
// files that it is asked to write, and never asks a server.
package authoring
