package oidctest

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
)

// signingKey is a key of a provider.
type signingKey struct {
	id  string
	key *rsa.PrivateKey
}

func newSigningKey(n int) signingKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return signingKey{fmt.Sprintf("%d-%s", n, randomText()), key}
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// sign makes a token (RFC 7515, RS256).
func (k signingKey) sign(claims map[string]any) string {
	text := encode(map[string]string{"alg": "RS256", "kid": k.id, "typ": "JWT"}) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, k.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// public returns the public key (RFC 7517).
func (k signingKey) public() map[string]string {
	return map[string]string{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": k.id,
		"n": base64.RawURLEncoding.EncodeToString(k.key.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(k.key.E)).Bytes())}
}

// SignNone makes a token without a signature.
func SignNone(_ *Provider, claims map[string]any) string {
	return encode(map[string]string{"alg": "none"}) + "." + encode(claims) + "."
}

// SignHMAC signs with the public key as if it were a secret (HS256). A check that lets
// the token choose the algorithm takes that for right.
func SignHMAC(p *Provider, claims map[string]any) string {
	k := p.keys[len(p.keys)-1]
	der, err := x509.MarshalPKIXPublicKey(&k.key.PublicKey)
	if err != nil {
		panic(err)
	}
	text := encode(map[string]string{"alg": "HS256", "kid": k.id}) + "." + encode(claims)
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// SignForeign signs with a key that is not the provider's, under the name of its own.
func SignForeign(p *Provider, claims map[string]any) string {
	k := newSigningKey(0)
	k.id = p.keys[len(p.keys)-1].id
	return k.sign(claims)
}
