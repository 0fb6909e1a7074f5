package pki

import (
	"bytes"
	"log/slog"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/damage"
)

// TestDamage damages each file of a node's identity in many ways. The identity is the
// issued one, or it is refused with the name of the file and advice.
func TestDamage(t *testing.T) {
	files := issuePool(t, "n1")["n1"]
	was := load(t, files)
	leaf, authority := was.TLS().Certificates[0].Leaf.Raw, was.TLS().Certificates[0].Leaf.RawIssuer
	for name, path := range map[string]string{"authority": files.CA, "certificate": files.Certificate,
		"key": files.Key} {
		t.Run(name, func(t *testing.T) {
			refused := 0
			damage.ForEach(t, path, 300, func(what string) {
				got, err := Load(files)
				if err != nil {
					refused++
					if text := err.Error(); !strings.Contains(text, path) || !strings.Contains(text, "roost join") &&
						!strings.Contains(text, "copy it from another node") {
						t.Fatalf("%s: %v", what, err)
					}
					return
				}
				now := got.TLS().Certificates[0].Leaf
				if got.Name != "n1" || !bytes.Equal(now.Raw, leaf) || !bytes.Equal(now.RawIssuer, authority) ||
					len(got.Roles) != len(was.Roles) {
					t.Fatalf("%s: it is another identity, without a word", what)
				}
			})
			if refused == 0 {
				t.Error("no damage was noticed")
			}
		})
	}
}

// TestDamagedRevocations damages the list of revoked certificates in many ways. Revoked
// certificates stay revoked, because the second copy is read. If both are damaged, the
// error names the file.
func TestDamagedRevocations(t *testing.T) {
	files := issuePool(t, "n1")["n1"]
	a, err := LoadAuthority(filepath.Dir(files.CA))
	if err != nil {
		t.Fatal(err)
	}
	der, err := a.Revocations(7, []RevokedCert{{big.NewInt(42), time.Now()}}, time.Now(), time.Hour)
	if err == nil {
		err = SaveRevocations(files, der)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	first := RevocationsFile(files)
	for _, path := range []string{first, first + copySuffix} {
		damage.ForEach(t, path, 150, func(what string) {
			if id := load(t, files); !id.IsRevoked("2a") || id.IsRevoked("2b") {
				t.Fatalf("%s of %s: a revoked certificate is believed again", what, path)
			}
		})
	}
	refused := 0
	damage.ForEach(t, first+copySuffix, 10, func(one string) {
		damage.ForEach(t, first, 10, func(two string) {
			list, err := ReadRevocations(files)
			switch {
			case err != nil && strings.Contains(err.Error(), first) && strings.Contains(err.Error(), "remove it"):
				refused++
			case err != nil:
				t.Fatalf("%s, %s: %v", one, two, err)
			case list.Number.Int64() != 7 || len(list.RevokedCertificateEntries) != 1:
				t.Fatalf("%s, %s: it is another list, without a word", one, two)
			}
		})
	})
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}
