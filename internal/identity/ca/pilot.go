package ca

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
)

// Bounds on pilots.
const (
	maxPilotUses      = 10_000              // of one token
	maxPilotLife      = 30 * 24 * time.Hour // of a pilot that states no life, and the longest
	maxPilotTokenLife = 7 * 24 * time.Hour  // that a schedd may ask for
	pilotGrace        = time.Hour           // that a certificate is valid after its pilot has ended
)

// PilotPrefix begins the names of all pilots, so that none has the name of a machine of
// the pool.
const PilotPrefix = "pilot-"

// createPilotToken makes a token with which pilots of one owner join.
func (s *certStore) createPilotToken(owner string, uses uint32, life time.Duration,
	now time.Time) (JoinToken, *tokenRecord, error) {
	who, err := roost.ParsePilotOwner(owner)
	if err != nil {
		return JoinToken{}, nil, err
	}
	if uses > maxPilotUses {
		return JoinToken{}, nil, fmt.Errorf("token: %w: %d pilots are more than the %d that may join with one",
			roost.Invalid, uses, maxPilotUses)
	}
	return s.storeToken(tokenRecord{Part: Pilot, Owner: who.String(), Uses: max(uses, 1)}, life, now)
}

// joinPilot lets a pilot join. A request with a key that has joined gets the same answer.
func (s *certStore) joinPilot(tx *boltfile.Tx, key []byte, t *tokenRecord, a joinRequest,
	now time.Time) (got *certRecord, err error) {
	err = eachCert(tx, a.name, func(_ []byte, i *certRecord) error {
		if bytes.Equal(i.Key, keyDigest(a.publicKey)) && i.Part == Pilot && i.Owner == t.Owner && i.isValid(now) {
			got = i
		}
		return nil
	})
	if err != nil || got != nil {
		return got, err
	}
	if t.Joined >= t.Uses {
		return nil, fmt.Errorf("token: %w: %d pilots have joined with it, and it is good for no more: ask for a new "+
			"one (roost token --pilots)", roost.PermissionDenied, t.Joined)
	}
	if !strings.HasPrefix(a.name, PilotPrefix) {
		return nil, fmt.Errorf("pilot %q: %w: the names of pilots begin with %s", clip(a.name), roost.Invalid,
			PilotPrefix)
	}
	record, err := s.checkJoin(tx, t, a, now)
	if err != nil {
		return nil, err
	}
	life := a.life
	if life <= 0 || life > maxPilotLife {
		life = maxPilotLife
	}
	record.Owner, record.validity = t.Owner, life+pilotGrace
	if got, _, err = s.issueCert(tx, *record, a.publicKey, now); err != nil {
		return nil, err
	}
	t.Joined++
	return got, saveRecord(tx, tokensBucket, key, t)
}

// MakePilotToken implements wire.AuthorityServer. A schedd vouches for its users, and so
// the pilots run their tasks only if they come from that schedd.
func (s *authorityService) MakePilotToken(ctx context.Context,
	req *wire.PilotTokenRequest) (*wire.MakeTokenReply, error) {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Name == "" {
		return nil, fmt.Errorf("token: %w: only a schedd can ask for this, with its certificate",
			roost.PermissionDenied)
	}
	life := time.Duration(req.GetLife())
	if life > maxPilotTokenLife {
		return nil, fmt.Errorf("expires: %w: %v is more than the %v that a token for pilots is good", roost.Invalid,
			life, maxPilotTokenLife)
	}
	return s.makePilotToken(roost.PilotOwner{User: req.GetUser(), Schedd: p.Name}.String(), req.GetUses(), life, p.Name)
}

func (s *authorityService) makePilotToken(owner string, uses uint32, life time.Duration,
	asked string) (*wire.MakeTokenReply, error) {
	t, record, err := s.store.createPilotToken(owner, uses, life, time.Now())
	if err != nil {
		return nil, err
	}
	info := record.info(digest(t.Secret[:]))
	s.log.Info("made a token for pilots", "token", info.GetId(), "owner", info.GetOwner(), "pilots", info.GetUses(),
		"expires", formatTime(info.GetExpires()), "asked", asked)
	return &wire.MakeTokenReply{Token: t.String(), Address: s.node.AuthorityAt, Info: info}, nil
}
