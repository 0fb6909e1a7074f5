package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// endpointHost is the node of all session endpoints: their certificate has its name.
const endpointHost = "execute"

// sessionEndpoint is one startd as its schedd sees it, with an ad and a TLS server of its
// own. It answers as a startd does, but starts no process: an attempt runs until it is
// vacated.
type sessionEndpoint struct {
	wire.UnimplementedStartdServer
	group *endpointGroup
	name  string
	cpus  int

	mu       sync.Mutex // also held while a message is sent
	address  string
	stream   grpc.BidiStreamingServer[wire.ToStartd, wire.FromStartd] // nil: there is no session
	claims   map[uint64]*endpointClaim
	last     uint64 // number of the last claim
	word     uint64 // number of the last renewal on this session
	renewed  bool   // the schedd has renewed the leases on this session
	sequence uint64 // of the last ad
	adStale  bool
}

// endpointClaim is a claim of an endpoint.
type endpointClaim struct {
	request *wire.ClaimRequest
	attempt *wire.AttemptRef // nil: none is on it
	since   time.Time
}

// endpointGroup is all endpoints of one measurement.
type endpointGroup struct {
	list     []*sessionEndpoint
	renewals atomic.Int64 // messages that renewed leases
	reports  atomic.Int64 // reports of usage that were sent
	servers  []*rpc.Server
}

// startEndpoints starts endpoints that have cpus cores each.
func startEndpoints(id *rpc.Identity, n, cpus int) (*endpointGroup, error) {
	g := &endpointGroup{}
	for i := range n {
		e := &sessionEndpoint{group: g, name: fmt.Sprintf("node%06d", i), cpus: cpus, adStale: true,
			claims: map[uint64]*endpointClaim{}}
		l, err := rpc.Listen("127.0.0.1:0", 0o600)
		if err != nil {
			g.stop()
			return nil, err
		}
		e.address = l.Addr().String()
		server := rpc.NewServer(id, peer.MethodAccess(), rpc.WithProgramSizes())
		wire.RegisterStartdServer(server, e)
		go server.Serve(l)
		g.list, g.servers = append(g.list, e), append(g.servers, server)
	}
	return g, nil
}

func (g *endpointGroup) stop() {
	for _, s := range g.servers {
		s.Stop()
	}
}

// Session implements wire.StartdServer.
func (e *sessionEndpoint) Session(stream grpc.BidiStreamingServer[wire.ToStartd, wire.FromStartd]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if first.GetHello() == nil {
		return errors.New("a session began without a greeting")
	}
	if err := e.open(stream); err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if err == nil {
			err = e.handle(stream, m)
		}
		if err != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.stream == stream {
				e.stream, e.renewed = nil, false
			}
			return err
		}
	}
}

// open begins a session with the welcome.
func (e *sessionEndpoint) open(stream grpc.BidiStreamingServer[wire.ToStartd, wire.FromStartd]) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	welcome := &wire.SessionWelcome{Node: e.name, BootId: "boot", FileSystemDomain: "cluster"}
	for _, id := range slices.Sorted(maps.Keys(e.claims)) {
		c := e.claims[id]
		welcome.Claims = append(welcome.Claims, &wire.ClaimState{Claim: id, Resources: c.request.GetResources(),
			Owner: c.request.GetOwner(), Grant: c.request.GetGrant(), Epoch: c.request.GetEpoch(),
			Attempt: c.attempt, Running: c.attempt != nil})
	}
	e.stream, e.word, e.renewed = stream, 0, false
	return stream.Send(&wire.FromStartd{Of: &wire.FromStartd_Welcome{Welcome: welcome}})
}

// handle answers one message as a startd does.
func (e *sessionEndpoint) handle(stream grpc.BidiStreamingServer[wire.ToStartd, wire.FromStartd],
	m *wire.ToStartd) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch m := m.GetOf().(type) {
	case *wire.ToStartd_Claim:
		e.last++
		e.claims[e.last], e.adStale = &endpointClaim{request: m.Claim, since: time.Now()}, true
		return stream.Send(&wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{
			Grant: m.Claim.GetGrant(), Epoch: m.Claim.GetEpoch(), Claim: e.last, AdSequence: e.sequence + 1,
			ScratchDomain: "cluster"}}})
	case *wire.ToStartd_Activate:
		if c := e.claims[m.Activate.GetClaim()]; c != nil {
			c.attempt = m.Activate.GetAttempt()
		}
		return stream.Send(&wire.FromStartd{Of: &wire.FromStartd_Started{Started: &wire.Started{
			Attempt: m.Activate.GetAttempt(), Pid: 1}}})
	case *wire.ToStartd_Renew:
		e.word++
		e.renewed = true
		e.group.renewals.Add(1)
		return stream.Send(&wire.FromStartd{Of: &wire.FromStartd_Renewed{Renewed: &wire.LeasesRenewed{Word: e.word}}})
	case *wire.ToStartd_Vacate:
		return stream.Send(&wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: &wire.Exited{
			Attempt: m.Vacate.GetAttempt(), Status: &wire.ExitStatus{Cause: m.Vacate.GetCause()}}}})
	case *wire.ToStartd_Release:
		delete(e.claims, m.Release.GetClaim())
		e.adStale = true
	}
	return nil
}

// reportUsage sends what all attempts of an endpoint use, as if all were busy.
func (e *sessionEndpoint) reportUsage() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stream == nil {
		return
	}
	report := &wire.UsageReport{}
	for _, id := range slices.Sorted(maps.Keys(e.claims)) {
		c := e.claims[id]
		if c.attempt == nil {
			continue
		}
		wall := time.Since(c.since)
		report.Attempts = append(report.Attempts, &wire.AttemptUsage{Attempt: c.attempt, Usage: &wire.TaskUsage{
			Time: time.Now().UnixNano(), Wall: int64(wall), UserCpu: int64(wall), SystemCpu: int64(wall / 50),
			Memory: 100<<20 + rand.Int64N(1<<20), PeakMemory: 120 << 20, Cache: rand.Int64N(1 << 30),
			ReadBytes: int64(wall), WriteBytes: int64(wall / 2), Processes: 3, Disk: 1 << 20, Session: 4711,
		}})
	}
	if len(report.Attempts) > 0 &&
		e.stream.Send(&wire.FromStartd{Of: &wire.FromStartd_Usage{Usage: report}}) == nil {
		e.group.reports.Add(1)
	}
}

// runUsageReports has each endpoint report once in an interval, until ctx ends.
func (g *endpointGroup) runUsageReports(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval / time.Duration(len(g.list)))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.list[n%len(g.list)].reportUsage()
		}
	}
}

// counts returns how many endpoints have a session whose leases were renewed, and how
// many attempts they have in all.
func (g *endpointGroup) counts() (sessions, attempts int) {
	for _, e := range g.list {
		e.mu.Lock()
		if e.stream != nil && e.renewed {
			sessions++
		}
		for _, c := range e.claims {
			if c.attempt != nil {
				attempts++
			}
		}
		e.mu.Unlock()
	}
	return sessions, attempts
}

// advertise sends the ads of all endpoints until ctx ends. It sends an ad again when it
// has changed, and once a minute.
func (g *endpointGroup) advertise(ctx context.Context, collector string) error {
	conn, err := rpc.Dial(collector, nil, peer.Collector)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := wire.NewCollectorClient(conn).Advertise(ctx)
	if err != nil {
		return rpc.FromStatus(err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		for i, e := range g.list {
			update := e.takeAd((i+n)%600 == 0)
			if update == nil {
				continue
			}
			if err := stream.Send(update); err != nil {
				return rpc.FromStatus(err)
			}
			if _, err := stream.Recv(); err != nil {
				return rpc.FromStatus(err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// takeAd returns the machine's ad if it has changed, or is to be sent all the same.
func (e *sessionEndpoint) takeAd(anyway bool) *wire.AdUpdate {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.adStale && !anyway {
		return nil
	}
	e.adStale = false
	e.sequence++
	var claims strings.Builder
	for _, id := range slices.Sorted(maps.Keys(e.claims)) {
		c := e.claims[id]
		fmt.Fprintf(&claims, `[Id = %d; Owner = %q; Band = %q; Cpus = 1; Memory = 64; Since = %d],`, id,
			c.request.GetOwner(), cmp.Or(c.request.GetBand(), "batch"), c.since.Unix())
	}
	return &wire.AdUpdate{
		Type: "Machine", Name: e.name, Sequence: e.sequence, Started: 1, LeaseMs: uint32(fakeLease.Milliseconds()),
		Private: map[string]string{"GrantKey": hex.EncodeToString(make([]byte, 32)), "GrantNames": "schedd",
			"Clock": fmt.Sprint(int64(boottime.Now()))},
		Ad: fmt.Sprintf(`[MyType = "Machine"; Name = %q; Machine = %q; MyAddress = %q; Arch = "X86_64"; OpSys = "LINUX";
			FileSystemDomain = "cluster"; Cpus = %d; TotalCpus = %d; Memory = %d; TotalMemory = 65536; Disk = 1048576;
			TotalDisk = 1048576; Start = true; Requirements = Start; Claims = {%s}]`, e.name, endpointHost, e.address,
			e.cpus-len(e.claims), e.cpus, 65536-64*len(e.claims), strings.TrimSuffix(claims.String(), ",")),
	}
}
