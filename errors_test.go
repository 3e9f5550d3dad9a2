package holdfast_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

func TestErrorOf(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("suspend: %w", holdfast.ErrorOf(holdfast.ErrNotFound, "project %q has no cluster", "p"))
	if got, want := err.Error(), `suspend: project "p" has no cluster`; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if !errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("%v is not of its kind", err)
	}
}
