// Package terragrunt owns how an agent has Terragrunt make the root module of a unit: its
// command line and environment, what its answers mean, and the bundle that a root module
// becomes once it is made.
//
// An attempt calls it before the engine is chosen; from then on it works with a plain root
// module. It starts nothing itself, since Terragrunt executes what its configuration says:
// the attempt starts it in the sandbox of its engine. It never has Terragrunt start an
// engine, and what Terragrunt leaves is read as an engine's: copied, and only regular
// files of the sandbox's user.
package terragrunt
