package guard

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
)

// startdStream is the connection to one startd. While it is busy only the newest
// observations are kept, as each is complete.
type startdStream struct{ next chan *wire.GuardSigns }

// replace replaces the observations that wait. Urgent ones stay urgent until they are
// sent. Only the loop calls it.
func (s *startdStream) replace(observations *wire.GuardSigns) {
	select {
	case old := <-s.next:
		if old.GetUrgent() && !observations.GetUrgent() {
			observations = urgentObservations(observations)
		}
	default:
	}
	s.next <- observations
}

// urgentObservations returns the same observations, marked as urgent.
func urgentObservations(s *wire.GuardSigns) *wire.GuardSigns {
	return &wire.GuardSigns{
		Sequence: s.Sequence, Urgent: true, Input: s.Input, ConsoleInput: s.ConsoleInput, Busy: s.Busy,
		Sources: s.Sources, ForeignCpu: s.ForeignCpu, ForeignBusySince: s.ForeignBusySince,
		MemoryPressure: s.MemoryPressure, CpuPressure: s.CpuPressure, MemoryAvailable: s.MemoryAvailable,
		OnBattery: s.OnBattery, Hot: s.Hot, Game: s.Game, Asleep: s.Asleep,
		Pause: s.Pause, OwnerRules: s.OwnerRules, Frozen: s.Frozen,
	}
}

// Watch sends the guard's observations to a startd of this host, and receives its
// reports.
func (g *daemonContext) Watch(conn grpc.BidiStreamingServer[wire.GuardReport, wire.GuardSigns]) error {
	ctx, cancel := context.WithCancel(conn.Context())
	defer cancel()
	first, err := conn.Recv()
	if err != nil {
		return err
	}
	name := first.GetStartd()
	if _, ok := g.node.Startd(name); !ok {
		return fmt.Errorf("startd %q: %w: this node has none of that name", name, roost.Invalid)
	}
	peer, _ := peer.FromContext(ctx)
	s := &startdStream{next: make(chan *wire.GuardSigns, 1)}
	err = g.call(ctx, func() {
		l := g.loopState
		l.streams[s] = true
		r := l.records.record(name)
		r.connected, r.pid = true, peer.PID
		l.unsaved = r.onReport(first) || l.unsaved
		if l.state.lastSent != nil {
			s.replace(l.state.lastSent)
		}
		g.log.Info("a startd follows", "startd", name, "pid", peer.PID)
	})
	if err != nil {
		return err
	}
	defer g.post(context.WithoutCancel(ctx), func() {
		delete(g.loopState.streams, s)
		if r := g.loopState.records.record(name); r.pid == peer.PID {
			r.onDisconnect(time.Now())
			g.log.Warn("a startd does not follow any more", "startd", name)
		}
	})
	go func() {
		defer cancel()
		for {
			report, err := conn.Recv()
			if err != nil || !g.post(ctx, func() {
				g.loopState.unsaved = g.loopState.records.record(name).onReport(report) || g.loopState.unsaved
			}) {
				return
			}
		}
	}()
	for {
		select {
		case observations := <-s.next:
			if err := conn.Send(observations); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		case <-g.stopped:
			return nil
		}
	}
}

// Pause stops tasks on the machine until its owner resumes it.
func (g *daemonContext) Pause(ctx context.Context, req *wire.PauseRequest) (*wire.OwnerReply, error) {
	began := time.Now()
	who, err := g.authorizePause(ctx)
	if err != nil {
		return nil, err
	}
	if u := req.GetUntil(); u != 0 && u <= time.Now().UnixNano() {
		return nil, fmt.Errorf("pause: %w: its end has passed", roost.Invalid)
	}
	reason := req.GetReason()
	p := newPause(req.GetUntil(), who, reason[:min(len(reason), maxReason)], time.Now(), g.boot, boottime.Now())
	g.log.Info("paused", "by", who, "until", req.GetUntil(), "reason", p.Reason)
	saved := make(chan error, 1)
	reply, err := g.setPause(ctx, p, func() {
		go func() { saved <- savePause(g.dir, p) }() // the disk may be slow, and the tasks must be frozen at once
	}, began)
	if err != nil {
		return nil, err
	}
	if err := <-saved; err != nil {
		return nil, fmt.Errorf("tasks stand still, but the pause will not outlive the guard: %w", err)
	}
	return reply, nil
}

// Resume ends the pause: the machine is available again while its owner is away.
func (g *daemonContext) Resume(ctx context.Context, _ *wire.ResumeRequest) (*wire.OwnerReply, error) {
	began := time.Now()
	who, err := g.authorizePause(ctx)
	if err != nil {
		return nil, err
	}
	if err := removePause(g.dir); err != nil { // first, or a guard that dies now would restore the pause
		return nil, fmt.Errorf("resume: %w: %w", roost.NoOutput, err)
	}
	g.log.Info("resumed", "by", who)
	return g.setPause(ctx, nil, func() {}, began)
}

// setPause sets or removes the pause, and waits until the startds have acted on it.
func (g *daemonContext) setPause(ctx context.Context, p *OwnerPause, then func(),
	began time.Time) (*wire.OwnerReply, error) {
	a := actionWaiter{done: make(chan struct{})}
	reply := &wire.OwnerReply{}
	err := g.call(ctx, func() {
		g.state.pause = p
		observations := g.loopState.sendObservations(true)
		if p != nil { // startds that acted on the last observations may do otherwise now, and a caller waits
			g.records.expectAck(observations.GetSequence(), true, time.Now())
		}
		a.sequence = observations.GetSequence()
		g.loopState.waiters = append(g.loopState.waiters, a)
		reply.Pause = g.state.activePause()
		then()
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-a.done:
	case <-g.stopped:
	case <-ctx.Done():
	}
	var groups []cgroup.TaskDir
	taskCount := 0
	if err := g.call(ctx, func() {
		for _, r := range g.records.sortedRecords() {
			groups = append(groups, r.taskDirs()...)
			for _, t := range r.report.GetTenants() {
				if t.GetState() != "running" && r.connected {
					taskCount++
				}
			}
		}
	}); err != nil {
		return nil, err
	}
	reply.Took = int64(time.Since(began))
	reply.Frozen = uint32(cgroup.CountFrozen(groups))
	if len(groups) == 0 {
		reply.Frozen = uint32(taskCount) // without cgroups only the startds' reports are known
	}
	return reply, nil
}

// Mine reports the tasks and the state of the machine to any user on it.
func (g *daemonContext) Mine(ctx context.Context, _ *wire.MineRequest) (*wire.MineReply, error) {
	reply := &wire.MineReply{Policy: g.policyNames()}
	err := g.call(ctx, func() {
		reply.Signs = g.state.lastSent
		if reply.Signs == nil {
			reply.Signs = g.state.currentObservations()
		}
		for _, r := range g.records.sortedRecords() {
			if r.report != nil {
				reply.Startds = append(reply.Startds, r.currentReport())
			}
		}
	})
	return reply, err
}
