package negotiator

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// TestCheckpointPlans runs random cells, and compares the plan of a checkpoint with the
// leader's plan at that moment. The checkpoint is written and read again for it. The
// plans must be equal in every word, and the checkpoint of the read checkpoint must be
// equal, too.
func TestCheckpointPlans(t *testing.T) {
	grants, waiting, victims := 0, 0, 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 11))
		w := newBusyCell(t, rng)
		for range 2 + rng.IntN(5) {
			w.changeAndRunCycle(rng)
		}
		text := w.writeCheckpoint()
		read, err := cellstate.Read(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := match.Plan{}
		if s, _ := w.cell.cellSnapshot(w.now); s != nil {
			for _, r := range s.Requests {
				r.Explain = true
			}
			want = w.cell.matcher.Plan(s)
		}
		snapshot := read.Plan()
		for _, r := range snapshot.Requests {
			r.Explain = true
		}
		got := match.NewMatcher().Plan(snapshot)
		if len(snapshot.Requests) == 0 {
			got = match.Plan{}
		}
		if a, b := planText(got), planText(want); a != b {
			t.Fatalf("seed %d: from the checkpoint\n%sand the leader\n%s", seed, a, b)
		}
		var again bytes.Buffer
		if err := cellstate.Write(&again, read); err != nil || !bytes.Equal(again.Bytes(), text) {
			t.Fatalf("seed %d: written again it has %d bytes, and %d before: %v", seed, again.Len(), len(text), err)
		}
		for _, g := range want.Grants {
			grants += g.Units
			victims += len(g.Victims)
		}
		waiting += len(want.Unplaced)
	}
	if t.Logf("%d units granted, %d claims displaced, %d requests wait", grants, victims, waiting); grants < 30 ||
		victims < 5 || waiting < 100 {
		t.Error("that is too little to prove anything")
	}
}

// planText formats a plan completely. Gangs are numbered in the order of the plan,
// because a matcher with a cache skips some numbers.
func planText(p match.Plan) string {
	var b strings.Builder
	gangs := map[int]int{0: 0}
	for _, g := range p.Grants {
		if _, known := gangs[g.Gang]; !known {
			gangs[g.Gang] = len(gangs)
		}
		fmt.Fprintf(&b, "%v: %d on %s, gang %d, waiting %v, victims %v, %s\n", g.Request.Key, g.Units, g.Machine.Name,
			gangs[g.Gang], g.Waiting, g.Victims, g.EvictionReason)
	}
	for _, u := range p.Unplaced {
		fmt.Fprintf(&b, "%v lacks %d: %+v\n", u.Request.Key, u.Missing, *u.Explanation)
	}
	for _, k := range p.Unavailable {
		fmt.Fprintf(&b, "%+v\n", k)
	}
	for _, c := range p.Conflicts {
		fmt.Fprintf(&b, "%v: %+v %s\n", c.Request.Key, c.SelfPlacement, c.Why)
	}
	return b.String()
}

// busyCell is a cell with machines and schedds that act at random.
type busyCell struct {
	*scriptRunner
	machines int
	requests uint64
}

func newBusyCell(t *testing.T, rng *rand.Rand) *busyCell {
	w := &busyCell{scriptRunner: &scriptRunner{t: t, now: time.Unix(1_000_000, 0), sendQueue: map[string]*sendQueue{}},
		machines: 1 + rng.IntN(6)}
	w.makeLeader()
	for i := range w.machines {
		w.advertiseMachine(rng, i)
	}
	w.cell.updateMachines(w.now, nil, true)
	set := func(kind ledger.ObjectKind, format string, args ...any) {
		w.commitAdmin(ledger.AdminCommand{Verb: ledger.VerbSet, Kind: kind, Object: fmt.Appendf(nil, format, args...)})
	}
	set(ledger.KindSetting, `{"name": "backfill", "value": "%s"}`, []string{"off", "easy", "conservative"}[rng.IntN(3)])
	set(ledger.KindLimit, `{"name": "matlab", "count": %d}`, rng.IntN(4))
	set(ledger.KindQueue,
		`{"name": "short", "enabled": true, "started": %v, "running": {"per_user": %d}, "running_soft": {"total": 1}}`,
		rng.IntN(4) > 0, rng.IntN(4))
	if rng.IntN(2) == 0 {
		set(ledger.KindSetting, `{"name": "preemption_requirements", "value": "true"}`)
		set(ledger.KindSetting, `{"name": "preemption_min_runtime", "value": "0s"}`)
	}
	if rng.IntN(2) == 0 {
		set(ledger.KindGroup, `{"name": "sci", "cores": %d}`, 1+rng.IntN(8))
		set(ledger.KindSubmitter, `{"user": "ann", "floor": 2, "ceiling": %d}`, 2+rng.IntN(9))
	}
	if rng.IntN(3) == 0 {
		set(ledger.KindReservation,
			`{"name": "talk", "users": ["bob"], "amount": {"cpus": 4}, "from": %q, "until": %q}`,
			w.now.Add(time.Hour).UTC().Format(time.RFC3339), w.now.Add(2*time.Hour).UTC().Format(time.RFC3339))
	}
	if rng.IntN(3) == 0 {
		set(ledger.KindDrain, `{"node": "m0", "from": %q}`, w.now.Add(10*time.Minute).UTC().Format(time.RFC3339))
	}
	return w
}

// advertiseMachine sends the ad of a machine with running tasks.
func (w *busyCell) advertiseMachine(rng *rand.Rand, i int) {
	units, err := gpu.CutUnits(gpu.MachineTopology{
		CPU: 8000, Memory: 16 * roost.GiB, Cores: make([]gpu.CPUCore, 8),
		Devices: []gpu.Device{{UUID: "GPU-0", Memory: 8 * roost.GiB, Health: gpu.HealthyDevice()}}[:rng.IntN(2)],
	}, gpu.LayoutConfig{Shape: gpu.SharedLayout})
	if err != nil {
		w.t.Fatal(err)
	}
	f := gpu.NewFree(units, 100*roost.GiB)
	ad := classad.New()
	var list []classad.Value
	for id := range rng.IntN(4) {
		p, err := f.PlaceOrExplain(gpu.DeviceRequest{Resources: roost.Resources{
			CPU: roost.MilliCPU(500 * (1 + rng.IntN(5))), Memory: roost.GiB,
		}, Class: gpu.AppClass(rng.IntN(5) / 4)})
		if err != nil {
			break
		}
		f.TakePlacement(p)
		claim := classad.New()
		claim.SetInt(roost.AttrClaimID, int64(id+1))
		claim.SetString(roost.AttrOwner, []string{"ann", "bob", "eve"}[rng.IntN(3)])
		claim.SetString(roost.AttrBand, roost.PriorityBand(rng.IntN(2)).String())
		claim.SetString(roost.AttrAppClass, p.Class.String())
		claim.SetReal(roost.AttrCpus, p.Parts[0].CPU.Cores())
		claim.SetInt(roost.AttrMemory, 1024)
		p.Describe(claim)
		claim.SetString(roost.AttrJob, fmt.Sprintf("%d[%d].s%d", 1+rng.IntN(3), rng.IntN(9), rng.IntN(4)))
		claim.SetInt(roost.AttrSince, w.now.Unix()-int64(rng.IntN(5000)))
		if rng.IntN(2) == 0 {
			claim.SetInt(roost.AttrEnds, w.now.Unix()+int64(1+rng.IntN(5000)))
		} else {
			claim.SetInt(roost.AttrExpected, w.now.Unix()+int64(rng.IntN(500))-100)
		}
		claim.SetString(roost.AttrQueue, []string{"", "short"}[rng.IntN(2)])
		claim.SetString(roost.AttrLimits, []string{"", "matlab"}[rng.IntN(8)/7])
		list = append(list, classad.AdOf(claim))
	}
	ad.SetString(roost.AttrName, fmt.Sprintf("m%d", i))
	ad.SetReal(roost.AttrTotalDisk, float64(100*roost.GiB/roost.KiB))
	ad.SetReal(roost.AttrDisk, float64(f.LeftForBatch().Disk/roost.KiB))
	f.Describe(ad)
	if len(list) > 0 {
		ad.SetValue(roost.AttrClaims, classad.ListValue(list...))
	}
	change := adclient.AdChange{Name: fmt.Sprintf("m%d", i), Sequence: uint64(w.now.Unix()), Started: 1,
		Ad: ad.String(), Private: map[string]string{grantKey: hex.EncodeToString(testKey)}}
	w.cell.updateMachines(w.now, []machineUpdate{parseMachineUpdate(w.now, change, w.cell.log)}, false)
}

// changeAndRunCycle makes a random change and runs a cycle.
func (w *busyCell) changeAndRunCycle(rng *rand.Rand) {
	w.now = w.now.Add(time.Duration(rng.IntN(2000)) * time.Millisecond)
	name := fmt.Sprintf("s%d", rng.IntN(3))
	switch mail := w.sendQueue[name]; {
	case mail == nil:
		w.sendQueue[name] = newSendQueue()
		w.cell.addStream(w.now, &wire.ScheddHello{Name: name, Tells: true}, w.sendQueue[name])
	case rng.IntN(8) == 0:
		w.cell.removeStream(w.now, name, mail)
		delete(w.sendQueue, name)
		return
	}
	for range 1 + rng.IntN(4) {
		w.addRequest(rng, name)
	}
	if rng.IntN(2) == 0 {
		w.receiveMessage(name, &wire.FromSchedd{Of: &wire.FromSchedd_Told{Told: &wire.Told{}}})
	}
	u := &wire.Usage{Owner: []string{"ann", "bob"}[rng.IntN(2)],
		Held: wire.FromResources(roost.Resources{CPU: roost.MilliCPU(rng.IntN(4)) * 1000})}
	w.receiveMessage(name, &wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: u}})
	if w.advertiseMachine(rng, rng.IntN(w.machines)); rng.IntN(3) > 0 {
		w.cell.runCycle(w.now)
		if d, ok := w.cell.takePendingEntry(w.now); ok {
			w.cell.ledgerStore.Apply(0, w.stampedMachine(d))
			w.cell.sendCommitted(w.now, d)
		}
	}
}

func (w *busyCell) stampedMachine(d pendingEntry) []byte {
	e := w.cell.logEntry(d)
	e.At = w.now.UnixNano()
	return e.Encode(nil)
}

func (w *busyCell) addRequest(rng *rand.Rand, name string) {
	w.requests++
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	u := &wire.RequestUpdate{
		Id: w.requests, Owner: one("ann", "bob", "eve"), Group: one("", "", "sci"), UnixGroup: "users",
		Band: one("free", "batch", "production"), Priority: int32(rng.IntN(2)),
		Oldest: w.now.UnixNano() - int64(rng.IntN(1e9)), Wanted: uint32(1 + rng.IntN(6)), Claims: uint32(rng.IntN(2)),
		Queue: one("", "short"),
		Resources: wire.FromResources(roost.Resources{CPU: roost.MilliCPU(500 * (1 + rng.IntN(6))), Memory: roost.GiB,
			GPUs: rng.IntN(5) / 4}),
		Ad: one("[]", `[Requirements = TARGET.Cpus > 2]`, `[ConcurrencyLimits = "matlab"]`,
			`[Rank = TARGET.Cpus]`), Reservation: one("", "", "", "talk"),
		WalltimeS: int64(rng.IntN(3)) * 600, PredictedS: int64(rng.IntN(2)) * 100,
	}
	if rng.IntN(4) == 0 {
		u.Gang = 2
		u.Wanted = u.Wanted * 2
	}
	if rng.IntN(5) == 0 { // two requests are a gang together
		lead := proto.CloneOf(u)
		lead.Id, lead.Gang, lead.Wanted, lead.Lead = w.requests, 3, 1, w.requests
		w.receiveMessage(name, &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: lead}})
		w.requests++
		u.Id, u.Gang, u.Wanted, u.Lead = w.requests, 3, 2, lead.Id
	}
	w.receiveMessage(name, &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: u}})
}

// writeCheckpoint returns a written checkpoint.
func (w *busyCell) writeCheckpoint() []byte {
	p, stored, err := w.cell.cellCheckpoint(w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	if p.Ledger, err = ledger.Load(stored); err != nil {
		w.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := cellstate.Write(&b, p); err != nil {
		w.t.Fatal(err)
	}
	return b.Bytes()
}

// TestCheckpointCell takes a checkpoint over a real socket. It must have the machine and
// the request, without what is private to the negotiator and the machine. Before a
// collector has answered there is none.
func TestCheckpointCell(t *testing.T) {
	p := newCollectorTest(t)
	p.startNegotiator()
	stream, epoch := p.joinSchedd("s")
	conn, err := rpc.Dial(p.node.Negotiator.Listen[0], nil, peer.Negotiator)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	take := func() ([]byte, error) {
		from, err := wire.NewNegotiatorClient(conn).CheckpointCell(t.Context(),
			&wire.CheckpointCellRequest{Who: "ann@n1"})
		var all []byte
		for err == nil {
			var piece *wire.CheckpointPiece
			if piece, err = from.Recv(); err == nil {
				all = append(all, piece.GetData()...)
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return all, rpc.FromStatus(err)
	}
	if _, err := take(); !errors.Is(err, roost.Unavailable) {
		t.Errorf("before a collector has answered there is a checkpoint, or this: %v", err)
	}
	p.addMachine("n1", 1, 1)
	p.collector.deltas <- &wire.AdDelta{Synced: true}
	p.sendMessage(stream, requestMessage(1, 100, 0))
	g := p.receiveGrant(stream)
	text, err := take()
	if err != nil {
		t.Fatal(err)
	}
	c, err := cellstate.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if c.Epoch != epoch || c.Leader != p.node.Name || len(c.Machines) != 1 || len(c.Requests) != 1 ||
		c.Requests[0].OwnWanted != 99 || len(c.Pending["n1"]) != 1 {
		t.Errorf("got epoch %d of %s, %d machines, asks %+v, pending %v", c.Epoch, c.Leader, len(c.Machines),
			c.Requests, c.Pending)
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{hex.EncodeToString(testKey), base64.StdEncoding.EncodeToString(testKey),
		hex.EncodeToString(g.GetCapability()), base64.StdEncoding.EncodeToString(g.GetCapability())} {
		if len(secret) < 8 || bytes.Contains(plain, []byte(secret)) {
			t.Errorf("%q is in the checkpoint", secret)
		}
	}
}
