package walindex

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Bytes is how much of the index is reserved: 1 MiB, enough for a log of 130,000 pages,
// 512 MiB. SQLite needs 32 KiB of index for each 4,096 pages of the log
// (https://sqlite.org/walformat.html#the_wal_index_file_format); a log that long is
// left only by a reader that stays open for hours.
const Bytes = 1 << 20

// Reserve allocates the blocks of the index of the open database at path, which is in WAL
// mode and has been read. The error of a full disk is an ENOSPC. There is no error if the
// file system cannot allocate beforehand, or a filter of system calls forbids it: the index then is what SQLite makes of it.
//
// The file has to stay open until the last connection of this process is closed. A
// process that closes a file loses all locks that it holds on it (fcntl(2)), SQLite's
// among them.
func Reserve(path string) (*os.File, error) {
	index, err := os.OpenFile(path+"-shm", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the index of the write-ahead log: %w", err)
	}
	err = ignoringEINTR(func() error { return syscall.Fallocate(int(index.Fd()), 0, 0, Bytes) })
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return index, fmt.Errorf("allocate %s: %w", index.Name(), err)
	}
	return index, nil
}

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
