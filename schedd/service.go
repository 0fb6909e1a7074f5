package schedd

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/roost-batch/roost"
	ids "github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/fault"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// service answers users' calls. Each call runs in a goroutine of gRPC's and goes to the loop for what belongs to it.
type service struct {
	wire.UnimplementedScheddServer
	*Schedd
}

// ask runs f in the loop and waits for it.
func (s *Schedd) ask(ctx context.Context, f func(now time.Time)) error {
	done := make(chan struct{})
	if !s.post(ctx, op(func(now time.Time) { defer close(done); f(now) })) {
		return s.gone(ctx)
	}
	select {
	case <-done:
		return nil
	case <-s.life.Done():
		return s.gone(ctx)
	}
}

// askSettled is ask for what tells users how things stand: it returns when all that f saw is on disk, so that nobody is told of a completion
// that a crash could take back.
func (s *Schedd) askSettled(ctx context.Context, f func(now time.Time)) error {
	durable := make(chan struct{})
	if err := s.ask(ctx, func(now time.Time) { f(now); s.then(func() { close(durable) }) }); err != nil {
		return err
	}
	return s.settled(ctx, durable)
}

// gone is the error for a call that the end of the daemon, or of the caller, cut short.
func (s *Schedd) gone(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("schedd: %w: it is stopping", roost.Unavailable)
}

// caller returns the user at the other end, as the kernel knows them, or the login that they made here.
func (s *Schedd) caller(ctx context.Context) (queue.Submitter, error) {
	p, ok := auth.FromContext(ctx)
	if !ok || !p.Local {
		return s.far(p)
	}
	name, err := s.users.name(p.UID)
	if err != nil {
		return queue.Submitter{}, err
	}
	return queue.Submitter{User: name, UID: p.UID, GID: p.GID, Host: s.node.Name, Admin: p.Plays(auth.Schedd) || s.admins.has(name, s.node.Name)}, nil
}

// Submit takes jobs. When it returns, they are on disk.
func (s *service) Submit(ctx context.Context, req *wire.SubmitRequest) (*wire.SubmitReply, error) {
	who, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.mayRun(who); err != nil {
		return nil, err
	}
	if err := s.reserve.takes(); err != nil {
		return nil, err
	}
	specs, err := parseSpecs(req.GetJobs())
	if err != nil {
		return nil, err
	}
	if who, err = s.inGroup(who, specs); err != nil {
		return nil, err
	}
	if err := s.filesHere(ctx, who, specs); err != nil {
		return nil, err
	}
	if err := s.scriptsHere(who, specs); err != nil {
		return nil, err
	}
	impossible := s.impossible(ctx, specs)
	settle, err := s.admit(ctx, who, req.GetKey(), specs)
	if err != nil {
		return nil, err
	}
	reply := &wire.SubmitReply{}
	durable := make(chan struct{})
	if aerr := s.ask(ctx, func(now time.Time) {
		var events []queue.Event
		var ids []roost.JobID
		limits := s.limits()
		limits.Impossible = impossible
		events, ids, reply.RepeatedKey, err = s.queue.Submit(now, who, req.GetKey(), specs, limits)
		defer settle()
		if err != nil {
			return
		}
		for _, id := range ids {
			reply.Ids = append(reply.Ids, id.String())
		}
		s.decide(events...)
		s.removeReserved(ids, now)
		s.then(func() { close(durable) })
	}); aerr != nil {
		s.post(s.life, op(func(time.Time) { settle() }))
		return nil, aerr
	}
	if err != nil {
		return nil, err
	}
	if err := s.onDisk(ctx, durable); err != nil {
		return nil, err
	}
	return reply, nil
}

// onDisk waits until the batch is committed that an answer rests on.
func (s *Schedd) onDisk(ctx context.Context, durable <-chan struct{}) error {
	err := s.settled(ctx, durable)
	if err == nil {
		fault.Point(fault.ScheddAfterAnswer)
	}
	return err
}

// settled waits until a batch is committed, without the crash point of an answer.
func (s *Schedd) settled(ctx context.Context, durable <-chan struct{}) error {
	select {
	case <-durable:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.reserve.waits():
		return fmt.Errorf("%w; what was asked for is done when there is room", s.reserve.full())
	case <-s.life.Done():
		select {
		case <-durable: // the last batch was flushed
			return nil
		default:
			return s.gone(ctx)
		}
	}
}

// mayRun refuses users whose jobs no machine would run.
func (s *Schedd) mayRun(who queue.Submitter) error {
	own := uint32(os.Geteuid())
	if own != 0 && who.UID != own {
		return fmt.Errorf("%w: this is the pool of uid %d, and without root's rights it runs nobody else's jobs; start one of your own with roost up", roost.PermissionDenied, own)
	}
	if own == 0 {
		if err := ids.CheckUID(who.UID); err != nil {
			return err
		}
	}
	if who.UID < ids.FirstUser && !s.node.Schedd.AllowRoot && own == 0 {
		return fmt.Errorf("%w: jobs of root and of system users are not taken here; submit as yourself, or set allow_root in the node file", roost.PermissionDenied)
	}
	return nil
}
