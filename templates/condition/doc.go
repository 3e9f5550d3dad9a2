// Package condition owns the expressions of templates: the rules, and the conditions
// under which modules are on. It compiles them (in CEL) against the shapes of a
// template's variables, so that a mistake is reported when the template is read, and
// evaluates them within a budget of steps.
//
// Package templates calls it. It has no access to anything but the variables and the
// fields of the cluster that its Scope has.
package condition
