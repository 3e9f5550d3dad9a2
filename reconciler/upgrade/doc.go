// Package upgrade proposes newer versions of templates by pull requests.
//
// Clusters whose documents allow newer versions of their template (`upgrades`), and
// those that somebody asks for, are proposed to be moved to them, in their own
// repository. Which pull requests there should be is derived from the tracked branch
// and the tags each time; the records say which there are. What a pull request should
// be is recorded before the forge is asked for it, and its branch follows from that:
// a crash in between makes no second one. The reconciler asks a Keeper for looks; the
// server hands over what people ask for. Nothing in here plans or applies.
package upgrade
