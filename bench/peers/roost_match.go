package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// matchJobs advertises machines that are only ads, and requests claims of the negotiator
// like a schedd. It measures from the first request to the last grant.
func (r *roostSystem) matchJobs(ctx context.Context, s workSizes) (ans measureResult, err error) {
	ans.Values = map[string][]float64{}
	if err := r.advertise(ctx, s.Machines); err != nil {
		return ans, err
	}
	if err := r.awaitMachinesKnown(ctx, s.Machines+r.pool.Nodes); err != nil {
		return ans, err
	}
	for n := range s.Matches {
		took, err := r.awaitGrants(ctx, fmt.Sprint("crowd", n), s)
		if err != nil {
			return ans, err
		}
		ans.addValue("match", took.Seconds())
		ans.Note = fmt.Sprintf("until a schedd has %d grants", s.Jobs/s.Kinds*s.Kinds)
		if err := sleepContext(ctx, quiesceTime); err != nil {
			return ans, err
		}
	}
	return ans, nil
}

// advertise advertises all machines at the collector, each as large as one of HTCondor's
// slots, with ads of similar length.
func (r *roostSystem) advertise(ctx context.Context, machines int) error {
	conn, err := rpc.Dial("unix:"+filepath.Join(r.pool.Dir, "run", "collector.sock"), nil, peer.Collector)
	if err != nil {
		return err
	}
	stream, err := wire.NewCollectorClient(conn).Advertise(context.WithoutCancel(ctx)) // the ads must outlive this call
	if err != nil {
		return rpc.FromStatus(err)
	}
	i := 0
	for size, n := range machineGroups(machines) {
		for range n {
			if err := stream.Send(machineAd(i, memorySizes[size])); err != nil {
				return rpc.FromStatus(err)
			}
			if _, err := stream.Recv(); err != nil {
				return rpc.FromStatus(err)
			}
			i++
		}
	}
	return nil
}

// machineAd returns the ad of a machine, by number.
func machineAd(i, memory int) *wire.AdUpdate {
	name := fmt.Sprintf("m%05d", i)
	var more strings.Builder
	for k := range 80 {
		fmt.Fprintf(&more, `Attribute%d = "value %d of an attribute, %d"; `, k, i%7, k)
	}
	return &wire.AdUpdate{
		Type: "Machine", Name: name, Sequence: 1, Started: 1, LeaseMs: uint32(time.Hour.Milliseconds()),
		Private: map[string]string{"GrantKey": hex.EncodeToString(make([]byte, 32))},
		Ad: fmt.Sprintf(`[MyType = "Machine"; Name = "%s"; MyAddress = "unix:/nowhere"; Arch = "X86_64"; OpSys = "LINUX"; Rack = "r%d"; Cpus = 1; TotalCpus = 1;
			Memory = %d; TotalMemory = %d; Disk = 1048576; TotalDisk = 1048576; Start = TARGET.RequestCpus <= TotalCpus; Requirements = Start; %s]`,
			name, i%50, memory, memory, more.String()),
	}
}

// awaitMachinesKnown waits until the negotiator knows all machines. It reports their
// number for a job that fits none of them.
func (r *roostSystem) awaitMachinesKnown(ctx context.Context, machines int) error {
	out, errs, code := r.pool.Command(ctx, "qsub", "-l", "select=1:ncpus=4000", "-o", "/dev/null", "-e", "/dev/null",
		"--", "/bin/true")
	if code != 0 {
		return fmt.Errorf("qsub: %s", errs)
	}
	id, want := strings.TrimSpace(out), fmt.Sprintf("Of %d machines", machines)
	err := pollUntil(ctx, 100*time.Millisecond, "the negotiator does not know all machines", func() bool {
		out, _, _ := r.pool.Command(ctx, "why", id)
		return strings.Contains(out, want)
	})
	if err != nil {
		return err
	}
	return r.removeAllJobs(ctx)
}

// awaitGrants requests the grants like a schedd of a name, and returns when all have
// arrived.
func (r *roostSystem) awaitGrants(ctx context.Context, name string, s workSizes) (time.Duration, error) {
	conn, err := rpc.Dial("unix:"+filepath.Join(r.pool.Dir, "run", "negotiator.sock"), nil, peer.Negotiator)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	stream, err := wire.NewNegotiatorClient(conn).Negotiate(ctx)
	if err == nil {
		err = stream.Send(&wire.FromSchedd{Of: &wire.FromSchedd_Hello{Hello: &wire.ScheddHello{Name: name}}})
	}
	if err == nil {
		_, err = stream.Recv()
	}
	began := time.Now()
	for kind := 0; kind < s.Kinds && err == nil; kind++ {
		err = stream.Send(&wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{
			Id: uint64(kind + 1), Owner: "bench", Band: roost.BatchBand.String(),
			Oldest: began.UnixNano() + int64(kind), Wanted: uint32(s.Jobs / s.Kinds),
			Resources: wire.FromResources(roost.Resources{CPU: 1000,
				Memory: roost.Bytes(memoryOfKind(kind)) * roost.MiB}),
			Ad: `[Requirements = TARGET.Arch == "X86_64" && TARGET.OpSys == "LINUX"]`,
		}}})
	}
	for have := 0; have < s.Jobs/s.Kinds*s.Kinds && err == nil; {
		var m *wire.ToSchedd
		if m, err = stream.Recv(); m.GetGrant() != nil {
			have++
		}
	}
	return time.Since(began), rpc.FromStatus(err)
}
