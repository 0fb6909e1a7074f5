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

// connectTimeout is how long a starter may take to send its Hello. It does nothing but
// wait, so a longer time means that the machine is in trouble.
const connectTimeout = 5 * time.Second

// Adopt connects to the starter in a claim's directory, which an earlier startd has
// spawned. It returns the starter's state. If the starter is dead the error is ErrGone,
// and the state is the last in its journal. Events are as for Spawn; if the state
// contains a TaskExited it is delivered as an event, too.
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

// ReadJournal returns the last state in the journal of a claim's directory. A missing
// journal means an idle starter.
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
