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
	"github.com/roost-batch/roost/internal/metrics"
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
	reads     *metrics.Counter // by result; nil: they are not counted
}

// handle answers a user's question about secrets, or changes one of the user's own.
// Its caller has set who asks.
func (s *secretStore) handle(ctx context.Context, req *wire.CellRequest) (*wire.CellReply, error) {
	who := secretCaller{trusted: req.GetTrusted()}
	who.user, who.host, _ = strings.Cut(req.GetWho(), "@")
	switch ledger.CommandVerb(req.GetVerb()) {
	case "show":
		return s.show(ctx, who, req.GetName())
	case ledger.VerbSet:
		var change ledger.SecretChange
		if err := json.Unmarshal(req.GetObject(), &change); err != nil {
			return nil, fmt.Errorf("secret: %w: %w", roost.Invalid, err)
		}
		return &wire.CellReply{}, s.retryConflicts(func() error { return s.set(ctx, who, change) })
	case ledger.VerbRemove:
		return &wire.CellReply{}, s.remove(ctx, who, req.GetName())
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

// secretCaller is who asks for secrets, or changes them.
type secretCaller struct {
	user, host string
	trusted    bool // root on a central manager, who may change what groups have
}

func (c secretCaller) String() string { return c.user + "@" + c.host }

// use returns a secret that the caller may use, or why not.
func (c secretCaller) use(l *ledger.Ledger, name roost.SecretName) (ledger.Secret, error) {
	if c.trusted && name.Group != "" {
		if o, ok := ledger.FindSecret(l, ledger.SecretSubject{Group: name.Group}, name.Name); ok {
			return o, nil
		}
	}
	return ledger.SecretUse(l, c.user, name, c.host)
}

// checkSet returns why the caller may not change a secret.
func (c secretCaller) checkSet(l *ledger.Ledger, name roost.SecretName) error {
	if c.trusted {
		return nil
	}
	return ledger.CheckSecretSet(l, c.String(), name)
}

func (s *secretStore) show(ctx context.Context, who secretCaller, text string) (*wire.CellReply, error) {
	all := []ledger.SecretInfo{}
	var refused error
	if err := s.viewLedger(ctx, func(_ time.Time, l *ledger.Ledger, _ *poolStatus) {
		list := ledger.SecretsFor(l, who.user, who.host)
		if text != "" {
			name, err := roost.ParseSecretName(text)
			var one ledger.Secret
			if err == nil {
				one, err = who.use(l, name)
			}
			list, refused = []ledger.Secret{one}, err
		}
		for _, o := range list {
			name := roost.SecretName{Group: o.Group, Name: o.Name}
			all = append(all, ledger.SecretInfo{Name: o.ShortName(), Owner: o.Owner, Group: o.Group, Hosts: o.Hosts,
				MaySet: who.checkSet(l, name) == nil, Version: o.Version, Bytes: o.Size, Versions: o.History})
		}
	}); err != nil || refused != nil {
		return nil, errors.Join(err, refused)
	}
	reply, err := json.Marshal(all)
	return &wire.CellReply{Document: reply}, err
}

// present returns the secret of that name; there is false if there is none. A user at a
// node that the secret is not for may not change it: that may be somebody else.
func (s *secretStore) present(ctx context.Context, who secretCaller, name roost.SecretName) (o ledger.Secret,
	there bool, err error) {
	of := ledger.SecretSubject{User: who.user}
	if name.Group != "" {
		of = ledger.SecretSubject{Group: name.Group}
	}
	var refused error
	err = s.viewLedger(ctx, func(_ time.Time, l *ledger.Ledger, _ *poolStatus) {
		if refused = who.checkSet(l, name); refused != nil {
			return
		}
		if o, there = ledger.FindSecret(l, of, name.Name); there {
			o, refused = who.use(l, name)
			return
		}
		o = ledger.Secret{Owner: of.User, Group: of.Group, Name: name.Name}
	})
	return o, there, errors.Join(err, refused)
}

// set gives a secret a new value, or changes which submit nodes it is for.
func (s *secretStore) set(ctx context.Context, who secretCaller, change ledger.SecretChange) error {
	name, err := roost.ParseSecretName(change.Name)
	if err != nil {
		return err
	}
	o, there, err := s.present(ctx, who, name)
	if err != nil {
		return err
	}
	switch {
	case len(change.Text) > roost.MaxSecretBytes:
		return fmt.Errorf("secret %q: %w: it has %d bytes, and %d is the most; put a large one into a file, encrypt "+
			"that, and make its key the secret", change.Name, roost.Invalid, len(change.Text), roost.MaxSecretBytes)
	case name.Group != "" && len(change.Allow)+len(change.Deny) > 0:
		return fmt.Errorf("secret %q of group %s: %w: no submit nodes belong to it; an administrator says who may use "+
			"it with: roost admin give USER@NODE %s", name.Name, name.Group, roost.Invalid,
			roost.SecretUseCapability(name.Group))
	case !there && len(change.Text) == 0:
		return fmt.Errorf("secret %q of %s: %w: set its value first: roost secret set %s", change.Name, who.user,
			roost.NotFound, change.Name)
	case !there && name.Group == "":
		o.Hosts = []string{who.host}
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
		o.History = append(slices.Clone(o.History), ledger.SecretVersion{Version: o.Version, At: now.UTC(),
			By: who.String(), Size: o.Size})
		o.History = o.History[max(len(o.History)-ledger.MaxSecretHistory, 0):]
		if err := s.seal(ctx, &o, change.Text); err != nil {
			return err
		}
	}
	return s.commit(ctx, who.String(), o)
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
	return fmt.Sprintf("secret %q of %q, version %d", o.Name, o.Subject().String(), o.Version)
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

func (s *secretStore) remove(ctx context.Context, who secretCaller, text string) error {
	name, err := roost.ParseSecretName(text)
	if err != nil {
		return err
	}
	o, there, err := s.present(ctx, who, name)
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("secret %q: %w: roost secret list shows yours", text, roost.NotFound)
	}
	return s.commitCommand(ctx, ledger.AdminCommand{Who: who.String(), Trusted: true, Verb: ledger.VerbRemove,
		Kind: ledger.KindSecret, Name: o.FullName()})
}
