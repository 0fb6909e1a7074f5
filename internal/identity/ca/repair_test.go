package ca

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/internal/identity/pki"
)

// contents returns the records of a store, by bucket and key.
func contents(t *testing.T, what, dir string) map[string]string {
	t.Helper()
	s, err := openStore(dir, "central")
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer s.close()
	all := map[string]string{}
	err = s.db.View(func(tx *boltfile.Tx) error {
		for _, bucket := range [][]byte{tokensBucket, issuedBucket, namesBucket} {
			if err := tx.Bucket(bucket).ForEach(func(k, v []byte) error {
				all[string(bucket)+" "+hex.EncodeToString(k)] = string(v)
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return all
}

// TestRepair damages the store of the authority in many ways. Either it is not opened,
// with an error that names the damage, or all records are unchanged. After the repair
// each certificate is unchanged or is revoked and named, no revoked certificate is
// silently valid again, and a used token lets no other node join.
func TestRepair(t *testing.T) {
	s := newStore(t)
	var used []JoinToken
	for i := range 12 {
		token := newToken(t, s, Server, "", 0)
		if _, _, err := s.redeemToken(newJoinRequest(t, token, "", fmt.Sprint("n", i)), noon); err != nil {
			t.Fatal(err)
		}
		used = append(used, token)
		newToken(t, s, Desktop, "", 0)
	}
	for i := range 4 {
		if _, err := s.revokeNode(fmt.Sprint("n", i), "stolen", noon); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	want, path := contents(t, "before", s.dir), filepath.Join(s.dir, storeFile)
	mark, err := os.ReadFile(path + ".mark")
	if err != nil {
		t.Fatal(err)
	}
	other := newJoinRequest(t, used[0], "", "x").publicKey
	refused, same := 0, 0
	damage.ForEach(t, path, 30, func(what string) {
		if err := os.WriteFile(path+".mark", mark, 0o600); err != nil {
			t.Fatal(err)
		}
		report, err := Repair(s.dir, "central", noon, true)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if report != nil {
			if opened, err := openStore(s.dir, "central"); err == nil {
				opened.close()
				t.Fatalf("%s: it was opened with %v", what, report.Damages)
			} else if text := err.Error(); !strings.Contains(text, path) ||
				!strings.Contains(text, "roost doctor --repair") {
				t.Fatalf("%s: %v", what, err)
			}
			refused++
			if report, err = Repair(s.dir, "central", noon, false); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			defer os.Remove(report.DamagedPath)
		} else {
			report = &boltfile.RepairReport{}
		}
		same += compare(t, what, want, contents(t, what, s.dir), strings.Join(report.Actions, "\n"))
		again := reopen(t, s.dir)
		defer again.close()
		for i := range used {
			if _, _, err := again.redeemToken(joinRequest{secret: used[i].Secret[:], name: "x", publicKey: other,
				fromHost: "10.0.0.9"}, noon); err == nil {
				t.Fatalf("%s: a token that was used lets another one in: %v", what, report.Actions)
			}
		}
	})
	t.Logf("%d refused; %d records were as they were", refused, same)
	if refused == 0 || same < refused*len(want)/3 {
		t.Errorf("%d refused; %d of %d records are as they were", refused, same, refused*len(want))
	}
}

// compare compares a store after a repair with the store before, and counts equal
// records.
func compare(t *testing.T, what string, want, got map[string]string, actions string) (same int) {
	t.Helper()
	unknown := strings.Contains(actions, "it is unknown what that was")
	for key, was := range want {
		bucket, id, _ := strings.Cut(key, " ")
		is, there := got[key]
		switch {
		case is == was && there:
			same++
		case bucket == string(issuedBucket) && there && strings.Contains(is, `"revoked"`) &&
			strings.Contains(actions, "certificate "+id):
		case bucket == string(tokensBucket) && !there &&
			(unknown || strings.Contains(actions, "tokens that are damaged are forgotten")):
		case bucket != string(tokensBucket) && unknown:
		case bucket == string(namesBucket) && there:
		default:
			t.Fatalf("%s: %s is %q, was %q, and nothing says so:\n%s", what, key, is, was, actions)
		}
	}
	for key := range got {
		if _, was := want[key]; !was && !unknown && !strings.Contains(actions, "a node whose name is lost") {
			t.Fatalf("%s: %s is new:\n%s", what, key, actions)
		}
	}
	return same
}

// TestDamagedKeys checks that a damaged key or certificate of the authority is refused,
// unless the damage left it unchanged.
func TestDamagedKeys(t *testing.T) {
	s := newStore(t)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	was := s.ca.Certificate().Raw
	public := s.ca.Certificate().PublicKey
	names, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name.Name(), storeFile) {
			continue
		}
		refused := 0
		damage.ForEach(t, filepath.Join(s.dir, name.Name()), 40, func(what string) {
			ca, err := pki.LoadAuthority(s.dir)
			if err != nil {
				refused++
				if !strings.Contains(err.Error(), s.dir) {
					t.Fatalf("%s: %s: %v", name.Name(), what, err)
				}
				return
			}
			if !bytes.Equal(ca.Certificate().Raw, was) || fmt.Sprint(ca.Certificate().PublicKey) != fmt.Sprint(public) {
				t.Fatalf("%s: %s: it is another authority, without a word", name.Name(), what)
			}
		})
		if refused == 0 {
			t.Errorf("%s: no damage was refused", name.Name())
		}
	}
}
