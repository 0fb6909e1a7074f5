package guard

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/idle"
)

// stream is the connection to one startd. Of signs that it has no time for only the newest are kept, for each is a whole picture.
type stream struct{ next chan *wire.GuardSigns }

// put replaces what waits. What was urgent stays so until it was said. Only the loop calls it.
func (s *stream) put(signs *wire.GuardSigns) {
	select {
	case old := <-s.next:
		if old.GetUrgent() && !signs.GetUrgent() {
			signs = urgentCopy(signs)
		}
	default:
	}
	s.next <- signs
}

// urgentCopy is the same picture, said urgently.
func urgentCopy(s *wire.GuardSigns) *wire.GuardSigns {
	return &wire.GuardSigns{
		Sequence: s.Sequence, Urgent: true, Input: s.Input, ConsoleInput: s.ConsoleInput, Busy: s.Busy, Sources: s.Sources, ForeignCpu: s.ForeignCpu, ForeignBusySince: s.ForeignBusySince,
		MemoryPressure: s.MemoryPressure, CpuPressure: s.CpuPressure, MemoryAvailable: s.MemoryAvailable, OnBattery: s.OnBattery, Hot: s.Hot, Game: s.Game, Asleep: s.Asleep,
		Pause: s.Pause, OwnerRules: s.OwnerRules, Frozen: s.Frozen,
	}
}

// Watch tells a startd of this host what the guard sees, and hears what it did about it.
func (g *guard) Watch(conn grpc.BidiStreamingServer[wire.GuardReport, wire.GuardSigns]) error {
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
	peer, _ := auth.FromContext(ctx)
	s := &stream{next: make(chan *wire.GuardSigns, 1)}
	err = g.ask(ctx, func() {
		l := g.live
		l.streams[s] = true
		r := l.books.of(name)
		r.present, r.pid = true, peer.PID
		l.dirty = r.heard(first) || l.dirty
		if l.state.said != nil {
			s.put(l.state.said)
		}
		g.log.Info("a startd follows", "startd", name, "pid", peer.PID)
	})
	if err != nil {
		return err
	}
	defer g.do(context.WithoutCancel(ctx), func() {
		delete(g.live.streams, s)
		if r := g.live.books.of(name); r.pid == peer.PID {
			r.left(time.Now())
			g.log.Warn("a startd does not follow any more", "startd", name)
		}
	})
	go func() {
		defer cancel()
		for {
			report, err := conn.Recv()
			if err != nil || !g.do(ctx, func() {
				g.live.dirty = g.live.books.of(name).heard(report) || g.live.dirty
			}) {
				return
			}
		}
	}()
	for {
		select {
		case signs := <-s.next:
			if err := conn.Send(signs); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		case <-g.stopped:
			return nil
		}
	}
}

// Pause keeps tasks off the machine until its owner says otherwise.
func (g *guard) Pause(ctx context.Context, req *wire.PauseRequest) (*wire.OwnerReply, error) {
	began := time.Now()
	who, err := g.mayDecide(ctx)
	if err != nil {
		return nil, err
	}
	if u := req.GetUntil(); u != 0 && u <= time.Now().UnixNano() {
		return nil, fmt.Errorf("pause: %w: its end has passed", roost.Invalid)
	}
	reason := req.GetReason()
	p := newPause(req.GetUntil(), who, reason[:min(len(reason), maxReason)], time.Now(), g.boot, idle.Now())
	g.log.Info("paused", "by", who, "until", req.GetUntil(), "reason", p.Reason)
	kept := make(chan error, 1)
	reply, err := g.decide(ctx, p, func() {
		go func() { kept <- savePause(g.dir, p) }() // the disk may be slow, and the tasks have to stand at once
	}, began)
	if err != nil {
		return nil, err
	}
	if err := <-kept; err != nil {
		return nil, fmt.Errorf("tasks stand still, but the pause will not outlive the guard: %w", err)
	}
	return reply, nil
}

// Resume lends the machine again, while its owner is away.
func (g *guard) Resume(ctx context.Context, _ *wire.ResumeRequest) (*wire.OwnerReply, error) {
	began := time.Now()
	who, err := g.mayDecide(ctx)
	if err != nil {
		return nil, err
	}
	if err := removePause(g.dir); err != nil { // first, or a guard that dies now would forget that he said yes
		return nil, fmt.Errorf("resume: %w: %w", roost.NoOutput, err)
	}
	g.log.Info("resumed", "by", who)
	return g.decide(ctx, nil, func() {}, began)
}

// decide puts a pause, or none, in force, and waits until what has to stand still does.
func (g *guard) decide(ctx context.Context, p *Pause, then func(), began time.Time) (*wire.OwnerReply, error) {
	a := answer{settled: make(chan struct{})}
	reply := &wire.OwnerReply{}
	err := g.ask(ctx, func() {
		g.state.pause = p
		signs := g.live.tell(true)
		if p != nil { // whoever acted on the last signs may act on other grounds now, and somebody waits for it
			g.books.expect(signs.GetSequence(), true, time.Now())
		}
		a.sequence = signs.GetSequence()
		g.live.answers = append(g.live.answers, a)
		reply.Pause = g.state.standing()
		then()
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-a.settled:
	case <-g.stopped:
	case <-ctx.Done():
	}
	var groups []cgroup.TaskDir
	tenants := 0
	if err := g.ask(ctx, func() {
		for _, r := range g.books.sorted() {
			groups = append(groups, r.groups()...)
			for _, t := range r.report.GetTenants() {
				if t.GetState() != "running" && r.present {
					tenants++
				}
			}
		}
	}); err != nil {
		return nil, err
	}
	reply.Took = int64(time.Since(began))
	reply.Frozen = uint32(cgroup.Standing(groups))
	if len(groups) == 0 {
		reply.Frozen = uint32(tenants) // without control groups there is only the startd's word
	}
	return reply, nil
}

// Mine says what runs here and how the machine stands, to everybody who is on it.
func (g *guard) Mine(ctx context.Context, _ *wire.MineRequest) (*wire.MineReply, error) {
	reply := &wire.MineReply{Policy: g.policy()}
	err := g.ask(ctx, func() {
		reply.Signs = g.state.said
		if reply.Signs == nil {
			reply.Signs = g.state.signs()
		}
		for _, r := range g.books.sorted() {
			if r.report != nil {
				reply.Startds = append(reply.Startds, r.seen())
			}
		}
	})
	return reply, err
}
