// Which users and sandboxes engines get.

package attempt

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/cliconfig"
	"github.com/holdfast-dev/holdfast/runner/failure"
	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// Isolation is how engines are kept from the agent, from one another and from
// the machine. The zero value is: not at all.
type Isolation struct {
	Starter *sandbox.Starter // starts engines; nil means without isolation
	// FirstUser is the uid and gid of the first slot, and Slots how many follow:
	// each attempt that is executed has one for itself, in modes that have a user
	// for each.
	FirstUser, Slots int
	// Unavailable is why no allowed mode works here: no attempt is executed. Nil: one
	// does.
	Unavailable error
	// OneUser: plans and applies run as one user, so that a weak mode is too weak for
	// applies.
	OneUser bool
	// ReadOnly and Writable are absolute paths that engines find besides what every
	// engine needs.
	ReadOnly, Writable []string
	// Policies evaluates policies, which are not trusted either, over plans; nil: this
	// agent evaluates none, and nothing that needs them is applied.
	Policies Policies
}

// Policies evaluates policies over a plan, as `show -json` of the engine prints it. Whatever
// one of them does is in the report; an error is about the plan or the machine.
type Policies interface {
	Evaluate(ctx context.Context, policies protocol.AssignedPolicies, plan io.Reader) (holdfast.PolicyReport, error)
}

// writes reports whether a path is in what engines may write, and outlives them.
func (o Isolation) writes(path string) bool {
	return filepath.IsAbs(path) && folders.Within(o.Writable, path)
}

// cliConfig reads the engines' own configuration. Without a sandbox they read it
// themselves.
func (o Options) cliConfig() (cliconfig.Config, error) {
	if o.Isolation.mode() == sandbox.ModeNone {
		return cliconfig.Config{File: o.Engines.CLIConfigFile}, nil
	}
	return cliconfig.Read(cliconfig.Options{
		File: o.Engines.CLIConfigFile, Home: o.Engines.Env["HOME"],
		Seen: slices.Concat(o.Isolation.ReadOnly, o.Isolation.Writable), Logger: o.Logger,
	})
}

// refusal returns why no engine is started for a run of that kind, nil if it is.
func (o Isolation) refusal(kind holdfast.RunKind) error {
	switch {
	case o.Unavailable != nil:
		return &failure.Error{
			Cause: holdfast.CauseNoIsolation, Err: errors.New("engines cannot be isolated from the agent and from other runs here"),
			Detail: o.Unavailable.Error(), Hint: hintIsolation,
		}
	case o.OneUser && o.mode() == sandbox.ModeLandlock && kind.Writes():
		return &failure.Error{
			Cause: holdfast.CauseNoIsolation, Err: errors.New("plans and applies run as the same user, and only Landlock keeps them apart"),
			Hint: hintTwoAgents,
		}
	}
	return nil
}

// Hints of what to do where isolation is missing or weak.
const (
	hintIsolation = "docs/security.md says what each mode needs; " + noIsolation + " starts engines without isolation, which lets code in a pull request do what the agent can"
	hintTwoAgents = "let agents of two users execute plans and applies, use a stronger mode (docs/security.md), or set " + noIsolation
	// noIsolation: an agent that serve has not started reads no holdfast.yaml.
	noIsolation = "isolation: none in holdfast.yaml (and --isolation none of an agent that serve does not start)"
)

// Where a sandbox with its own root has what belongs to an attempt. The paths are the
// same for every attempt, so that code which reads its own path means the same in the
// plan and in the apply.
const (
	seenWork     = "/workspace"
	seenPrepared = "/prepared"
	seenPlan     = "/plan/plan.bin"
	seenConfig   = "/engine/engine.rc"
	seenIdentity = "/identity"
)

// mode returns how engines are started.
func (o Isolation) mode() sandbox.Mode {
	if o.Starter == nil {
		return sandbox.ModeNone
	}
	return o.Starter.Mode()
}
