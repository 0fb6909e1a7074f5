package shell

import (
	"encoding/gob"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// agentRequest is what the agent is told: all that differs from shell to shell.
// Descriptors are not in it; they have fixed places.
type agentRequest struct {
	Parent      int      // the process that starts the agent
	Joined      []string // nsenter's flags; their namespaces are on the descriptors from firstNamespaceFD
	Root        bool     // the root directory of the task is on rootFD
	Change      bool     // take on the user's rights; false where we have them already
	UID, GID    uint32
	Groups      []uint32
	Umask       uint32
	Bounding    uint64
	Limits      []resourceLimit
	Nice        int // above 0
	Environment []string
	Command     []string
	Shells      []string // without a command: what to try, in order
	Terminal    bool
	Login       bool // the shell is a login shell
}

// Where the agent finds what it needs.
const (
	requestFD = 3 + iota
	gateFD    // a byte comes when it is in its cgroups; the end, when it never will be
	cwdFD     // the task's working directory; the null device where it is gone
	rootFD    // the task's root directory; the null device where it is ours
	firstNamespaceFD
)

// writeMemfd puts the order into a file in memory, which the agent's two steps can read
// one after the other.
func (o *agentRequest) writeMemfd() (*os.File, error) {
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "order")
	if err := gob.NewEncoder(f).Encode(o); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS,
		unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		f.Close()
		return nil, fmt.Errorf("seal the order: %w", err)
	}
	return f, nil
}

func readRequest(f *os.File) (*agentRequest, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	o := &agentRequest{}
	return o, gob.NewDecoder(io.NewSectionReader(f, 0, info.Size())).Decode(o)
}
