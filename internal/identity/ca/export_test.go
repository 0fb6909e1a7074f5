package ca

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
)

// RunningAuthority is an authority that serves until the test ends.
type RunningAuthority struct {
	Addr, Socket string
	Dir          string // directory of its keys

	store *certStore
	mu    sync.Mutex
	log   bytes.Buffer
}

// Start makes an authority of the pool lab, on central, and runs it.
func Start(t *testing.T) *RunningAuthority {
	t.Helper()
	dir := t.TempDir()
	r := &RunningAuthority{Dir: filepath.Join(dir, "authority"), Socket: "unix:" + filepath.Join(dir, "a.sock")}
	if err := pki.Init(r.Dir, "lab"); err != nil {
		t.Fatal(err)
	}
	r.store = reopen(t, r.Dir)
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	admin, err := rpc.Listen(r.Socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	r.Addr = door.Addr().String()
	node := &config.Node{Name: "central", Pool: "lab", AuthorityAt: r.Addr, Collectors: []string{"10.0.0.1:9701"},
		Negotiators: []string{"10.0.0.1:9702"}}
	s := &authorityService{store: r.store, node: node, log: slog.New(slog.NewTextHandler(r, nil))}
	if err := s.expireRecords(time.Now()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.serve(ctx, admin, []net.Listener{door}, func() {})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

// Write stores log output.
func (r *RunningAuthority) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(b)
}

// Log returns the log.
func (r *RunningAuthority) Log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// CreateToken makes a token.
func (r *RunningAuthority) CreateToken(t *testing.T, part NodePart, name string, life time.Duration) JoinToken {
	t.Helper()
	token, _, err := r.store.createToken(part, name, life, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Bounds on anonymous clients.
const (
	MaxPerAddress = maxPerAddress
	MaxBody       = maxBody
	FreeAttempts  = freeAttempts
)
