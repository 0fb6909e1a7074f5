package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// The values of secrets pass through a schedd and stay nowhere: they are read from the
// leader of the negotiators when a node waits for the input of an attempt, and go to that
// node, whose certificate was compared, in the message that they came for. No event, no
// program and no file has them.

// How long one negotiator may take, and how soon all are asked again.
const (
	secretTimeout  = 3 * time.Second
	minSecretRetry = 200 * time.Millisecond
	maxSecretRetry = 5 * time.Second
)

// secretError says why an attempt cannot have its secrets. Its user has to do something.
type secretError struct{ cause error }

func (e secretError) Error() string { return e.cause.Error() }

// heldSecrets says which versions of its secrets an attempt has.
type heldSecrets struct {
	set    map[string]int64 // unix nanoseconds, by name: when that version was set
	digest uint64           // in the cell policy when they were read; 0: its node reported them
}

// SecretsRead brings the secrets that have changed since attempts of one program got
// their own.
type SecretsRead struct {
	of      secretsRead
	digest  uint64 // of the cell policy that the read was made for
	secrets []*wire.SecretText
	err     error
	last    bool // of those that are read again
}

// secretsRead is one read for attempts that have the same versions of the same secrets.
type secretsRead struct {
	req      *wire.SecretsRequest
	attempts map[roost.AttemptID]string // with their nodes
}

// secretReader reads secrets from the leader of the negotiators. It keeps connections
// until it is closed.
type secretReader struct {
	transfers *FileTransfers
	conns     map[string]*grpc.ClientConn
}

func newSecretReader(t *FileTransfers) *secretReader {
	return &secretReader{t, make(map[string]*grpc.ClientConn)}
}

func (r *secretReader) close() {
	for _, conn := range r.conns {
		conn.Close()
	}
}

// fetch reads what a request names. It waits for a leader until the context ends.
func (r *secretReader) fetch(ctx context.Context, req *wire.SecretsRequest) ([]*wire.SecretText, error) {
	for wait := minSecretRetry; ; wait = min(2*wait, maxSecretRetry) {
		addresses, err := r.transfers.negotiators(ctx)
		if err != nil {
			return nil, err
		}
		for _, address := range addresses {
			reply, err := r.read(ctx, address, req)
			switch {
			case err == nil && len(reply.GetSecrets()) == len(req.GetSecrets()):
				return reply.GetSecrets(), nil
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case errors.Is(err, roost.NotFound) || errors.Is(err, roost.PermissionDenied) ||
				errors.Is(err, roost.Exhausted) || errors.Is(err, roost.Invalid):
				return nil, secretError{err}
			}
			r.transfers.log.Warn("secrets cannot be read", "owner", req.GetOwner(), "negotiator", address, "error", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *secretReader) read(ctx context.Context, address string, req *wire.SecretsRequest) (
	*wire.SecretsReply, error) {
	conn := r.conns[address]
	if conn == nil {
		var err error
		if conn, err = rpc.Dial(address, r.transfers.identity, peer.Negotiator); err != nil {
			return nil, err
		}
		r.conns[address] = conn
	}
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	reply, err := wire.NewNegotiatorClient(conn).ReadSecrets(ctx, req)
	return reply, rpc.FromStatus(err)
}

// secretsRequest asks for what a program names. known has when the versions were set that
// the attempt has; their text is not read again.
func secretsRequest(p queue.TaskProgram, known map[string]int64) *wire.SecretsRequest {
	req := &wire.SecretsRequest{Owner: p.Owner, Host: p.SubmitHost}
	for _, s := range p.Secrets {
		req.Secrets = append(req.Secrets, &wire.SecretText{Name: s.Name, Group: s.Group, SetNs: known[s.Name]})
	}
	return req
}

// sendSecrets gives an attempt that waits for its input its secrets.
func sendSecrets(t *FileTransfers, n InputSent) {
	if len(n.secrets) == 0 {
		return
	}
	noteSecrets(t, n.attempt, n.secrets, n.digest)
	placeSecrets(t, n.node, n.attempt, n.secrets, nil)
}

func placeSecrets(t *FileTransfers, node string, a roost.AttemptID, secrets []*wire.SecretText,
	signals []uint32) {
	t.loop.SendTo(node, &wire.ToStartd{Of: &wire.ToStartd_Secrets{Secrets: &wire.PlaceSecrets{
		Attempt: codec.AttemptRef(a), Secrets: secrets, Signals: signals}}})
}

// NoteSecrets notes which versions an attempt has by what its node reports.
func NoteSecrets(t *FileTransfers, a roost.AttemptID, secrets []*wire.SecretText) {
	if len(secrets) > 0 && t.queue.IsLive(a) {
		noteSecrets(t, a, secrets, 0)
	}
}

// noteSecrets notes which versions an attempt has, and for which cell policy they were
// read. If that is another one by now, they are read again.
func noteSecrets(t *FileTransfers, a roost.AttemptID, secrets []*wire.SecretText, digest uint64) {
	held := heldSecrets{make(map[string]int64, len(secrets)), digest}
	for _, s := range secrets {
		held.set[s.GetName()] = s.GetSetNs()
	}
	t.secrets[a] = held
	if digest != t.secretsDigest {
		t.secretsStale = true
	}
}

// RenewSecrets looks for new versions of the secrets that attempts have, if any secret of
// the pool has changed. The digest is that of the cell policy; 0: the pool has none, or
// it is not known.
func RenewSecrets(t *FileTransfers, digest uint64) {
	if digest == 0 {
		return
	}
	if digest != t.secretsDigest {
		t.secretsDigest, t.secretsStale = digest, true
	}
	if !t.secretsStale || t.secretsRenewing {
		return
	}
	t.secretsStale = false
	reads := staleReads(t)
	if len(reads) == 0 {
		return
	}
	t.secretsRenewing = true
	go func() {
		reader := newSecretReader(t)
		defer reader.close()
		for i, of := range reads {
			ctx, cancel := context.WithTimeout(t.daemonContext, time.Minute)
			secrets, err := reader.fetch(ctx, of.req)
			cancel()
			t.loop.PostEvent(t.daemonContext, SecretsRead{of, digest, secrets, err, i == len(reads)-1})
		}
	}()
}

// staleReads returns what is to be read for attempts whose secrets were read for another
// cell policy. The tasks of a job mostly share one read.
func staleReads(t *FileTransfers) []secretsRead {
	var reads []secretsRead
	shared := make(map[string]int)
	for a, held := range t.secrets {
		if !t.queue.IsLive(a) {
			delete(t.secrets, a)
			continue
		}
		p, err := t.queue.Program(a)
		if held.digest == t.secretsDigest || err != nil || len(p.Secrets) == 0 {
			continue
		}
		req := secretsRequest(p, held.set)
		key, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
		if err != nil {
			t.log.Error("a request for secrets cannot be written", "attempt", a, "error", err)
			continue
		}
		i, ok := shared[string(key)]
		if !ok {
			i = len(reads)
			shared[string(key)] = i
			reads = append(reads, secretsRead{req, make(map[roost.AttemptID]string)})
		}
		reads[i].attempts[a] = t.queue.NodeOf(a)
	}
	return reads
}

// OnSecretsRead does what a job wants to be done when its secrets have changed. A secret
// that was removed, or is for its node no longer, stays with the attempts that have it.
func OnSecretsRead(t *FileTransfers, n SecretsRead) {
	if n.last {
		t.secretsRenewing = false
	}
	if n.err != nil {
		t.log.Warn("secrets of tasks cannot be renewed", "owner", n.of.req.GetOwner(),
			"attempts", len(n.of.attempts), "error", n.err)
		if !errors.As(n.err, &secretError{}) {
			t.secretsStale = true
			return
		}
	}
	for a, node := range n.of.attempts {
		held, ok := t.secrets[a]
		if !ok || !t.queue.IsLive(a) || t.queue.NodeOf(a) != node {
			continue
		}
		held.digest = n.digest
		t.secrets[a] = held
		if n.err == nil {
			replaceSecrets(t, node, a, held, n.secrets)
		}
	}
}

// replaceSecrets sends an attempt the versions that it does not have. It does what its
// job wants to be done then.
func replaceSecrets(t *FileTransfers, node string, a roost.AttemptID, held heldSecrets, secrets []*wire.SecretText) {
	p, err := t.queue.Program(a)
	if err != nil {
		return
	}
	var signals []uint32
	changed := false
	for _, s := range secrets {
		i := slices.IndexFunc(p.Secrets, func(o jobad.SecretSpec) bool { return o.Name == s.GetName() })
		if held.set[s.GetName()] == s.GetSetNs() || i < 0 {
			continue
		}
		changed = true
		switch spec := p.Secrets[i]; spec.OnChange {
		case jobad.OnChangeRestart:
			t.queue.NoteOutdated(a, fmt.Sprintf("secret %s has version %d", s.GetName(), s.GetVersion()))
		case jobad.OnChangeSignal:
			if !slices.Contains(signals, spec.Signal) {
				signals = append(signals, spec.Signal)
			}
		}
	}
	if changed {
		noteSecrets(t, a, secrets, held.digest)
		placeSecrets(t, node, a, secrets, signals)
	}
}
