package pki

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// Request returns a certificate request for the key in a file, as PKCS #10 in DER. It
// makes a missing key. The key never leaves the node: a repeated request, after a lost
// answer, uses the same key.
func Request(keyFile string) ([]byte, error) {
	key, err := readKey(keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = makeKey(keyFile)
	}
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"Roost node"}}}, key)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", keyFile, err)
	}
	return der, nil
}

// ParseRequest returns the public key of a request, whose sender has proved that it has
// the private key.
func ParseRequest(der []byte) (ed25519.PublicKey, error) {
	request, err := x509.ParseCertificateRequest(der)
	if err == nil {
		err = request.CheckSignature()
	}
	if err != nil {
		return nil, fmt.Errorf("certificate request: %w: %w", roost.Invalid, err)
	}
	public, ok := request.PublicKey.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("certificate request: %w: its key is a %v and not an Ed25519", roost.Invalid,
			request.PublicKeyAlgorithm)
	}
	return public, nil
}

func makeKey(file string) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	text, err := encodeKey(key)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	return key, replaceFile(file, text, 0o600)
}

func readKey(file string) (ed25519.PrivateKey, error) {
	if err := checkPrivate(file); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("key: %w: %w", roost.NoInput, err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("key %s: %w: there is no key in it: remove the file, and a new one is made", file,
			roost.BadConfig)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w: %w: remove the file, and a new one is made", file, roost.BadConfig, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("key %s: %w: it is not an Ed25519 key: remove the file, and a new one is made", file,
			roost.BadConfig)
	}
	return key, nil
}

// SaveCertificate writes a node's new certificate, in DER, where its daemons read it. The
// certificate must fit the node's key and be valid under its authority.
func SaveCertificate(files *config.TLSFiles, der []byte) error {
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("certificate: %w: %w", roost.Invalid, err)
	}
	key, err := readKey(files.Key)
	if err != nil {
		return err
	}
	if public, ok := leaf.PublicKey.(ed25519.PublicKey); !ok || !public.Equal(key.Public()) {
		return fmt.Errorf("certificate of %q: %w: it is not for the key in %s", leaf.Subject.CommonName,
			roost.Conflict, files.Key)
	}
	ca, err := ReadCertificate(files.CA)
	if err != nil {
		return err
	}
	authorities := x509.NewCertPool()
	authorities.AddCert(ca)
	if err := verifyCert(leaf, authorities); err != nil {
		return fmt.Errorf("certificate of %q: %w: %w", leaf.Subject.CommonName, roost.Conflict, err)
	}
	return replaceFile(files.Certificate, encodeCertificate(leaf), 0o644)
}

// SaveAuthority writes the certificate of the authority that a node trusts from now on.
func SaveAuthority(files *config.TLSFiles, ca *x509.Certificate) error {
	return replaceFile(files.CA, encodeCertificate(ca), 0o644)
}

// ReadCertificate reads the first certificate in a file.
func ReadCertificate(file string) (*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w: %w", roost.NoInput, err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("certificate %s: %w: there is no certificate in it", file, roost.BadConfig)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w: %w", file, roost.BadConfig, err)
	}
	return cert, nil
}
