package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// cpioArchive writes entries in the newc form. An entry is a header of hexadecimal
// numbers, the name and the content, both padded to four bytes.
type cpioArchive struct {
	w     io.Writer
	inode uint32
}

// The file types in a Unix mode.
const (
	kindDevice  = 0o020000
	kindDir     = 0o040000
	kindRegular = 0o100000
	kindLink    = 0o120000
)

func (a *cpioArchive) add(name string, e treeEntry) error {
	mode := uint32(e.mode.Perm())
	switch {
	case e.mode.IsDir():
		if e.mode&fs.ModeSticky != 0 {
			mode |= 0o1000
		}
		return a.writeEntry(name, kindDir|mode, [2]uint32{}, 0, strings.NewReader(""))
	case e.target != "":
		return a.writeEntry(name, kindLink|0o777, [2]uint32{}, int64(len(e.target)), strings.NewReader(e.target))
	case e.mode&fs.ModeDevice != 0:
		return a.writeEntry(name, kindDevice|mode, e.device, 0, strings.NewReader(""))
	}
	f, err := os.Open(e.source)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return a.writeEntry(name, kindRegular|mode, [2]uint32{}, info.Size(), f)
}

// writeTrailer writes the entry that ends the archive.
func (a *cpioArchive) writeTrailer() error {
	return a.writeEntry("TRAILER!!!", 0, [2]uint32{}, 0, strings.NewReader(""))
}

// writeEntry writes an entry of exactly size bytes. It is an error if the file shrinks
// meanwhile; if it grows the rest is left out.
func (a *cpioArchive) writeEntry(name string, mode uint32, device [2]uint32, size int64, content io.Reader) error {
	if size > 1<<32-1 {
		return fmt.Errorf("%d bytes are more than the form can say", size)
	}
	a.inode++
	header := "070701"
	for _, n := range []uint32{a.inode, mode, 0, 0, 1, 0, uint32(size), 0, 0, device[0], device[1],
		uint32(len(name) + 1), 0} {
		header += fmt.Sprintf("%08X", n)
	}
	header += name + "\x00"
	if _, err := io.WriteString(a.w, header+padToFour(int64(len(header)))); err != nil {
		return err
	}
	if _, err := io.CopyN(a.w, content, size); err != nil {
		return err
	}
	_, err := io.WriteString(a.w, padToFour(size))
	return err
}

// padToFour returns the padding of n bytes to a multiple of four.
func padToFour(n int64) string { return "\x00\x00\x00"[:(4-n%4)%4] }
