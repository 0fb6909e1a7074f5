package image

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost"
)

// stagedFile is an entry on disk.
type stagedFile struct {
	name string
	size int64
}

// listStaging finds the entries of a staging directory: scratch.tar, criu/* and io/*, if
// they exist.
func listStaging(root *os.Root) (files []stagedFile, raw int64, err error) {
	names := []string{}
	if _, err := root.Lstat(ScratchEntry); err == nil {
		names = append(names, ScratchEntry)
	}
	for _, dir := range []string{CRIUDir, IODir} {
		d, err := root.Open(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		flat, err := d.Readdirnames(-1)
		d.Close()
		if err != nil {
			return nil, 0, err
		}
		for _, name := range flat {
			names = append(names, dir+"/"+name)
		}
	}
	for _, name := range names {
		info, err := root.Lstat(name)
		if err != nil {
			return nil, 0, err
		}
		if !info.Mode().IsRegular() {
			return nil, 0, badImage("%s is not a plain file", name)
		}
		files = append(files, stagedFile{name, info.Size()})
		raw += info.Size()
	}
	return files, raw, nil
}

// WriteDirectory writes an image of a staging directory to w. The entries are
// scratch.tar, criu/* and io/*, if they exist; the directory must be accessible to root
// only. It sets the header's Raw and Entries. To cancel it, let w fail.
func WriteDirectory(w io.Writer, dir string, h Header, key []byte) (WriteResult, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return WriteResult{}, readError(err)
	}
	defer root.Close()
	files, raw, err := listStaging(root)
	if err != nil {
		return WriteResult{}, readError(err)
	}
	h.Raw, h.Entries = raw, len(files)
	image, err := NewWriter(w, h, key)
	if err != nil {
		return WriteResult{}, err
	}
	for _, f := range files {
		if err := addFile(image, root, f); err != nil {
			image.Abandon()
			return WriteResult{}, err
		}
	}
	return image.Close()
}

func addFile(image *Writer, root *os.Root, f stagedFile) error {
	from, err := root.Open(f.name)
	if err != nil {
		return readError(err)
	}
	defer from.Close()
	return image.Add(f.name, f.size, from)
}

func readError(err error) error { return fmt.Errorf("checkpoint image: %w: %w", roost.NoInput, err) }

// ReadDirectory unpacks an image into dir, which it creates without access for others.
// Without an error the image is complete, of the key and as expected; otherwise dir does
// not exist.
func ReadDirectory(r io.Reader, dir string, key []byte, want ExpectedImage) (h Header, err error) {
	image, err := NewReader(r, key, want)
	if err != nil {
		return Header{}, err
	}
	defer image.Close()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return Header{}, writeError(err)
	}
	if err := unpackEntries(image, dir); err != nil {
		os.RemoveAll(dir)
		return Header{}, err
	}
	return image.Header(), nil
}

func unpackEntries(image *Reader, dir string) error {
	for _, sub := range []string{CRIUDir, IODir} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return writeError(err)
		}
	}
	for {
		name, size, err := image.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackFile(filepath.Join(dir, name), size, image); err != nil {
			return err
		}
	}
}

func unpackFile(path string, size int64, from io.Reader) (err error) {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return writeError(err)
	}
	defer func() {
		if cerr := to.Close(); err == nil && cerr != nil {
			err = writeError(cerr)
		}
	}()
	n, err := io.Copy(to, from)
	switch {
	case errors.Is(err, roost.Invalid) || errors.Is(err, roost.NoInput):
		return err
	case err != nil:
		return writeError(err)
	case n != size:
		return badImage("%s is cut short", filepath.Base(path))
	}
	return nil
}
