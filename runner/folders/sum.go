package folders

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Bounds of what Sum and Sums look at: bytes of a file, bytes of all files, names in a
// folder.
const (
	maxSum      = 256 << 20
	maxSums     = 1 << 30
	maxSumNames = 50_000
)

// Sum returns a hash of what a file has, or of the names and kinds of the first 50,000
// files and folders in a folder. For a file beyond 256 MiB it covers its first 256 MiB,
// its size and when it was changed; for one that cannot be read, only the latter two. For
// anything else, and in /proc and /sys, it is an error.
func Sum(ctx context.Context, name string) (string, error) {
	left := int64(maxSum)
	return sumOf(ctx, name, &left)
}

// sumOf is Sum, and reads no more than what is left.
func sumOf(ctx context.Context, name string, left *int64) (string, error) {
	sum := sha256.New()
	file, err := Open(name)
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
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		err = addNames(ctx, sum, name, os.DirFS(name))
		return hex.EncodeToString(sum.Sum(nil)), err
	}
	most := min(maxSum, *left)
	n, err := io.Copy(sum, io.LimitReader(Reading(ctx, file), most))
	if *left -= n; err == nil && info.Size() > most {
		addStat(sum, info)
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

// addStat adds what is known of a file without reading it.
func addStat(sum io.Writer, info fs.FileInfo) {
	fmt.Fprintln(sum, info.Mode().Type(), info.Size(), info.ModTime().UnixNano())
}

// addNames adds what is below a folder of the machine. What cannot be read counts by
// its name only, and so do folders of the kernel.
func addNames(ctx context.Context, sum io.Writer, dir string, files fs.FS) error {
	n := 0
	return fs.WalkDir(files, ".", func(below string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
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
		if entry.IsDir() && Within(kernelFolders, filepath.Join(dir, below)) {
			return fs.SkipDir
		}
		return nil
	})
}
