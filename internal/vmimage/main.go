// Command vmimage writes the initial file system with which make test-vm boots a kernel.
// It is a cpio archive in the form that Linux calls newc
// (Documentation/driver-api/early-userspace/buffer-format.rst in the kernel's sources).
// The command exists because a machine that builds Roost has Go, and may not have cpio;
// and because an archive can contain device nodes and root's files that an ordinary user
// may not make.
//
//	vmimage -o FILE SOURCE=DEST...
//
// Each SOURCE, a file or a directory with its contents, is put at the path DEST.
// Everything in the archive belongs to root. A path with several sources is taken from
// the last one.
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
