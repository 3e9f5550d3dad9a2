// Package plandiff derives from a plan document what people are shown of it: which
// attributes change, from what to what, with words in place of what is secret or not
// known yet, and the most dangerous changes first. What is dangerous (DangerOf) it says
// to the report and to decisions, too.
//
// It owns what a difference between two values is: what null stands for, what
// forces a replacement, and what of a secret may be said. The server makes the plan of a
// run with it, agents compare what an apply found with what was reviewed, and
// holdfast plan shows a plan without a server. It is pure, reads valid documents only, and
// never decides whether two plans are equal: that is what their digests are for.
package plandiff
