package store

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// imageRight is the purpose in signatures of rights.
const imageRight = "Roost image right 1"

// SignRight signs a right that the node which gets it can show to a checkpoint server.
// With a nil identity the result is empty.
func SignRight(id *rpc.Identity, r *wire.ImageRight) ([]byte, error) {
	if id == nil {
		return nil, nil
	}
	text, err := proto.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("right to images: %w", err)
	}
	signature, certificates, err := id.Sign(imageRight, text)
	if err != nil {
		return nil, fmt.Errorf("right to images: %w", err)
	}
	return proto.Marshal(&wire.SignedImageRight{Right: text, Signature: signature, Certificates: certificates})
}

// PeerRights are a peer's rights over images, by its identity and the right that it
// shows.
type PeerRights struct {
	peer  peer.Peer
	right *wire.ImageRight // nil: it has shown none
}

// RightsOf reads the right that a peer shows. It must be signed by the submit node that
// it names, and for this peer. An empty one is none.
func RightsOf(id *rpc.Identity, p peer.Peer, capability []byte) (PeerRights, error) {
	if len(capability) == 0 || id == nil {
		return PeerRights{peer: p}, nil
	}
	var s wire.SignedImageRight
	var r wire.ImageRight
	if proto.Unmarshal(capability, &s) != nil || proto.Unmarshal(s.GetRight(), &r) != nil {
		return PeerRights{}, fmt.Errorf("right to images: %w: it cannot be read", roost.Invalid)
	}
	by, err := id.Signer(imageRight, s.GetRight(), s.GetSignature(), s.GetCertificates())
	if err != nil {
		return PeerRights{}, fmt.Errorf("right to images: %w: %w", roost.PermissionDenied, err)
	}
	if !by.Plays(peer.Schedd) || !by.SpeaksFor(r.GetSchedd()) || p.Name != r.GetNode() {
		return PeerRights{}, fmt.Errorf("right to images: %w: %s gave it to %s, for tasks of %s, and %s shows it",
			roost.PermissionDenied, by.Name, r.GetNode(), r.GetSchedd(), p)
	}
	return PeerRights{p, &r}, nil
}

// MayPut returns why a peer may not put an image, or nil.
func (r PeerRights) MayPut(k ImageKey) error {
	a := r.right.GetAttempt()
	return r.checkRight(k, "put", a.GetJob() == k.Job && int(a.GetIndex()) == k.Index &&
		roost.AttemptNumber(a.GetAttempt()) == k.Attempt)
}

// MayGet returns why a peer may not get an image, or nil.
func (r PeerRights) MayGet(k ImageKey) error {
	a := r.right.GetAttempt()
	return r.checkRight(k, "get", a.GetJob() == k.Job && int(a.GetIndex()) == k.Index &&
		roost.AttemptNumber(r.right.GetOrigin()) == k.Attempt && r.right.GetSequence() == k.Sequence)
}

// checkRight checks a peer's right to one operation. Root of the same machine may do
// everything, a submit node everything with its own images, and an execute node what that
// submit node has signed.
func (r PeerRights) checkRight(k ImageKey, do string, covered bool) error {
	switch {
	case r.peer.Local && r.peer.Plays(peer.Startd), r.peer.Plays(peer.Schedd) && r.peer.Name == k.Schedd:
		return nil
	case !r.peer.Plays(peer.Startd):
		return fmt.Errorf("%v: %w: it is another's", k, roost.PermissionDenied)
	case r.right == nil: // like a server that does not answer: the error says nothing about the image
		return fmt.Errorf("%v: %w: %s shows no right to %s it: its release, or that of %s, is older than this server's",
			k, roost.Unavailable, r.peer, do, k.Schedd)
	case r.right.GetSchedd() != k.Schedd || !covered:
		return fmt.Errorf("%v: %w: %s may not %s it: it has a right to others", k, roost.PermissionDenied, r.peer, do)
	}
	return nil
}
