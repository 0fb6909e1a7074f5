package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// certify lets the authority in dir answer a request.
func certify(t *testing.T, dir string, request []byte) []byte {
	t.Helper()
	public, err := ParseRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	a, err := LoadAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := a.Certify(public, "n9", []peer.Role{peer.Startd}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return leaf.Raw
}

func TestKeyStaysWithNode(t *testing.T) {
	dir := filepath.Dir(issuePool(t, "n1")["n1"].CA)
	own := t.TempDir()
	files := &config.TLSFiles{CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(own, "node.pem"),
		Key: filepath.Join(own, "node.key")}
	first, err := Request(files.Key)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(files.Key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: got %v, %v", info, err)
	}
	again, err := Request(files.Key)
	if err != nil || !bytes.Equal(publicOf(t, first), publicOf(t, again)) {
		t.Errorf("asked again it is another key, %v", err)
	}
	if err := SaveCertificate(files, certify(t, dir, first)); err != nil {
		t.Fatal(err)
	}
	if id := load(t, files); id.Name != "n9" {
		t.Errorf("got %+v", id)
	}
	other, err := Request(filepath.Join(own, "other.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := SaveCertificate(files, certify(t, dir, other)); !errors.Is(err, roost.Conflict) {
		t.Errorf("a certificate for another key: got %v", err)
	}
	if id := load(t, files); id.Name != "n9" {
		t.Errorf("afterwards: got %+v", id)
	}
	os.Chmod(files.Key, 0o644)
	if _, err := Request(files.Key); !errors.Is(err, roost.BadConfig) {
		t.Errorf("a key that others can read: got %v", err)
	}
}

func publicOf(t *testing.T, request []byte) []byte {
	t.Helper()
	public, err := ParseRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	return public
}

func TestRequestsAreChecked(t *testing.T) {
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, foreign)
	if err != nil {
		t.Fatal(err)
	}
	good, err := Request(filepath.Join(t.TempDir(), "k"))
	if err != nil {
		t.Fatal(err)
	}
	forged := bytes.Clone(good)
	forged[len(forged)-1] ^= 1
	for name, text := range map[string][]byte{"another kind of key": der, "a signature of nobody": forged,
		"nothing": nil, "noise": []byte("x")} {
		if _, err := ParseRequest(text); !errors.Is(err, roost.Invalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestRevocationsSaved(t *testing.T) {
	files := issuePool(t, "n1")["n1"]
	if list, err := ReadRevocations(files); list != nil || err != nil {
		t.Errorf("before: got %v, %v", list, err)
	}
	a, err := LoadAuthority(filepath.Dir(files.CA))
	if err != nil {
		t.Fatal(err)
	}
	der, err := a.Revocations(7, []RevokedCert{{big.NewInt(42), time.Now()}}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := SaveRevocations(files, der); err != nil {
		t.Fatal(err)
	}
	list, err := ReadRevocations(files)
	if err != nil || list.Number.Int64() != 7 || len(list.RevokedCertificateEntries) != 1 ||
		list.RevokedCertificateEntries[0].SerialNumber.Int64() != 42 {
		t.Errorf("got %+v, %v", list, err)
	}
	id, err := Load(files)
	if err != nil {
		t.Fatal(err)
	}
	if !id.IsRevoked("2a") || id.IsRevoked("2b") {
		t.Errorf("of number 42 and 43: got %v and %v, want that the first is revoked", id.IsRevoked("2a"),
			id.IsRevoked("2b"))
	}
	foreign, err := NewAuthority("lab", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if der, err = foreign.Revocations(8, nil, time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := SaveRevocations(files, der); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRevocations(files); !errors.Is(err, roost.BadConfig) {
		t.Errorf("a list of another authority: got %v", err)
	}
}

// TestUnchangedListNotLogged checks that the first list is not logged: commands read it
// at each start.
func TestUnchangedListNotLogged(t *testing.T) {
	files := issuePool(t, "n1")["n1"]
	a, err := LoadAuthority(filepath.Dir(files.CA))
	if err != nil {
		t.Fatal(err)
	}
	publish := func(number int64) {
		t.Helper()
		der, err := a.Revocations(number, []RevokedCert{{Serial: big.NewInt(number), At: time.Now()}},
			time.Now(), time.Hour)
		if err == nil {
			err = SaveRevocations(files, der)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	publish(1)
	f := &certReloader{files: *files}
	if err := f.loadCert(); err != nil {
		t.Fatal(err)
	}
	if f.loadRevocations(); log.Len() > 0 {
		t.Errorf("got %s", &log)
	}
	publish(2)
	if f.loadRevocations(); !strings.Contains(log.String(), "number=2 certificates=1") {
		t.Errorf("a new list: got %s", &log)
	}
}
