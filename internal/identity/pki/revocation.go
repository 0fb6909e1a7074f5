package pki

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// RevocationsFile returns the path of a node's list of revoked certificates, beside its
// authority's certificate.
func RevocationsFile(files *config.TLSFiles) string {
	return filepath.Join(filepath.Dir(files.CA), "crl.pem")
}

// copySuffix ends the name of the second copy of that list. Without a copy, a damaged
// list would leave all certificates valid until the authority answers.
const copySuffix = ".copy"

// RevokedCert is a revoked certificate with the time of its revocation.
type RevokedCert struct {
	Serial *big.Int
	At     time.Time
}

// Revocations signs a list with a number (RFC 5280, section 5), in DER. Numbers rise, so
// that an older list cannot replace a newer one.
func (a *Authority) Revocations(number int64, list []RevokedCert, now time.Time, life time.Duration) ([]byte, error) {
	template := &x509.RevocationList{Number: big.NewInt(number), ThisUpdate: now, NextUpdate: now.Add(life)}
	for _, r := range list {
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: r.Serial, RevocationTime: r.At})
	}
	if a.cert.KeyUsage&x509.KeyUsageCRLSign == 0 {
		return nil, fmt.Errorf("authority of %s: %w: its certificate does not let it revoke any: make a new one with "+
			"roost pki init", a.cert.Subject.CommonName, roost.BadConfig)
	}
	der, err := x509.CreateRevocationList(rand.Reader, template, a.cert, a.key)
	if err != nil {
		return nil, fmt.Errorf("list of revoked certificates: %w", err)
	}
	return der, nil
}

// ParseRevocations reads a list, in DER or PEM, and verifies the authority's signature.
func ParseRevocations(text []byte, authority *x509.Certificate) (*x509.RevocationList, error) {
	if block, _ := pem.Decode(text); block != nil {
		text = block.Bytes
	}
	list, err := x509.ParseRevocationList(text)
	if err == nil {
		err = list.CheckSignatureFrom(authority)
	}
	if err == nil && (list.Number == nil || !list.Number.IsInt64()) {
		err = errors.New("it has no number")
	}
	if err != nil {
		return nil, fmt.Errorf("list of revoked certificates: %w: %w", roost.BadConfig, err)
	}
	return list, nil
}

// ReadRevocations reads a node's list, which its authority must have signed. If the list
// is damaged the second copy is read. The result is nil if there is none.
func ReadRevocations(files *config.TLSFiles) (*x509.RevocationList, error) {
	path := RevocationsFile(files)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	authority, err := ReadCertificate(files.CA)
	if err != nil {
		return nil, err
	}
	list, err := readRevocations(path, authority)
	if err == nil {
		return list, nil
	}
	if list, second := readRevocations(path+copySuffix, authority); second == nil {
		slog.Warn("the list of revoked certificates is damaged, and its second copy is used", "number", list.Number,
			"err", err)
		return list, nil
	}
	return nil, err
}

func readRevocations(path string, authority *x509.Certificate) (*x509.RevocationList, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("list of revoked certificates: %w: %w", roost.NoInput, err)
	}
	list, err := ParseRevocations(text, authority)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it, and the node fetches it from the authority again", path, err)
	}
	return list, nil
}

// SaveRevocations writes a list, in DER, where ReadRevocations finds it. The second copy
// is written first, so that it is never older than the first.
func SaveRevocations(files *config.TLSFiles, der []byte) error {
	path, text := RevocationsFile(files), pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
	if err := replaceFile(path+copySuffix, text, 0o644); err != nil {
		return err
	}
	return replaceFile(path, text, 0o644)
}
