package ca

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
	secretSize   = 32 // 256 bits cannot be guessed, so only the work for wrong secrets must be bounded
	checksumSize = 4
	tokenPrefix  = "rt1"
)

// JoinToken is given to a new machine. It has the secret that lets the machine join, and
// identifies the authority.
type JoinToken struct {
	Secret      [secretSize]byte
	Fingerprint [sha256.Size]byte // SHA-256 digest of the authority's certificate
}

// NewToken returns a token with a new secret.
func NewToken(authority *x509.Certificate) JoinToken {
	t := JoinToken{Fingerprint: Fingerprint(authority)}
	rand.Read(t.Secret[:]) // never fails (crypto/rand)
	return t
}

// Fingerprint returns the SHA-256 digest of a certificate.
func Fingerprint(c *x509.Certificate) [sha256.Size]byte { return sha256.Sum256(c.Raw) }

// String returns the token as one word for a command line. A changed or missing letter is
// detected before anything is sent.
func (t JoinToken) String() string {
	text := append(t.Secret[:], t.Fingerprint[:]...)
	sum := sha256.Sum256(text)
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(text, sum[:checksumSize]...))
}

// ParseToken reads the form of String. An error is of kind roost.Usage and does not
// repeat the input, which is almost a secret.
func ParseToken(text string) (JoinToken, error) {
	const cure = "paste the whole line that roost token has printed"
	var t JoinToken
	code, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok {
		return t, fmt.Errorf("token: %w: it does not begin with %s: %s", roost.Usage, tokenPrefix, cure)
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(code)
	if want := len(t.Secret) + len(t.Fingerprint) + checksumSize; err != nil || len(data) != want {
		return t, fmt.Errorf("token: %w: it has %d letters and should have %d: %s", roost.Usage, len(text),
			len(t.String()), cure)
	}
	rest := data[:len(data)-checksumSize]
	if sum := sha256.Sum256(rest); !bytes.Equal(sum[:checksumSize], data[len(rest):]) {
		return t, fmt.Errorf("token: %w: a letter of it is wrong: %s", roost.Usage, cure)
	}
	copy(t.Secret[:], rest)
	copy(t.Fingerprint[:], rest[len(t.Secret):])
	return t, nil
}

// digest returns the digest of a secret, which is stored in its place.
func digest(secret []byte) []byte {
	sum := sha256.Sum256(secret)
	return sum[:]
}

// tokenID returns the id by which users name a token. It is too short to find the secret,
// even if the digest could be inverted.
func tokenID(digest []byte) string { return hex.EncodeToString(digest[:6]) }
