package replica_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/pki"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/internal/rpc"
)

// counter is a state machine that counts.
type counter struct{ n int }

func (c *counter) Apply(uint64, []byte) any {
	c.n++
	return c.n
}
func (c *counter) Snapshot() (func(io.Writer) error, error) {
	return func(io.Writer) error { return nil }, nil
}
func (c *counter) Restore(io.Reader) error { return nil }

// trio serves three replicas as a negotiator does, on those addresses, until the test ends. It returns the first that leads.
func trio(t testing.TB, dir string, listeners []net.Listener, addrs []string, identity func(int) *rpc.Identity) *replica.Replica {
	t.Helper()
	leads := make(chan *replica.Replica, 16)
	for i, addr := range addrs {
		id := identity(i)
		r, err := replica.Open(replica.Config{
			Dir: fmt.Sprintf("%s/%d", dir, i), Name: fmt.Sprintf("n%d", i), Address: addr, Peers: addrs, Identity: id, Log: slog.New(slog.DiscardHandler),
		}, &counter{})
		if err != nil {
			t.Fatal(err)
		}
		server := rpc.NewServer(id, auth.Methods(), grpc.WaitForHandlers(true))
		r.Register(server)
		go server.Serve(listeners[i])
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		go func() {
			for {
				select {
				case l := <-r.Leadership():
					if l.Leads {
						leads <- r
					}
				case <-ctx.Done():
					return
				}
			}
		}()
		t.Cleanup(func() {
			cancel()
			server.Stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	select {
	case r := <-leads:
		return r
	case <-time.After(time.Minute):
		t.Fatal("nobody leads within a minute")
		return nil
	}
}

// TestServed lets three replicas find each other over real sockets: with certificates, and as one user on one machine.
func TestServed(t *testing.T) {
	authority := t.TempDir()
	if err := pki.Init(authority, "lab"); err != nil {
		t.Fatal(err)
	}
	certified := func(i int) *rpc.Identity {
		files, err := pki.IssueTo(authority, fmt.Sprintf("n%d", i), []auth.Role{auth.Negotiator})
		if err != nil {
			t.Fatal(err)
		}
		id, err := pki.Load(&files)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for name, identity := range map[string]func(int) *rpc.Identity{"TLS": certified, "unix": func(int) *rpc.Identity { return nil }} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var listeners []net.Listener
			var addrs []string
			for i := range 3 {
				addr := "127.0.0.1:0"
				if name == "unix" {
					addr = fmt.Sprintf("unix:%s/%d.sock", dir, i)
				}
				l, err := rpc.Listen(addr, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				if name == "TLS" {
					addr = l.Addr().String()
				}
				listeners, addrs = append(listeners, l), append(addrs, addr)
			}
			leader := trio(t, dir, listeners, addrs, identity)
			said := make(chan error, 1)
			leader.Propose([]byte("a"), func(_ any, err error) { said <- err })
			if err := <-said; err != nil {
				t.Fatal(err)
			}
			if s := leader.Survey(t.Context()); s.Spare() != 1 {
				t.Errorf("got %+v", s)
			}
		})
	}
}
