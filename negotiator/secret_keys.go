package negotiator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/sealing"
)

// rotateKey seals all secrets with a new key. The keys before are dropped.
func (s *secretStore) rotateKey(ctx context.Context, req *wire.CellRequest) (*wire.CellReply, error) {
	var refused error
	var all []ledger.Secret
	if err := s.viewLedger(ctx, func(_ time.Time, l *ledger.Ledger, _ *poolStatus) {
		if all = ledger.Secrets(l); !req.GetTrusted() {
			refused = l.CheckCapability(req.GetWho(), ledger.CapabilityAll)
		}
	}); err != nil || refused != nil {
		return nil, errors.Join(err, refused)
	}
	if err := s.exchangeKeys(ctx); err != nil {
		return nil, err
	}
	if err := s.keys.NewKey(time.Now()); err != nil {
		return nil, err
	}
	lost := []string{}
	for _, o := range all {
		err := s.retryConflicts(func() error { return s.reseal(ctx, req.GetWho(), &o) })
		if errors.Is(err, roost.NotFound) {
			lost = append(lost, o.FullName())
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	// the others drop what the leader, whose ledger is the newest, does not have
	if err := s.keys.Retain(s.usesKey); err != nil {
		return nil, err
	}
	if err := s.exchangeKeys(ctx); err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"sealed": len(all) - len(lost), "lost": lost})
	return &wire.CellReply{Document: text}, err
}

// reseal seals the present value of a secret with the youngest key.
func (s *secretStore) reseal(ctx context.Context, who string, old *ledger.Secret) error {
	var o ledger.Secret
	var there bool
	err := s.viewLedger(ctx, func(_ time.Time, l *ledger.Ledger, _ *poolStatus) {
		o, there = ledger.FindSecret(l, old.Subject(), old.Name)
	})
	if err != nil || !there {
		return err
	}
	text, err := s.keys.Unseal(o.Key, o.Sealed, sealedSubject(&o))
	if err == nil {
		err = s.seal(ctx, &o, text)
	}
	if err != nil {
		return err
	}
	return s.commit(ctx, who, o)
}

// keyTimeout bounds how long another negotiator may take to store keys.
const keyTimeout = 2 * time.Second

// requireKey makes sure that there is a key, and that the next leader will have it.
func (s *secretStore) requireKey(ctx context.Context) error {
	if id := s.keys.Current(); id != "" && s.confirmed.Load() == id {
		return nil
	}
	if s.keys.Current() == "" {
		err := s.exchangeKeys(ctx) // another may have one
		if err == nil && s.keys.Current() == "" {
			err = s.keys.NewKey(time.Now())
		}
		if err != nil {
			return err
		}
	}
	return s.exchangeKeys(ctx)
}

// exchangeKeys gives all other negotiators the keys that are here, and takes theirs. It
// fails if fewer than a majority have stored them: a leader without the key could give no
// task its secrets.
func (s *secretStore) exchangeKeys(ctx context.Context) error {
	request, current := keyMessage(s.keys.Keys()), s.keys.Current()
	var stored atomic.Int64
	stored.Add(1)
	var running sync.WaitGroup
	for _, address := range s.others {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, keyTimeout)
			defer cancel()
			if err := s.exchangeWith(ctx, address, request); err != nil {
				s.log.Warn("keys of secrets not exchanged", "negotiator", address, "err", err)
				return
			}
			stored.Add(1)
		})
	}
	running.Wait()
	if n := int64(len(s.others) + 1); stored.Load() <= n/2 {
		return fmt.Errorf("the key of the secrets: %w: only %d of %d negotiators have stored it, and a majority must; "+
			"see roost doctor", roost.Unavailable, stored.Load(), n)
	}
	if current != "" {
		s.confirmed.Store(current)
	}
	return s.keys.Retain(s.usesKey)
}

func (s *secretStore) exchangeWith(ctx context.Context, address string, request *wire.SealingKeys) error {
	conn, err := s.dial(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	reply, err := wire.NewNegotiatorClient(conn).ExchangeKeys(ctx, request)
	if err != nil {
		return rpc.FromStatus(err)
	}
	return s.keys.Add(keysOf(reply))
}

// ExchangeKeys stores the keys of another negotiator, and returns those that are here. It
// drops no key that the other one still has: the ledger here may lag behind.
func (s *grpcService) ExchangeKeys(_ context.Context, req *wire.SealingKeys) (*wire.SealingKeys, error) {
	keys, theirs := s.admin.secrets.keys, keysOf(req)
	err := keys.Add(theirs)
	if err == nil {
		err = keys.Retain(func(id string) bool {
			named := func(k sealing.Key) bool { return k.ID == id }
			return s.admin.secrets.usesKey(id) || slices.ContainsFunc(theirs, named)
		})
	}
	return keyMessage(keys.Keys()), err
}

func keyMessage(keys []sealing.Key) *wire.SealingKeys {
	m := &wire.SealingKeys{}
	for _, k := range keys {
		m.Keys = append(m.Keys, &wire.SealingKey{Id: k.ID, MadeNs: k.Made, Key: k.Key})
	}
	return m
}

func keysOf(m *wire.SealingKeys) (keys []sealing.Key) {
	for _, k := range m.GetKeys() {
		keys = append(keys, sealing.Key{ID: k.GetId(), Made: k.GetMadeNs(), Key: k.GetKey()})
	}
	return keys
}
