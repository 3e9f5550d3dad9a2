package access

// Verb is one kind of action.
type Verb string

// The verbs.
const (
	Read      Verb = "read"
	Login     Verb = "login"
	Plan      Verb = "plan"
	Apply     Verb = "apply"
	Cancel    Verb = "cancel"
	Reconcile Verb = "reconcile"
	Check     Verb = "check"
	Suspend   Verb = "suspend"
	Unlock    Verb = "unlock"
	Propose   Verb = "propose"
	Transfer  Verb = "transfer"
	ReadState Verb = "read-state"
	MoveState Verb = "move-state"
	Approve   Verb = "approve"
	Force     Verb = "force"
	Revoke    Verb = "revoke"
	Trace     Verb = "trace"
)

// Right says which role a verb requires.
type Right struct {
	Verb  Verb
	Role  Role   // the weakest that has it
	Words string // what it is, for people
}

// Table is who may do what, in one place for everything that needs it.
func Table() []Right {
	return []Right{
		{Read, Viewer, "see clusters, pull requests, runs, plans, logs, drift and events of a project"},
		{Login, Viewer, "log in and out, and make, list and delete their own tokens and sessions"},
		{Plan, Operator, "plan a pull request or a cluster again"},
		{Apply, Operator, "apply what was reviewed before its merge"},
		{Cancel, Operator, "cancel runs"},
		{Reconcile, Operator, "look at a repository or a cluster again"},
		{Check, Operator, "start a drift check"},
		{Suspend, Operator, "suspend and resume clusters and projects"},
		{Unlock, Operator, "release the lock of a dead run, and a lock of a state's own backend"},
		{Propose, Operator, "propose changes by pull requests: clusters, template versions, runners, environments"},
		{Transfer, Operator, "move a cluster to another repository"},
		{ReadState, Operator, "read a state that could not be saved, including its secrets"},
		{MoveState, Operator, "push or give up a state that could not be saved, and migrate states"},
		{Approve, Approver, "approve a pull request or a plan, and apply a plan that nobody has reviewed"},
		{Force, Admin, "break a lock whose holder is alive"},
		{Trace, Admin, "see the webhooks that were received (the role in all projects)"},
		{Revoke, Admin, "list and end everyone's sessions and tokens (the role in all projects)"},
	}
}

// Role is the weakest role that has the verb; of an unknown one, none has it.
func (v Verb) Role() Role {
	for _, right := range Table() {
		if right.Verb == v {
			return right.Role
		}
	}
	return ""
}
