package login

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/damage"
)

// TestDamage damages the file of logins and tokens in many ways. The store has what was
// written, or refuses the file with its name and advice.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	for range 3 {
		token, _, err := k.MakeToken(ann, oneHour, noon)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := k.Redeem(token.Secret[:], key(t), "x", noon); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := k.MakeToken(ann, oneHour, noon); err != nil {
		t.Fatal(err)
	}
	want, path, refused := open(t, dir).state, filepath.Join(dir, "logins.json"), 0
	damage.ForEach(t, path, 100, func(what string) {
		got, err := Open(dir, "n2")
		switch {
		case err != nil:
			refused++
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "log in again") {
				t.Fatalf("%s: %v", what, err)
			}
		case !reflect.DeepEqual(got.state, want):
			t.Fatalf("%s: it is another one, without a word", what)
		}
	})
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}
