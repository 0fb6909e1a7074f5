package provision

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config/pooldir"
	"github.com/roost-batch/roost/internal/provision/ledger"
	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/provision/provider"
	"github.com/roost-batch/roost/internal/rpc/localrpc"
)

// controlTimeout bounds one exchange over the socket.
const controlTimeout = 10 * time.Second

// Order is what a user asks of the provisioner.
type Order struct {
	Verb     string `json:"verb"` // "list", "stop", "resume" or "removable"
	Provider string `json:"provider,omitempty"`
}

// Answer is the answer to an order.
type Answer struct {
	Error    string   `json:"error,omitempty"`
	Kind     uint8    `json:"kind,omitempty"` // roost.ErrorKind of the error
	Document Document `json:"document"`
}

// controlRequest is an order with the place for its answer.
type controlRequest struct {
	order Order
	reply chan Answer
}

// listenControl answers orders on the socket of a directory.
func listenControl(dir string, requests chan<- controlRequest) (io.Closer, error) {
	path := filepath.Join(dir, pooldir.PilotsSocket)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of one that was killed
		return nil, fmt.Errorf("%s: %w: %w", path, roost.NoOutput, err)
	}
	short, closeDir, err := localrpc.ShortPath(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, roost.NoOutput, err)
	}
	defer closeDir()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, roost.NoOutput, err)
	}
	listener.SetUnlinkOnClose(false) // its short name is gone by then
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serveControl(conn, requests)
		}
	}()
	return closerFunc(func() error {
		err := listener.Close()
		for { // an order that came last has no answer
			select {
			case <-done:
				return err
			case <-time.After(controlTimeout):
				return err
			}
		}
	}), nil
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

// serveControl answers one order.
func serveControl(conn net.Conn, requests chan<- controlRequest) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(controlTimeout))
	r := controlRequest{reply: make(chan Answer, 1)}
	if json.NewDecoder(io.LimitReader(conn, 1<<16)).Decode(&r.order) != nil {
		return
	}
	timeout := time.NewTimer(controlTimeout)
	defer timeout.Stop()
	select {
	case requests <- r:
		json.NewEncoder(conn).Encode(<-r.reply)
	case <-timeout.C:
	}
}

// Ask gives an order to the provisioner of a directory. Without one that runs, it is
// done in the journal.
func Ask(dir string, order Order, load func() ([]provider.Settings, error)) (Answer, error) {
	conn, err := dialControl(dir)
	if err != nil {
		return askJournal(dir, order, load)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(controlTimeout))
	var a Answer
	err = json.NewEncoder(conn).Encode(order)
	if err == nil {
		err = json.NewDecoder(conn).Decode(&a)
	}
	if err != nil {
		return a, fmt.Errorf("provisioner: %w: it runs and does not answer: %w", roost.Unavailable, err)
	}
	return a, a.asError()
}

func (a *Answer) asError() error {
	if a.Error == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", roost.ErrorKind(a.Kind), a.Error)
}

// dialControl connects to the provisioner of a directory.
func dialControl(dir string) (net.Conn, error) {
	short, done, err := localrpc.ShortPath(filepath.Join(dir, pooldir.PilotsSocket))
	if err != nil {
		return nil, err
	}
	defer done()
	return net.DialTimeout("unix", short, controlTimeout)
}

// IsRunning reports whether a provisioner answers in a directory.
func IsRunning(dir string) bool {
	conn, err := dialControl(dir)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// askJournal does an order while no provisioner runs.
func askJournal(dir string, order Order, load func() ([]provider.Settings, error)) (Answer, error) {
	journal, state, err := ledger.Open(dir)
	if err != nil {
		return Answer{}, err
	}
	defer journal.Close()
	p := &Provisioner{state: state, Load: load}
	list, err := load()
	if err != nil {
		return Answer{}, err
	}
	state.SetProviders(list)
	a := p.answer(controlRequest{order: order})
	a.Document.Running = false
	if err := a.asError(); err != nil {
		return a, err
	}
	return a, journal.Write(state)
}

// answer does an order.
func (p *Provisioner) answer(r controlRequest) Answer {
	refuse := func(kind roost.ErrorKind, format string, args ...any) Answer {
		return Answer{Error: fmt.Sprintf(format, args...), Kind: uint8(kind)}
	}
	name := r.order.Provider
	if name != "" && p.state.Provider(name) == nil {
		if list, err := p.Load(); err == nil { // it may have been added just now
			p.state.SetProviders(list)
		}
		if p.state.Provider(name) == nil {
			return refuse(roost.NotFound, "there is no provider %q; see: roost pilots list", name)
		}
	}
	switch r.order.Verb {
	case "list":
	case "stop":
		p.state.Stop(name, "you stopped it")
	case "resume":
		p.state.Resume(name)
	case "removable":
		if n := len(p.state.Of(name, func(a *plan.Allocation) bool { return a.State == plan.Running })); n > 0 {
			return refuse(roost.Conflict, "provider %s has %d running allocations, whose tasks would be ended; to end "+
				"them: roost pilots remove --force %s; else: roost pilots stop %s, and wait", name, n, name, name)
		}
	default:
		return refuse(roost.Invalid, "there is no order %q", r.order.Verb)
	}
	return Answer{Document: p.document(time.Now())}
}
