package pki

import (
	"cmp"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// The files of an authority in its directory. A node's are NAME.pem and NAME.key beside
// them.
const (
	authorityCert = "ca.pem"
	authorityKey  = "ca.key"
)

// Init makes an authority in dir, which must not have one yet.
func Init(dir, pool string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("authority in %s: %w: %w", dir, roost.NoOutput, err)
	}
	a, err := NewAuthority(pool, AuthorityValidity)
	if err != nil {
		return err
	}
	cert, key, err := a.PEM()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, authorityKey), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("authority in %s: %w: there is one already, and the certificates of a pool depend on it",
			dir,
			roost.Conflict)
	}
	if err != nil {
		return fmt.Errorf("authority in %s: %w: %w", dir, roost.NoOutput, err)
	}
	_, err = f.Write(key)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("authority in %s: %w: %w", dir, roost.NoOutput, err)
	}
	return replaceFile(filepath.Join(dir, authorityCert), cert, 0o644)
}

// IssueTo makes a key and a certificate for a node with the authority in dir, and writes
// them there. It returns the three files for the node's tls block. A node with a
// certificate gets a new one.
func IssueTo(dir, name string, roles []peer.Role) (config.TLSFiles, error) {
	files := config.TLSFiles{CA: filepath.Join(dir, authorityCert), Certificate: filepath.Join(dir, name+".pem"),
		Key: filepath.Join(dir, name+".key")}
	if name == "ca" || !config.IsValidName(name) {
		return config.TLSFiles{}, fmt.Errorf("node %q: %w: this cannot be a node's name", name, roost.Invalid)
	}
	if twins, err := NamesDifferingInCase(dir, name); err != nil || len(twins) > 0 {
		return config.TLSFiles{}, cmp.Or(err,
			fmt.Errorf("node %s: %w: there is a certificate of %s, and names that differ by the case of letters only "+
				"are one: choose another, or remove that one's files",
				name, roost.Conflict, strings.Join(twins, " and ")))
	}
	a, err := LoadAuthority(dir)
	if err != nil {
		return config.TLSFiles{}, err
	}
	cert, key, err := a.Issue(name, roles, NodeValidity)
	if err != nil {
		return config.TLSFiles{}, err
	}
	if err := replaceFile(files.Key, key, 0o600); err != nil {
		return config.TLSFiles{}, err
	}
	return files, replaceFile(files.Certificate, cert, 0o644)
}

// NamesDifferingInCase lists the nodes with certificates in an authority's directory
// whose names differ from a name only by case.
func NamesDifferingInCase(dir, name string) (twins []string, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("authority in %s: %w: %w", dir, roost.NoInput, err)
	}
	for _, f := range files {
		if twin, ok := strings.CutSuffix(f.Name(), ".pem"); ok && twin != name && strings.EqualFold(twin, name) {
			twins = append(twins, twin)
		}
	}
	return twins, nil
}

// LoadAuthority reads the authority in dir.
func LoadAuthority(dir string) (*Authority, error) {
	pair, err := loadPair(filepath.Join(dir, authorityCert), filepath.Join(dir, authorityKey))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (make an authority with: roost pki init %s)", err, dir)
	}
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(ed25519.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("authority in %s: %w: this is not a pool's authority", dir, roost.BadConfig)
	}
	if err := pair.Leaf.CheckSignature(pair.Leaf.SignatureAlgorithm, pair.Leaf.RawTBSCertificate,
		pair.Leaf.Signature); err != nil {
		return nil, fmt.Errorf("authority in %s: %w: its certificate is damaged: %w: bring %s back, which each node "+
			"has a copy of", dir, roost.BadConfig, err, authorityCert)
	}
	return &Authority{pair.Leaf, key}, nil
}

// IsAuthority reports whether there is an authority in dir.
func IsAuthority(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, authorityKey))
	return err == nil
}

// loadPair reads a certificate and its key.
func loadPair(certFile, keyFile string) (tls.Certificate, error) {
	if err := checkPrivate(keyFile); err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return tls.Certificate{}, fileError("certificate", err)
	}
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate %s and key %s: %w: %w: they have to come from the same "+
			"roost join, or roost pki issue", certFile, keyFile,
			roost.BadConfig, err)
	}
	return pair, nil
}

// fileError returns an error with advice about an unreadable file of a node's identity;
// err names the file.
func fileError(what string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %w: %w: the daemons of a pool of several machines run as the user who owns it, "+
			"root mostly", what, roost.NoInput, err)
	}
	return fmt.Errorf("%s: %w: %w: bring it back, or let the machine join again (roost token, roost join)", what,
		roost.NoInput, err)
}

// checkPrivate checks that no other user can read a key.
func checkPrivate(keyFile string) error {
	info, err := os.Stat(keyFile)
	if err != nil {
		return fileError("key", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("key %s: %w: others can read it (mode %04o): chmod 600 it, and issue a new one "+
			"if anybody may have",
			keyFile, roost.BadConfig, info.Mode().Perm())
	}
	return nil
}

// replaceFile replaces a file atomically.
func replaceFile(path string, text []byte, mode fs.FileMode) error {
	if err := atomicfile.WriteDurable(path, text, mode); err != nil {
		return fmt.Errorf("%s: %w: %w", path, roost.NoOutput, err)
	}
	return nil
}
