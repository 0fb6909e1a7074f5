package negotiator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// ReadSecrets gives a schedd the secrets that one of its jobs names. A schedd speaks for
// the jobs that were submitted at its own node. The queue of the cell has jobs of all
// nodes, and knows where each was submitted.
func (s *grpcService) ReadSecrets(ctx context.Context, req *wire.SecretsRequest) (*wire.SecretsReply, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, fmt.Errorf("secrets: %w: the caller is unknown", roost.Unauthenticated)
	}
	if !p.Local && p.CellQueue == "" && req.GetHost() != p.Name {
		return nil, fmt.Errorf("secrets: %w: %s asks for a job that was submitted at %q", roost.PermissionDenied,
			p.Name, req.GetHost())
	}
	if state, _ := s.loop.leadership.currentState(); !state.isLeader {
		return nil, fmt.Errorf("negotiator %s: %w: it does not lead", s.name, roost.Unavailable)
	}
	reply, err := s.admin.secrets.read(ctx, req)
	s.admin.secrets.countRead(err)
	return reply, err
}

// countRead counts a read for a job.
func (s *secretStore) countRead(err error) {
	switch {
	case err == nil:
		s.reads.Inc(metrics.SecretGiven)
	case errors.Is(err, roost.Unavailable) || errors.Is(err, roost.Internal):
		s.reads.Inc(metrics.SecretFailed)
	default:
		s.reads.Inc(metrics.SecretRefused)
	}
}

func (s *secretStore) read(ctx context.Context, req *wire.SecretsRequest) (*wire.SecretsReply, error) {
	if n := len(req.GetSecrets()); n > roost.MaxJobSecrets {
		return nil, fmt.Errorf("secrets: %w: %d of them, and %d is the most", roost.Invalid, n, roost.MaxJobSecrets)
	}
	if err := s.verifyLeader(ctx); err != nil { // one that was cut off would give what is revoked
		return nil, fmt.Errorf("secrets: %w: %w", roost.Unavailable, err)
	}
	var refused error
	var all []ledger.Secret
	size := 0
	if err := s.viewLedger(ctx, func(_ time.Time, l *ledger.Ledger, _ *poolStatus) {
		for _, want := range req.GetSecrets() {
			o, err := ledger.SecretUse(l, req.GetOwner(),
				roost.SecretName{Group: want.GetGroup(), Name: want.GetName()}, req.GetHost())
			if err != nil {
				refused = err
				return
			}
			all, size = append(all, o), size+o.Size
		}
	}); err != nil || refused != nil {
		return nil, errors.Join(err, refused)
	}
	if size > roost.MaxJobSecretBytes {
		return nil, fmt.Errorf("secrets of the job: %w: they have %d bytes, and %d is the most", roost.Exhausted, size,
			roost.MaxJobSecretBytes)
	}
	reply := &wire.SecretsReply{}
	for i, o := range all {
		m := &wire.SecretText{Name: o.Name, Group: o.Group, Version: o.Version, SetNs: o.SetAt}
		if !req.GetCheck() && req.GetSecrets()[i].GetSetNs() != o.SetAt {
			var err error
			if m.Text, err = s.open(ctx, &o); err != nil {
				return nil, err
			}
			s.log.Info("secret read", "owner", o.Subject(), "secret", o.Name, "version", o.Version,
				"user", req.GetOwner(), "host", req.GetHost())
		}
		reply.Secrets = append(reply.Secrets, m)
	}
	return reply, nil
}

// open returns a value. A negotiator that was away when its key was made fetches that
// from another one.
func (s *secretStore) open(ctx context.Context, o *ledger.Secret) ([]byte, error) {
	if !s.keys.Has(o.Key) {
		if err := s.exchangeKeys(ctx); err != nil {
			return nil, err
		}
	}
	text, err := s.keys.Unseal(o.Key, o.Sealed, sealedSubject(o))
	if errors.Is(err, roost.NotFound) {
		return nil, fmt.Errorf("secret %q of %s: %w: its key is on no central manager that answers; if the key is "+
			"lost, set the secret again: roost secret set %s", o.Name, o.Subject(), roost.Unavailable, o.ShortName())
	}
	return text, err
}
