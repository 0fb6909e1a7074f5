package login

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
)

const (
	secretSize   = 32 // bytes: too many to guess
	checksumSize = 4
	tokenPrefix  = "ru1" // join tokens of machines have another prefix
)

// LoginToken is the token that a user carries from the schedd's host to another machine.
type LoginToken struct {
	Secret      [secretSize]byte
	Fingerprint [sha256.Size]byte // of the certificate of the schedd's own authority
}

func newToken(authority *x509.Certificate) (t LoginToken) {
	rand.Read(t.Secret[:]) // never fails (crypto/rand)
	t.Fingerprint = sha256.Sum256(authority.Raw)
	return t
}

// String returns the token as one word. A changed or missing letter is detected before
// anything is sent.
func (t LoginToken) String() string {
	text := append(t.Secret[:], t.Fingerprint[:]...)
	sum := sha256.Sum256(text)
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(text, sum[:checksumSize]...))
}

// ParseToken reads the form of String. An error is of kind roost.Usage and does not
// repeat the input, which is almost a secret.
func ParseToken(text string) (t LoginToken, err error) {
	const cure = "paste the whole line that roost token --user has printed"
	code, ok := strings.CutPrefix(text, tokenPrefix)
	data, derr := base64.RawURLEncoding.Strict().DecodeString(code)
	if !ok || derr != nil || len(data) != secretSize+sha256.Size+checksumSize {
		return t, fmt.Errorf("token: %w: this is not one, or a part of it is missing: %s", roost.Usage, cure)
	}
	rest := data[:len(data)-checksumSize]
	if sum := sha256.Sum256(rest); !bytes.Equal(sum[:checksumSize], data[len(rest):]) {
		return t, fmt.Errorf("token: %w: a letter of it is wrong: %s", roost.Usage, cure)
	}
	copy(t.Secret[:], rest)
	copy(t.Fingerprint[:], rest[secretSize:])
	return t, nil
}

// digest returns the digest of a secret, which is stored in its place.
func digest(secret []byte) string {
	sum := sha256.Sum256(secret)
	return hex.EncodeToString(sum[:])
}
