package rpc

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// Sign signs a text with the node's key, for others to show. use is the purpose, so that
// a signature is valid for no other purpose. The certificates are the node's own, in DER,
// and those between it and the authority.
func (id *Identity) Sign(use string, text []byte) (signature []byte, certificates [][]byte, err error) {
	own := id.TLS().Certificates
	if len(own) == 0 {
		return nil, nil, fmt.Errorf("sign: %w: this node has no certificate", roost.Unauthenticated)
	}
	key, ok := own[0].PrivateKey.(ed25519.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("sign: %w: this node's key is a %T", roost.BadConfig, own[0].PrivateKey)
	}
	return ed25519.Sign(key, signedText(use, text)), own[0].Certificate, nil
}

// Signer returns the node that signed a text. Its certificate must be valid now, as on a
// connection.
func (id *Identity) Signer(use string, text, signature []byte, certificates [][]byte) (peer.Peer, error) {
	s, err := id.CheckSigner(certificates)
	if err != nil {
		return peer.Peer{}, err
	}
	return s.Peer, s.Check(use, text, signature)
}

// TextSigner is a node that signs texts, with a certificate that was valid when it was
// checked.
type TextSigner struct {
	Peer peer.Peer
	key  ed25519.PublicKey
}

// CheckSigner checks the certificate of a node that has signed something, as on a
// connection. For many signatures of one node that is done once, for a short time.
func (id *Identity) CheckSigner(certificates [][]byte) (s TextSigner, err error) {
	if len(certificates) == 0 {
		return s, fmt.Errorf("signature: %w: no certificate", roost.Unauthenticated)
	}
	leaf, err := x509.ParseCertificate(certificates[0])
	if err != nil {
		return s, fmt.Errorf("signature: %w: %w", roost.Unauthenticated, err)
	}
	if err := id.TLS().VerifyConnection(tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}); err != nil {
		return s, fmt.Errorf("signature: %w", err)
	}
	key, ok := leaf.PublicKey.(ed25519.PublicKey)
	if !ok {
		return s, fmt.Errorf("signature: %w: the key of %s is a %T", roost.Unauthenticated, leaf.Subject.CommonName,
			leaf.PublicKey)
	}
	return TextSigner{id.peerOf(leaf), key}, nil
}

// Check checks that the node has signed a text for that use.
func (s TextSigner) Check(use string, text, signature []byte) error {
	if !ed25519.Verify(s.key, signedText(use, text), signature) {
		return fmt.Errorf("signature of %s: %w: it is not of this text", s.Peer.Name, roost.Unauthenticated)
	}
	return nil
}

// signedText returns the text that a signature covers.
func signedText(use string, text []byte) []byte {
	return append([]byte(use+"\x00"), text...)
}
