package uplink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestOutboxOnAFaultyDisk: a file that the disk does not give is tried again, and one
// that is gone is not.
func TestOutboxOnAFaultyDisk(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault error
		sends int // of the parcel whose file fails twice
		want  error
	}{
		"disk":  {&fs.PathError{Op: "read", Path: "x", Err: syscall.EIO}, 3, nil},
		"files": {&fs.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}, 3, nil},
		"gone":  {&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, 1, fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sends := 0
			o := &outbox{dir: t.TempDir(), send: func(_ context.Context, _, path string) error {
				if sends++; sends < 3 {
					return fmt.Errorf("send: %w", &LocalError{tc.fault})
				}
				_, err := os.Stat(path)
				return err
			}}
			if err := o.open(); err != nil {
				t.Fatal(err)
			}
			parcel, err := o.put("state", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			o.close()
			o.run(t.Context())
			if sends != tc.sends || !errors.Is(parcel.err, tc.want) {
				t.Errorf("sent %d times, refused by %v", sends, parcel.err)
			}
		})
	}
}
