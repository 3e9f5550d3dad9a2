// Package cliconfig reads the configuration file of the engines themselves
// (.terraformrc, .tofurc, TF_CLI_CONFIG_FILE) as a sandbox can have it.
//
// It owns which parts of it hold there: mirrors of providers and credentials helpers
// are found and made available, a plugin cache is left out, and what would let a plan
// run another's programs is refused. Package attempt reads it once, before the first
// attempt, and has it written for each. It never reads the tokens in it, and never
// writes the file itself.
package cliconfig
