package hint_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
)

func TestHint(t *testing.T) {
	t.Parallel()
	cause := errors.New("it is closed")
	err := fmt.Errorf("go in: %w", hint.New(cause, "open it"))
	if got := hint.Of(err); got != "open it" || !errors.Is(err, cause) || err.Error() != "go in: it is closed" {
		t.Errorf("hint %q of %v", got, err)
	}
	if got := hint.Of(hint.New(err, "first this")); got != "first this" {
		t.Errorf("of two hints it is %q", got)
	}
	if got := hint.Of(cause) + hint.Of(nil); got != "" {
		t.Errorf("without one it is %q", got)
	}
}
