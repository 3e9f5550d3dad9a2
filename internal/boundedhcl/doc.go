// Package boundedhcl parses and evaluates HCL, and its JSON form, that nobody has
// reviewed.
//
// The parser of the language calls itself for each level of nesting, and so does whoever
// walks through what it makes. A stack that overflows ends the whole process and cannot be
// recovered from; a number such as 1e600000000 takes hours and gigabytes to become a text.
// So the tokens of a text are looked at before it is parsed, and an expression before it is
// evaluated. Whatever reads code of a pull request, on the server or on an agent, does it
// through this package.
package boundedhcl
