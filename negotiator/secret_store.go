package negotiator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/sealing"
)

// secretStore serves the secrets of users. The ledger has them sealed; the keys are in a
// file of each central manager.
type secretStore struct {
	ledgerAdmin
	keys   *sealing.KeyStore
	others []string // addresses of the other negotiators
	dial   func(address string) (*grpc.ClientConn, error)
	// nil: a majority has just confirmed that this negotiator leads
	verifyLeader func(context.Context) error
	// returns whether a value is sealed with a key, as far as the ledger is applied here
	usesKey   func(id string) bool
	confirmed atomic.Value // string: id of a key that a majority has on disk
	log       *slog.Logger
}

// handle answers a user's question about secrets, or changes one of the user's own.
// Its caller has set who asks.
func (s *secretStore) handle(ctx context.Context, req *wire.CellRequest) (*wire.CellReply, error) {
	owner, host, _ := strings.Cut(req.GetWho(), "@")
	switch ledger.CommandVerb(req.GetVerb()) {
	case "show":
		return s.show(ctx, owner, host, req.GetName())
	case ledger.VerbSet:
		var change ledger.SecretChange
		if err := json.Unmarshal(req.GetObject(), &change); err != nil {
			return nil, fmt.Errorf("secret: %w: %w", roost.Invalid, err)
		}
		return &wire.CellReply{}, s.retryConflicts(func() error { return s.set(ctx, owner, host, change) })
	case ledger.VerbRemove:
		return &wire.CellReply{}, s.remove(ctx, owner, host, req.GetName())
	case ledger.VerbReset:
		return s.rotateKey(ctx, req)
	}
	return nil, fmt.Errorf("secret: %w: %q is not possible for this kind", roost.Invalid, req.GetVerb())
}

// retryConflicts does a change again that another change of the same secret has
// overtaken.
func (s *secretStore) retryConflicts(change func() error) (err error) {
	for range 3 {
		if err = change(); !errors.Is(err, roost.Conflict) {
			break
		}
	}
	return err
}

func (s *secretStore) show(ctx context.Context, owner, host, name string) (*wire.CellReply, error) {
	all := []ledger.SecretInfo{}
	var refused error
	if err := s.viewLedger(ctx, func(_ time.Time, l *ledger.Ledger, _ *poolStatus) {
		if name != "" {
			_, refused = ledger.SecretUse(l, owner, name, host)
		}
		for _, o := range ledger.SecretsOf(l, owner) {
			if slices.Contains(o.Hosts, host) && (name == "" || o.Name == name) {
				all = append(all, ledger.SecretInfo{Name: o.Name, Owner: o.Owner, Hosts: o.Hosts,
					Version: o.Version, Bytes: o.Size, Versions: o.History})
			}
		}
	}); err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	text, err := json.Marshal(all)
	return &wire.CellReply{Document: text}, err
}

// present returns the user's secret of that name; there is false if the user has none. A
// user at a node that the secret is not for may not change it: that may be somebody else.
func (s *secretStore) present(ctx context.Context, owner, host, name string) (o ledger.Secret, there bool, err error) {
	var refused error
	err = s.viewLedger(ctx, func(_ time.Time, l *ledger.Ledger, _ *poolStatus) {
		if o, there = ledger.FindSecret(l, owner, name); there {
			o, refused = ledger.SecretUse(l, owner, name, host)
		}
	})
	return o, there, errors.Join(err, refused)
}

// set gives a secret a new value, or changes which submit nodes it is for.
func (s *secretStore) set(ctx context.Context, owner, host string, change ledger.SecretChange) error {
	if err := roost.CheckSecretName(change.Name); err != nil {
		return err
	}
	o, there, err := s.present(ctx, owner, host, change.Name)
	if err != nil {
		return err
	}
	who := owner + "@" + host
	switch {
	case len(change.Text) > roost.MaxSecretBytes:
		return fmt.Errorf("secret %q: %w: it has %d bytes, and %d is the most; put a large one into a file, encrypt "+
			"that, and make its key the secret", change.Name, roost.Invalid, len(change.Text), roost.MaxSecretBytes)
	case !there && len(change.Text) == 0:
		return fmt.Errorf("secret %q of %s: %w: set its value first: roost secret set %s", change.Name, owner,
			roost.NotFound, change.Name)
	case !there:
		o = ledger.Secret{Owner: owner, Name: change.Name, Hosts: []string{host}}
	}
	o.Hosts = slices.DeleteFunc(slices.Clone(o.Hosts), func(h string) bool { return slices.Contains(change.Deny, h) })
	for _, h := range change.Allow {
		if !slices.Contains(o.Hosts, h) {
			o.Hosts = append(o.Hosts, h)
		}
	}
	if len(change.Text) > 0 {
		now := time.Now()
		o.Version, o.SetAt, o.Size = o.Version+1, max(now.UnixNano(), o.SetAt+1), len(change.Text)
		o.History = append(slices.Clone(o.History), ledger.SecretVersion{Version: o.Version, At: now.UTC(), By: who,
			Size: o.Size})
		o.History = o.History[max(len(o.History)-ledger.MaxSecretHistory, 0):]
		if err := s.seal(ctx, &o, change.Text); err != nil {
			return err
		}
	}
	return s.commit(ctx, who, o)
}

// seal seals a value, with a key that a majority of the negotiators has on disk.
func (s *secretStore) seal(ctx context.Context, o *ledger.Secret, text []byte) (err error) {
	if err := s.requireKey(ctx); err != nil {
		return err
	}
	o.Key, o.Sealed, err = s.keys.Seal(text, sealedSubject(o))
	return err
}

// sealedSubject is what a sealed value belongs to.
func sealedSubject(o *ledger.Secret) string {
	return fmt.Sprintf("secret %q of %q, version %d", o.Name, o.Owner, o.Version)
}

func (s *secretStore) commit(ctx context.Context, who string, o ledger.Secret) error {
	o.Revision++
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	c := ledger.AdminCommand{Who: who, Trusted: true, Verb: ledger.VerbSet, Kind: ledger.KindSecret, Object: text,
		Whole: true}
	var refused error
	if err := s.viewLedger(ctx, func(_ time.Time, l *ledger.Ledger, _ *poolStatus) {
		refused = l.Check(&c)
	}); err != nil {
		return err
	}
	if refused != nil {
		return refused
	}
	return s.commitCommand(ctx, c)
}

func (s *secretStore) remove(ctx context.Context, owner, host, name string) error {
	o, there, err := s.present(ctx, owner, host, name)
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("secret %q of %s: %w: roost secret list shows yours", name, owner, roost.NotFound)
	}
	return s.commitCommand(ctx, ledger.AdminCommand{Who: owner + "@" + host, Trusted: true, Verb: ledger.VerbRemove,
		Kind: ledger.KindSecret, Name: o.Owner + "/" + o.Name})
}
