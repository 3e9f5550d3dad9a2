// Package planfile reads the plan files of Terraform and OpenTofu, which are zip
// archives, and compares them with what the run that made them was given: its
// code, the values of its variables, its backend, its lock file and its state.
// What is executed by a plan can write any file in the place of the engine's own,
// and an engine that applies a file takes all of these from the file.
//
// The runner calls it with a file that nobody else can still write. It starts
// nothing, writes nothing, decodes no value of the file, and uses memory that does
// not depend on what the file claims about itself.
package planfile
