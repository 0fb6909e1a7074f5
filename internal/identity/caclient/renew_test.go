package caclient

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
)

const life = 90 * time.Minute

// fakeAuthority is an authority that signs every request.
type fakeAuthority struct {
	*testing.T
	ca             *pki.Authority
	down           bool
	number         int64
	revoked        []pki.RevokedCert
	sendsOlderList bool // it sends a list older than the requested one
	renewals       []time.Time
	requests       []time.Time
}

func (f *fakeAuthority) Renew(_ context.Context, request []byte) ([]byte, error) {
	if f.down {
		return nil, errors.New("down")
	}
	f.renewals = append(f.renewals, time.Now())
	public, err := pki.ParseRequest(request)
	if err != nil {
		f.Fatal(err)
	}
	leaf, err := f.ca.Certify(public, "n1", []peer.Role{peer.Startd}, life)
	if err != nil {
		f.Fatal(err)
	}
	return leaf.Raw, nil
}

func (f *fakeAuthority) Revoked(_ context.Context, have int64) ([]byte, error) {
	f.requests = append(f.requests, time.Now())
	switch {
	case f.down:
		return nil, errors.New("down")
	case have == f.number:
		return nil, nil
	case f.sendsOlderList:
		have--
	default:
		have = f.number
	}
	der, err := f.ca.Revocations(have, f.revoked, time.Now(), time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	return der, nil
}

// startRenewer runs a CertRenewer of a node with a new certificate.
func startRenewer(t *testing.T) (*fakeAuthority, *config.TLSFiles, *bytes.Buffer) {
	ca, err := pki.NewAuthority("lab", 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeAuthority{T: t, ca: ca, number: 1}
	dir := t.TempDir()
	files := &config.TLSFiles{CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "node.pem"),
		Key: filepath.Join(dir, "node.key")}
	request, err := pki.Request(files.Key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := f.Renew(t.Context(), request)
	if err := errors.Join(err, pki.SaveAuthority(files, ca.Certificate()),
		pki.SaveCertificate(files, leaf)); err != nil {
		t.Fatal(err)
	}
	f.renewals = nil
	var log bytes.Buffer
	k := &CertRenewer{Files: files, Authority: f, Log: slog.New(slog.NewTextHandler(&log, nil))}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return f, files, &log
}

func waitUntil(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestCertificatesRenewedInTime checks when renewals happen. Certificates are backdated
// by an hour, so one that is valid for 90 minutes is due after 40 minutes, two thirds of
// 150.
func TestCertificatesRenewedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, files, _ := startRenewer(t)
		waitUntil(39 * time.Minute)
		if len(f.renewals) != 0 {
			t.Errorf("too early: %v", f.renewals)
		}
		f.down = true
		waitUntil(30 * time.Minute)
		if id, err := pki.Load(files); err != nil || id.Name != "n1" {
			t.Errorf("while the authority is down: got %v, %v", id, err)
		}
		f.down = false
		waitUntil(renewRetry + revocationInterval)
		if len(f.renewals) != 1 {
			t.Errorf("got %v", f.renewals)
		}
		waitUntil(life)
		if id, err := pki.Load(files); err != nil || id.Name != "n1" || len(f.renewals) != 3 {
			t.Errorf("later: got %v, %v, %v", id, err, f.renewals)
		}
	})
}

func TestRevocationListFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, files, log := startRenewer(t)
		entries := func() int {
			t.Helper()
			list, err := pki.ReadRevocations(files)
			if err != nil || list == nil {
				t.Fatalf("got %v, %v", list, err)
			}
			return len(list.RevokedCertificateEntries)
		}
		waitUntil(0)
		if got := entries(); got != 0 {
			t.Errorf("at first: got %d", got)
		}
		f.number, f.revoked = 2, []pki.RevokedCert{{Serial: big.NewInt(5), At: time.Now()}}
		waitUntil(revocationInterval)
		if got := entries(); got != 1 {
			t.Errorf("after %v: got %d", revocationInterval, got)
		}
		// An older list, which an attacker may have stored, does not make the revoked
		// certificate valid again.
		f.sendsOlderList, f.revoked, f.number = true, nil, 3
		waitUntil(2 * revocationInterval)
		if got := entries(); got != 1 || !strings.Contains(log.String(), "superseded") {
			t.Errorf("an older list: got %d\n%s", got, log)
		}
		f.sendsOlderList, f.down = false, true
		waitUntil(time.Hour / 4)
		if n := strings.Count(log.String(), "could not be fetched"); n != 1 {
			t.Errorf("an authority that gives no news is told of %d times:\n%s", n, log)
		}
		f.down = false
		waitUntil(revocationInterval)
		if got := entries(); got != 0 || !strings.Contains(log.String(), "answers again") {
			t.Errorf("up again: got %d\n%s", got, log)
		}
		for i := 1; i < len(f.requests); i++ {
			if d := f.requests[i].Sub(f.requests[i-1]); d > revocationInterval || d < revocationInterval/2 {
				t.Errorf("it asked after %v", d)
			}
		}
	})
}

// TestDamagedListReplaced checks that a list that is damaged on disk is fetched again.
func TestDamagedListReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, files, _ := startRenewer(t)
		waitUntil(0)
		copies, err := filepath.Glob(pki.RevocationsFile(files) + "*")
		if err != nil || len(copies) != 2 {
			t.Fatalf("got %v, %v, want two copies", copies, err)
		}
		for _, file := range copies {
			if err := os.WriteFile(file, []byte("rubbish"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		k := &CertRenewer{Files: files, Authority: f, Log: slog.New(slog.DiscardHandler)}
		if err := k.loadFiles(); err != nil || k.listNumber != 0 {
			t.Fatalf("got %d, %v", k.listNumber, err)
		}
		k.fetchRevocations(t.Context())
		if list, err := pki.ReadRevocations(files); err != nil || list.Number.Int64() != f.number {
			t.Errorf("got %v, %v", list, err)
		}
	})
}
