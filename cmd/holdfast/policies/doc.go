// Package policies is the commands for people who write policies: they evaluate them over
// stored plans, and run their tests.
//
// It owns how policies and plans are read from a disk, and how what they say is printed. The
// root command calls it. It asks no server, and bounds nothing but time: the policies are those
// of the person who starts it.
package policies
