// Package terragrunt owns what the configuration of a Terragrunt unit says before
// Terragrunt runs: which files it is made of, which module it is of, where its state is,
// and what of it a run would not do as written.
//
// Package templates calls it for each root module that has a terragrunt.hcl. It reads
// files of a tree and executes nothing: of Terragrunt's functions it knows those that
// tell paths, and what depends on others is unknown to it. What Terragrunt makes of the
// configuration is only known to the agent, which has Terragrunt render it.
package terragrunt
