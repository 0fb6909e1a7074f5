package schedd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// A script is kept whole, under what is in it; of one that is broken off or too long
// nothing stays.
func TestStoreScript(t *testing.T) {
	broken := errors.New("broken off")
	piece := bytes.Repeat([]byte("x"), 1<<10)
	for _, c := range []struct {
		name   string
		pieces int
		end    error
		want   error
	}{
		{"whole", 3, io.EOF, nil}, {"empty", 0, io.EOF, nil}, {"the longest", 5, io.EOF, nil},
		{"broken off", 3, broken, broken}, {"too long", 6, io.EOF, roost.Exhausted},
	} {
		dir, n := filepath.Join(t.TempDir(), "scripts"), 0
		digest := sha256.New()
		name, err := storeScript(dir, 5<<10, func() ([]byte, error) {
			if n++; n > c.pieces {
				return nil, c.end
			}
			digest.Write(piece)
			return piece, nil
		})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		left, _ := os.ReadDir(dir)
		if err != nil {
			if len(left) != 0 {
				t.Errorf("%s: %v is left", c.name, left)
			}
			continue
		}
		info, serr := os.Stat(filepath.Join(dir, name))
		if want := hex.EncodeToString(digest.Sum(nil)); serr != nil || name != want || len(left) != 1 ||
			info.Size() != int64(c.pieces)<<10 {
			t.Errorf("%s: kept as %s of %v (%v), want %s", c.name, name, left, serr, want)
		}
	}
}

// A job may name a script that was sent before, and no other.
func TestScriptOfJob(t *testing.T) {
	p := newPool(t)
	stream, err := p.client.KeepScript(p.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&wire.ScriptChunk{Data: []byte("echo hello\n")}); err != nil {
		t.Fatal(err)
	}
	reply, err := stream.CloseAndRecv()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "x", "../" + reply.GetName(), reply.GetName()[:63] + "1", "/etc/passwd"} {
		_, err := p.client.Submit(p.ctx(), &wire.SubmitRequest{Key: "bad",
			Jobs: []*wire.JobSpec{{Count: 1, Ad: `[Cmd = "/bin/true"; ScriptFile = "` + name + `"]`}}})
		if kind := rpc.KindOf(rpc.FromStatus(err)); kind != roost.Invalid {
			t.Errorf("script %q: %v", name, err)
		}
	}
	p.submit("k", 1, `HoldOnSubmit = true; Shell = "/bin/sh"; ScriptFile = "`+reply.GetName()+`"`)
	p.act(wire.ActRequest_RELEASE, "1")
	if a := receiveNext(t, p.startd.activated, "an attempt"); !a.GetHoldForInput() ||
		!a.GetProgram().GetScriptFollows() || a.GetProgram().GetExecutable() != "/bin/sh" {
		t.Errorf("the node is told %v", a)
	}
}

// A script stays for as long as a job names it, and an hour at least.
func TestSweepScripts(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "7")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"idle", "used"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{unusedScriptAge / 2, "[idle used]"}, {2 * unusedScriptAge, "[used]"}} {
		if err := sweepScripts(root, time.Now().Add(c.after), func() ([]queue.UserScript, error) {
			return []queue.UserScript{{UID: 7, Name: "used"}}, nil
		}); err != nil {
			t.Fatal(err)
		}
		var got []string
		list, _ := os.ReadDir(dir)
		for _, e := range list {
			got = append(got, e.Name())
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("after %v there are %v, want %v", c.after, got, c.want)
		}
	}
	if err := sweepScripts(filepath.Join(root, "none"), time.Now(), nil); err != nil {
		t.Error(err)
	}
}
