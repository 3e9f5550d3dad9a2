// Package config reads holdfast.yaml: one file, strictly. Unknown keys, wrong
// types and contradictions are faults at their line and column, all reported at
// once. Secrets are in files or in the environment, never in holdfast.yaml.
//
// It owns the keys with their defaults, checks and words: docs/config.md is made
// from the tags of its structs. Commands read it, serve wires what it says. It opens
// no connection and starts nothing; reading a secret is the last thing that it does.
package config
