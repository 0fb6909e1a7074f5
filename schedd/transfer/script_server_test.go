package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/server"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// serveFiles serves a checkpoint server of this host, and returns its address and the
// directory of its files.
func serveFiles(t *testing.T) (address, dir string) {
	t.Helper()
	dir = t.TempDir()
	images, err := store.Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	address = "unix:" + filepath.Join(t.TempDir(), "s")
	l, err := rpc.Listen(address, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer(nil, peer.MethodAccess(), grpc.WaitForHandlers(true))
	wire.RegisterCheckpointServerServer(s, server.New(images, nil))
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return address, dir
}

// TestScriptServer has a submit node put a script on the checkpoint server. A member of
// the cell's queue gets it, and gets it again when its own is lost or damaged. One that
// is damaged on the server is not used.
func TestScriptServer(t *testing.T) {
	address, dir := serveFiles(t)
	log := slog.New(slog.DiscardHandler)
	submit := New(Config{Host: "n1", StateDir: t.TempDir(), FileServer: address, Log: log})
	member := New(Config{Host: "physics", StateDir: t.TempDir(), FileServer: address, Log: log})
	text := bytes.Repeat([]byte("echo a line\n"), 60<<10)
	sum := sha256.Sum256(text)
	name := hex.EncodeToString(sum[:])
	rest := bytes.NewReader(text)
	if got, err := submit.Scripts.Store(1000, func() ([]byte, error) {
		piece := make([]byte, 50_000)
		n, err := rest.Read(piece)
		return piece[:n], err
	}); err != nil || got != name {
		t.Fatalf("stored as %s, %v", got, err)
	}
	ad := classad.New()
	ad.SetString(roost.AttrScriptFile, name)
	specs := []queue.SubmitSpec{{Ad: ad}, {Ad: classad.New()}, {Ad: ad}}
	ann := queue.CallerIdentity{User: "ann", UID: 1000}
	bob := queue.CallerIdentity{User: "bob", UID: 1001}
	if err := submit.PutScripts(t.Context(), bob, specs); !errors.Is(err, roost.Invalid) {
		t.Errorf("another user names it: %v", err)
	}
	if err := submit.PutScripts(t.Context(), ann, specs); err != nil {
		t.Fatal(err)
	}
	ann.Origin, bob.Origin = "n1", "n1"
	if err := member.GetScripts(t.Context(), bob, specs); !errors.Is(err, roost.NoInput) {
		t.Errorf("another user's job gets it: %v", err)
	}
	if err := member.GetScripts(t.Context(), ann, specs); err != nil {
		t.Fatal(err)
	}
	if err := member.Scripts.Check(ann, specs); err != nil {
		t.Error(err)
	}
	script := queue.UserScript{Node: "n1", UID: 1000, Name: name}
	expectScript(t, member, script, text)
	for _, damage := range []func(string) error{os.Remove, func(path string) error { return os.Truncate(path, 7) }} {
		if err := damage(member.Scripts.path(script)); err != nil {
			t.Fatal(err)
		}
		expectScript(t, member, script, text)
	}
	if err := member.RetainScripts(t.Context(), []queue.UserScript{script, {UID: 7, Name: name}}); err != nil {
		t.Error(err)
	}
	refused := 0
	damage.ForEach(t, filepath.Join(dir, ".files", "n1", "1000", name), 120, func(what string) {
		os.Remove(member.Scripts.path(script))
		f, _, err := member.openScript(t.Context(), script)
		if err == nil {
			f.Close()
			expectScript(t, member, script, text)
		} else if refused++; !errors.Is(err, roost.NoInput) {
			t.Errorf("on the server, %s: %v", what, err)
		}
	})
	if refused == 0 {
		t.Error("no damage is noticed")
	}
}

func expectScript(t *testing.T, from *FileTransfers, u queue.UserScript, want []byte) {
	t.Helper()
	f, size, err := from.openScript(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want) || size != int64(len(want)) {
		t.Errorf("the script has %d bytes, %v", len(got), err)
	}
}

// TestNoScriptServer checks what is said where no checkpoint server is named, or none
// answers.
func TestNoScriptServer(t *testing.T) {
	u := queue.UserScript{Node: "n1", UID: 1000, Name: hex.EncodeToString(make([]byte, sha256.Size))}
	for address, want := range map[string]error{"": roost.Invalid,
		"unix:" + filepath.Join(t.TempDir(), "none"): roost.Unavailable} {
		files := New(Config{Host: "physics", StateDir: t.TempDir(), FileServer: address})
		ctx, cancel := context.WithCancel(t.Context())
		if _, _, err := files.openScript(ctx, u); !errors.Is(err, want) {
			t.Errorf("server %q: %v, want %v", address, err, want)
		}
		cancel()
	}
}
