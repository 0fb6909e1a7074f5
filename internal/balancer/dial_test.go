package balancer

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// fakeBackends are backends by address: "good" ones accept, "refusing" ones refuse, and
// others do neither.
type fakeBackends struct {
	mu     sync.Mutex
	dialed []string
}

func (f *fakeBackends) dial(ctx context.Context, address string) (net.Conn, error) {
	f.mu.Lock()
	f.dialed = append(f.dialed, address)
	f.mu.Unlock()
	switch host, _, _ := strings.Cut(address, ":"); host {
	case "good":
		conn, _ := net.Pipe()
		return conn, nil
	case "refusing":
		return nil, syscall.ECONNREFUSED
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestConnect checks how long it takes to find a backend beside others that refuse or
// say nothing.
func TestConnect(t *testing.T) {
	for _, c := range []struct {
		name     string
		backends []string // in the order in which they are chosen
		want     string   // empty: no backend accepts
		after    time.Duration
	}{
		{"the first one accepts", []string{"good:1"}, "good:1", 0},
		{"one refuses", []string{"refusing:1", "good:2"}, "good:2", 0},
		{"one is silent", []string{"silent:1", "good:2"}, "good:2", slowConnect},
		{"two of a machine are silent", []string{"silent:1", "silent:2", "good:3"}, "good:3", slowConnect},
		{"two machines are silent", []string{"silent:1", "dead:2", "good:3"}, "good:3", 2 * slowConnect},
		{"all are silent", []string{"silent:1", "silent:2", "silent:3", "dead:4"}, "", time.Minute},
		{"none", nil, "", time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeBackends{}
			s := &server{Config: Config{Pool: newTestPool(c.backends), Wait: time.Minute,
				Log: slog.New(slog.DiscardHandler)}, dial: f.dial}
			began := time.Now()
			b, conn := s.connect(t.Context())
			switch took := time.Since(began); {
			case (conn == nil) != (c.want == ""), b != nil && b.Address != c.want, took != c.after:
				t.Errorf("%s: %v after %v, want %q after %v; tried %q", c.name, b, took, c.want, c.after, f.dialed)
			case b != nil:
				s.Pool.release(b)
			}
			s.running.Wait()
			for address, b := range s.Pool.backends {
				if b.connections != 0 {
					t.Errorf("%s: %s has %d connections", c.name, address, b.connections)
				}
			}
		})
	}
}

func newTestPool(addresses []string) *Pool {
	p := NewPool(LeastConnections)
	var list []Backend
	for _, a := range addresses {
		list = append(list, Backend{Address: a, Weight: 1})
	}
	p.Set(list)
	for i, a := range addresses {
		p.backends[a].chosenAt = uint64(i)
	}
	return p
}

// TestDeadMachine checks that a machine that does not answer costs few connections a
// pause, however many backends it has.
func TestDeadMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeBackends{}
		addresses := []string{"silent:1", "silent:2", "silent:3", "silent:4", "silent:5", "good:1", "good:2"}
		s := &server{Config: Config{Pool: newTestPool(addresses), Wait: time.Minute,
			Log: slog.New(slog.DiscardHandler)}, dial: f.dial}
		began := time.Now()
		for range 100 {
			b, conn := s.connect(t.Context())
			if conn == nil || !strings.HasPrefix(b.Address, "good:") {
				t.Fatalf("connected to %v", b)
			}
			s.Pool.release(b)
			s.running.Wait()
		}
		silent := 0
		for _, a := range f.dialed {
			if strings.HasPrefix(a, "silent:") {
				silent++
			}
		}
		if took := time.Since(began); silent != maxRefused || took != maxRefused*slowConnect {
			t.Errorf("%d connections to the dead machine in %v: %q", silent, took, f.dialed[:10])
		}
	})
}
