package schedd

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// secretsAd is that of a job that gets a secret.
const secretsAd = `Secrets = {[Name = "db"; Group = "physics"; OnChange = "signal"; Signal = 1]}`

// answerSecrets has the negotiator answer what is asked of secrets.
func (p *testPool) answerSecrets(f func(context.Context, *wire.SecretsRequest) (*wire.SecretsReply, error)) {
	p.asked.mu.Lock()
	p.asked.secrets = f
	p.asked.mu.Unlock()
}

// secretReply is a version of the secret.
func secretReply(version uint64, text string) *wire.SecretsReply {
	return &wire.SecretsReply{Secrets: []*wire.SecretText{{Name: "db", Version: version, SetNs: int64(version),
		Text: []byte(text)}}}
}

// awaitInput has the node ask for the input of an attempt that was activated.
func (p *testPool) awaitInput(a *wire.Activate) {
	p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Input{Input: &wire.InputReady{Attempt: a.GetAttempt()}}})
}

// TestSecretsOfJob gives an attempt its secret after a leader was found, in a message of
// its own before the launch. Neither the program nor a file of the schedd has it.
func TestSecretsOfJob(t *testing.T) {
	p := newPool(t)
	const text = "sesame-open-4711"
	asked := make(chan *wire.SecretsRequest, 100)
	tries := 0
	p.answerSecrets(func(_ context.Context, req *wire.SecretsRequest) (*wire.SecretsReply, error) {
		if tries++; tries < 3 {
			return nil, fmt.Errorf("no leader: %w", roost.Unavailable)
		}
		asked <- req
		return secretReply(3, text), nil
	})
	p.submit("k", 1, secretsAd)
	a := receiveNext(t, p.startd.activated, "an attempt")
	if got := a.GetProgram().GetSecrets(); !a.GetHoldForInput() || len(got) != 1 || got[0] != "db" {
		t.Errorf("the node is told %v, and the attempt waits: %v", got, a.GetHoldForInput())
	}
	p.awaitInput(a)
	placed := receiveNext(t, p.startd.secrets, "its secret")
	receiveNext(t, p.startd.launched, "the launch")
	if s := placed.GetSecrets(); len(s) != 1 || string(s[0].GetText()) != text || s[0].GetVersion() != 3 ||
		!proto.Equal(placed.GetAttempt(), a.GetAttempt()) || len(placed.GetSignals()) != 0 {
		t.Errorf("got %v", placed)
	}
	if req := receiveNext(t, asked, "the question"); req.GetHost() != hostName || req.GetOwner() == "" ||
		req.GetSecrets()[0].GetName() != "db" || req.GetSecrets()[0].GetGroup() != "physics" {
		t.Errorf("asked for %v", req)
	}
	p.stop()
	filepath.WalkDir(p.node.Dir, func(path string, _ fs.DirEntry, _ error) error {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(text)) {
			t.Errorf("%s has the secret", path)
		}
		return nil
	})
}

// TestSecretsRefused holds a task whose secret its user has to set first.
func TestSecretsRefused(t *testing.T) {
	p := newPool(t)
	p.answerSecrets(func(context.Context, *wire.SecretsRequest) (*wire.SecretsReply, error) {
		return nil, fmt.Errorf("secret db: %w: set it first", roost.NotFound)
	})
	p.submit("k", 1, secretsAd)
	a := receiveNext(t, p.startd.activated, "an attempt")
	p.awaitInput(a)
	receiveNext(t, p.startd.vacated, "the end of the attempt")
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_REMOVED}, "")
	receiveNext(t, p.startd.acknowledged, "the acknowledgement")
	why, err := p.client.Why(p.ctx(), &wire.WhyRequest{Id: "1"})
	if err != nil || !strings.Contains(why.String(), "set it first") || len(p.startd.launched) > 0 {
		t.Errorf("got %v, %v", why, err)
	}
}

// TestSecretsOfEndedAttempt sends nothing to a node whose attempt has ended before the
// secret was read.
func TestSecretsOfEndedAttempt(t *testing.T) {
	p := newPool(t)
	asked, answered := make(chan bool, 1), make(chan bool, 1)
	p.answerSecrets(func(ctx context.Context, _ *wire.SecretsRequest) (*wire.SecretsReply, error) {
		asked <- true
		<-ctx.Done() // the schedd stops to wait when the attempt ends
		answered <- true
		return secretReply(1, "late"), nil
	})
	p.submit("k", 1, secretsAd)
	a := receiveNext(t, p.startd.activated, "an attempt")
	p.awaitInput(a)
	receiveNext(t, asked, "the question")
	p.act(wire.ActRequest_REMOVE, "1")
	receiveNext(t, p.startd.vacated, "the end of the attempt")
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_REMOVED}, "")
	receiveNext(t, p.startd.acknowledged, "the acknowledgement")
	receiveNext(t, answered, "the end of the question")
	p.submit("k2", 1, "")
	receiveNext(t, p.startd.activated, "another attempt") // behind whatever was sent before
	if len(p.startd.secrets) > 0 || len(p.startd.launched) > 0 {
		t.Error("the secret was sent")
	}
}

// TestSecretsRenewed reads a secret once for each attempt. When a secret of the pool has
// changed it is read once for all of them, and they have the new version with their
// signal.
func TestSecretsRenewed(t *testing.T) {
	p := newPool(t)
	asked := make(chan *wire.SecretsRequest, 100)
	version := atomic.Uint64{}
	version.Store(1)
	p.answerSecrets(func(_ context.Context, req *wire.SecretsRequest) (*wire.SecretsReply, error) {
		asked <- req
		return secretReply(version.Load(), "text"), nil
	})
	receiveNext(t, p.asked.openedEpochs, "the first conversation")
	p.setPolicy(&wire.Policy{Secrets: 7})
	const tasks = 3
	p.submit("k", tasks, secretsAd)
	for range tasks {
		p.awaitInput(receiveNext(t, p.startd.activated, "an attempt"))
		receiveNext(t, p.startd.secrets, "its secret")
		receiveNext(t, p.startd.launched, "the launch")
		receiveNext(t, asked, "the question")
	}
	version.Store(2)
	p.setPolicy(&wire.Policy{Secrets: 8})
	for range tasks {
		placed := receiveNext(t, p.startd.secrets, "the new version")
		if s := placed.GetSecrets()[0]; s.GetVersion() != 2 || !slices.Equal(placed.GetSignals(), []uint32{1}) {
			t.Errorf("placed %v", placed)
		}
	}
	if req := receiveNext(t, asked, "the question"); req.GetSecrets()[0].GetSetNs() != 1 {
		t.Errorf("asked for %v", req)
	}
	p.setPolicy(&wire.Policy{Secrets: 9}) // another secret has changed
	if req := receiveNext(t, asked, "the question"); req.GetSecrets()[0].GetSetNs() != 2 {
		t.Errorf("asked for %v", req)
	}
	p.stop()
	if len(asked) > 0 || len(p.startd.secrets) > 0 {
		t.Errorf("asked %d times more, and sent %d", len(asked), len(p.startd.secrets))
	}
}
