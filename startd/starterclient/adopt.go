package starterclient

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// connectTimeout is how long a starter may take to say hello: it does nothing but wait,
// so more than this is a machine in trouble.
const connectTimeout = 5 * time.Second

// Adopt connects to the starter of a claim's directory, which a startd before this one
// has spawned, and returns its state. With a dead starter the error is ErrGone, and the
// state is the last that its journal holds. Events are as for Spawn; an TaskExited that
// the state shows already comes as an event, too.
func Adopt(dir string, events func(Event)) (*Starter, ProcessState, error) {
	conn, err := dial(filepath.Join(dir, "sock"))
	switch {
	case errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT):
		last, err := ReadJournal(dir)
		if err != nil {
			return nil, last, fmt.Errorf("starter in %s: %w: %w", dir, ErrGone, err)
		}
		return nil, last, fmt.Errorf("starter in %s: %w", dir, ErrGone)
	case err != nil:
		return nil, ProcessState{}, fmt.Errorf("starter in %s: %w: %w", dir, err, roost.Unavailable)
	}
	s := newStarter(dir, conn, events, 0, -1)
	timer := time.NewTimer(connectTimeout)
	defer timer.Stop()
	select {
	case <-s.ready:
		return s, s.lastState, nil
	case <-s.done:
		last, _ := ReadJournal(dir)
		return nil, last, fmt.Errorf("starter in %s: %w", dir, ErrGone)
	case <-timer.C:
		s.Close()
		return nil, ProcessState{}, fmt.Errorf("starter in %s: %w: no answer in %v", dir, roost.Unavailable,
			connectTimeout)
	}
}

// ReadJournal returns the state that the journal in a claim's directory ends in. No
// journal is the journal of an idle starter.
func ReadJournal(dir string) (ProcessState, error) {
	journal, err := os.ReadFile(filepath.Join(dir, "journal"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return ProcessState{}, err
	}
	return proto.Replay(journal), nil
}

func dial(path string) (*net.UnixConn, error) {
	short, done, err := rpc.ShortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: short, Net: "unix"})
}
