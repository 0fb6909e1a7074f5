package pki

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// certReloader is what is in a node's files now: they are read again when one of them has
// changed. What cannot be read, or is worse than what is known, changes nothing: half of
// a renewal is seen when the certificate is there and the key is not.
type certReloader struct {
	files config.TLSFiles

	mu          sync.Mutex
	stamps      [4]fileStamp
	pair        tls.Certificate
	authorities *x509.CertPool
	number      int64                // of the list of revoked certificates; 0: there is none
	revoked     map[string]time.Time // since when, by serial number in hexadecimal
}

// fileStamp is by what a file is known to have changed. Each change is a rename, so the
// inode says it even where the clock does not.
type fileStamp struct {
	info os.FileInfo // nil: no file
}

func (s fileStamp) same(o fileStamp) bool {
	if s.info == nil || o.info == nil {
		return s.info == o.info
	}
	return os.SameFile(s.info, o.info) && s.info.ModTime().Equal(o.info.ModTime()) && s.info.Size() == o.info.Size()
}

// revocationListIndex is the place of the list of revoked certificates among the stamps.
const revocationListIndex = 3

func (f *certReloader) stampFiles() (all [4]fileStamp) {
	for i, name := range []string{f.files.CA, f.files.Certificate, f.files.Key, RevocationsFile(&f.files)} {
		if info, err := os.Stat(name); err == nil {
			all[i].info = info
		}
	}
	return all
}

// refresh reads again what has changed, and says so. A file that is wrong is told about
// once.
func (f *certReloader) refresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.stamps
	f.stamps = f.stampFiles()
	if !before[0].same(f.stamps[0]) || !before[1].same(f.stamps[1]) || !before[2].same(f.stamps[2]) {
		if err := f.loadCert(); err != nil {
			slog.Error("the certificate that this node has now is not used; the one before is, until it ends",
				"err", err)
		} else {
			slog.Info("certificate", "node", f.pair.Leaf.Subject.CommonName, "ends", f.pair.Leaf.NotAfter, "roles",
				f.pair.Leaf.Subject.OrganizationalUnit)
		}
	}
	if !before[revocationListIndex].same(f.stamps[revocationListIndex]) {
		f.loadRevocations()
	}
}

// loadCert takes in the node's certificate, its key, and the authority.
func (f *certReloader) loadCert() error {
	text, err := os.ReadFile(f.files.CA)
	if err != nil {
		return fileError("authority", err)
	}
	authorities, err := authoritiesIn(text)
	if err != nil {
		return fmt.Errorf("authority %s: %w: %w: copy it from another node of the pool", f.files.CA,
			roost.BadConfig, err)
	}
	pair, err := loadPair(f.files.Certificate, f.files.Key)
	if err != nil {
		return err
	}
	err = verifyCert(pair.Leaf, authorities)
	if errors.Is(err, errForeign) {
		return fmt.Errorf("certificate %s: %w: %w, or it is damaged: let the machine join again (roost token, "+
			"roost join)", f.files.Certificate, roost.BadConfig, err)
	}
	if err != nil {
		return fmt.Errorf("certificate %s: %w: %w", f.files.Certificate, roost.BadConfig, err)
	}
	f.pair, f.authorities = pair, authorities
	return nil
}

// authoritiesIn reads the certificates of a file, which have signed themselves: a flipped
// bit in one is noticed.
func authoritiesIn(text []byte) (*x509.CertPool, error) {
	authorities, n := x509.NewCertPool(), 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err == nil {
			err = cert.CheckSignature(cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature)
		}
		if err != nil {
			return nil, fmt.Errorf("it is damaged: %w", err)
		}
		authorities.AddCert(cert)
		n++
	}
	if n == 0 {
		return nil, errors.New("there is no certificate in it")
	}
	return authorities, nil
}

// loadRevocations takes in the list of revoked certificates. One that the authority has
// not signed, or that is older than what is known, is left alone: who can put a file
// there must not be able to let anybody in again.
func (f *certReloader) loadRevocations() {
	found, err := ReadRevocations(&f.files)
	if err == nil && found == nil {
		if f.number > 0 {
			slog.Error("the list of revoked certificates is gone; what was on it stays revoked", "file",
				RevocationsFile(&f.files))
		}
		return
	}
	if err == nil && found.Number.Int64() < f.number {
		err = fmt.Errorf("%s: %w: it is number %v, and number %d was here before", RevocationsFile(&f.files),
			roost.Stale, found.Number, f.number)
	}
	if err != nil {
		slog.Error("a list of revoked certificates is not used", "err", err)
		return
	}
	level := slog.LevelInfo
	// what was there from the beginning is no news: the master and roost leave read it
	// each time anew
	if f.number == 0 {
		level = slog.LevelDebug
	}
	f.number, f.revoked = found.Number.Int64(), map[string]time.Time{}
	for _, r := range found.RevokedCertificateEntries {
		f.revoked[r.SerialNumber.Text(16)] = r.RevocationTime
	}
	slog.Log(context.Background(), level, "list of revoked certificates", "number", f.number, "certificates",
		len(f.revoked))
	if at, ok := f.revoked[f.pair.Leaf.SerialNumber.Text(16)]; ok {
		slog.Error("this node's own certificate is revoked: the other nodes refuse it until it joins anew (roost join)",
			"since", at)
	}
}

// checkCert says why a peer that comes now is refused.
func (f *certReloader) checkCert(leaf *x509.Certificate) error {
	f.mu.Lock()
	authorities := f.authorities
	f.mu.Unlock()
	if err := verifyCert(leaf, authorities); err != nil {
		return err
	}
	return f.checkPeer(leaf)
}

// isRevoked reports whether the certificate of that number, in hexadecimal, is on the
// list.
func (f *certReloader) isRevoked(serial string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, on := f.revoked[serial]
	return on
}

// checkPeer says why a peer that came with that certificate, when it held, is hung up on.
func (f *certReloader) checkPeer(leaf *x509.Certificate) error {
	if err := checkValidity(leaf, time.Now()); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, ok := f.revoked[leaf.SerialNumber.Text(16)]; ok {
		return errors.New("the certificate was revoked on " + at.Format(time.RFC3339) +
			": let the node join anew if it is to come back (roost token)")
	}
	return nil
}
