package provision

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// PoolSource says what waits in the user's queue, and which of the user's pilots are in
// the pool.
type PoolSource interface {
	Demand(ctx context.Context) ([]plan.Demand, error)
	// Pilots returns all of them, or an error: a list with some of them is no answer.
	Pilots(ctx context.Context) ([]plan.Pilot, error)
}

// QueueSource is the PoolSource of a user at a schedd.
type QueueSource struct {
	Connect func() (*scheddapi.ScheddClient, error)
	// Disconnect drops a connection on which a call failed.
	Disconnect func()
}

// The bounds on what is asked of the schedd.
const (
	maxDemandJobs = 2000
	maxExplained  = 50 // jobs whose explanation is read in each round
)

// client returns the connection to the schedd.
func (q *QueueSource) client() (*scheddapi.ScheddClient, error) { return q.Connect() }

// failed drops a connection after an error.
func (q *QueueSource) failed(err error) error {
	if err != nil && q.Disconnect != nil {
		q.Disconnect()
	}
	return err
}

// Demand returns the user's tasks that wait for nothing but a machine.
func (q *QueueSource) Demand(ctx context.Context) ([]plan.Demand, error) {
	s, err := q.client()
	if err != nil {
		return nil, err
	}
	list, err := q.queryJobs(ctx, s)
	if err != nil {
		return nil, q.failed(fmt.Errorf("the queue: %w", err))
	}
	var demand []plan.Demand
	for i, j := range list {
		if i >= maxExplained || !isLimited(ctx, s, j) {
			d, err := demandOf(j)
			if err == nil && d.Units > 0 {
				demand = append(demand, d)
			}
		}
	}
	return demand, nil
}

func (q *QueueSource) queryJobs(ctx context.Context, s *scheddapi.ScheddClient) ([]*scheddapi.JobStatus, error) {
	stream, err := s.Query(ctx, &scheddapi.QueryRequest{Ads: true, Limit: maxDemandJobs,
		Selection: &scheddapi.Selection{Mine: true, States: []string{roost.Idle.String()}}})
	if err != nil {
		return nil, err
	}
	var list []*scheddapi.JobStatus
	for {
		j, err := stream.Recv()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		if j.GetCounts()[roost.Idle.String()] > 0 && j.GetWaiting() > 0 {
			list = append(list, j)
		}
	}
}

// isLimited reports whether a job waits for a quota or another bound of the pool. A pilot
// would not help it.
func isLimited(ctx context.Context, s *scheddapi.ScheddClient, j *scheddapi.JobStatus) bool {
	why, err := s.Why(ctx, &scheddapi.WhyRequest{Id: j.GetId()})
	if err != nil {
		return false
	}
	reasons := why.GetExplanation().GetReasons()
	return len(reasons) > 0 && reasons[0].GetKind() == "limit"
}

// demandOf reads the waiting tasks of a job.
func demandOf(j *scheddapi.JobStatus) (plan.Demand, error) {
	ad, err := classad.Parse(j.GetAd())
	if err != nil {
		return plan.Demand{}, fmt.Errorf("job %s: %w", j.GetId(), err)
	}
	band, err := roost.ParsePriorityBand(j.GetBand())
	if err != nil {
		return plan.Demand{}, fmt.Errorf("job %s: %w", j.GetId(), err)
	}
	d := plan.Demand{Job: j.GetId(), Band: band, Priority: j.GetPriority(), Units: waitingUnits(j, ad),
		Since: time.Unix(0, j.GetWaiting())}
	d.Submitter.Owner = j.GetOwner()
	d.Submitter.Group, _ = ad.Str(roost.AttrGroup)
	if seconds, ok := ad.Int(roost.AttrWalltime); ok && seconds > 0 {
		d.Walltime = time.Duration(seconds) * time.Second
	}
	if n, ok := ad.Int(roost.AttrGangSize); ok && n > 1 {
		d.Gang = int(n)
		d.Units -= d.Units % d.Gang
	}
	addQueueRequirements(ad)
	for _, name := range []string{roost.AttrScript, roost.AttrEnvironment, roost.AttrArguments} {
		ad.Delete(name) // of no use here, and long
	}
	d.Class, err = match.NewClass(ad.String(), d.Submitter, band, unitResources(j))
	if reads, ok := ad.Bool(roost.AttrScatter); err == nil && ok {
		d.Class.Scatter = reads
	}
	return d, err
}

// waitingUnits is how many tasks of a job could start now if there were machines.
func waitingUnits(j *scheddapi.JobStatus, ad *classad.Ad) int {
	counts := j.GetCounts()
	units := int(counts[roost.Idle.String()])
	if most, ok := ad.Int(roost.AttrMaxRunning); ok && most > 0 {
		active := 0
		for _, s := range []roost.TaskState{roost.Starting, roost.Running, roost.Suspended, roost.Exiting} {
			active += int(counts[s.String()])
		}
		units = min(units, max(int(most)-active, 0))
	}
	return units
}

// unitResources is what each task takes. Of a job with different parts it is the largest.
func unitResources(j *scheddapi.JobStatus) roost.Resources {
	if len(j.GetChunks()) == 0 {
		return j.GetRequest().Vector()
	}
	var r roost.Resources
	for _, c := range j.GetChunks() {
		v := c.GetRequest().Vector()
		r = roost.Resources{CPU: max(r.CPU, v.CPU), Memory: max(r.Memory, v.Memory), Disk: max(r.Disk, v.Disk),
			GPUs: max(r.GPUs, v.GPUs), GPUMemory: max(r.GPUMemory, v.GPUMemory)}
	}
	return r
}

// addQueueRequirements makes the requirements of the job's queue a part of its own.
func addQueueRequirements(ad *classad.Ad) {
	of, ok := ad.Lookup(roost.AttrQueueRequires)
	if !ok {
		return
	}
	text := "(" + of.String() + ")"
	if own, ok := ad.Lookup(roost.AttrRequirements); ok {
		text = "(" + own.String() + ") && " + text
	}
	if err := ad.SetExpr(roost.AttrRequirements, text); err == nil {
		ad.Delete(roost.AttrQueueRequires)
	}
}

// Pilots returns the pilots in the pool.
func (q *QueueSource) Pilots(ctx context.Context) ([]plan.Pilot, error) {
	s, err := q.client()
	if err != nil {
		return nil, err
	}
	stream, err := s.Ads(ctx, &scheddapi.AdQuery{Type: "Machine", Constraint: roost.AttrPilotKey + " isnt undefined"})
	if err != nil {
		return nil, q.failed(fmt.Errorf("pilots: %w", err))
	}
	var pilots []plan.Pilot
	for {
		text, err := stream.Recv()
		if err == io.EOF {
			return markFailing(ctx, s, pilots), nil
		}
		if err != nil {
			return nil, q.failed(fmt.Errorf("pilots: %w", err))
		}
		if p, ok := pilotOf(text.GetAd()); ok {
			pilots = append(pilots, p)
		}
	}
}

// markFailing notes which pilots the pool has drained because tasks fail there. Where no
// negotiator answers, none is noted.
func markFailing(ctx context.Context, s *scheddapi.ScheddClient, pilots []plan.Pilot) []plan.Pilot {
	if len(pilots) == 0 {
		return pilots
	}
	reply, err := s.Cell(ctx, &scheddapi.CellRequest{Verb: "show", Kind: string(ledger.KindDrain)})
	if err != nil {
		return pilots
	}
	failing := failingMachines(reply.GetDocument())
	for i := range pilots {
		pilots[i].Failing = failing[pilots[i].Name]
	}
	return pilots
}

// failingMachines reads which machines the negotiators have drained by themselves, and
// why. Drains of administrators say nothing of a host.
func failingMachines(document []byte) map[string]string {
	var drains []struct {
		Object struct {
			Node   string `json:"node"`
			Reason string `json:"reason"`
		} `json:"object"`
		By string `json:"set_by"`
	}
	if json.Unmarshal(document, &drains) != nil {
		return nil
	}
	failing := map[string]string{}
	for _, d := range drains {
		if why, ok := strings.CutPrefix(d.Object.Reason, ledger.AutomaticDrainReason); ok && d.By == "" {
			failing[d.Object.Node] = why
		}
	}
	return failing
}

// pilotOf reads the ad of a pilot.
func pilotOf(text string) (p plan.Pilot, ok bool) {
	ad, err := classad.Parse(text)
	if err != nil {
		return p, false
	}
	p.Ad = ad
	p.Name, _ = ad.Str(roost.AttrName)
	p.Key, _ = ad.Str(roost.AttrPilotKey)
	p.Host, _ = ad.Str(roost.AttrPilotHost)
	if until, ok := ad.Int(roost.AttrPilotUntil); ok {
		p.Until = time.Unix(until, 0)
	}
	if strings.TrimSpace(p.Key) == "" || p.Name == "" {
		return p, false
	}
	return p, true
}
