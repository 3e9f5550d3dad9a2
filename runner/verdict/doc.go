// Package verdict is what policies have said of plans, as runs keep it.
//
// It owns what of a report leaves the agent (Clean), and whether policies say of the plan of an
// apply what they said of the reviewed one (Changed). An attempt calls it. It is pure, evaluates
// nothing, and never decides whether a report is good enough for an apply: the server does.
package verdict
