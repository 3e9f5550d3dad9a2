package folders

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Bounds of what Sum looks at: bytes of a file, names in a folder.
const (
	maxSum      = 256 << 20
	maxSumNames = 50_000
)

// Sum returns a hash of what a file has, or of the names and kinds of the first 50,000
// files and folders in a folder. Of a file beyond 256 MiB it is of these, and of its size
// and when it was changed; of one that cannot be read, of the latter only. Of anything
// else it is an error.
func Sum(name string) (string, error) {
	sum := sha256.New()
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		info, err := os.Stat(name)
		if err != nil {
			return "", err
		}
		addStat(sum, info)
		return hex.EncodeToString(sum.Sum(nil)), nil
	} else if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", err
	case info.Mode().IsRegular():
		if err = addContent(sum, file); err == nil && info.Size() > maxSum {
			addStat(sum, info)
		}
	case info.IsDir():
		err = addNames(sum, os.DirFS(name))
	default:
		return "", errors.New("neither a file nor a folder")
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

func addContent(sum io.Writer, file io.Reader) error {
	_, err := io.Copy(sum, io.LimitReader(file, maxSum))
	return err
}

// addStat adds what is known of a file without reading it.
func addStat(sum io.Writer, info fs.FileInfo) {
	fmt.Fprintln(sum, info.Mode().Type(), info.Size(), info.ModTime().UnixNano())
}

// addNames adds what is below a folder. What cannot be read stands for itself only.
func addNames(sum io.Writer, files fs.FS) error {
	n := 0
	return fs.WalkDir(files, ".", func(below string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && below == ".":
			return err
		case err != nil:
			fmt.Fprintf(sum, "%q cannot be read\n", below)
			return nil
		case below == ".":
			return nil
		}
		if n++; n > maxSumNames {
			return fs.SkipAll
		}
		kind := entry.Type()
		if kind&fs.ModeSymlink != 0 {
			if info, err := fs.Stat(files, below); err == nil { // what functions find there
				kind |= info.Mode().Type() | 1
			}
		}
		fmt.Fprintf(sum, "%q %d\n", below, kind)
		return nil
	})
}
