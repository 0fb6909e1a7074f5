package server

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/image"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
)

// takenImage returns an image as a startd makes it of a task. Only the schedd of the task
// and the startd have its key.
func takenImage(t *testing.T) (data, key []byte) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"criu/core-1.img": "core", "io/stdout": "text",
		image.ScratchEntry: strings.Repeat("tar", 3000)} {
		path := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	key = bytes.Repeat([]byte{7}, image.KeySize)
	var out bytes.Buffer
	header := image.Header{Job: "7.submit", Index: 2, Attempt: 3, Sequence: 4, UID: 1000, GID: 100, Node: "n1",
		Time: time.Unix(1e9, 5)}
	if _, err := image.WriteDirectory(&out, dir, header, key); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), key
}

// TestDamage damages an image on a checkpoint server in many ways. The startd that
// fetches it gets the original image or refuses it with an error that names it. The other
// images are served, and the schedd can remove the damaged one.
func TestDamage(t *testing.T) {
	p := newPool(t, 0)
	n1, submit := p.node("n1", peer.Startd), p.callAs(p.submit("submit"))
	data, key := takenImage(t)
	for _, job := range []uint64{7, 8} {
		if err := putImage(n1, p.signedRight("submit", "n1", job), "submit", job, "4", data); err != nil {
			t.Fatal(err)
		}
	}
	var path string
	err := filepath.WalkDir(p.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Base(filepath.Dir(name)) == "7" {
			path = name
		}
		return err
	})
	if err != nil || path == "" {
		t.Fatalf("where the image is: %q, %v", path, err)
	}
	at, err := store.Open(filepath.Join(t.TempDir(), "images"), 0)
	if err != nil {
		t.Fatal(err)
	}
	right := p.signedRight("submit", "n1", 7)
	refused := 0
	damage.ForEach(t, path, 120, func(what string) {
		err := fetched(t, n1, at, requestWithRight(right, "submit", 7), int64(len(data)), key)
		switch {
		case errors.Is(err, roost.Invalid):
			refused++
		case err != nil:
			t.Fatalf("%s: got %v, want it refused", what, err)
		default:
			t.Fatalf("%s: it is another image, and was taken", what)
		}
		if got, err := getImage(submit, requestWithRight(nil, "submit", 8)); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%s: another image: %d bytes, %v", what, len(got), err)
		}
	})
	if refused == 0 {
		t.Error("no damage was noticed")
	}
	if err := fetched(t, n1, at, requestWithRight(right, "submit", 7), int64(len(data)), key); err != nil {
		t.Errorf("what is not damaged: %v", err)
	}
	if err := errors.Join(os.Truncate(path, 100), removeImage(submit, requestWithRight(nil, "submit", 7))); err != nil {
		t.Errorf("a damaged one cannot be removed: %v", err)
	}
}

// fetched fetches an image from a server as a startd does before it restores a task.
func fetched(t *testing.T, c wire.CheckpointServerClient, at *store.Store, r *wire.FetchImageRequest, size int64,
	key []byte) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	from, err := c.Get(ctx, r)
	if err != nil {
		return err
	}
	k := store.ImageKey{Schedd: r.GetSchedd(), Job: r.GetAttempt().GetJob(), Index: 2, Attempt: 3,
		Sequence: r.GetSequence()}
	if err := at.Receive(k, size, from.Recv); err != nil {
		return err
	}
	defer at.Remove(k)
	f, err := at.Open(k)
	if err != nil {
		return err
	}
	defer f.Close()
	stage := filepath.Join(t.TempDir(), "stage")
	defer os.RemoveAll(stage)
	_, err = image.ReadDirectory(f, stage, key, image.ExpectedImage{Job: "7.submit", Index: 2, UID: 1000, Sequence: 4})
	return err
}
