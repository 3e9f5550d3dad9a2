// Package library is the policies that Holdfast ships, which a fleet or a project switches on.
//
// It owns their files (Sources) and the page that describes them (Page). Whoever evaluates
// policies adds them to those of an organisation. Its tests, in Rego, are next to them.
package library
