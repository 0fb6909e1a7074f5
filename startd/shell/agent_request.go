package shell

import (
	"encoding/gob"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// agentRequest contains all parameters of an agent. The descriptors are not in it, as
// they have fixed numbers.
type agentRequest struct {
	Parent      int      // pid of the process that starts the agent
	Joined      []string // nsenter's flags; the namespaces are on the descriptors from firstNamespaceFD on
	Root        bool     // rootFD is the task's root directory
	Change      bool     // set the user's ids; false if we have them already
	UID, GID    uint32
	Groups      []uint32
	Umask       uint32
	Bounding    uint64
	Limits      []resourceLimit
	Nice        int // above 0
	Environment []string
	Command     []string
	Shells      []string // shells to try in order, without a command
	Terminal    bool
	Login       bool // the shell is a login shell
}

// The fixed descriptors of the agent.
const (
	requestFD = 3 + iota
	gateFD    // a byte means that the agent is in its cgroups; the end, that it never will be
	cwdFD     // the task's working directory; the null device if it is gone
	rootFD    // the task's root directory; the null device if it is ours
	firstNamespaceFD
)

// writeMemfd writes the request to a memory file, which the agent's two steps can read
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
