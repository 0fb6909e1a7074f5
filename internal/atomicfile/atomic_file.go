// Package atomicfile replaces small files in one step: a reader sees the old text or the
// new one, and never a part of either.
//
// The text is written to a second file of the same directory, which is then renamed
// (rename(2)). Several writers do not disturb each other: the last one wins.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces a file. After a power failure the old text, the new one or an empty file
// may be there: it is for what can be made again, or has a checksum.
func Write(path string, text []byte, mode fs.FileMode) error {
	return replace(path, text, mode, false)
}

// WriteDurable replaces a file and forces text and name to the disk (fsync(2)) before it
// returns.
func WriteDurable(path string, text []byte, mode fs.FileMode) error {
	if err := replace(path, text, mode, true); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

func replace(path string, text []byte, mode fs.FileMode, sync bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it has another name, if all went well
	_, err = f.Write(text)
	if sync {
		err = errors.Join(err, f.Sync())
	}
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// SyncDir forces the names in a directory to the disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
