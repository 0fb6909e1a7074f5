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

// certReloader holds the contents of a node's files, and reads them again when one has
// changed. A file that cannot be read or is not acceptable changes nothing: halfway
// through a renewal the certificate is new and the key is not.
type certReloader struct {
	files config.TLSFiles

	mu          sync.Mutex
	stamps      [4]fileStamp
	pair        tls.Certificate
	authorities *x509.CertPool
	number      int64                // of the list of revoked certificates; 0: there is none
	revoked     map[string]time.Time // time of revocation, by serial number in hexadecimal digits
}

// fileStamp identifies a version of a file. Each change is a rename, so the inode changes
// even if the time does not: the open file keeps its number from being used again.
type fileStamp struct {
	file *os.File
	info os.FileInfo // nil: no file
}

func (s fileStamp) same(o fileStamp) bool {
	if s.info == nil || o.info == nil {
		return s.info == o.info
	}
	return os.SameFile(s.info, o.info) && s.info.ModTime().Equal(o.info.ModTime()) && s.info.Size() == o.info.Size()
}

// revocationListIndex is the index of the list of revoked certificates among the stamps.
const revocationListIndex = 3

func (f *certReloader) stampFiles() (all [4]fileStamp) {
	for i, name := range []string{f.files.CA, f.files.Certificate, f.files.Key, RevocationsFile(&f.files)} {
		all[i] = stampFile(name)
	}
	return all
}

func stampFile(name string) (s fileStamp) {
	file, err := os.Open(name)
	if err != nil {
		return s
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return s
	}
	return fileStamp{file, info}
}

func (s fileStamp) close() {
	if s.file != nil {
		s.file.Close()
	}
}

// refresh reads changed files again, and logs that. An invalid file is reported once.
func (f *certReloader) refresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.stamps
	f.stamps = f.stampFiles()
	defer func() {
		for _, s := range before {
			s.close()
		}
	}()
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

// loadCert loads the node's certificate, its key, and the authority's certificate.
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
	var unknown x509.UnhandledCriticalExtension
	if errors.Is(err, errForeign) || errors.As(err, &unknown) {
		return fmt.Errorf("certificate %s: %w: %w, or it is damaged: let the machine join again (roost token, "+
			"roost join)", f.files.Certificate, roost.BadConfig, err)
	}
	if err != nil {
		return fmt.Errorf("certificate %s: %w: %w; or let the machine join again (roost token, roost join)",
			f.files.Certificate, roost.BadConfig, err)
	}
	f.pair, f.authorities = pair, authorities
	return nil
}

// authoritiesIn reads the certificates of a file and verifies their own signatures, which
// detects a flipped bit.
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

// loadRevocations loads the list of revoked certificates. A list that the authority has
// not signed, or that is older than the present one, is ignored: an attacker who can
// write the file must not be able to make a revoked certificate valid again.
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
	// the first list is no change: the master and roost leave read it at each start
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

// checkCert returns why the certificate of a new peer is refused, or nil.
func (f *certReloader) checkCert(leaf *x509.Certificate) error {
	f.mu.Lock()
	authorities := f.authorities
	f.mu.Unlock()
	if err := verifyCert(leaf, authorities); err != nil {
		return err
	}
	return f.checkPeer(leaf)
}

// isRevoked reports whether a certificate, by its serial number in hexadecimal digits, is
// on the list.
func (f *certReloader) isRevoked(serial string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, on := f.revoked[serial]
	return on
}

// checkPeer returns why the connection of a peer whose certificate was valid before must
// be closed, or nil.
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
