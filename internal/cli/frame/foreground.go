package frame

import (
	"os"

	"golang.org/x/sys/unix"
)

// IsForegroundTerminal reports whether a file is the terminal in whose foreground this
// process is. A process in the background that reads its terminal is stopped
// (termios(3), "TTIN").
func IsForegroundTerminal(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
