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
	secretSize   = 32 // 256 bits: nobody guesses it, so wrong ones need no more than a bound on the work that they make
	checksumSize = 4
	tokenPrefix  = "rt1"
)

// JoinToken is what a new machine is given: the secret that lets it in, and by which it
// knows the authority that it is meant for.
type JoinToken struct {
	Secret      [secretSize]byte
	Fingerprint [sha256.Size]byte // of the authority's certificate
}

// NewToken makes one with a fresh secret.
func NewToken(authority *x509.Certificate) JoinToken {
	t := JoinToken{Fingerprint: Fingerprint(authority)}
	rand.Read(t.Secret[:]) // never fails (crypto/rand)
	return t
}

// Fingerprint is the SHA-256 digest of a certificate.
func Fingerprint(c *x509.Certificate) [sha256.Size]byte { return sha256.Sum256(c.Raw) }

// String is the token as it stands on a command line: one word, in which a letter that
// was changed or lost is noticed before anything is sent.
func (t JoinToken) String() string {
	text := append(t.Secret[:], t.Fingerprint[:]...)
	sum := sha256.Sum256(text)
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(text, sum[:checksumSize]...))
}

// ParseToken reads what String writes. An error is of kind roost.Usage and does not
// repeat what was given, which is nearly a secret.
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

// digest is what is kept of a secret.
func digest(secret []byte) []byte {
	sum := sha256.Sum256(secret)
	return sum[:]
}

// tokenID is how people name a token: too short to find the secret by, even for who could
// turn the digest around.
func tokenID(digest []byte) string { return hex.EncodeToString(digest[:6]) }
