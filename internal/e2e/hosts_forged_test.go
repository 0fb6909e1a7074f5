package e2e

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// testForgedAds sends what a compromised node may advertise about itself, and about
// others.
func (a *attackedPool) testForgedAds() {
	rogue := a.newIdentity("exec2", "startd") // its own certificate, which is valid for its own node only
	conn := a.dialDaemon("collector", rogue)
	advertise := func(updates ...*wire.AdUpdate) error { return a.advertiseForged(conn, updates...) }
	alike := a.dialDaemon("collector", a.newIdentity("exec1.exec2", "startd"))
	machine := func(name, ad string) *wire.AdUpdate {
		if !strings.Contains(ad, "Machine") {
			ad = `[Machine = "exec2"; ` + ad[1:]
		}
		ad = `[Name = "` + name + `"; ` + ad[1:]
		return &wire.AdUpdate{Type: "Machine", Name: name, Sequence: 1 << 40, Started: time.Now().UnixNano(), Ad: ad}
	}
	nameless := machine("exec2", "[Cpus = 64]")
	nameless.Ad = `[Machine = "exec2"; Cpus = 64]`
	if err := a.advertiseForged(alike, machine("exec1.exec2", `[Machine = "exec1.exec2"; Cpus = 0]`)); err != nil {
		a.Error(err)
	}
	var slots []*wire.AdUpdate
	for i := range 2000 { // a part of the million that it would like to send
		slots = append(slots, machine(fmt.Sprintf("slot%d.exec2", i), "[Cpus = 1]"))
	}
	for _, tt := range []struct {
		name string
		ads  []*wire.AdUpdate
		want string
	}{
		{"another node's name", []*wire.AdUpdate{machine("exec1", "[Cpus = 64]")}, "may only advertise what is on it"},
		{"a name that ends alike", []*wire.AdUpdate{machine("notexec2", "[Cpus = 64]")},
			"may only advertise what is on it"},
		{"a node's name that ends alike", []*wire.AdUpdate{machine("exec1.exec2", "[Cpus = 64]")},
			"that is the name of the node exec1.exec2"},
		{"no name", []*wire.AdUpdate{nameless}, "Name in it is undefined"},
		{"another host to whom it is matched with", []*wire.AdUpdate{machine("exec2",
			`[Machine = isUndefined(TARGET.Cmd) ? "exec2" : "exec1"]`)}, "in plain text"},
		{"another host", []*wire.AdUpdate{machine("slot1.exec2", `[Machine = "exec1"]`)}, "may speak for itself only"},
		{"another role", []*wire.AdUpdate{{Type: "Scheduler", Name: "exec2", Ad: "[]"}},
			"the certificate of exec2 is for [startd]"},
		{"a type of its own", []*wire.AdUpdate{{Type: "Anything", Name: "exec2", Ad: "[]"}},
			"the certificate of exec2 is for [startd]"},
		{"a million slots", slots, "no more are taken from one node"},
		{"not a number", []*wire.AdUpdate{machine("exec2", "[Cpus = 0.0/0.0]")}, "is not an amount"},
		{"for ever", []*wire.AdUpdate{machine("exec2", "[Memory = 1.0/0.0]")}, "is not an amount"},
		{"less than nothing", []*wire.AdUpdate{machine("exec2", "[Disk = -1]")}, "is not an amount"},
		{"much too much", []*wire.AdUpdate{machine("exec2", "[Gpus = 1e300]")}, "is not an amount"},
		{"too deep", []*wire.AdUpdate{machine("exec2",
			"[x = "+strings.Repeat("(", 100_000)+"1"+strings.Repeat(")", 100_000)+"]")}, "ad of Machine"},
		{"a calculation without end", []*wire.AdUpdate{machine("exec2", exponentialAd(60))}, "is not an amount"},
		{"2 MB", []*wire.AdUpdate{machine("exec2", `[x = "`+strings.Repeat("x", 2<<20)+`"]`)}, "is the most"},
		{"10 MB", []*wire.AdUpdate{machine("exec2", `[x = "`+strings.Repeat("x", 10<<20)+`"]`)}, "is the most"},
	} {
		if err := advertise(tt.ads...); err == nil || !strings.Contains(err.Error(), tt.want) {
			a.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	a.awaitLogged("central", `msg="refused a call of /roost.wire.Collector/Advertise" daemon=collector peer=exec2`,
		"refused a message that is too long")
}

// advertiseForged sends machine ads, and returns the first refusal.
func (a *attackedPool) advertiseForged(conn *grpc.ClientConn, updates ...*wire.AdUpdate) (err error) {
	ctx, cancel := context.WithTimeout(a.Context(), 2*awaitTimeout)
	defer cancel()
	stream, err := wire.NewCollectorClient(conn).Advertise(ctx)
	for _, u := range updates {
		if err == nil {
			u.LeaseMs = 5000
			stream.Send(u) // Recv returns its result
			_, err = stream.Recv()
		}
	}
	return rpc.FromStatus(err)
}

// exponentialAd returns an ad whose Cpus takes 2^n steps to evaluate.
func exponentialAd(n int) string {
	var b strings.Builder
	b.WriteString("[Cpus = a0; ")
	for i := range n {
		fmt.Fprintf(&b, "a%d = a%d + a%d; ", i, i+1, i+1)
	}
	fmt.Fprintf(&b, "a%d = 1]", n)
	return b.String()
}

// testForeignAttempts checks what the certificate of one submit node gives access to of
// another's.
func (a *attackedPool) testForeignAttempts() {
	startd := wire.NewStartdClient(a.dialDaemon("startd", a.ids["schedd"]))
	for _, who := range []struct {
		schedd string
		want   roost.ErrorKind
	}{{"submit", roost.PermissionDenied}, {"rogue-schedd", roost.NotFound}} {
		ref := &wire.AttemptRef{Job: a.seq, Attempt: 1}
		ctx, cancel := context.WithTimeout(a.Context(), awaitTimeout)
		tries := map[string]func() error{
			"tail": func() error {
				s, err := startd.Tail(ctx, &wire.TailRequest{Schedd: who.schedd, Attempt: ref})
				return firstStreamError(s, err)
			},
			"fetch": func() error {
				s, err := startd.Fetch(ctx, &wire.FetchRequest{Schedd: who.schedd, Attempt: ref,
					Names: []string{"\x00stdout"}})
				return firstStreamError(s, err)
			},
			"image": func() error {
				s, err := startd.FetchImage(ctx, &wire.FetchImageRequest{Schedd: who.schedd, Attempt: ref, Sequence: 1})
				return firstStreamError(s, err)
			},
			"shell": func() error {
				s, err := startd.Shell(ctx)
				if err == nil {
					s.Send(&wire.ShellInput{Schedd: who.schedd, Attempt: ref, Command: []string{"id"}})
				}
				return firstStreamError(s, err)
			},
			"put": func() error {
				s, err := startd.Put(ctx)
				if err == nil {
					s.Send(&wire.FileChunk{Schedd: who.schedd, Attempt: ref, Entry: &wire.FileEntry{Name: "x"}})
					_, err = s.CloseAndRecv()
				}
				return err
			},
			"put an image": func() error {
				s, err := startd.PutImage(ctx)
				if err == nil {
					s.Send(&wire.FileChunk{Schedd: who.schedd, Attempt: ref, Entry: &wire.FileEntry{Name: "1"}})
					_, err = s.CloseAndRecv()
				}
				return err
			},
		}
		for name, try := range tries {
			if err := rpc.FromStatus(try()); !errors.Is(err, who.want) {
				a.Errorf("%s for %s: got %v, want %v", name, who.schedd, err, who.want)
			}
		}
		cancel()
	}
	a.awaitLogged("exec1", `msg="refused a call of /roost.wire.Startd/Tail"`, "rogue-schedd may not speak for it")
	images := wire.NewCheckpointServerClient(a.dialDaemon("checkpoint-server", a.ids["schedd"]))
	for _, seq := range []uint64{0, 1} {
		req := &wire.FetchImageRequest{Schedd: "submit", Attempt: &wire.AttemptRef{Job: a.seq, Attempt: 1},
			Sequence: seq}
		s, err := images.Get(a.Context(), req)
		if err := rpc.FromStatus(firstStreamError(s, err)); !errors.Is(err, roost.PermissionDenied) {
			a.Errorf("another's image: got %v", err)
		}
		if _, err := images.Remove(a.Context(), req); !errors.Is(rpc.FromStatus(err), roost.PermissionDenied) {
			a.Errorf("remove another's image: got %v", err)
		}
	}
	a.testForeignImages()
	a.awaitLogged("central", "refused a call of /roost.wire.CheckpointServer/Get",
		"refused a call of /roost.wire.CheckpointServer/Remove")
}

// testForeignImages uses a checkpoint server without the right to it. A node stores an
// image of an attempt that it does not have, and fetches one.
func (a *attackedPool) testForeignImages() {
	images, ref := wire.NewCheckpointServerClient(a.dialDaemon("checkpoint-server", a.ids["startd"])),
		&wire.AttemptRef{Job: a.seq, Attempt: 1}
	// without a right, and with a forged one
	for _, want := range []roost.ErrorKind{roost.Unavailable, roost.Invalid} {
		right := map[bool][]byte{true: []byte("right")}[want == roost.Invalid]
		get, err := images.Get(a.Context(),
			&wire.FetchImageRequest{Schedd: "submit", Attempt: ref, Sequence: 1, Capability: right})
		if err := rpc.FromStatus(firstStreamError(get, err)); !errors.Is(err, want) {
			a.Errorf("a node gets the image of an attempt that it does not have: %v, want %v", err, want)
		}
		put, err := images.Put(a.Context())
		if err == nil {
			// CloseAndRecv returns its result
			put.Send(&wire.FileChunk{Schedd: "submit", Attempt: ref, Entry: &wire.FileEntry{Name: "1", Size: 5},
				Capability: right})
			_, err = put.CloseAndRecv()
		}
		if err := rpc.FromStatus(err); !errors.Is(err, want) {
			a.Errorf("a node puts an image of an attempt that it does not have: %v, want %v", err, want)
		}
	}
}

// firstStreamError returns the error of a stream's first message, if it does not come.
func firstStreamError[T any](s interface{ Recv() (*T, error) }, err error) error {
	if err == nil {
		_, err = s.Recv()
	}
	return err
}

// openSession opens a session with a startd as a schedd.
func (a *attackedPool) openSession(daemon, name string, id *rpc.Identity) wire.Startd_SessionClient {
	a.Helper()
	s, err := wire.NewStartdClient(a.dialDaemon(daemon, id)).Session(a.Context())
	if err == nil {
		err = s.Send(&wire.ToStartd{Of: &wire.ToStartd_Hello{Hello: &wire.SessionHello{Schedd: name,
			Incarnation: uint64(time.Now().UnixNano()), Started: 1}}})
	}
	if err != nil {
		a.Fatal(err)
	}
	return s
}

// testForgedClaims requests claims without a grant, with a used grant, and for what
// others have.
func (a *attackedPool) testForgedClaims() {
	s := a.openSession("startd", "submit", a.ids["schedd"])
	if _, err := s.Recv(); !errors.Is(rpc.FromStatus(err), roost.PermissionDenied) {
		a.Errorf("a conversation as another schedd: got %v", err)
	}
	s = a.openSession("startd", "rogue-schedd", a.ids["schedd"])
	next := func(s wire.Startd_SessionClient) *wire.FromStartd {
		m, err := s.Recv()
		if err != nil {
			a.Fatal(err)
		}
		return m
	}
	if w := next(s).GetWelcome(); w == nil || len(w.GetClaims()) > 0 {
		a.Errorf("the welcome shows %v", w)
	}
	a.awaitLogged("exec1", `msg="claim made"`)
	var theirs, number, epoch uint64
	_, text, _ := strings.Cut(a.nodes["exec1"].logText(), `msg="claim made" daemon=startd name=exec1 `)
	if _, err := fmt.Sscanf(text, "claim=%d grant=%d epoch=%d", &theirs, &number, &epoch); err != nil {
		a.Fatal(err)
	}
	for claim := theirs - 5; claim < theirs+5; claim++ {
		ref := &wire.AttemptRef{Job: a.seq, Attempt: 1}
		for _, m := range []*wire.ToStartd{
			{Of: &wire.ToStartd_Vacate{Vacate: &wire.Vacate{Attempt: ref, Fast: true}}},
			{Of: &wire.ToStartd_Release{Release: &wire.ReleaseClaim{Claim: claim}}},
			{Of: &wire.ToStartd_Freeze{Freeze: &wire.Freeze{Attempt: ref, Frozen: true}}},
			{Of: &wire.ToStartd_Signal{Signal: &wire.Signal{Attempt: ref, Signal: 9}}},
			{Of: &wire.ToStartd_Checkpoint{Checkpoint: &wire.TakeCheckpoint{Attempt: ref}}},
			{Of: &wire.ToStartd_Acknowledge{Acknowledge: &wire.Acknowledge{Attempts: []*wire.AttemptRef{ref}}}},
			{Of: &wire.ToStartd_Activate{Activate: &wire.Activate{Claim: claim, Attempt: ref,
				Program: &wire.Program{Uid: someone.uid, Gid: someone.gid}}}},
			{Of: &wire.ToStartd_Renew{Renew: &wire.RenewLeases{Heard: claim, LeaseS: 1}}},
		} {
			if err := s.Send(m); err != nil {
				a.Fatal(err)
			}
		}
	}
	a.awaitLogged("exec1", "refused to give up a claim", "activation refused")
	s = a.openSession("startd", "rogue-schedd", a.ids["schedd"]) // the startd may have had enough of the other
	grant := &wire.Grant{Id: 1 << 40, Epoch: epoch, Owner: "ann", Node: "exec1",
		Resources: &wire.Resources{MilliCpu: 100, Memory: 1 << 20}}
	claim := func(s wire.Startd_SessionClient, g *wire.Grant, capability []byte) *wire.ClaimReply {
		s.Send(&wire.ToStartd{Of: &wire.ToStartd_Claim{Claim: &wire.ClaimRequest{
			Grant: g.Id, Epoch: g.Epoch, Capability: capability, Owner: g.Owner, Ad: "[]", Resources: g.Resources,
			LeaseS: 60, Uid: someone.uid, Gid: someone.gid,
		}}})
		for {
			if c := next(s).GetClaim(); c != nil {
				return c
			}
		}
	}
	keys := a.testNegotiatorKeys()
	other := a.openSession("other", "rogue-schedd", a.ids["schedd"])
	for name, got := range map[string]*wire.ClaimReply{
		"no grant":            claim(s, grant, nil),
		"a guess":             claim(s, grant, make([]byte, 32)),
		"for another's key":   claim(s, grant, wire.ClaimToken(keys["exec2"], grant, "rogue-schedd")),
		"for another machine": claim(other, grant, wire.ClaimToken(keys["exec1"], grant, "rogue-schedd")),
		"of more than granted": claim(s, &wire.Grant{Id: grant.Id, Epoch: grant.Epoch, Owner: "ann",
			Resources: &wire.Resources{MilliCpu: 4000, Memory: 1 << 20}},
			wire.ClaimToken(keys["exec1"], grant, "rogue-schedd")),
		"of another schedd": claim(s, grant, wire.ClaimToken(keys["exec1"], grant, "submit")),
	} {
		if got.GetClaim() != 0 || !strings.Contains(got.GetReason(), "not made for this machine") {
			a.Errorf("%s: got %v", name, got)
		}
	}
	// With the negotiators' key the grant is valid once, but not for another schedd, and
	// not after a grant of a newer negotiator.
	if got := claim(s, grant, wire.ClaimToken(keys["exec1"], grant, "rogue-schedd")); got.GetClaim() == 0 {
		a.Fatalf("a grant: got %v", got)
	}
	second := a.openSession("startd", "rogue-two", a.newIdentity("rogue-two", "schedd"))
	if got := claim(second, grant, wire.ClaimToken(keys["exec1"], grant, "rogue-two")); got.GetClaim() != 0 ||
		!strings.Contains(got.GetReason(), "used before") {
		a.Errorf("the same by another schedd: got %v", got)
	}
	old := &wire.Grant{Id: grant.Id + 1, Epoch: grant.Epoch - 1, Owner: "ann", Node: "exec1",
		Resources: grant.Resources}
	if got := claim(s, old, wire.ClaimToken(keys["exec1"], old, "rogue-schedd")); got.GetClaim() != 0 ||
		!strings.Contains(got.GetReason(), "epoch") {
		a.Errorf("of an epoch that is over: got %v", got)
	}
	// A negotiator that grants more than the machine has.
	over := &wire.Grant{Id: grant.Id + 2, Epoch: grant.Epoch, Owner: "ann", Node: "exec1",
		Resources: &wire.Resources{MilliCpu: 4000, Memory: 1 << 20}}
	if got := claim(s, over, wire.ClaimToken(keys["exec1"], over, "rogue-schedd")); got.GetClaim() != 0 ||
		!strings.Contains(got.GetReason(), "of 4 cpus") {
		a.Errorf("of more than there is: got %v", got)
	}
	a.awaitLogged("exec1", `msg="claim refused"`)
}

// testNegotiatorKeys returns what only negotiators know of the machines.
func (a *attackedPool) testNegotiatorKeys() map[string][]byte {
	a.Helper()
	stream, err := wire.NewCollectorClient(a.dialDaemon("collector", a.ids["negotiator"])).Watch(a.Context(),
		&wire.WatchAds{Type: "Machine"})
	if err != nil {
		a.Fatal(err)
	}
	keys := map[string][]byte{}
	for {
		d, err := stream.Recv()
		if err != nil {
			a.Fatal(err)
		}
		if d.GetSynced() {
			return keys
		}
		key, err := hex.DecodeString(d.GetPrivate()["GrantKey"]) // forged ads have none
		if err != nil {
			a.Fatal(err)
		}
		keys[d.GetName()] = key
	}
}

// testUserAccess tries all commands as another user, and reads every directory.
func (a *attackedPool) testUserAccess() {
	for _, verb := range []string{"rm", "hold", "release", "suspend", "resume", "checkpoint", "retry"} {
		if _, stderr, code := a.runAs(mallory, verb, a.job); code == 0 || !strings.Contains(stderr, "it belongs to") {
			a.Errorf("roost %s: exit %d\n%s", verb, code, stderr)
		}
	}
	a.awaitLogged("submit", "/Act HOLD", "/Act RELEASE", "/Act REMOVE", "/Act RETRY", "/Act CHECKPOINT", "/Act SUSPEND",
		"/Act RESUME")
	for _, args := range [][]string{{"logs", a.job}, {"ssh", a.job, "cat", "/proc/1/environ"},
		{"show", a.job, "--json"}, {"history"}, {"why", a.job}} {
		stdout, stderr, _ := a.runAs(mallory, args...)
		if strings.Contains(stdout+stderr, "hunter2") {
			a.Errorf("roost %s: it was shown\n%s%s", strings.Join(args, " "), stdout, stderr)
		}
	}
	a.awaitLogged("submit", "refused a call of /roost.wire.Schedd/Logs", "refused a call of /roost.wire.Schedd/Shell")
	look := exec.Command("grep", "-rlsa", "hunter2", a.dir, "/proc/self/cwd")
	look.Dir = "/dev/shm"
	look.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: mallory.uid, Gid: mallory.gid}}
	if out, _ := look.Output(); len(out) > 0 {
		a.Errorf("another user can read\n%s", out)
	}
	keys := exec.Command("find", a.dir, "-name", "*.key", "-readable")
	keys.SysProcAttr = look.SysProcAttr
	if out, _ := keys.Output(); len(out) > 0 {
		a.Errorf("another user can read\n%s", out)
	}
}
