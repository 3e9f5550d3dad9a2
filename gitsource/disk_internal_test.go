package gitsource

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
)

// A repository that a full disk has no room for is named until a fetch of it succeeds.
func TestDiskFullUntilAFetchSucceeds(t *testing.T) {
	t.Parallel()
	s := &Source{mirrors: map[string]*mirror{"fleet": {}, "apps": {}, "other": {}}}
	for _, step := range []struct {
		repo string
		err  error
		want []string
	}{
		{"fleet", errors.New("connection refused"), nil},
		{"fleet", fmt.Errorf("write pack: %w", syscall.ENOSPC), []string{"fleet"}},
		{"apps", fmt.Errorf("lock mirror: %w", syscall.EDQUOT), []string{"apps", "fleet"}},
		{"fleet", errors.New("connection refused"), []string{"apps", "fleet"}},
		{"fleet", nil, []string{"apps"}},
		{"apps", nil, nil},
	} {
		s.mirrors[step.repo].noteDisk(step.err)
		if got := s.DiskFull(); !slices.Equal(got, step.want) {
			t.Errorf("after %v of %s: %q, want %q", step.err, step.repo, got, step.want)
		}
	}
}
