// Command vmimage writes the initial file system that make test-vm boots a kernel with: a
// cpio archive in the form that Linux calls newc
// (Documentation/driver-api/early-userspace/buffer-format.rst in the kernel's sources).
// It is here because a machine that builds Roost has Go, and need not have cpio; and
// because an archive can hold device nodes and root's files that who writes it may not
// make.
//
//	vmimage -o FILE SOURCE=DEST...
//
// Each SOURCE, a file or a directory with all below it, comes to lie at the path DEST.
// Everything in the archive belongs to root. A path that comes twice is taken from the
// last SOURCE that has it.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("o", "", "write the archive to this `file`")
	flag.Parse()
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "vmimage:", err)
		os.Exit(1)
	}
}

func run(out string, args []string) error {
	if out == "" || len(args) == 0 {
		return errors.New("usage: vmimage -o FILE SOURCE=DEST [SOURCE=DEST]")
	}
	t := newTree()
	for _, arg := range args {
		if err := t.add(arg); err != nil {
			return err
		}
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = errors.Join(t.write(w), w.Flush(), f.Close())
	if err != nil {
		os.Remove(out)
	}
	return err
}
