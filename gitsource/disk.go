package gitsource

import (
	"errors"
	"slices"
	"syscall"
)

// DiskFull returns the repositories, sorted, that could not be fetched when that was
// tried last because the disk of the mirrors is full.
func (s *Source) DiskFull() []string {
	var out []string
	for name, m := range s.mirrors {
		if m.full.Load() {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// noteDisk remembers whether a fetch found room on the disk. One that failed for another
// reason says nothing of that.
func (m *mirror) noteDisk(err error) {
	switch {
	case err == nil:
		m.full.Store(false)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		m.full.Store(true)
	}
}
