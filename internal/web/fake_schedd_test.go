package web

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/identity/oidc"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/identity/proof"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/web/jobtext"
	"github.com/roost-batch/roost/internal/wire"
)

// TestMain runs the child that reads job files, if that is what the program was started
// for.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == jobtext.Role {
		os.Exit(jobtext.RunChild(os.Stdin, os.Stdout))
	}
	if len(os.Args) == 2 && os.Args[1] == proof.OIDCRole {
		os.Exit(oidc.RunChild(os.Stdin, os.Stdout))
	}
	if len(os.Args) == 4 && os.Args[1] == otherAccountRole {
		os.Exit(runAsOther(os.Args[2], os.Args[3]))
	}
	if len(os.Args) > 3 && os.Args[1] == confinedRole {
		os.Exit(runConfined(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// fakeSchedd has the logins of a real schedd, and a job 1 of ann's, whose text the test
// chooses. Only ann may change it and read its output.
type fakeSchedd struct {
	wire.UnimplementedScheddServer
	logins *login.Store
	proofs *proof.Verifier

	mu   sync.Mutex
	text string             // of names, reasons and the like
	acts []*wire.ActRequest // that were made
	ad   string             // of its job; empty: a short one
	keys map[string]bool    // submit keys
	news chan string        // states of the job, for those who watch it
	// of the job, as the news were; nil: it is held. One who begins to watch it reads
	// that first, so that news to one who has just left are not lost
	state atomic.Pointer[string]
	bad   []string          // problems besides text
	ads   []string          // of the machines; nil: one
	cell  map[string]string // documents of the negotiators by kind; what is missing is empty
	pool  *wire.HealthReply // what it says of the other schedds

	queries []query.Query // of the accounts
	changes []query.Change

	shells fakeShells
	lost   atomic.Int32 // how many answers of Logins get lost, as if their connections broke

	rows []*wire.JobStatus   // of lists; nil: job 1
	sets []*wire.CellRequest // changes of what administrators keep; ann is the only one

	inside *wire.AllocStatus // inside its job, which is an alloc set then

	flow []*wire.FlowNode // the nodes of its job, which is a flow then

	columns  []*wire.Column        // of the tasks of its job
	discreet bool                  // its job is that of another user
	edit     func(*wire.JobStatus) // changes job 1; nil: it is as it is

	hostile *hostileText // what it puts into its replies, if that is set
}

func (f *fakeSchedd) Watch(_ *wire.WatchRequest, to grpc.ServerStreamingServer[wire.WatchEvent]) error {
	if _, err := f.caller(to.Context()); err != nil {
		return err
	}
	for {
		select {
		case state := <-f.news:
			status := f.job()
			status.State = state
			if err := to.Send(&wire.WatchEvent{Status: status}); err != nil {
				return err
			}
		case <-to.Context().Done():
			return nil
		}
	}
}

func (f *fakeSchedd) caller(ctx context.Context) (string, error) {
	p, _ := peer.FromContext(ctx)
	account, err := f.logins.Account(p.Serial, time.Now())
	return account.User, err
}

func (f *fakeSchedd) Login(ctx context.Context, r *wire.LoginRequest) (*wire.LoginReply, error) {
	key, err := pki.ParseRequest(r.GetRequest())
	if err != nil {
		return nil, err
	}
	var der []byte
	var made login.Login
	var proved proof.Proved
	switch {
	case r.GetSecret() != nil:
		der, made, err = f.logins.Redeem(r.GetSecret(), key, "here", time.Now())
	case r.GetDerived() != nil:
		d := r.GetDerived()
		leaf, perr := x509.ParseCertificate(d.GetCertificate())
		if perr != nil {
			return nil, fmt.Errorf("%w: %w", roost.Invalid, perr)
		}
		if err = f.logins.CheckCertificate(leaf); err == nil {
			err = f.proofs.CheckStatement(proof.SignedStatement{Certificate: leaf, Challenge: d.GetTicket(),
				Host: d.GetHost(), Signature: d.GetSignature()})
		}
		if err == nil {
			der, made, err = f.logins.Derive(leaf, key, r.GetFrom(), time.Now())
		}
	default:
		if p := r.GetPassword(); p != nil {
			proved, err = f.proofs.CheckPassword(ctx, proof.PasswordTry{User: p.GetUser(), Password: p.GetPassword(),
				From: r.GetFrom(), Check: func(string) error { return nil }})
		} else {
			p := r.GetProvider()
			proved, err = f.proofs.CheckProvider(ctx, proof.ProviderAnswer{Provider: p.GetProvider(),
				Ticket: p.GetTicket(), State: p.GetState(), Code: p.GetCode(), Issuer: p.GetIssuer()})
		}
		if err == nil {
			der, made, err = f.logins.Issue(accounts[proved.Account], key, r.GetFrom(), time.Hour, time.Now())
		}
	}
	reply := &wire.LoginReply{Certificate: der, User: made.User, Node: "n1"}
	if !proved.At.IsZero() {
		reply.Proved = proved.At.UnixNano()
	}
	return reply, err
}

func (f *fakeSchedd) BeginLogin(ctx context.Context, r *wire.BeginLoginRequest) (reply *wire.BeginLoginReply,
	err error) {
	reply = &wire.BeginLoginReply{Node: "n1"}
	if r.GetProvider() == "" {
		reply.Ticket, err = f.proofs.Challenge()
	} else {
		reply.Ticket, reply.Url, err = f.proofs.BeginProvider(ctx, r.GetProvider(), r.GetFresh())
	}
	return reply, err
}

func (f *fakeSchedd) Logins(ctx context.Context, _ *wire.LoginsRequest) (*wire.LoginsReply, error) {
	if f.lost.Add(-1) >= 0 {
		return nil, rpc.Status(fmt.Errorf("connection: %w: it broke", roost.Unavailable))
	}
	user, err := f.caller(ctx)
	reply := &wire.LoginsReply{Node: "n1"}
	p, _ := peer.FromContext(ctx)
	for _, l := range f.logins.List(func(a login.HostAccount) bool { return a.User == user }) {
		if f.hostile != nil {
			l.From = f.text
		}
		reply.Logins = append(reply.Logins, &wire.LoginInfo{Id: l.ID(), User: l.User, From: l.From,
			Made: l.Made.UnixNano(), Expires: l.Expires.UnixNano(), Own: l.Serial == p.Serial})
	}
	return reply, err
}

func (f *fakeSchedd) Logout(ctx context.Context, r *wire.LogoutRequest) (*wire.LoginInfo, error) {
	user, err := f.caller(ctx)
	if err != nil {
		return nil, err
	}
	id := r.GetId()
	if p, _ := peer.FromContext(ctx); id == "" {
		id = p.Serial
	}
	l, err := f.logins.Revoke(id, func(a login.HostAccount) bool { return a.User == user }, time.Now())
	return &wire.LoginInfo{Id: l.ID()}, err
}

func (f *fakeSchedd) Health(context.Context, *wire.HealthRequest) (*wire.HealthReply, error) {
	return &wire.HealthReply{Name: "n1", Problems: append([]string{f.text}, f.bad...), Collector: f.text,
		PoolWaits: f.pool.GetPoolWaits(), PoolSchedds: f.pool.GetPoolSchedds(),
		SilentSchedds: f.pool.GetSilentSchedds(),
		Negotiator:    f.text, Waiting: []*wire.WaitReasonCount{{Reason: "busy", Tasks: 3}, {Reason: f.text, Tasks: 1}},
		Oldest: []*wire.OldestWait{{Band: f.text, Id: "1.n1", Since: 1e18}}}, nil
}

// job is job 1.
func (f *fakeSchedd) job() *wire.JobStatus {
	state := "held"
	if now := f.state.Load(); now != nil {
		state = *now
	}
	s := &wire.JobStatus{Id: "1.n1", Name: f.text, Owner: "ann", Band: f.text, Queue: f.text, Reason: f.text,
		Brief: f.text, Node: f.text, State: state, Tasks: 1, Counts: map[string]uint32{state: 1},
		Submitted: 1e18, Ad: cmp.Or(f.ad, `[JobName = "x"]`), Place: 1, SuspendedBy: f.text, Dumpable: f.text,
		Exit: &wire.ExitStatus{Reason: f.text, Steps: []*wire.StepRecord{{Name: f.text, NodeList: f.text,
			End: f.text}}}, RunNow: &wire.RunNow{By: f.text, Nodes: []string{f.text},
			Denied: f.text},
		Alloc: f.inside,
		Usage: &wire.TaskUsage{}, Placed: &wire.Placed{Units: []string{f.text}}, Depends: []string{f.text}}
	if s.Columns, s.Discreet = f.columns, f.discreet; len(f.columns) > 0 {
		s.Tasks = uint32(len(f.columns[0].GetValues()))
	}
	if f.flow != nil {
		s.Flow = &wire.FlowProgress{Phase: "running", Nodes: uint32(len(f.flow)), States: map[string]uint32{},
			Failures: []*wire.FlowFailure{{Node: f.text, Reason: f.text}}}
		for _, n := range f.flow {
			s.Flow.States[n.GetState()]++
		}
	}
	if f.edit != nil {
		f.edit(s)
	}
	return s
}

func (f *fakeSchedd) ListFlowNodes(q *wire.FlowNodesRequest, to grpc.ServerStreamingServer[wire.FlowNodes]) error {
	m := &wire.FlowNodes{}
	for _, n := range f.flow {
		if len(q.GetStates()) == 0 || slices.Contains(q.GetStates(), n.GetState()) {
			m.Nodes = append(m.Nodes, proto.Clone(n).(*wire.FlowNode))
		}
	}
	return to.Send(m)
}

// hiddenJob is a job of which the schedd sends no row, and no error.
const hiddenJob = "76.n1"

func (f *fakeSchedd) QueryPool(r *wire.PoolQuery, to grpc.ServerStreamingServer[wire.PoolRow]) error {
	user, err := f.caller(to.Context())
	if err != nil {
		return err
	}
	sel := r.GetQuery().GetSelection()
	for _, word := range sel.GetSelectors() {
		if word == hiddenJob {
			return nil
		}
		if !strings.HasPrefix(word, "1.n1") && word != "1" && word != "all" {
			return fmt.Errorf("%s: %w: there is no such job here", word, roost.NotFound)
		}
	}
	silent := &wire.PoolRow{Of: &wire.PoolRow_Silent{Silent: &wire.Silent{Node: "n2", Why: f.text}}}
	if len(sel.GetSelectors()) == 0 { // a schedd asks others for lists alone
		if err := to.Send(silent); err != nil {
			return err
		}
	}
	if sel.GetMine() && user != "ann" {
		return nil
	}
	rows := f.rows
	if rows == nil || len(sel.GetSelectors()) > 0 {
		rows = []*wire.JobStatus{f.job()}
	}
	for _, row := range rows {
		if err := to.Send(&wire.PoolRow{Of: &wire.PoolRow_Status{Status: row}}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeSchedd) Act(ctx context.Context, r *wire.ActRequest) (*wire.ActReply, error) {
	user, err := f.caller(ctx)
	if err != nil {
		return nil, err
	}
	result := &wire.ActReply_Result{Id: "1.n1", Tasks: 1}
	if user != "ann" {
		result = &wire.ActReply_Result{Id: "1.n1", Error: "1.n1: it is a job of ann's",
			Kind: uint32(roost.PermissionDenied)}
	} else {
		f.mu.Lock()
		f.acts = append(f.acts, r)
		f.mu.Unlock()
	}
	return &wire.ActReply{Results: []*wire.ActReply_Result{result}}, nil
}

func (f *fakeSchedd) Submit(ctx context.Context, r *wire.SubmitRequest) (*wire.SubmitReply, error) {
	if _, err := f.caller(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	again := f.keys[r.GetKey()]
	f.keys[r.GetKey()] = true
	return &wire.SubmitReply{Ids: []string{"1.n1"}, RepeatedKey: again}, nil
}

func (f *fakeSchedd) Logs(_ *wire.LogsRequest, to grpc.ServerStreamingServer[wire.LogChunk]) error {
	if user, err := f.caller(to.Context()); err != nil || user != "ann" {
		return fmt.Errorf("1.n1: %w: it is a job of ann's", roost.PermissionDenied)
	}
	return to.Send(&wire.LogChunk{Data: []byte(f.text)})
}

func (f *fakeSchedd) Why(context.Context, *wire.WhyRequest) (*wire.WhyReply, error) {
	return &wire.WhyReply{Status: f.job(), Summary: f.text, Advice: []string{f.text}, Explanation: &wire.Explanation{
		Summary: f.text, Brief: f.text, Advice: []string{f.text}, Conflicts: []string{f.text},
		Nearest: []string{f.text}, Basis: f.text, Certainty: f.text,
		Reasons:    []*wire.Explanation_Reason{{Text: f.text, Kind: f.text}},
		Conditions: []*wire.Explanation_Condition{{Text: f.text, Means: f.text}}}}, nil
}

func (f *fakeSchedd) Events(_ *wire.EventsRequest, to grpc.ServerStreamingServer[wire.JobEvent]) error {
	image := &wire.CheckpointImage{Sequence: 1, Attempt: 1, Time: 1, Size: 1 << 20, Frozen: 1e8, Wall: 1e9}
	for i, e := range []*wire.JobEvent{{What: "started"}, {What: "checkpointed", Image: image},
		{What: "checkpoint-bad", Image: image}, {What: f.text, Exit: &wire.ExitStatus{Reason: f.text, Wall: 3e9}}} {
		e.Sequence, e.Id, e.Attempt, e.Text, e.Node = uint64(i+1), "1.n1", 1, f.text, f.text
		if err := to.Send(e); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeSchedd) Ads(_ *wire.AdQuery, to grpc.ServerStreamingServer[wire.AdText]) error {
	f.mu.Lock()
	ads := f.ads
	f.mu.Unlock()
	if ads == nil {
		ads = []string{`[Name = "n1"; State = "Unclaimed"; TotalCpus = 4; Cpus = 4]`}
	}
	for _, ad := range ads {
		if err := to.Send(&wire.AdText{Ad: ad}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeSchedd) Names(_ *wire.NamesQuery, to grpc.ServerStreamingServer[wire.NamesUpdate]) error {
	if _, err := f.caller(to.Context()); err != nil {
		return err
	}
	return to.Send(&wire.NamesUpdate{Full: true, Endpoints: []*wire.ServiceEndpoint{{
		Key: &wire.EndpointKey{Owner: f.text, Name: f.text, Job: "2.n1", Index: 1}, State: "ready",
		Address: "192.0.2.7", Ports: []*wire.EndpointPort{{Name: "http", Number: 20001}},
		Machine: f.text, DnsName: f.text}}})
}

func (f *fakeSchedd) ListBlobs(context.Context, *wire.BlobRequest) (*wire.BlobList, error) {
	return &wire.BlobList{Blobs: []*wire.BlobEntry{{Digest: "sha256:0a", Size: 3 << 20, UsedS: 1_700_000_000}}}, nil
}

func (f *fakeSchedd) ListPackages(_ context.Context, q *wire.PackageQuery) (*wire.PackageList, error) {
	p := &wire.Package{Name: "web", Owner: "ann", Node: "n1", VersionCount: 2,
		Labels: []*wire.PackageLabel{{Label: "live", Version: "1.4"}}}
	f.mu.Lock()
	if f.hostile != nil {
		p.Owner, p.Labels[0].Label = hostileMark, hostileMark
	}
	f.mu.Unlock()
	if q.GetName() != "" {
		p.Versions = []*wire.PackageVersion{{Version: "1.3", Digest: "sha256:0b", Size: 5 << 20, User: "ann"},
			{Version: "1.4", Digest: "sha256:0c", User: "bob", Image: &wire.ImageSettings{Workdir: "/srv"}}}
		p.History = []*wire.PackageMove{{Label: "live", To: "1.3", User: "ann", TimeS: 1_700_000_000},
			{Label: "live", From: "1.3", To: "1.4", User: "bob", TimeS: 1_700_000_100}}
	}
	return &wire.PackageList{Packages: []*wire.Package{p}, More: q.GetAfter() == "" && q.GetName() == ""}, nil
}

func (f *fakeSchedd) CheckpointCell(_ *wire.CheckpointCellRequest,
	to grpc.ServerStreamingServer[wire.CheckpointPiece]) error {
	return to.Send(&wire.CheckpointPiece{Data: []byte("a cell")})
}

func (f *fakeSchedd) Cell(ctx context.Context, r *wire.CellRequest) (*wire.CellReply, error) {
	if r.GetVerb() != "show" {
		if user, err := f.caller(ctx); err != nil || user != "ann" {
			return nil, fmt.Errorf("%s: %w: %s is no administrator", r.GetKind(), roost.PermissionDenied, user)
		}
		f.sets = append(f.sets, r)
	}
	text := "[]"
	if r.GetKind() == "shares" {
		text = "{}"
	}
	if own, ok := f.cell[r.GetKind()]; ok {
		text = own
	}
	return &wire.CellReply{Document: []byte(text)}, nil
}
