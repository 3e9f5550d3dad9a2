//go:build !linux

package walindex

import "os"

// Reserve does nothing here: blocks are allocated beforehand on Linux only.
func Reserve(string) (*os.File, error) { return nil, nil }
