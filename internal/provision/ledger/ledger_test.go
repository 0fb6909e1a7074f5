package ledger

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/provision/provider"
)

var now = time.Unix(1_800_000_000, 0).UTC()

func open(t *testing.T, dir string) (*Ledger, *plan.Provisioning) {
	t.Helper()
	l, v, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l, v
}

func settings() []provider.Settings {
	s := provider.Settings{Name: "uni", Kind: provider.Slurm, Walltime: time.Hour}
	return []provider.Settings{s.WithDefaults()}
}

// TestReopen checks that what was written is there again, and what was not is not.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	l, v := open(t, dir)
	v.SetProviders(settings())
	v.Begin("k1", plan.Decision{Provider: "uni", Nodes: 2, Walltime: time.Hour, Reason: "because"}, now)
	v.SubmitTaken("k1", "12", now)
	v.Begin("k2", plan.Decision{Provider: "uni", Nodes: 1, Walltime: time.Hour}, now)
	v.SubmitRefused("k2", "no such account", now)
	if err := l.Write(v); err != nil {
		t.Fatal(err)
	}
	v.Begin("k3", plan.Decision{Provider: "uni", Nodes: 1, Walltime: time.Hour}, now)
	l.Close()

	l, v = open(t, dir)
	v.SetProviders(settings())
	want := plan.Allocation{Key: "k1", Provider: "uni", Nodes: 2, Walltime: time.Hour, For: "because",
		State: plan.Queued, OuterID: "12", Asked: now, Queued: now}
	got, _ := json.Marshal(v.Allocations["k1"])
	if w, _ := json.Marshal(want); string(got) != string(w) {
		t.Errorf("got %s, want %s", got, w)
	}
	if h := v.Providers[0].History; h.Refusals != 1 || !h.LastRefusal.Equal(now) || len(v.Allocations) != 2 {
		t.Errorf("%+v, %d allocations", h, len(v.Allocations))
	}
	v.Forget(now.Add(1000 * time.Hour)) // the few last ones stay
	for key := range v.Allocations {
		delete(v.Allocations, key)
		v.Changed.Allocations[key] = true
	}
	if err := l.Write(v); err != nil {
		t.Fatal(err)
	}
	l.Close()
	l, v = open(t, dir)
	defer l.Close()
	if len(v.Allocations) != 0 {
		t.Errorf("%v", v.Allocations)
	}
}

func TestOneProcess(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	_, _, err := Open(dir)
	if !errors.Is(err, roost.Conflict) || !strings.Contains(err.Error(), "another provisioner") {
		t.Errorf("%v", err)
	}
}

func TestLaterVersion(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir)
	err := l.db.Update(func(tx *boltfile.Tx) error {
		return tx.Bucket(bucketAllocations).Put([]byte("k"), []byte(`{"Version":2}`))
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, _, err := Open(dir); !errors.Is(err, roost.BadConfig) || !strings.Contains(err.Error(), "newer") {
		t.Errorf("%v", err)
	}
	if files, _ := filepath.Glob(dir + "/*"); len(files) == 0 {
		t.Error("nothing was written")
	}
}
