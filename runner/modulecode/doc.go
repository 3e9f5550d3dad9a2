// Package modulecode reads what the code of a root module says, without an engine:
// which engines and providers it asks for, where it keeps its state, which of its
// variables are secret, and what its expressions refer to.
//
// It owns the parser's bounds: code of any repository comes here before a sandbox does,
// and the parser recurses. The choice of an engine, the key of what init prepares, and
// the rooms that compare plans call it. It never executes or fetches anything, never
// reads outside of the folder that it is given, and what it cannot parse it leaves out:
// the engine will report that better.
package modulecode
