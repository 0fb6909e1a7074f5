package image

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost"
)

// file is an entry on disk.
type file struct {
	name string
	size int64
}

// list finds the entries of a staging directory: scratch.tar, criu/* and io/*, those that are there.
func list(root *os.Root) (files []file, raw int64, err error) {
	names := []string{}
	if _, err := root.Lstat(Scratch); err == nil {
		names = append(names, Scratch)
	}
	for _, dir := range []string{CRIU, IO} {
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
			return nil, 0, bad("%s is not a plain file", name)
		}
		files = append(files, file{name, info.Size()})
		raw += info.Size()
	}
	return files, raw, nil
}

// Write makes an image of a staging directory, which is ours alone, on w: of scratch.tar, criu/* and io/*, those that are there. It sets the
// header's Raw and Entries. To stop it, let w fail.
func Write(w io.Writer, dir string, h Header, key []byte) (Sum, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Sum{}, unread(err)
	}
	defer root.Close()
	files, raw, err := list(root)
	if err != nil {
		return Sum{}, unread(err)
	}
	h.Raw, h.Entries = raw, len(files)
	image, err := NewWriter(w, h, key)
	if err != nil {
		return Sum{}, err
	}
	for _, f := range files {
		if err := addFile(image, root, f); err != nil {
			image.Abandon()
			return Sum{}, err
		}
	}
	return image.Close()
}

func addFile(image *Writer, root *os.Root, f file) error {
	from, err := root.Open(f.name)
	if err != nil {
		return unread(err)
	}
	defer from.Close()
	return image.Add(f.name, f.size, from)
}

func unread(err error) error { return fmt.Errorf("checkpoint image: %w: %w", roost.NoInput, err) }

// Read unpacks an image into dir, which it makes, closed to all but us. Only if there is no error is the image whole, of that key and as
// wanted; otherwise nothing is left of dir.
func Read(r io.Reader, dir string, key []byte, want Want) (h Header, err error) {
	image, err := NewReader(r, key, want)
	if err != nil {
		return Header{}, err
	}
	defer image.Close()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return Header{}, unwritten(err)
	}
	if err := unpack(image, dir); err != nil {
		os.RemoveAll(dir)
		return Header{}, err
	}
	return image.Header(), nil
}

func unpack(image *Reader, dir string) error {
	for _, sub := range []string{CRIU, IO} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return unwritten(err)
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
		return unwritten(err)
	}
	defer func() {
		if cerr := to.Close(); err == nil && cerr != nil {
			err = unwritten(cerr)
		}
	}()
	n, err := io.Copy(to, from)
	switch {
	case errors.Is(err, roost.Invalid) || errors.Is(err, roost.NoInput):
		return err
	case err != nil:
		return unwritten(err)
	case n != size:
		return bad("%s is cut short", filepath.Base(path))
	}
	return nil
}
