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

// Sum returns a hash of what a file has, as far as its first 256 MiB, or of the names of
// the first 50,000 files and folders in a folder. Of anything else it is an error.
func Sum(name string) (string, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	sum := sha256.New()
	switch {
	case err != nil:
		return "", err
	case info.Mode().IsRegular():
		_, err = io.Copy(sum, io.LimitReader(file, maxSum))
	case info.IsDir():
		n := 0
		err = fs.WalkDir(os.DirFS(name), ".", func(below string, _ fs.DirEntry, err error) error {
			if n++; n > maxSumNames {
				return fs.SkipAll
			}
			fmt.Fprintf(sum, "%q\n", below)
			return err
		})
	default:
		return "", errors.New("neither a file nor a folder")
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}
