package transfer

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
	"github.com/roost-batch/roost/schedd/queue"
)

// TestStoreScript checks that a script is stored whole, under its digest. Nothing stays
// of a script that is broken off or too long.
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

// TestSweepScripts checks that a script stays as long as a job names it, and at least an
// hour.
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
	}{{UnusedScriptAge / 2, "[idle used]"}, {2 * UnusedScriptAge, "[used]"}} {
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
