package hint

import "errors"

// New returns err with a hint. errors.Is and errors.As find err in it.
func New(err error, hint string) error { return &hinted{err, hint} }

type hinted struct {
	error
	hint string
}

func (e *hinted) Unwrap() error { return e.error }

// Hint says what to do.
func (e *hinted) Hint() string { return e.hint }

// Of returns the hint of the outermost error in err that has one; empty if none has.
func Of(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}
