package holdfast_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

func TestDestroys(t *testing.T) {
	t.Parallel()
	for action, want := range map[holdfast.ChangeAction]bool{
		holdfast.ActionReplace: true, holdfast.ActionDelete: true, holdfast.ActionUpdate: false, holdfast.ActionForget: false,
	} {
		if got := (holdfast.ResourceChange{Action: action}).Destroys(); got != want {
			t.Errorf("Destroys of %s = %v", action, got)
		}
	}
}
