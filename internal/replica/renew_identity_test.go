package replica

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestRenewIdentity opens the store of a member again. One that never had an entry stays
// who it is, and one that has lost its log does not.
func TestRenewIdentity(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(t *testing.T, dir string, s *diskStore)
		renewed bool
	}{
		{"no entry yet", func(*testing.T, string, *diskStore) {}, false},
		{"a term and no entry", func(t *testing.T, _ string, s *diskStore) {
			if err := s.SetUint64([]byte("CurrentTerm"), 2); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"the log is removed", func(t *testing.T, dir string, s *diskStore) {
			removeAll(t, filepath.Join(dir, "log"))
		}, true},
		{"log and mark are removed", func(t *testing.T, dir string, s *diskStore) {
			removeAll(t, filepath.Join(dir, "log"))
			removeAll(t, filepath.Join(dir, markFile))
		}, true},
		{"the mark is removed", func(t *testing.T, dir string, s *diskStore) {
			removeAll(t, filepath.Join(dir, markFile))
		}, true},
		{"the log is set aside", func(t *testing.T, dir string, s *diskStore) {
			if err := s.StoreLog(&raft.Log{Index: 1, Term: 1, Data: []byte("x")}); err != nil {
				t.Fatal(err)
			}
			if _, err := setAside(dir, time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
			r := &Replica{config: Config{Name: "c1", Dir: dir, Peers: []string{"a", "b", "c"}}, log: log}
			r.identity.Store(&memberIdentity{ID: "c1/1", Cell: "cell"})
			open := func() *diskStore {
				s, err := openStore(dir, log, func(err error) { t.Error(err) })
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			s := open()
			test.change(t, dir, s)
			s.close()
			s = open()
			defer s.close()
			if err := r.renewIdentity(s); err != nil {
				t.Fatal(err)
			}
			if renewed := r.identity.Load().ID != "c1/1"; renewed != test.renewed {
				t.Errorf("it has a new identity: %v", renewed)
			}
		})
	}
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}
